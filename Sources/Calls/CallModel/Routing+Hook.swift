public import PushPolicy

extension Routing {
  public struct Hook: Sendable, Equatable {
    /// What applies if the webhook names no user in time.
    public enum Fallback: Sendable, Equatable {
      /// The user whose number was called.
      case users
      case user(String)
      case code(Int)
    }
    public var webhook: Webhook
    public var fallback: Fallback
    public init(_ webhook: Webhook, fallback: Fallback = .users) { (self.webhook, self.fallback) = (webhook, fallback) }
  }

  package func owner(of number: String) -> String? { directory.owner(of: number)?.user }
}
