import JSONWebToken

/// Limits for the grants of login tokens: `users[].claims` of the row `any`, within that row's limits for every user.
public struct GrantRules: Sendable, Equatable {
  public static let defaultMaxNumbers = 10
  /// Prefixes of the numbers that may be granted.
  public var numbers: [String]
  /// Most numbers of one token.
  public var maxNumbers: Int
  public var acceptsDiversions: Bool
  /// Limits of each user without a claim, which no claim exceeds; nil: no limit.
  public var allow: [String]?
  public var maxCalls: Int?
  public var callsPerHour: Int?

  public init(
    numbers: [String], maxNumbers: Int = defaultMaxNumbers, acceptsDiversions: Bool = false, allow: [String]? = nil,
    maxCalls: Int? = nil, callsPerHour: Int? = nil
  ) {
    (self.numbers, self.maxNumbers, self.acceptsDiversions) = (numbers, maxNumbers, acceptsDiversions)
    (self.allow, self.maxCalls, self.callsPerHour) = (allow, maxCalls, callsPerHour)
  }

  /// Throws the first part of the grant that exceeds the rules: a token is accepted whole or refused, never narrowed.
  public func check(_ grant: TokenGrant) throws(TokenGrant.Fault) {
    guard grant.numbers.count <= maxNumbers else {
      throw .init("numbers", "has more than \(maxNumbers): see users[].claims.max_numbers")
    }
    for (index, number) in grant.numbers.enumerated() where !numbers.contains(where: number.hasPrefix) {
      throw .init("numbers[\(index)]", "\(number) is not one that users[].claims.numbers lets a token grant")
    }
    if let allow {
      for (index, prefix) in (grant.allow ?? []).enumerated() where !allow.contains(where: prefix.hasPrefix) {
        throw .init("allow[\(index)]", "\"\(prefix)\" is wider than users[].allow of any")
      }
    }
    if let maxCalls, let wanted = grant.maxCalls, wanted > maxCalls {
      throw .init("max_calls", "is more than the \(maxCalls) of any")
    }
    if let callsPerHour, let wanted = grant.callsPerHour, wanted > callsPerHour {
      throw .init("calls_per_hour", "is more than the \(callsPerHour) of any")
    }
    if !acceptsDiversions, !grant.diversions.isEmpty { throw .init("diversions", "need users[].claims.diversions: true") }
  }
}
