import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes

// The calls of this node, as they are in the shared store.

extension ClusterMachine {
  mutating func started(_ line: JournalEntry, _ users: [String], _ step: inout Step) {
    let (new, hasChanged) = calls.start(line, users)
    // A review that goes on may have passed the call's new position, and has not come to its old one: its locations may be lost.
    let unwritten = review.position == nil ? new : calls.users(of: line.call)
    for user in unwritten { write(.location(user, line.call), &step) }
    if hasChanged { write(.entry(line.call), &step) }
  }

  mutating func ended(_ call: CallID, _ over: CallOver?, _ step: inout Step) {
    guard let own = calls.end(call) else { return }
    let tombstone = over.map { RemoteTombstone(users: own.users, $0) }
    let isHeld = !lease.isStopping && unconfirmedEnds.hold(call, putSent: own.putSent, tombstone: tombstone, &step)
    if !isHeld, own.entry != nil { write(.entry(call), &step) }
    for user in own.users { write(.location(user, call), &step) }
    for trunk in own.trunks { write(.share(trunk), &step) }
    if !isHeld, let tombstone { step.send(.putTombstone(call, tombstone), .none) }
  }

  /// Other nodes closed these calls: their entries are neither written again nor removed.
  mutating func reapedByOthers(_ gone: [CallID], _ step: inout Step) {
    guard !gone.isEmpty else { return }
    for call in gone {
      unconfirmedEnds.remove(call)
      for trunk in calls.end(call)?.trunks ?? [] { write(.share(trunk), &step) }
    }
    step.statistics.reapedByOthers += UInt64(gone.count)
    step.actions.append(.reaped(gone))
  }

  mutating func release(_ call: CallID, _ trunk: String, _ step: inout Step) {
    if calls.uncount(call, trunk: trunk) { write(.share(trunk), &step) }
  }

  /// Reverts the entries that a question made: its call is refused, or redirected to another node.
  mutating func undo(_ question: Question, _ call: CallID, _ step: inout Step) {
    for user in question.addedUsers {
      calls.leave(call, user: user)
      write(.location(user, call), &step)
    }
    if let trunk = question.addedTrunk, calls.uncount(call, trunk: trunk) {
      // If the shared store refused, it counted nothing, unless a share that was sent meanwhile included this call.
      if question.verdicts[.trunk(trunk)] != false || calls.sharesSent(of: trunk) != question.sharesBefore {
        write(.share(trunk), &step)
      }
    }
    calls.dropIfEmpty(call)
  }

  /// Marks the entries that a call continues without, because no answer came, to be written again.
  mutating func markUnanswered(_ question: Question, _ call: CallID, _ step: inout Step) {
    for user in question.addedUsers where question.located[user] == nil { writes.hold(.location(user, call), &step) }
    if let trunk = question.addedTrunk, question.verdicts[.trunk(trunk)] == nil { writes.hold(.share(trunk), &step) }
  }

  // MARK: after a time without lease

  /// Removes the entries of calls that no other node has closed, as far as can be known.
  mutating func write(_ ends: [UnconfirmedEnds.End], _ step: inout Step) {
    guard !ends.isEmpty else { return }
    for end in ends {
      write(.entry(end.call), &step)
      if let tombstone = end.tombstone { step.send(.putTombstone(end.call, tombstone), .none) }
    }
    step.actions.append(.recordsDue(ends.map(\.call)))
  }

  mutating func ownEntriesRead(_ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, _ step: inout Step) {
    let findings = unconfirmedEnds.read(result, sent: sent, live: calls, &step)
    for call in findings.missing { step.send(.claimReaping(call, of: incarnation, by: incarnation), .ownMissing(call)) }
    write(findings.released, &step)
  }

  /// The claim on a call of ours whose entry is missing. Without an answer the next reading claims again.
  mutating func ownMissingClaimed(_ call: CallID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.granted(let isGranted, let holder)) = result else { return }
    guard isGranted || holder == incarnation else { return reapedByOthers([call], &step) }
    // No other node claimed it: the shared store has lost the entry, which ends no call.
    if unconfirmedEnds.has(call) { return write(unconfirmedEnds.settle(call), &step) }
    guard let trunks = calls.trunks(of: call) else { return }
    calls.unconfirm(call)
    write(.entry(call), &step)
    for user in calls.users(of: call) { write(.location(user, call), &step) }
    for trunk in trunks { write(.share(trunk), &step) }
  }
}
