/// What a `handle` call caused, appended in order. Owned by the caller and reused: take what is there, then `removeAll()`.
public struct Output: Sendable {
  public struct Message: Sendable {
    public var bytes: [UInt8]
    public var flow: Flow
    public init(bytes: [UInt8], flow: Flow) { (self.bytes, self.flow) = (bytes, flow) }
  }

  /// Messages to send now. A retransmission is a message like any other.
  public var messages: [Message] = []
  public var events: [Event] = []

  public init() {}

  /// Empties both lists and keeps their storage.
  public mutating func removeAll() {
    messages.removeAll(keepingCapacity: true)
    events.removeAll(keepingCapacity: true)
  }
}
