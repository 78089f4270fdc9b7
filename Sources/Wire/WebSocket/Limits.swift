/// The named limits of this module.
public enum Limits {
  /// Payload of a control frame (RFC 6455 §5.5).
  public static let controlBytes = 125
}
