public import AppSessions
public import JSONWebToken
import Trunking

/// A user's grant, as a node writes it to the shared store of a cluster, and as the shared store returns it.
public struct SharedGrant: Hashable, Sendable {
  public var user: String
  /// Written: with all numbers that the token claims. Read: with the numbers that the user owns. Nil: the user was erased; tokens
  /// issued before the erasure grant nothing.
  public var grant: TokenGrant?
  /// `iat` of the token, or when the user was erased; milliseconds since 1970.
  public var issuedAt: Int64
  /// As in `UserGrants.Entry`.
  public var seen: Int64

  public init(user: String, grant: TokenGrant?, issuedAt: Int64, seen: Int64) {
    (self.user, self.grant, self.issuedAt, self.seen) = (user, grant, issuedAt, seen)
  }

  package init(_ entry: UserGrants.Entry) {
    self.init(user: entry.user, grant: entry.grant, issuedAt: entry.grant.issuedAt, seen: entry.seen)
  }

  /// The grant's numbers in the form in which the shared store compares them, each once.
  public var canonicalNumbers: [String] {
    var out: [String] = []
    for number in grant?.numbers ?? [] {
      let canonical = String(Routing.canonical(number))
      if !out.contains(canonical) { out.append(canonical) }
    }
    return out
  }

  /// The grant with only those numbers that the user owns.
  public func with(numbers held: Set<String>) -> SharedGrant {
    var out = self
    out.grant?.numbers.removeAll { !held.contains(String(Routing.canonical($0))) }
    return out
  }
}

/// Grants in a cluster's shared store: the changed rows, or all rows.
public struct SharedGrants: Sendable {
  public var rows: [SharedGrant]
  /// In the first batch of a full read: `issuedAt` of every user in the shared store and of every user whose grant this node is
  /// writing.
  public var known: [String: Int64]?
  /// True in the last batch of a full read.
  public var isAll: Bool
  public init(_ rows: [SharedGrant], known: [String: Int64]? = nil, isAll: Bool = false) {
    (self.rows, self.known, self.isAll) = (rows, known, isAll)
  }
}

/// A cluster's grants. The shared store owns them, and each node has a copy, to which it applies the store's rows unchanged.
///
/// | row in the shared store | the copy before | the copy afterwards |
/// |---|---|---|
/// | a user's grant | no grant, an earlier token, or the same one | the store's row; other users lose its numbers |
/// | a user's grant | a later token | the later token: it is being written, or the store has lost it |
/// | an erased user | no later token | no grant |
/// | no row of the user | a grant | the grant, and the user is `stale`; no grant once no token has named it for 30 days |
extension UserGrants {
  /// Applies the latest token first, so that a number that moves always has a user. Costs some hashes for each number.
  /// - Returns: the changes that this node's store must write.
  public mutating func apply(_ rows: [SharedGrant], _ rules: GrantRules?, at now: Int64) -> [Change] {
    rows.sorted { ($0.issuedAt, $0.user) > ($1.issuedAt, $1.user) }.flatMap { apply($0, rules, at: now) }
  }

  private mutating func apply(_ row: SharedGrant, _ rules: GrantRules?, at now: Int64) -> [Change] {
    let known = entries[row.user]
    if let known, known.grant.issuedAt > row.issuedAt { return [] }
    guard let grant = row.grant else { return remove(row.user) }
    removeStale(row.user)
    guard let rules, (try? rules.check(grant)) != nil, now - row.seen < Limits.grantSeconds * 1_000 else { return [] }
    let entry = Entry(user: row.user, grant: grant, seen: max(row.seen, known?.seen ?? 0))
    guard entry != known, var changes = try? makeRoom(for: grant, of: row.user, at: now) else { return [] }
    let others = Set(grant.numbers.compactMap { owners[String(Routing.canonical($0))] }).subtracting([row.user])
    for other in others.sorted() { changes += lose(grant.numbers, from: other) }
    forget(row.user)
    put(entry)
    changes.append(.stored(entry))
    return changes
  }

  /// Marks the users whose grants the shared store lacks as `stale`, and removes the grants that have expired there. Call it
  /// before the store's rows are applied: these may remove numbers from the users that the store has lost.
  public mutating func compare(_ known: [String: Int64], at now: Int64) -> [Change] {
    let missing = entries.values.filter { entry in known[entry.user].map { $0 < entry.grant.issuedAt } ?? true }
    let kept = (Limits.grantSeconds - Limits.grantSeenSeconds) * 1_000
    setStale(Set(missing.lazy.filter { now - $0.seen < kept }.map(\.user)))
    return missing.filter { !stale.contains($0.user) }.flatMap { remove($0.user) }
  }

  /// The number of stale users, and how long ago a token last named the oldest of their grants; nil: none.
  package func lost(at now: Int64) -> (users: Int, age: Duration)? {
    guard let oldest = stale.lazy.compactMap({ entries[$0]?.seen }).min() else { return nil }
    return (stale.count, .milliseconds(max(0, now - oldest)))
  }

  /// The grant that must be written to the shared store after `accept`; nil if the store has it. `always`: it is not known
  /// whether the store has it.
  public func unshared(_ user: String, after changes: [Change], always: Bool = false) -> SharedGrant? {
    guard let entry = entries[user], always || stale.contains(user) || changes.contains(.stored(entry)) else { return nil }
    var grant = SharedGrant(entry)
    if let unreduced = unreduced[user], unreduced.issuedAt == grant.issuedAt { grant.grant = unreduced }
    return grant
  }
}
