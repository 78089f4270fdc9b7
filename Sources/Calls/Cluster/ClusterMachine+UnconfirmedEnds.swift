import CallFlow
import TrunklineBytes

// Calls that other nodes may have closed while this node had no lease and seemed dead. The closing node has written the record of
// such a call, and this node must write none: its records wait until its own entries are read again.

extension ClusterMachine {
  /// This call has ended, and its record waits for `Action.recordsDue` or `reaped`.
  public func isEndUnconfirmed(_ call: CallID) -> Bool { unconfirmedEnds[call] != nil }

  /// Calls whose records wait.
  public var unconfirmedEndCount: Int { unconfirmedEnds.count }

  /// Holds back the record of an ended call that other nodes may have closed, or may still close: the shared store had its entry
  /// at its last answer. No node can close a call that never had an entry. False: its record need not wait.
  mutating func hold(_ call: CallID, _ own: OwnCall, _ tombstone: RemoteTombstone?, _ step: inout Step) -> Bool {
    guard confirmation != .none, let putSent = own.putSent, !isStopping, unconfirmedEnds.count < Limits.unconfirmedEnds else {
      return false
    }
    let until = step.now + Limits.confirmation
    unconfirmedEnds[call] = UnconfirmedEnd(putSent: putSent, tombstone: tombstone)
    unconfirmedEndsByTime.append((call, until))
    timers.schedule(.unconfirmedEnds, notLaterThan: until)
    return true
  }

  /// Releases the records that have waited for `Limits.confirmation`: no node has reported their calls as closed.
  mutating func confirmationDue(_ step: inout Step) {
    let due = unconfirmedEndsByTime.prefix { $0.until <= step.now }
    unconfirmedEndsByTime.removeFirst(due.count)
    release(due.map(\.call), &step)
    if let next = unconfirmedEndsByTime.first { timers.schedule(.unconfirmedEnds, at: next.until) }
  }

  /// Releases all records: their entries were found in the shared store, or nothing can show any longer what other nodes closed.
  mutating func releaseRecords(_ step: inout Step) {
    let all = unconfirmedEndsByTime
    unconfirmedEndsByTime = []
    timers.cancel(.unconfirmedEnds)
    release(all.map(\.call), &step)
  }

  private mutating func release(_ calls: [CallID], _ step: inout Step) {
    let ours = calls.filter { unconfirmedEnds[$0] != nil }
    guard !ours.isEmpty else { return }
    for call in ours {
      let tombstone = unconfirmedEnds.removeValue(forKey: call)?.tombstone
      write(.entry(call), &step)
      if let tombstone { send(.putTombstone(call, tombstone), .none, &step) }
    }
    step.actions.append(.recordsDue(ours))
  }

  mutating func endConfirmation(_ step: inout Step) {
    (confirmation, mustReadOwn) = (.none, false)
    releaseRecords(&step)
  }

  // MARK: our own entries

  /// A renewal was granted. `hadNone`: our lease had ended meanwhile; otherwise no other node can have judged this one dead.
  mutating func leaseIsBack(hadNone: Bool, _ step: inout Step) {
    // the lease has expired by now: the reply waited while this process was suspended
    guard leasedUntil.map({ $0 > step.now }) ?? false else { return }
    let hasEntries = !unconfirmedEnds.isEmpty || calls.values.contains { $0.putSent != nil }
    if hadNone, hasEntries { mustReadOwn = true }
    guard mustReadOwn else { return endConfirmation(&step) }
    confirmation = .reading
    readOwnEntries(isSecond: false, &step)
  }

  /// Reads our entries after a time without lease. If an entry that we wrote is missing, a reaper has claimed the call and
  /// removed it, or a failover has lost it. They are read until none is missing, at least twice: a reaper that had claimed a call
  /// when our lease returned removes its entry a moment later.
  mutating func readOwnEntries(isSecond: Bool, _ step: inout Step) {
    guard ownReading == nil, state == .up || leasedUntil.map({ $0 > step.now }) ?? false else { return }
    guard send(.entries(of: incarnation, cursor: 0), .ownEntries, &step) else { return readOwnAgain(&step) }
    ownReading = ([], step.now, isSecond)
  }

  private mutating func readOwnAgain(_ step: inout Step) {
    ownReading = nil
    timers.schedule(.ownEntries, at: step.now + Limits.ownEntriesAgain)
  }

  mutating func ownEntriesRead(_ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, _ step: inout Step) {
    guard let reading = ownReading, sent >= reading.since else { return }
    guard case .success(.entries(let entries, let next, let dropped)) = result else { return readOwnAgain(&step) }
    statistics.valuesDropped += UInt64(max(0, dropped))
    ownReading?.found.formUnion(entries.map(\.line.call))
    if dropped > 0 {
      // An entry that cannot be decoded still exists: a missing call proves nothing.
      ownReading = nil
      return endConfirmation(&step)
    }
    if next != 0 {
      if !send(.entries(of: incarnation, cursor: next), .ownEntries, &step) { readOwnAgain(&step) }
      return
    }
    let found = ownReading?.found ?? []
    ownReading = nil
    func isMissing(_ call: CallID, _ putSent: Instant?) -> Bool {
      putSent.map { $0 < reading.since } ?? false && !found.contains(call)
    }
    let missing =
      calls.filter { $0.value.entry != nil && isMissing($0.key, $0.value.putSent) }.map(\.key)
      + unconfirmedEnds.filter { isMissing($0.key, $0.value.putSent) }.map(\.key)
    for call in missing.sorted(by: { "\($0)" < "\($1)" }) {
      send(.claimReaping(call, of: incarnation, by: incarnation), .ownMissing(call), &step)
    }
    if reading.isSecond, missing.isEmpty { endConfirmation(&step) } else { readOwnAgain(&step) }
  }

  /// The claim on a call of ours whose entry is missing. Without an answer the next reading claims again.
  mutating func ownMissingClaimed(_ call: CallID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.granted(let isGranted, let holder)) = result else { return }
    guard isGranted || holder == incarnation else { return reapedByOthers([call], &step) }
    // No other node claimed it: the shared store has lost the entry, which ends no call.
    if unconfirmedEnds[call] != nil { return release([call], &step) }
    guard let own = calls[call] else { return }
    calls[call]?.putSent = nil
    write(.entry(call), &step)
    for user in own.users { write(.location(user, call), &step) }
    for trunk in own.trunks { write(.share(trunk), &step) }
  }
}
