import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes

/// The calls of this node: their users, their trunks with a limit, their entries, and what the shared store has confirmed of them.
/// It sends nothing: the machine writes what changes (`ClusterMachine.WriteKey`).
///
/// | input | gives |
/// |---|---|
/// | `enter` | the users that did not have the call yet, `Limits.usersPerCall` at most; a new call begins |
/// | `start` | the same, and whether the entry has changed |
/// | `count`, `uncount` | – ; false: the call is not counted for the trunk |
/// | `leave` | – ; users that a refused call gives back |
/// | `dropIfEmpty` | – ; a call without users, trunks and entry ends |
/// | `end` | the call as it was; nil: unknown, or ended already |
/// | `confirm`, `unconfirm`, `unconfirmAll` | – ; its entry is in the shared store since then, or may be missing. All of them at once cost no more than one |
/// | `share` | the count to be written, and one more write that may include any call counted before |
/// | `sharedStoreLost` | – ; the counts of this time bound later ones |
struct CallTable: Sendable {
  private var calls: [CallID: OwnCall] = [:]
  /// Calls with an entry, and calls without one yet, in the order of their ids: a reader of all of them reads in steps.
  private var entered = OrderedKeys<EntryKey>()
  private var unstarted = OrderedKeys<EntryKey>()
  /// Confirmations of earlier generations do not count: the shared store has lost its data since.
  private var generation: UInt64 = 0
  private var storedCount = 0
  private var ofUser: [String: Set<CallID>] = [:]
  private var ofTrunk: [String: Int] = [:]
  private var atLoss: [String: Int] = [:]
  private var sharesSent: [String: UInt64] = [:]
  /// Trunks with a limit: a dead node's shares of them are removed.
  private(set) var limitedTrunks: Set<String> = []

  // MARK: reading

  var ids: [CallID] { Array(calls.keys) }
  var isEmpty: Bool { calls.isEmpty && ofUser.isEmpty && ofTrunk.isEmpty }

  func has(_ call: CallID) -> Bool { calls[call] != nil }
  func direction(of call: CallID) -> CallDirection? { calls[call]?.direction }
  /// Nil: the call is not entered for the user.
  func direction(of call: CallID, for user: String) -> CallDirection? {
    calls[call].flatMap { $0.users.contains(user) ? $0.direction : nil }
  }
  func users(of call: CallID) -> [String] { calls[call]?.users ?? [] }
  /// With a limit, that count the call; nil: there is no such call.
  func trunks(of call: CallID) -> [String]? { calls[call]?.trunks }
  func entry(of call: CallID) -> CallEntry? { calls[call]?.entry }
  func calls(of user: String) -> Set<CallID> { ofUser[user] ?? [] }
  func count(of trunk: String) -> Int { ofTrunk[trunk] ?? 0 }
  func countAtLoss(of trunk: String) -> Int { atLoss[trunk] ?? 0 }
  func sharesSent(of trunk: String) -> UInt64 { sharesSent[trunk] ?? 0 }

  /// Trunks whose shares the shared store may have, ascending.
  var sharedTrunks: [String] { Set(ofTrunk.keys).union(sharesSent.keys).sorted() }

  /// Whether the shared store has confirmed an entry of a call that is live.
  var hasStored: Bool { storedCount > 0 }
  /// Whether it has confirmed this call's entry since it last lost its data.
  func isStored(_ call: CallID) -> Bool { calls[call].map(isStored) ?? false }
  private func isStored(_ call: OwnCall) -> Bool { call.putSent != nil && call.generation == generation }

  /// Calls whose entry was stored by a put sent before this time, and is not among `found`; in the order of their ids, `most` at
  /// most. Looks at each call.
  func missing(from found: Set<CallID>, storedBefore time: Instant, most: Int) -> [CallID] {
    var (out, walk) = ([CallID](), entered.walk(after: nil))
    while out.count < most, let call = walk.next()?.call {
      if let own = calls[call], isStored(own), let sent = own.putSent, sent < time, !found.contains(call) { out.append(call) }
    }
    return out
  }

  /// Entries after `last` (nil: from the first), at most `most`. Reads no other calls.
  func entries(after last: CallID?, most: Int) -> [CallEntry] { entered(after: last, most: most).compactMap { calls[$0]?.entry } }

  /// Calls with an entry after `last` (nil: from the first), at most `most`, in the order of their ids.
  func entered(after last: CallID?, most: Int) -> [CallID] { Self.page(of: entered, after: last, most: most) }
  /// The same of calls without an entry.
  func unstarted(after last: CallID?, most: Int) -> [CallID] { Self.page(of: unstarted, after: last, most: most) }

  private static func page(of keys: OrderedKeys<EntryKey>, after last: CallID?, most: Int) -> [CallID] {
    var (out, walk) = ([CallID](), keys.walk(after: last.map { EntryKey($0) }))
    while out.count < most, let key = walk.next() { out.append(key.call) }
    return out
  }

