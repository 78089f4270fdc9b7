/// A call to the gateway itself, which sends back what it receives (docs/reference/protocol.md, Test calls).
public enum TestCall {
  /// The `h` of `call.start.to`, with `k: generic`.
  public static let handle = "trunkline:echo"
  /// In `welcome.caps` of a gateway that supports it.
  public static let capability = "echo"
  public static let destination = Handle(k: .generic, h: handle)
}
