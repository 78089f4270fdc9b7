import AppSessions
import CallFlow
import TrunklineAppProtocol
import TrunklineBytes

// The calls of this node, as they are in the shared store.

extension ClusterMachine {
  mutating func started(_ line: StartLine, _ users: [String], _ step: inout Step) {
    var own = calls[line.call] ?? OwnCall(direction: line.direction)
    let new = enter(line.call, users, &own)
    // The entry names all users of the call: the node that closes it removes the locations of all.
    let entry = CallEntry(line, users: own.users)
    let isChanged = own.entry != entry
    if own.entry == nil { entryOrder.insert(EntryKey(line.call)) }
    own.entry = entry
    calls[line.call] = own
    for user in new { write(.location(user, line.call), &step) }
    if isChanged { write(.entry(line.call), &step) }
  }

  /// Adds the call to these users. Returns the users that did not have it yet.
  mutating func enter(_ call: CallID, _ users: [String], _ own: inout OwnCall) -> [String] {
    var new: [String] = []
    for user in users.prefix(Limits.usersPerCall) where !own.users.contains(user) {
      own.users.append(user)
      callsOfUser[user, default: []].insert(call)
      new.append(user)
    }
    return new
  }

  mutating func ended(_ call: CallID, _ over: CallOver?, _ step: inout Step) {
    guard let own = calls[call] else { return }
    drop(call)
    let tombstone = over.map { RemoteTombstone(users: own.users, $0) }
    let isHeld = hold(call, own, tombstone, &step)
    if !isHeld, own.entry != nil { write(.entry(call), &step) }
    for user in own.users { write(.location(user, call), &step) }
    for trunk in own.trunks { write(.share(trunk), &step) }
    if !isHeld, let tombstone { send(.putTombstone(call, tombstone), .none, &step) }
  }

  /// Other nodes closed these calls: their entries are neither written again nor removed.
  mutating func reapedByOthers(_ gone: [CallID], _ step: inout Step) {
    guard !gone.isEmpty else { return }
    for call in gone {
      unconfirmedEnds[call] = nil
      let trunks = calls[call]?.trunks ?? []
      drop(call)
      for trunk in trunks { write(.share(trunk), &step) }
    }
    statistics.reapedByOthers += UInt64(gone.count)
    step.actions.append(.reaped(gone))
  }

  mutating func release(_ call: CallID, _ trunk: String, _ step: inout Step) {
    guard let index = calls[call]?.trunks.firstIndex(of: trunk) else { return }
    calls[call]?.trunks.remove(at: index)
    uncount(trunk)
    write(.share(trunk), &step)
  }

  /// Reverts the entries that a question made: its call is refused, or redirected to another node.
  mutating func undo(_ question: Question, _ call: CallID, _ step: inout Step) {
    for user in question.addedUsers {
      leave(user, call)
      calls[call]?.users.removeAll { $0 == user }
      write(.location(user, call), &step)
    }
    if let trunk = question.addedTrunk, let index = calls[call]?.trunks.firstIndex(of: trunk) {
      calls[call]?.trunks.remove(at: index)
      uncount(trunk)
      // If the shared store refused, it counted nothing, unless a share that was sent meanwhile included this call.
      if question.verdicts[.trunk(trunk)] != false || sharesSent[trunk] ?? 0 != question.sharesBefore {
        write(.share(trunk), &step)
      }
    }
    if let own = calls[call], own.users.isEmpty, own.trunks.isEmpty, own.entry == nil { calls[call] = nil }
  }

  /// Marks the entries that a call continues without, because no answer came, to be written again.
  mutating func markUnanswered(_ question: Question, _ call: CallID, _ step: inout Step) {
    for user in question.addedUsers where question.located[user] == nil { markUnwritten(.location(user, call), &step) }
    if let trunk = question.addedTrunk, question.verdicts[.trunk(trunk)] == nil { markUnwritten(.share(trunk), &step) }
  }

  private mutating func drop(_ call: CallID) {
    guard let own = calls.removeValue(forKey: call) else { return }
    if own.entry != nil { entryOrder.remove(EntryKey(call)) }
    for user in own.users { leave(user, call) }
    for trunk in own.trunks { uncount(trunk) }
  }

  private mutating func leave(_ user: String, _ call: CallID) {
    callsOfUser[user]?.remove(call)
    if callsOfUser[user]?.isEmpty ?? false { callsOfUser[user] = nil }
  }

  private mutating func uncount(_ trunk: String) {
    let count = (callsOfTrunk[trunk] ?? 0) - 1
    callsOfTrunk[trunk] = count > 0 ? count : nil
  }
}
