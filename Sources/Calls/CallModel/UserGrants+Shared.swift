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

  /// About the octets of its texts.
  package var octets: Int {
    let texts = (grant?.numbers ?? []) + (grant?.allow ?? []) + [user, grant?.name ?? "", grant?.account ?? ""]
    return texts.reduce(0) { $0 + $1.utf8.count }
  }

  /// The grant with only those numbers that the user owns.
  public func with(numbers held: Set<String>) -> SharedGrant {
    var out = self
    out.grant?.numbers.removeAll { !held.contains(String(Routing.canonical($0))) }
    return out
  }
}

/// Grants in a cluster's shared store, in steps. A full read is a comparison with as many steps as it takes, then all rows.
public enum SharedGrants: Sendable {
  /// Before the rows of a full read: `issuedAt` of every user in the shared store and of every user whose grant this node is
  /// writing. Begins the comparison with this node's copy, and does its first step.
  case comparison(known: [String: Int64])
  /// The next step of the comparison.
  case comparisonStep
  /// Rows, the latest token first. `isAll`: the last ones of a full read.
  case rows([SharedGrant], isAll: Bool)
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
    staleGrants.remove(row.user)
    comparison?.know(row.user, row.issuedAt)
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

  /// Begins to compare the copy with the shared store; `compareNext` does it. An unfinished comparison ends. Call it before the
  /// store's rows are applied: these may remove numbers from the users that the store has lost.
  public mutating func beginComparison(_ known: [String: Int64]) { comparison = Comparison(known) }

  public var isComparing: Bool { comparison != nil }

  /// Compares the next `most` users, at most: marks those whose grants the shared store lacks as `stale`, and removes the grants
  /// that have expired there.
  /// - Returns: the changes, and the stale users of this step.
  public mutating func compareNext(most: Int, at now: Int64) -> (changes: [Change], stale: [String]) {
    guard comparison != nil else { return ([], []) }
    let users = users(after: comparison?.last, most: most)
    let kept = (Limits.grantSeconds - Limits.grantSeenSeconds) * 1_000
    var (changes, stale) = ([Change](), [String]())
    for user in users {
      guard let entry = entries[user] else { continue }
      if comparison?.lacks(entry) != true {
        staleGrants.remove(user)
      } else if now - entry.seen < kept {
        staleGrants.insert(user, seen: entry.seen)
        stale.append(user)
      } else {
        changes += remove(user)
      }
    }
    if users.count < most { comparison = nil } else { comparison?.last = users.last }
    return (changes, stale)
  }

  /// The number of stale users, and how long ago a token last named the oldest of their grants; nil: none.
  package func lost(at now: Int64) -> (users: Int, age: Duration)? {
    staleGrants.oldest.map { (staleGrants.users.count, .milliseconds(max(0, now - $0))) }
  }

  /// The grants of stale users after the given one (nil: from the first), as they must be written to the shared store: at most
  /// `most`, and no more once they have `octets`.
  package func lost(after last: String?, most: Int, octets: Int) -> [SharedGrant] {
    var (out, size) = ([SharedGrant](), 0)
    for user in staleGrants.users(after: last, most: most) where size < octets {
      guard let grant = written(user) else { continue }
      out.append(grant)
      size += grant.octets
    }
    return out
  }

  /// The grant that must be written to the shared store after `accept`; nil if the store has it. `always`: it is not known
  /// whether the store has it.
  public mutating func unshared(_ user: String, after changes: [Change], always: Bool = false) -> SharedGrant? {
    guard let entry = entries[user], always || staleGrants.contains(user) || changes.contains(.stored(entry)) else { return nil }
    comparison?.know(user, entry.grant.issuedAt)
    return written(user)
  }

  private func written(_ user: String) -> SharedGrant? {
    guard let entry = entries[user] else { return nil }
    var grant = SharedGrant(entry)
    grant.grant = staleGrants.unreduced(entry.grant, of: user)
    return grant
  }

  /// What the shared store has, while the copy is compared with it.
  struct Comparison: Sendable {
    private var known: [String: Int64]
    /// The last user that was compared; nil: none yet.
    fileprivate(set) var last: String?

    init(_ known: [String: Int64]) { self.known = known }

    func hasPassed(_ user: String) -> Bool { last.map { user <= $0 } ?? false }
    func lacks(_ entry: Entry) -> Bool { known[entry.user].map { $0 < entry.grant.issuedAt } ?? true }

    /// The user's grant is being written, or its row has been read again.
    mutating func know(_ user: String, _ issuedAt: Int64) {
      if !hasPassed(user) { known[user] = max(known[user] ?? issuedAt, issuedAt) }
    }
  }
}
