public import TrunklineBytes

/// What a token of the admin API may do; none of them implies another.
public enum APIScope: String, Sendable, CaseIterable {
  /// To look.
  case read
  /// To make calls and to act on them.
  case calls
  /// To turn devices away, and to push to them.
  case users
  /// Trunks, nodes, log levels, traces.
  case admin
}

/// A bearer token of the admin API.
public struct APIToken: Sendable, Equatable {
  /// Who has it, for people.
  public var name: String
  /// One; or two while it is changed, and both are good.
  public var secrets: [Redacted<[UInt8]>]
  public var scopes: Set<APIScope>
  /// Requests a second; nil: no limit.
  public var perSecond: Int?
  public init(
    name: String, secrets: [Redacted<[UInt8]>], scopes: Set<APIScope> = Set(APIScope.allCases), perSecond: Int? = nil
  ) {
    (self.name, self.secrets, self.scopes, self.perSecond) = (name, secrets, scopes, perSecond)
  }

  /// In time that does not depend on how much of a secret is right.
  public func matches(_ given: [UInt8]) -> Bool {
    var isKnown = false
    for secret in secrets where constantTimeEqual(given, secret.exposed) { isKnown = true }
    return isKnown
  }
}
