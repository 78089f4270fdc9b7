public import HTTP
public import JSONWebToken

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A query to the operator's server about users that no file lists: `{"number": "+15551230001"}` or `{"user": "alice"}`.
public enum UserQuestion: Hashable, Sendable {
  /// Which user has this number.
  case number(String)
  /// Which numbers, limits and diversions this user has.
  case user(String)

  public var body: [UInt8] {
    let pair =
      switch self {
      case .number(let number): ["number": number]
      case .user(let user): ["user": user]
      }
    return (try? JSONEncoder().encode(pair)).map { [UInt8]($0) } ?? []
  }
}

/// `{"user": "alice", "grant": {"numbers": ["+15551230001"], "name": "Alice"}}`, with what a login token's claim may hold in
/// `grant`; or a 404.
public enum UserAnswer: Sendable, Equatable {
  case found(user: String, TokenGrant)
  case unknownUser

  /// Nil if the response is no answer: another status, not such an object, a member of another type or beyond its limit, or
  /// another user than the query names.
  public init?(_ answer: HTTPClientResponse, to question: UserQuestion) {
    if answer.status == 404 {
      self = .unknownUser
      return
    }
    guard answer.status == 200, answer.body.count <= Limits.userAnswerBytes,
      let read = try? JSONDecoder().decode(Body.self, from: Data(answer.body)), !read.user.isEmpty,
      read.user.utf8.count <= Limits.routeTextBytes, !read.user.unicodeScalars.contains(where: { $0.value < 32 })
    else { return nil }
    if case .user(let user) = question, user != read.user { return nil }
    self = .found(user: read.user, read.grant)
  }

  private struct Body: Decodable {
    var user: String
    var grant: TokenGrant
  }
}
