import CallModel
import TrunklineBytes

/// Calls that other nodes may have closed while this node had no lease and seemed dead. The closing node has written the record of
/// such a call, and this node must write none: its records wait until its own entries are read again. They are read until none is
/// missing, at least twice: a reaper that had claimed a call when our lease returned removes its entry a moment later.
///
/// | state | input | next | gives |
/// |---|---|---|---|
/// | none | `hold` | none | false: the record need not wait |
/// | any | `leaseEnded` | open | a reading ends |
/// | open, reading | `hold` | same | true, if the call's entry was stored: its record waits `Limits.confirmation` at most |
/// | any | `leaseIsBack`, nothing to read | none | all records are released |
/// | any | `leaseIsBack` after a time without lease, with stored entries | reading | the entries are requested |
/// | reading | `read` a page, more follow | reading | the next page is requested |
/// | reading | `read` the last page | reading; none if the second one misses no entry | the calls whose entries are missing; read again |
/// | reading | `read` with undecodable entries | none | all records are released: a missing call proves nothing |
/// | reading | `read` failed, or the request was not sent | reading | read again after `Limits.ownEntriesAgain` |
/// | any | `flushed` | open, if it was reading | all records are released: entries no longer show what other nodes closed |
/// | any | `disconnected` | same | a reading ends |
/// | any | `due` | same | the records that have waited long enough are released |
/// | any | `settle` | same | this record is released, once |
/// | any | `remove` | same | –; another node has closed the call |
///
/// A reply that no reading waits for, or that was sent before it began, is ignored. Released ends are returned: the machine removes
/// their entries and writes their tombstones. They may be 20,000, so that a step returns `Limits.releasesPerStep`, oldest first, and
/// `due` the next ones; they wait on if the lease ends before.
struct UnconfirmedEnds: Sendable {
  struct End: Sendable {
    var call: CallID
    /// For devices that connect late to other nodes; written once the end is confirmed as ours.
    var tombstone: RemoteTombstone?
  }
  /// What a page of our own entries shows.
  struct Findings: Sendable {
    var missing: [CallID] = []
    var released: [End] = []
  }

  private enum State { case none, open, reading }
  private struct Held: Sendable {
    var putSent: Instant
    var tombstone: RemoteTombstone?
  }
  private struct Reading: Sendable {
    var found: Set<CallID> = []
    var since: Instant
    var isSecond: Bool
  }

  private let incarnation: Incarnation
  /// Whether other nodes may have closed our calls.
  private var state = State.none
  /// Our lease has ended since it was known last which calls others closed.
  private var mustRead = false
  private var reading: Reading?
  private var held: [CallID: Held] = [:]
  /// Until when each record waits, oldest first.
  private var byTime: [(call: CallID, until: Instant)] = []
  /// The number of those that need not wait any longer.
  private var releasing = 0

  init(_ incarnation: Incarnation) { self.incarnation = incarnation }

  var count: Int { held.count }
  var isEmpty: Bool { held.isEmpty }
  var calls: [CallID] { Array(held.keys) }
  /// Shared store or lease is lost, and no reading has begun since.
  var isOpen: Bool { state == .open }
  func has(_ call: CallID) -> Bool { held[call] != nil }

  // MARK: records

  /// Holds back the record of an ended call that other nodes may have closed, or may still close: the shared store had its entry
  /// at its last answer. No node can close a call that never had an entry.
  mutating func hold(_ call: CallID, putSent: Instant?, tombstone: RemoteTombstone?, _ step: inout Step) -> Bool {
    guard state != .none, let putSent, held.count < Limits.unconfirmedEnds else { return false }
    let until = step.now + Limits.confirmation
    held[call] = Held(putSent: putSent, tombstone: tombstone)
    byTime.append((call, until))
    step.timers.schedule(.unconfirmedEnds, notLaterThan: until)
    return true
  }

  mutating func remove(_ call: CallID) { held[call] = nil }

  mutating func settle(_ call: CallID) -> [End] { release([call]) }

