import Bytes
import CallFlow

// What others did to our calls while this node had no lease: they may have taken it for dead. Such a call has a record of theirs, and is to get
// none of ours: whoever writes it waits until our own entries are read again.

extension ClusterMachine {
  /// This call is over, and its record waits for `Action.recordsDue` or `reaped`.
  public func isEndUnconfirmed(_ call: CallID) -> Bool { unconfirmedEnds[call] != nil }

  /// Calls whose records wait.
  public var unconfirmedEndCount: Int { unconfirmedEnds.count }

  /// An ended call that others may have closed, or may still: the shared store had its entry when it was heard last. What never was there nobody can
  /// close. False: its record need not wait.
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

  /// Those that have waited too long: nobody has said anything of them.
  mutating func confirmationDue(_ step: inout Step) {
    let due = unconfirmedEndsByTime.prefix { $0.until <= step.now }
    unconfirmedEndsByTime.removeFirst(due.count)
    release(due.map(\.call), &step)
    if let next = unconfirmedEndsByTime.first { timers.schedule(.unconfirmedEnds, at: next.until) }
  }

  /// Whatever is in doubt is ours: it was found in the shared store, or nothing will tell any more.
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

  /// A renewal was granted. `hadNone`: our lease had ended meanwhile; else nobody can have taken us for dead.
  mutating func leaseIsBack(hadNone: Bool, _ step: inout Step) {
    // granted, and over by now: the answer waited while this process stood still
    guard leasedUntil.map({ $0 > step.now }) ?? false else { return }
    let hasEntries = !unconfirmedEnds.isEmpty || calls.values.contains { $0.putSent != nil }
    if hadNone, hasEntries { mustReadOwn = true }
    guard mustReadOwn else { return endConfirmation(&step) }
    confirmation = .reading
    readOwnEntries(isSecond: false, &step)
  }

  /// After a time without lease: an entry that we wrote and that is gone was taken by a reaper, who has claimed the call; or a failover has lost
  /// it. Read until nothing is missing, twice at least, since a reaper that had claimed a call when our lease came back removes its entry a
  /// moment later.
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
      // An entry that cannot be read is there all the same: nothing follows from what is missing.
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

  /// Who claimed a call of ours whose entry is missing. Without an answer the next reading asks again.
  mutating func ownMissingClaimed(_ call: CallID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.granted(let isGranted, let holder)) = result else { return }
    guard isGranted || holder == incarnation else { return reapedByOthers([call], &step) }
    // Nobody did: the shared store has lost what we wrote, and no call ends of that.
    if unconfirmedEnds[call] != nil { return release([call], &step) }
    guard let own = calls[call] else { return }
    calls[call]?.putSent = nil
    write(.entry(call), &step)
    for user in own.users { write(.location(user, call), &step) }
    for trunk in own.trunks { write(.share(trunk), &step) }
  }
}
