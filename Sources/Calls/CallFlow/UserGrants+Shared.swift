public import AppSessions
public import JSONWebToken
import Trunking

/// A user's grant as the nodes of a cluster exchange it.
public struct SharedGrant: Hashable, Sendable {
  public var user: String
  /// Nil: the user was erased; tokens issued until then grant nothing.
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

  /// The numbers that are left of the token's, -1 for an erased user: for one token the count only falls.
  public var rank: Int { grant?.numbers.count ?? -1 }

  /// Which of two grants of a user wins at all nodes: the later token; of one token, the grant with fewer numbers; then the
  /// one that was seen later.
  public func isLater(than other: SharedGrant) -> Bool {
    (issuedAt, -rank, seen) > (other.issuedAt, -other.rank, other.seen)
  }
}

/// Grants in a cluster's shared store: some of them, or all.
public struct SharedGrants: Sendable {
  public var rows: [SharedGrant]
  /// Set with the last rows of all: every user in the shared store, and `issuedAt`. The shared store lacks every grant that
  /// is later here.
  public var known: [String: Int64]?
  public init(_ rows: [SharedGrant], known: [String: Int64]? = nil) { (self.rows, self.known) = (rows, known) }
}

/// The grants of a cluster: all nodes reach the same state, in whatever order they receive the changes.
///
/// | received from another node | and | then |
/// |---|---|---|
/// | a later token of a user | | it replaces the user's grant; a number belongs to the later token, of two as late to the user whose id is greater |
/// | the same token | with fewer numbers | the others are removed here too |
/// | an earlier token | | nothing: the later one is on its way to that node |
/// | an erased user | the token here is not later | the grant is removed |
extension UserGrants {
  /// The latest token is handled first, so that a number that moves always has an owner. Costs some hashes for each number.
  /// - Returns: the changes that a store must write, and those that other nodes lack: users whose numbers a later token claimed.
  public mutating func merge(
    _ rows: [SharedGrant], _ rules: GrantRules?, at now: Int64
  ) -> (stored: [Change], shared: [SharedGrant]) {
    var out: (stored: [Change], shared: [SharedGrant]) = ([], [])
    for row in rows.sorted(by: { ($0.issuedAt, $0.user) > ($1.issuedAt, $1.user) }) {
      let known = entries[row.user]
      if let known, known.grant.issuedAt > row.issuedAt { continue }
      guard let grant = row.grant else {
        out.stored += remove(row.user)
        continue
      }
      guard let rules, (try? rules.check(grant)) != nil, now - row.seen < Limits.grantSeconds * 1_000 else { continue }
      merge(row, grant, known, at: now, &out)
    }
    return out
  }

  private mutating func merge(
    _ row: SharedGrant, _ grant: TokenGrant, _ known: Entry?, at now: Int64,
    _ out: inout (stored: [Change], shared: [SharedGrant])
  ) {
    var entry = Entry(user: row.user, grant: grant, seen: max(row.seen, known?.seen ?? 0))
    if let known, known.grant.issuedAt == grant.issuedAt {
      let left = Set(known.grant.numbers.map(Routing.canonical))
      entry.grant.numbers.removeAll { !left.contains(Routing.canonical($0)) }
    }
    var losers: Set<String> = []
    entry.grant.numbers.removeAll { number in
      guard let other = owners[String(Routing.canonical(number))], other != row.user else { return false }
      let isOurs = (grant.issuedAt, row.user) > (entries[other]?.grant.issuedAt ?? 0, other)
      if isOurs { losers.insert(other) }
      return !isOurs
    }
    if entry.grant != grant { out.shared.append(SharedGrant(entry)) }
    guard entry != known, let old = try? makeRoom(for: entry.grant, of: row.user, at: now) else { return }
    out.stored += old
    for case .stored(let loser) in losers.sorted().flatMap({ lose(entry.grant.numbers, from: $0) }) {
      out.stored.append(.stored(loser))
      out.shared.append(SharedGrant(loser))
    }
    forget(row.user)
    put(entry)
    out.stored.append(.stored(entry))
  }

  /// The grants that a shared store with these users lacks, or has from an earlier token.
  public func missing(in known: [String: Int64]) -> [SharedGrant] {
    entries.values.compactMap { entry in
      known[entry.user].map { $0 < entry.grant.issuedAt } ?? true ? SharedGrant(entry) : nil
    }
  }
}
