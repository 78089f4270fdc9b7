public import AppSessions
public import JSONWebToken
import Trunking

/// A user's grant: as a node writes it to the shared store of a cluster, and as the shared store has it.
public struct SharedGrant: Hashable, Sendable {
  public var user: String
  /// Written: with the numbers that the token claims. Read: with those of them that the user has. Nil: the user was erased; tokens of until then
  /// grant nothing.
  public var grant: TokenGrant?
  /// `iat` of the token, or when the user was erased; milliseconds since 1970.
  public var issuedAt: Int64
  /// As in `UserGrants.Entry`.
  public var seen: Int64

  public init(user: String, grant: TokenGrant?, issuedAt: Int64, seen: Int64) {
    (self.user, self.grant, self.issuedAt, self.seen) = (user, grant, issuedAt, seen)
  }

  init(_ entry: UserGrants.Entry) {
    self.init(user: entry.user, grant: entry.grant, issuedAt: entry.grant.issuedAt, seen: entry.seen)
  }

  /// Its numbers as the shared store compares them, each once.
  public var canonicalNumbers: [String] {
    var out: [String] = []
    for number in grant?.numbers ?? [] {
      let canonical = String(Routing.canonical(number))
      if !out.contains(canonical) { out.append(canonical) }
    }
    return out
  }

  /// With those of its numbers that the user has.
  public func with(numbers held: Set<String>) -> SharedGrant {
    var out = self
    out.grant?.numbers.removeAll { !held.contains(String(Routing.canonical($0))) }
    return out
  }
}

/// What a cluster's shared store has of grants: what has changed, or all.
public struct SharedGrants: Sendable {
  public var rows: [SharedGrant]
  /// With the first rows of all: `issuedAt` of every user that the shared store has, or gets from this node.
  public var known: [String: Int64]?
  /// With the last rows of all.
  public var isAll: Bool
  public init(_ rows: [SharedGrant], known: [String: Int64]? = nil, isAll: Bool = false) {
    (self.rows, self.known, self.isAll) = (rows, known, isAll)
  }
}

/// A cluster's grants: the shared store owns them, and a node has a copy. It applies the store's rows as they are.
///
/// | the shared store has | the copy has | the copy then has |
/// |---|---|---|
/// | a user's grant | nothing, an earlier token, or the same one | the store's row; other users lose its numbers |
/// | a user's grant | a later token | its own, which is being written, or which the store has lost |
/// | an erased user | no later token | nothing of the user |
/// | nothing of a user | a grant | its own, and the user is `stale`; nothing once no token has named it for 30 days |
extension UserGrants {
  /// The latest token first: a number that moved has a user at each moment. Costs some hashes for each number.
  /// - Returns: what this node's store is to hold.
  public mutating func apply(_ rows: [SharedGrant], _ rules: GrantRules?, at now: Int64) -> [Change] {
    rows.sorted { ($0.issuedAt, $0.user) > ($1.issuedAt, $1.user) }.flatMap { apply($0, rules, at: now) }
  }

  private mutating func apply(_ row: SharedGrant, _ rules: GrantRules?, at now: Int64) -> [Change] {
    let known = entries[row.user]
    if let known, known.grant.issuedAt > row.issuedAt { return [] }
    guard let grant = row.grant else { return remove(row.user) }
    stale.remove(row.user)
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

  /// What the shared store lacks stays, and is reported, unless it has expired there. Before its rows are applied: they may take numbers from
  /// what it has lost.
  public mutating func compare(_ known: [String: Int64], at now: Int64) -> [Change] {
    let missing = entries.values.filter { entry in known[entry.user].map { $0 < entry.grant.issuedAt } ?? true }
    let kept = (Limits.grantSeconds - Limits.grantSeenSeconds) * 1_000
    stale = Set(missing.lazy.filter { now - $0.seen < kept }.map(\.user))
    return missing.filter { !stale.contains($0.user) }.flatMap { remove($0.user) }
  }

  /// What the shared store is to get after `accept`; nil: it has it. `always`: whether it has it is not known.
  public func unshared(_ user: String, after changes: [Change], always: Bool = false) -> SharedGrant? {
    guard let entry = entries[user], always || stale.contains(user) || changes.contains(.stored(entry)) else { return nil }
    return SharedGrant(entry)
  }
}
