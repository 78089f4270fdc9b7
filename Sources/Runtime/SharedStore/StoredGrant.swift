import CallModel
import Cluster
import JSONWebToken

/// `"t":`, the token's `iat`, and `"s":`, when a token last named it, come first: a script reads them there.
struct StoredGrant: StoredValue {
  var format = Cluster.Limits.format
  var issuedAt: Int64?
  var seen: Int64?
  /// The claim; nil: erased.
  var claim: TokenGrant?

  enum CodingKeys: String, CodingKey {
    case format = "v"
    case issuedAt = "t"
    case seen = "s"
    case claim = "g"
  }

  init(_ grant: SharedGrant) { claim = grant.grant }

  func value(_ user: String) -> SharedGrant? {
    guard let issuedAt, let seen, isPlausible(issuedAt, seen), !user.isEmpty,
      user.utf8.count <= JSONWebToken.Limits.claimBytes, isPlain(user)
    else { return nil }
    var grant = claim
    grant?.issuedAt = issuedAt
    return SharedGrant(user: user, grant: grant, issuedAt: issuedAt, seen: seen)
  }
}
