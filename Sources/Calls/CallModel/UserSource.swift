public import PushPolicy

/// The server that knows users which no file lists: queried by number and by user; answers are cached.
public struct UserSource: Sendable, Equatable {
  public var webhook: Webhook
  /// How long an answer is valid, also a negative one.
  public var cache: Duration
  public init(_ webhook: Webhook, cache: Duration = .seconds(60)) { (self.webhook, self.cache) = (webhook, cache) }
}
