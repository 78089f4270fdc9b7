/// What the stand-in does with a request: as asked for on the command line, one after the other, the last for all that follow.
public enum SandboxAnswer: Sendable, Hashable {
  /// What the rules say: 200 for a request that APNs or FCM would take.
  case real
  /// This status with its usual reason, whatever the request.
  case status(Int)
  /// The connection says goodbye and closes; the request is not answered.
  case goAway
  /// The stream is reset without an answer.
  case drop
  /// The real answer so much later.
  case delay(milliseconds: Int)
  /// Delivered, but after the next push to the same app.
  case reorder

  /// `200`, `410`, `real`, `goaway`, `drop`, `delay:250`, `reorder`; nil for anything else.
  public init?(_ text: String) {
    switch text {
    case "real", "200": self = .real
    case "goaway": self = .goAway
    case "drop": self = .drop
    case "reorder": self = .reorder
    default:
      if text.hasPrefix("delay:"), let milliseconds = Int(text.dropFirst(6)), (0...600_000).contains(milliseconds) {
        self = .delay(milliseconds: milliseconds)
      } else if let status = Int(text), Self.reasons[status] != nil {
        self = .status(status)
      } else {
        return nil
      }
    }
  }

  /// The reason that goes with a status that was asked for.
  static let reasons: [Int: String] = [
    400: "BadDeviceToken", 403: "InvalidProviderToken", 404: "BadPath", 405: "MethodNotAllowed", 410: "Unregistered",
    413: "PayloadTooLarge", 429: "TooManyRequests", 500: "InternalServerError", 503: "ServiceUnavailable",
  ]
  /// The same, as FCM names them.
  static let codes: [Int: String] = [
    400: "INVALID_ARGUMENT", 403: "SENDER_ID_MISMATCH", 404: "UNREGISTERED", 410: "UNREGISTERED", 413: "INVALID_ARGUMENT",
    429: "QUOTA_EXCEEDED", 500: "INTERNAL", 503: "UNAVAILABLE",
  ]
}
