/// The meaning of an answer for the push, its device and its sender. The tables are Apple's *handling notification responses*,
/// Firebase's *error codes* and RFC 8030 §5.
public enum PushVerdict: Hashable, Sendable {
  /// The service accepted it.
  case accepted
  /// Worth one more attempt inside the ring window, with the same id.
  case retry(Retry, reason: String)
  /// The registration was removed. `before`: only one older than this, in milliseconds since 1970; nil: whatever its age.
  case unregistered(before: Int64?, reason: String)
  /// The token belongs to another environment or topic: no more pushes until the app registers again.
  case tokenMismatch(reason: String)
  /// This call's push is lost; the device stays. `isFault`: the configuration or program is wrong, an operator must act.
  /// `freezesToken`: no new token for a while.
  case refused(reason: String, isFault: Bool, freezesToken: Bool = false)

  public enum Retry: Hashable, Sendable {
    /// On a new connection: this one is closing or broken.
    case otherConnection
    /// With a newly signed provider token.
    case newToken
    /// Without the caller's name and number: the payload was too large.
    case withoutCaller
    /// After this many seconds.
    case after(seconds: Int)
  }

  /// For metrics and traces: the service's reason where it gives one.
  public var reason: String {
    switch self {
    case .accepted: "accepted"
    case .retry(_, let reason), .unregistered(_, let reason), .tokenMismatch(let reason), .refused(let reason, _, _): reason
    }
  }
}
