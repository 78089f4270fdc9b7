public import AppSessions
import Devices
public import JSONWebToken
import Trunking

/// Numbers, limits and diversions that login tokens granted to users outside the configuration. A value without clock or
/// disk: each mutation returns the `Change`s that a store must write.
///
/// | a token with | and | becomes |
/// |---|---|---|
/// | a first or later `iat` of its user | its numbers are free, or another user's by an earlier `iat` | the user's grant; in the same step the other user loses those numbers for good |
/// | the same | another user has a number by a token that is as late or later | a fault: nothing changes |
/// | an earlier `iat` than the user's grant, or the same token again | – | seen; the grant stays |
///
/// A logout changes nothing: the numbers then belong to a user without a device. A grant that no token named for
/// `Limits.grantSeconds` (30 days) is evicted when the table is full, and is not loaded again.
///
/// What concerns all users is done in steps (`compareNext`, `keep`): a table of 200,000 users would hold up calls.
public struct UserGrants: Sendable {
  public struct Entry: Hashable, Sendable {
    public var user: String
    public var grant: TokenGrant
    /// When a token last named the grant; milliseconds since 1970.
    public var seen: Int64
    public init(user: String, grant: TokenGrant, seen: Int64) { (self.user, self.grant, self.seen) = (user, grant, seen) }
  }
  public enum Change: Hashable, Sendable {
    case stored(Entry)
    case removed(user: String)

    public var user: String {
      switch self {
      case .stored(let entry): entry.user
      case .removed(let user): user
      }
    }
  }
  public enum Fault: Error, Hashable, Sendable {
    /// Another user has the number at this index.
    case ownedByOther(Int)
    case full
  }

  package private(set) var entries: [String: Entry] = [:]
  /// Users by canonical number.
  package private(set) var owners: [String: String] = [:]
  /// The users of `entries`, ascending, and by the time of their last token.
  private var order = OrderedKeys<String>()
  private var ages = OrderedKeys<Age>()
  var staleGrants = StaleGrants()
  /// Set between `beginComparison` and the last `compareNext`.
  var comparison: Comparison?
  private let users: Int
  private let numbers: Int

  public init() { self.init(users: Limits.grantedUsers, numbers: Limits.tableGrantedNumbers) }

  /// Tests set lower limits.
  package init(users: Int, numbers: Int) { (self.users, self.numbers) = (users, numbers) }

  public var userCount: Int { entries.count }
  public var numberCount: Int { owners.count }
  public var isEmpty: Bool { entries.isEmpty }

  /// Users whose grant the shared store of a cluster lacks, or has from an earlier token, at the last comparison.
  public var stale: Set<String> { staleGrants.users }
  /// A digest of `stale`, the same at every node that has the same users in it; 0: none.
  public var staleDigest: UInt64 { staleGrants.digest }

  public subscript(user: String) -> TokenGrant? { entries[user]?.grant }

  /// The owner of a number, and the number as the token writes it; compared by `Routing.canonical`.
  public func owner(of number: String) -> (user: String, number: String)? {
    let canonical = Routing.canonical(number)
    guard let user = owners[String(canonical)] else { return nil }
    return (user, entries[user]?.grant.numbers.first { Routing.canonical($0) == canonical } ?? number)
  }

  public mutating func accept(_ grant: TokenGrant, of user: String, at now: Int64) throws(Fault) -> [Change] {
    let known = entries[user]?.grant
    if let known, grant.issuedAt < known.issuedAt { return touch(user, at: now) }
    var losers: Set<String> = []
    for (index, number) in grant.numbers.enumerated() {
      guard let other = owners[String(Routing.canonical(number))], other != user else { continue }
      guard grant.issuedAt > entries[other]?.grant.issuedAt ?? 0 else {
        // the same token again, after a later one claimed one of its numbers
        if let known, grant.issuedAt == known.issuedAt, grant.issuedAt != 0 { return touch(user, at: now) }
        throw .ownedByOther(index)
      }
      losers.insert(other)
    }
    var changes = try makeRoom(for: grant, of: user, at: now)
    for other in losers { changes += lose(grant.numbers, from: other) }
    guard known != grant else { return changes + touch(user, at: now) }
    forget(user)
    staleGrants.replaced(user)
    put(Entry(user: user, grant: grant, seen: now))
    return changes + (entries[user].map { [.stored($0)] } ?? [])
  }

  /// Removes the user's grant, as if no token had granted anything.
  public mutating func remove(_ user: String) -> [Change] {
    guard entries[user] != nil else { return [] }
    drop(user)
    return [.removed(user: user)]
  }

  /// Loads the entries of a store. If two tokens name a number, the later one has it.
  /// - Returns: the entries that the store may drop.
  public mutating func load(_ stored: [Entry], at now: Int64) -> [Change] {
    var changes: [Change] = []
    for entry in stored.sorted(by: { ($0.grant.issuedAt, $0.user) < ($1.grant.issuedAt, $1.user) }) {
      guard entries[entry.user] == nil else { continue }
      guard now - entry.seen < Limits.grantSeconds * 1_000, entries.count < users,
        owners.count + entry.grant.numbers.count <= numbers
      else {
        changes.append(.removed(user: entry.user))
        continue
      }
      for other in Set(entry.grant.numbers.compactMap { owners[String(Routing.canonical($0))] }) {
        changes += lose(entry.grant.numbers, from: other)
      }
      put(entry)
    }
    return changes
  }