  /// Nothing has shown these calls to be closed by others.
  mutating func due(_ step: inout Step) -> [End] {
    let some = byTime.prefix(Limits.releasesPerStep)
    let due = some.prefix(max(releasing, some.prefix { $0.until <= step.now }.count))
    byTime.removeFirst(due.count)
    releasing = max(0, releasing - due.count)
    if let next = byTime.first {
      let isDue = releasing > 0 || next.until <= step.now
      step.timers.schedule(.unconfirmedEnds, at: isDue ? step.now + Limits.restoreStep : next.until)
    } else {
      step.timers.cancel(.unconfirmedEnds)
    }
    return release(due.map(\.call))
  }

  /// Nothing can show any longer what other nodes closed, or their entries were found.
  mutating func end(_ step: inout Step) -> [End] {
    state = .none
    mustRead = false
    return releaseAll(&step)
  }

  private mutating func releaseAll(_ step: inout Step) -> [End] {
    releasing = byTime.count
    return due(&step)
  }

  /// This process ends: all at once.
  mutating func stop(_ step: inout Step) -> [End] {
    state = .none
    mustRead = false
    releasing = 0
    step.timers.cancel(.unconfirmedEnds)
    defer { byTime = [] }
    return release(byTime.map(\.call))
  }

  private mutating func release(_ calls: [CallID]) -> [End] {
    calls.compactMap { call in held.removeValue(forKey: call).map { End(call: call, tombstone: $0.tombstone) } }
  }

  // MARK: lease and connection

  mutating func leaseEnded(_ step: inout Step) {
    state = .open
    releasing = 0
    stopReading(&step)
  }

  mutating func disconnected(_ step: inout Step) { stopReading(&step) }

  mutating func flushed(_ step: inout Step) -> [End] {
    stopReading(&step)
    mustRead = false
    if state == .reading { state = .open }
    return releaseAll(&step)
  }

  private mutating func stopReading(_ step: inout Step) {
    reading = nil
    step.timers.cancel(.ownEntries)
  }

  /// A renewal was granted. `hadNone`: our lease had ended meanwhile; otherwise no other node can have judged this one dead.
  mutating func leaseIsBack(hadNone: Bool, hasStoredCalls: Bool, _ step: inout Step) -> [End] {
    if hadNone, hasStoredCalls || !held.isEmpty { mustRead = true }
    guard mustRead else { return end(&step) }
    state = .reading
    startReading(isSecond: false, &step)
    return []
  }

  // MARK: our own entries

  /// If an entry that we wrote is missing, a reaper has claimed the call and removed it, or a failover has lost it.
  mutating func startReading(isSecond: Bool, _ step: inout Step) {
    guard reading == nil else { return }
    guard step.send(.entries(of: incarnation, cursor: 0), .ownEntries) else { return readAgain(&step) }
    reading = Reading(since: step.now, isSecond: isSecond)
  }

  private mutating func readAgain(_ step: inout Step) {
    reading = nil
    step.timers.schedule(.ownEntries, at: step.now + Limits.ownEntriesAgain)
  }

  mutating func read(
    _ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, live: CallTable, _ step: inout Step
  ) -> Findings {
    guard let current = reading, sent >= current.since else { return Findings() }
    guard case .success(.entries(let entries, let next, let dropped)) = result else {
      readAgain(&step)
      return Findings()
    }
    step.statistics.valuesDropped += UInt64(max(0, dropped))
    reading?.found.formUnion(entries.map(\.line.call))
    if dropped > 0 {
      // An entry that cannot be decoded still exists.
      reading = nil
      return Findings(released: end(&step))
    }
    if next != 0 {
      if !step.send(.entries(of: incarnation, cursor: next), .ownEntries) { readAgain(&step) }
      return Findings()
    }
    let found = reading?.found ?? []
    reading = nil
    let ended = held.filter { $0.value.putSent < current.since && !found.contains($0.key) }.map(\.key)
    let live = live.missing(from: found, storedBefore: current.since, most: Limits.claimsPerReading)
    let missing = (live + ended).sorted { EntryKey($0) < EntryKey($1) }.prefix(Limits.claimsPerReading)
    if current.isSecond, missing.isEmpty { return Findings(released: end(&step)) }
    readAgain(&step)
    return Findings(missing: Array(missing))
  }
}
