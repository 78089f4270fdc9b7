import Bytes
import CallFlow

// What others did to our calls while this node had no lease: they may have taken it for dead. Such a call has a record of theirs, and is to get
// none of ours: whoever writes it waits until our own entries are read again.

extension ClusterMachine {
  /// This call is over, and its record waits for `Action.recordsDue` or `reaped`.
  public func isInDoubt(_ call: CallID) -> Bool { doubtful[call] != nil }

  /// Calls whose records wait.
  public var callsInDoubt: Int { doubtful.count }

  /// An ended call that others may have closed, or may still: the engine had its entry when it was heard last. What never was there nobody can
  /// close. False: its record need not wait.
  mutating func hold(_ call: CallID, _ own: OwnCall, _ tombstone: RemoteTombstone?, _ turn: inout Turn) -> Bool {
    guard doubt != .none, let putSent = own.putSent, !isStopping, doubtful.count < Limits.doubtful else { return false }
    let until = turn.now + Limits.doubt
    doubtful[call] = DoubtfulCall(putSent: putSent, tombstone: tombstone)
    doubtfulOrder.append((call, until))
    timers.schedule(.doubt, notLaterThan: until)
    return true
  }

  /// Those that have waited too long: nobody has said anything of them.
  mutating func doubtDue(_ turn: inout Turn) {
    let due = doubtfulOrder.prefix { $0.until <= turn.now }
    doubtfulOrder.removeFirst(due.count)
    release(due.map(\.call), &turn)
    if let next = doubtfulOrder.first { timers.schedule(.doubt, at: next.until) }
  }

  /// Whatever is in doubt is ours: it was found in the engine, or nothing will tell any more.
  mutating func releaseRecords(_ turn: inout Turn) {
    let all = doubtfulOrder
    doubtfulOrder = []
    timers.cancel(.doubt)
    release(all.map(\.call), &turn)
  }

  private mutating func release(_ calls: [CallID], _ turn: inout Turn) {
    let ours = calls.filter { doubtful[$0] != nil }
    guard !ours.isEmpty else { return }
    for call in ours {
      let tombstone = doubtful.removeValue(forKey: call)?.tombstone
      write(.entry(call), &turn)
      if let tombstone { send(.putTombstone(call, tombstone), .none, &turn) }
    }
    turn.actions.append(.recordsDue(ours))
  }

  mutating func endDoubt(_ turn: inout Turn) {
    (doubt, mustReadOwn) = (.none, false)
    releaseRecords(&turn)
  }

  // MARK: our own entries

  /// A renewal was granted. `hadNone`: our lease had ended meanwhile; else nobody can have taken us for dead.
  mutating func leaseIsBack(hadNone: Bool, _ turn: inout Turn) {
    // granted, and over by now: the answer waited while this process stood still
    guard leasedUntil.map({ $0 > turn.now }) ?? false else { return }
    let hasEntries = !doubtful.isEmpty || calls.values.contains { $0.putSent != nil }
    if hadNone, hasEntries { mustReadOwn = true }
    guard mustReadOwn else { return endDoubt(&turn) }
    doubt = .reading
    readOwnEntries(isSecond: false, &turn)
  }

  /// After a time without lease: an entry that we wrote and that is gone was taken by a reaper, who has claimed the call; or a failover has lost
  /// it. Read until nothing is missing, twice at least, since a reaper that had claimed a call when our lease came back removes its entry a
  /// moment later.
  mutating func readOwnEntries(isSecond: Bool, _ turn: inout Turn) {
    guard ownReading == nil, state == .up || leasedUntil.map({ $0 > turn.now }) ?? false else { return }
    guard send(.entries(of: incarnation, cursor: 0), .ownEntries, &turn) else { return readOwnAgain(&turn) }
    ownReading = ([], turn.now, isSecond)
  }

  private mutating func readOwnAgain(_ turn: inout Turn) {
    ownReading = nil
    timers.schedule(.ownEntries, at: turn.now + Limits.ownEntriesAgain)
  }

  mutating func ownEntriesRead(_ result: Result<EngineReply, EngineFailure>, sent: Instant, _ turn: inout Turn) {
    guard let reading = ownReading, sent >= reading.since else { return }
    guard case .success(.entries(let entries, let next, let dropped)) = result else { return readOwnAgain(&turn) }
    statistics.valuesDropped += UInt64(max(0, dropped))
    ownReading?.found.formUnion(entries.map(\.line.call))
    if dropped > 0 {
      // An entry that cannot be read is there all the same: nothing follows from what is missing.
      ownReading = nil
      return endDoubt(&turn)
    }
    if next != 0 {
      if !send(.entries(of: incarnation, cursor: next), .ownEntries, &turn) { readOwnAgain(&turn) }
      return
    }
    let found = ownReading?.found ?? []
    ownReading = nil
    func isMissing(_ call: CallID, _ putSent: Instant?) -> Bool {
      putSent.map { $0 < reading.since } ?? false && !found.contains(call)
    }
    let missing =
      calls.filter { $0.value.entry != nil && isMissing($0.key, $0.value.putSent) }.map(\.key)
      + doubtful.filter { isMissing($0.key, $0.value.putSent) }.map(\.key)
    for call in missing.sorted(by: { "\($0)" < "\($1)" }) {
      send(.claimReaping(call, of: incarnation, by: incarnation), .ownMissing(call), &turn)
    }
    if reading.isSecond, missing.isEmpty { endDoubt(&turn) } else { readOwnAgain(&turn) }
  }

  /// Who claimed a call of ours whose entry is missing. Without an answer the next reading asks again.
  mutating func ownMissingClaimed(_ call: CallID, _ result: Result<EngineReply, EngineFailure>, _ turn: inout Turn) {
    guard case .success(.granted(let isGranted, let holder)) = result else { return }
    guard isGranted || holder == incarnation else { return reapedByOthers([call], &turn) }
    // Nobody did: the engine has lost what we wrote, and no call ends of that.
    if doubtful[call] != nil { return release([call], &turn) }
    guard let own = calls[call] else { return }
    calls[call]?.putSent = nil
    write(.entry(call), &turn)
    for user in own.users { write(.place(user, call), &turn) }
    for trunk in own.trunks { write(.share(trunk), &turn) }
  }
}