  /// Of the users after the given one (nil: from the first), at most `most`, keeps the grants that `rules` allow, and removes the
  /// others.
  /// - Returns: the changes, and the last user of this step; nil: no user is left.
  public mutating func keep(_ rules: GrantRules?, after last: String?, most: Int) -> (changes: [Change], last: String?) {
    let users = users(after: last, most: most)
    let gone = users.filter { user in
      guard let rules, let entry = entries[user] else { return true }
      return (try? rules.check(entry.grant)) == nil
    }
    return (gone.flatMap { remove($0) }, users.count < most ? nil : users.last)
  }

  /// Removes the number from its owner, if there is one.
  package mutating func release(_ number: String) {
    if let owner = owner(of: number) { _ = lose([number], from: owner.user) }
  }

  // MARK: the tables

  private mutating func touch(_ user: String, at now: Int64) -> [Change] {
    guard var entry = entries[user], now - entry.seen > Limits.grantSeenSeconds * 1_000 else { return [] }
    ages.remove(Age(entry))
    entry.seen = now
    entries[user] = entry
    ages.insert(Age(entry))
    return [.stored(entry)]
  }

  package mutating func put(_ entry: Entry) {
    if let before = entries.updateValue(entry, forKey: entry.user) { ages.remove(Age(before)) } else { order.insert(entry.user) }
    ages.insert(Age(entry))
    for number in entry.grant.numbers { owners[String(Routing.canonical(number))] = entry.user }
  }

  package mutating func forget(_ user: String) {
    guard let entry = entries.removeValue(forKey: user) else { return }
    order.remove(user)
    ages.remove(Age(entry))
    for number in entry.grant.numbers where owners[String(Routing.canonical(number))] == user {
      owners[String(Routing.canonical(number))] = nil
    }
  }

  private mutating func drop(_ user: String) {
    forget(user)
    staleGrants.remove(user)
  }

  /// The users after the given one (nil: from the first), ascending, at most `most`. Reads no others.
  func users(after last: String?, most: Int) -> [String] {
    var (out, walk) = ([String](), order.walk(after: last))
    while out.count < most, let user = walk.next() { out.append(user) }
    return out
  }

  package mutating func lose(_ numbers: [String], from user: String) -> [Change] {
    guard var entry = entries[user] else { return [] }
    // a row may take numbers of a user that the comparison has not reached yet
    if let comparison, !comparison.hasPassed(user), comparison.lacks(entry) { staleGrants.insert(user, seen: entry.seen) }
    staleGrants.keepUnreduced(entry.grant, of: user)
    let lost = Set(numbers.map(Routing.canonical))
    forget(user)
    entry.grant.numbers.removeAll { lost.contains(Routing.canonical($0)) }
    put(entry)
    return [.stored(entry)]
  }

  /// Evicts as many expired grants as are needed, the oldest first, and reads `Limits.grantsPerStep` at most.
  package mutating func makeRoom(for grant: TokenGrant, of user: String, at now: Int64) throws(Fault) -> [Change] {
    var lacksUsers = entries.count + (entries[user] == nil ? 1 : 0) - users
    var lacksNumbers = owners.count - (entries[user]?.grant.numbers.count ?? 0) + grant.numbers.count - numbers
    if lacksUsers <= 0, lacksNumbers <= 0 { return [] }
    var (old, walk) = ([String](), ages.walk(after: nil))
    while lacksUsers > 0 || lacksNumbers > 0 {
      guard old.count < Limits.grantsPerStep, let age = walk.next(), now - age.seen >= Limits.grantSeconds * 1_000 else {
        throw .full
      }
      guard age.user != user else { continue }
      old.append(age.user)
      lacksUsers -= 1
      lacksNumbers -= entries[age.user]?.grant.numbers.count ?? 0
    }
    for user in old { drop(user) }
    return old.map { .removed(user: $0) }
  }

  /// The order of eviction.
  private struct Age: Comparable, Sendable {
    let seen: Int64
    let user: String
    init(_ entry: Entry) { (seen, user) = (entry.seen, entry.user) }

    static func < (a: Age, b: Age) -> Bool { (a.seen, a.user) < (b.seen, b.user) }
  }
}

extension TokenGrant {
  /// The settings of a user that holds this grant; values that the grant lacks are those of `anyone`.
  package func user(_ id: String, _ anyone: Routing.User) -> Routing.User {
    var out = anyone
    out.id = id
    out.numbers = numbers
    out.name = name ?? anyone.name
    out.account = account ?? anyone.account
    out.allowance.prefixes = allow ?? anyone.allowance.prefixes
    out.allowance.calls = maxCalls ?? anyone.allowance.calls
    out.isRecorded = record ?? anyone.isRecorded
    out.allowance.callsPerHour = callsPerHour ?? anyone.allowance.callsPerHour
    out.diversions = Diversions(rules).orElse(anyone.diversions)
    return out
  }

  private var rules: [DiversionTrigger: Diversions.Rule] {
    var out: [DiversionTrigger: Diversions.Rule] = [:]
    for trigger in DiversionTrigger.allCases {
      guard let diversion = diversions[trigger.key] else { continue }
      let target: Diversions.Target
      if let user = diversion.user {
        target = .user(user)
      } else if let number = diversion.number {
        target = .number(number, showsCaller: diversion.showsCaller)
      } else {
        target = .code(diversion.code ?? 480)
      }
      out[trigger] = Diversions.Rule(target, after: diversion.after.map { .seconds($0) })
    }
    return out
  }
}