  // MARK: users and entries

  mutating func enter(_ call: CallID, _ users: [String], _ direction: CallDirection) -> [String] {
    var own = calls[call] ?? begin(call, direction)
    let new = enter(call, users, &own)
    calls[call] = own
    return new
  }

  /// The entry names all users of the call: the node that closes it removes the locations of all.
  mutating func start(_ line: JournalEntry, _ users: [String]) -> (newUsers: [String], hasChanged: Bool) {
    var own = calls[line.call] ?? OwnCall(direction: line.direction)
    let new = enter(line.call, users, &own)
    let entry = CallEntry(line, users: own.users)
    let hasChanged = own.entry != entry
    if own.entry == nil {
      unstarted.remove(EntryKey(line.call))
      entered.insert(EntryKey(line.call))
    }
    own.entry = entry
    calls[line.call] = own
    return (new, hasChanged)
  }

  private mutating func begin(_ call: CallID, _ direction: CallDirection) -> OwnCall {
    unstarted.insert(EntryKey(call))
    return OwnCall(direction: direction)
  }

  private mutating func enter(_ call: CallID, _ users: [String], _ own: inout OwnCall) -> [String] {
    var new: [String] = []
    for user in users.prefix(Limits.usersPerCall) where !own.users.contains(user) {
      own.users.append(user)
      ofUser[user, default: []].insert(call)
      new.append(user)
    }
    return new
  }

  mutating func leave(_ call: CallID, user: String) {
    forget(call, of: user)
    calls[call]?.users.removeAll { $0 == user }
  }

  mutating func end(_ call: CallID) -> OwnCall? {
    guard var own = calls.removeValue(forKey: call) else { return nil }
    if own.entry == nil { unstarted.remove(EntryKey(call)) } else { entered.remove(EntryKey(call)) }
    if isStored(own) { storedCount -= 1 } else { own.putSent = nil }
    for user in own.users { forget(call, of: user) }
    for trunk in own.trunks { subtract(trunk) }
    return own
  }

  mutating func dropIfEmpty(_ call: CallID) {
    guard let own = calls[call], own.users.isEmpty, own.trunks.isEmpty, own.entry == nil else { return }
    calls[call] = nil
    unstarted.remove(EntryKey(call))
  }

  private mutating func forget(_ call: CallID, of user: String) {
    ofUser[user]?.remove(call)
    if ofUser[user]?.isEmpty ?? false { ofUser[user] = nil }
  }

  // MARK: trunks

  mutating func limit(_ trunks: Set<String>) { limitedTrunks = trunks }

  /// A call that arrived over a trunk and leaves over it counts twice.
  mutating func count(_ call: CallID, trunk: String) {
    limitedTrunks.insert(trunk)
    var own = calls[call] ?? begin(call, .outgoing)
    own.trunks.append(trunk)
    calls[call] = own
    ofTrunk[trunk, default: 0] += 1
  }

  mutating func uncount(_ call: CallID, trunk: String) -> Bool {
    guard let index = calls[call]?.trunks.firstIndex(of: trunk) else { return false }
    calls[call]?.trunks.remove(at: index)
    subtract(trunk)
    return true
  }

  private mutating func subtract(_ trunk: String) {
    let count = (ofTrunk[trunk] ?? 0) - 1
    ofTrunk[trunk] = count > 0 ? count : nil
  }

  mutating func share(of trunk: String) -> Int {
    sharesSent[trunk, default: 0] += 1
    return count(of: trunk)
  }

  // MARK: what the shared store has

  /// - Parameter sent: when the write was sent that it confirms.
  mutating func confirm(_ call: CallID, sent: Instant) {
    guard let own = calls[call], own.entry != nil, !isStored(own) else { return }
    calls[call]?.putSent = sent
    calls[call]?.generation = generation
    storedCount += 1
  }
  mutating func unconfirm(_ call: CallID) {
    if isStored(call) { storedCount -= 1 }
    calls[call]?.putSent = nil
  }
  mutating func unconfirmAll() {
    generation += 1
    storedCount = 0
  }
  mutating func sharedStoreLost() { atLoss = ofTrunk }
}

/// A call here.
struct OwnCall: Sendable {
  var direction: CallDirection
  /// The users for whom it is entered.
  var users: [String] = []
  /// Trunks with a limit that count it.
  var trunks: [String] = []
  var entry: CallEntry?
  /// When the put that the shared store confirmed was sent; nil: none was confirmed since a flush. True of a call that has ended;
  /// before that the table knows whether it still counts.
  fileprivate(set) var putSent: Instant?
  fileprivate var generation: UInt64 = 0
}

/// The position of a call in the order of this node's calls.
struct EntryKey: Hashable, Comparable, Sendable {
  let call: CallID
  init(_ call: CallID) { self.call = call }

  static func < (a: EntryKey, b: EntryKey) -> Bool { (a.call.high, a.call.low) < (b.call.high, b.call.low) }
}
