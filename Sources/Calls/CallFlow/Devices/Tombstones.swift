import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes

/// What is left of an ended call for two minutes: why it ended, for each device.
struct Tombstone {
  /// Users whose devices may query it.
  var users: [String]
  let direction: CallDirection
  /// The device that started an outgoing call.
  let owner: DeviceKey?
  /// The end for a device that had no part in the call.
  let over: CallOver
  var terminals: [DeviceKey: Terminal]
  /// Devices may have wake tokens for the call.
  let wasPushed: Bool
  let expires: Instant
  /// Its node died and notified no device of the end, so each is notified where it connects next.
  var isOfDeadNode = false
}

/// The tombstones, oldest first, with a bound.
///
/// | input | effect |
/// |---|---|
/// | `insert` | the calls that were pushed and had to give way: at most one; a second insert of a call changes nothing |
/// | `update` | the terminal message of a device; of an unknown call or device: none |
/// | `add` | one more user of a call whose node died, once |
/// | `popLost` | the end of such a call for a device, once; any other call or device: nil |
/// | `removeExpired` | the calls that were pushed among those whose time is over |
struct Tombstones {
  /// The calls of one user, oldest first. The oldest is removed first as a rule, and one user may have all tombstones.
  private struct Calls {
    private var calls: [CallID] = []
    private var first = 0

    var all: [CallID] { Array(calls[first...]) }

    mutating func append(_ call: CallID) { calls.append(call) }

    /// True if none is left.
    mutating func remove(_ call: CallID) -> Bool {
      if calls[first] == call {
        first += 1
      } else {
        calls.removeAll { $0 == call }
      }
      if first * 2 > calls.count {
        calls.removeFirst(first)
        first = 0
      }
      return calls.isEmpty
    }
  }

  private var entries: [CallID: Tombstone] = [:]
  private var byUser: [String: Calls] = [:]
  private var queue: [CallID] = []
  private var head = 0

  var count: Int { entries.count }
  var nextExpiry: Instant? { head < queue.count ? entries[queue[head]]?.expires : nil }

  subscript(call: CallID) -> Tombstone? { entries[call] }
  func calls(of user: String) -> [CallID] { byUser[user]?.all ?? [] }

  /// Returns the call that was evicted, if it was pushed.
  mutating func insert(_ tombstone: Tombstone, for call: CallID) -> [CallID] {
    guard entries[call] == nil else { return [] }
    entries[call] = tombstone
    for user in tombstone.users { byUser[user, default: Calls()].append(call) }
    queue.append(call)
    return entries.count > Limits.tombstones ? [removeOldest()].compactMap(\.self) : []
  }

  mutating func update(_ call: CallID, _ device: DeviceKey, _ change: (inout Terminal) -> Void) {
    guard var terminal = entries[call]?.terminals[device] else { return }
    change(&terminal)
    entries[call]?.terminals[device] = terminal
  }

  /// Adds a user of a call whose node died.
  mutating func add(_ user: String, to call: CallID) {
    guard let entry = entries[call], entry.isOfDeadNode, !entry.users.contains(user), entry.users.count < Limits.usersPerCall
    else {
      return
    }
    entries[call]?.users.append(user)
    byUser[user, default: Calls()].append(call)
  }

  /// The end of a call whose node died, for a device: once, and again only if its socket is lost before its ack.
  mutating func popLost(_ call: CallID, _ device: DeviceKey) -> CallOver? {
    guard let entry = entries[call], entry.isOfDeadNode, entry.users.contains(device.user), entry.terminals[device] == nil,
      entry.terminals.count < Limits.devicesPerCall
    else { return nil }
    entries[call]?.terminals[device] = Terminal(over: entry.over, isByDevice: false, isUnseen: false)
    return entry.over
  }

  /// Returns the calls that were pushed.
  mutating func removeExpired(at now: Instant) -> [CallID] {
    var gone: [CallID] = []
    while let expires = nextExpiry, expires <= now { if let call = removeOldest() { gone.append(call) } }
    return gone
  }

  private mutating func removeOldest() -> CallID? {
    guard head < queue.count else { return nil }
    let call = queue[head]
    head += 1
    let tombstone = entries.removeValue(forKey: call)
    for user in tombstone?.users ?? [] {
      if byUser[user]?.remove(call) == true { byUser[user] = nil }
    }
    if head > 1_024, head * 2 > queue.count {
      queue.removeFirst(head)
      head = 0
    }
    return tombstone?.wasPushed == true ? call : nil
  }
}
