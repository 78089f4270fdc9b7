/// The users whose devices may connect with a valid login token.
public enum SessionUsers: Sendable, Equatable, ExpressibleByArrayLiteral {
  /// Only these ids.
  case listed(Set<String>)
  /// Every `sub` that is not empty: the issuer of the tokens decides which users exist.
  case any

  public init(arrayLiteral ids: String...) { self = .listed(Set(ids)) }

  public func contains(_ user: String) -> Bool {
    switch self {
    case .listed(let ids): ids.contains(user)
    case .any: !user.isEmpty
    }
  }
}
