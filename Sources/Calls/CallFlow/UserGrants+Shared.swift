public import AppSessions
public import JSONWebToken
import Trunking

/// A user's grant as the nodes of a cluster tell it each other.
public struct SharedGrant: Hashable, Sendable {
  public var user: String
  /// Nil: the user was erased; tokens of until then grant nothing.
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

  /// The numbers that are left of its token's, -1 of an erased user's: of one token they only become fewer.
  public var rank: Int { grant?.numbers.count ?? -1 }

  /// Which of two of a user holds at all nodes: the later token; of one token that with fewer numbers; then that which was seen later.
  public func isLater(than other: SharedGrant) -> Bool {
    (issuedAt, -rank, seen) > (other.issuedAt, -other.rank, other.seen)
  }
}

/// What a cluster's shared store has of grants: some of it, or all.
public struct SharedGrants: Sendable {
  public var rows: [SharedGrant]
  /// With the last rows of all: every user that the shared store has, and `issuedAt`. Whatever is later here it lacks.
  public var known: [String: Int64]?
  public init(_ rows: [SharedGrant], known: [String: Int64]? = nil) { (self.rows, self.known) = (rows, known) }
}

/// A cluster's grants: every node comes to the same, in whatever order it hears of them.
///
/// | of another node | and | then |
/// |---|---|---|
/// | a later token of a user | | it replaces the user's; a number is whose token is later, of two as late that of the user whose id is greater |
/// | the same token | with fewer numbers | the others are lost here too |
/// | an earlier one | | nothing: ours is on its way there |
/// | an erased user | the token here is not later | it goes |
extension UserGrants {
  /// The latest token first: a number that moves is nobody's at no moment. Costs some hashes for each number.
  /// - Returns: what a store has to hold, and what other nodes do not know yet: whose numbers were lost to a later token.
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

  /// What a shared store with these users lacks, or has an earlier token of.
  public func missing(in known: [String: Int64]) -> [SharedGrant] {
    entries.values.compactMap { entry in
      known[entry.user].map { $0 < entry.grant.issuedAt } ?? true ? SharedGrant(entry) : nil
    }
  }
}
