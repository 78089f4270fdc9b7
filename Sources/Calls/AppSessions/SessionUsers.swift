/// Whose devices may connect, of those with a valid login token.
public enum SessionUsers: Sendable, Equatable, ExpressibleByArrayLiteral {
  /// These ids.
  case listed(Set<String>)
  /// Every `sub`: whoever signs the tokens says who there is.
  case any

  public init(arrayLiteral ids: String...) { self = .listed(Set(ids)) }

  public func contains(_ user: String) -> Bool {
    switch self {
    case .listed(let ids): ids.contains(user)
    case .any: !user.isEmpty
    }
  }
}
