/// The stand-in's answer to a request, from the command line: one after the other, the last for all further requests.
public enum SandboxAnswer: Sendable, Hashable {
  /// The answer by the rules: 200 for a request that APNs or FCM would accept.
  case real
  /// This status with its usual reason, for any request.
  case status(Int)
  /// The connection sends GOAWAY and closes; the request is not answered.
  case goAway
  /// The stream is reset without an answer.
  case drop
  /// The real answer after this delay.
  case delay(milliseconds: Int)
  /// Delivered, but after the next push to the same app.
  case reorder

  /// Reads `200`, `410`, `real`, `goaway`, `drop`, `delay:250`, `reorder`; nil for other texts.
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

  /// APNs' reason for a requested status.
  static let reasons: [Int: String] = [
    400: "BadDeviceToken", 403: "InvalidProviderToken", 404: "BadPath", 405: "MethodNotAllowed", 410: "Unregistered",
    413: "PayloadTooLarge", 429: "TooManyRequests", 500: "InternalServerError", 503: "ServiceUnavailable",
  ]
  /// FCM's code for a requested status.
  static let codes: [Int: String] = [
    400: "INVALID_ARGUMENT", 403: "SENDER_ID_MISMATCH", 404: "UNREGISTERED", 410: "UNREGISTERED", 413: "INVALID_ARGUMENT",
    429: "QUOTA_EXCEEDED", 500: "INTERNAL", 503: "UNAVAILABLE",
  ]
}
