import Devices
import JSONWebToken
import TrunklineBytes

/// Users whose grants the shared store of a cluster lacks, or has from an earlier token: this node serves its copy.
///
/// | input | gives |
/// |---|---|
/// | `insert` | – ; the user is stale |
/// | `remove` | – ; the store has the grant, or this node has none any longer |
/// | `keepUnreduced` | – ; for a stale user: the grant before a row of the store took numbers of it; the first one of a token stays |
/// | `replaced` | – ; a token has replaced the grant: nothing of an earlier one is written any more |
struct StaleGrants: Sendable {
  private(set) var users: Set<String> = []
  /// The same users: a reader of all of them reads in steps.
  private var order = OrderedKeys<String>()
  /// A digest of the users, the same at every node that has the same ones; 0: none.
  private(set) var digest: UInt64 = 0
  /// When a token last named the oldest grant of those that became stale since there was none; milliseconds since 1970.
  private(set) var oldest: Int64?
  /// These are written again, and the store decides by `iat`. In memory only.
  private var unreduced: [String: TokenGrant] = [:]

  func contains(_ user: String) -> Bool { users.contains(user) }

  /// The users after the given one (nil: from the first), ascending, at most `most`. Reads no others.
  func users(after last: String?, most: Int) -> [String] {
    var (out, walk) = ([String](), order.walk(after: last))
    while out.count < most, let user = walk.next() { out.append(user) }
    return out
  }

  mutating func insert(_ user: String, seen: Int64) {
    oldest = min(oldest ?? seen, seen)
    guard users.insert(user).inserted else { return }
    order.insert(user)
    digest ^= Self.digest(user)
  }

  mutating func remove(_ user: String) {
    guard users.remove(user) != nil else { return }
    order.remove(user)
    digest ^= Self.digest(user)
    unreduced[user] = nil
    if users.isEmpty { oldest = nil }
  }

  mutating func keepUnreduced(_ grant: TokenGrant, of user: String) {
    if contains(user), unreduced[user]?.issuedAt != grant.issuedAt { unreduced[user] = grant }
  }

  mutating func replaced(_ user: String) { unreduced[user] = nil }

  /// The grant with the numbers that it had before rows of the store took some.
  func unreduced(_ grant: TokenGrant, of user: String) -> TokenGrant {
    if let whole = unreduced[user], whole.issuedAt == grant.issuedAt { whole } else { grant }
  }

  /// Never 0: the digests of several users are combined by XOR.
  private static func digest(_ user: String) -> UInt64 { FNV1a(user.utf8).value | 1 << 63 }
}
