import AppSessions
import CallModel
import Devices
import EventJournal

/// The work of the store thread, without the thread: journal entries in, records out, and both kept while a disk is full or locked.
///
/// A call's record is appended before its journal entry is removed, and the removal is written with the next journal entries. If the
/// process dies between the two, the next start finds the record and only removes the line: one record per call in every case. Of
/// a device, and of a user's grant, only the last state waits.
struct StoreWriter {
  enum Command: Sendable {
    case started(JournalEntry, confirm: @Sendable (CallID) -> Void)
    case ended(CallRecord)
    case disowned(CallID)
    case devices([DeviceChange])
    case grants([UserGrants.Change])
    case event(GatewayEvent)
  }

  private let journal: any Journal
  private let records: any RecordSink
  private let devices: any DeviceStore
  private let grants: (any GrantStore)?
  /// Nil: events have no reader.
  private let events: EventLog?
  private var waitingEvents: [EventJournal.Entry] = []
  private(set) var eventsWritten = 0
  private var lostEvents = 0
  private var lines: [(line: JournalEntry, confirm: @Sendable (CallID) -> Void)] = []
  private var waiting: [CallRecord] = []
  private var removals: [CallID] = []
  /// Calls whose journal entry was accepted and whose record was not yet: a call refused at once has no line to remove.
  private var started: Set<CallID> = []
  private var changes: [DeviceKey: DeviceChange] = [:]
  private var grantChanges: [String: UserGrants.Change] = [:]
  /// Why the last flush was incomplete; nil when all is on disk.
  private(set) var problem: String?
  private(set) var written = 0
  private var lost = 0
  private var lostChanges = 0
  private(set) var failures = 0

  var waitingRecords: Int { waiting.count }
  var waitingChanges: Int { changes.count + grantChanges.count }

  init(
    journal: any Journal, records: any RecordSink, devices: any DeviceStore, grants: (any GrantStore)? = nil,
    events: EventLog? = nil
  ) {
    (self.journal, self.records, self.devices, self.grants, self.events) = (journal, records, devices, grants, events)
  }

  /// Called before the first call: writes a record `gatewayRestart` for every line of a process that died. Returns those lines.
  mutating func recover(nowMilliseconds: Int64) throws -> [JournalEntry] {
    let orphans = try journal.lines()
    let missing = try complete(orphans)
    for record in missing.map({ CallRecord(orphan: $0, at: nowMilliseconds) }) { ended(record) }
    try flushEvents()
    try flushRecords()
    if !orphans.isEmpty { try journal.remove(orphans.map(\.call)) }
    removals.removeAll()
    return missing
  }

  /// Lines of a process that died and have no record: they stay until their calls are ended or disowned.
  mutating func inherit() throws -> [JournalEntry] {
    let orphans = try journal.lines()
    let left = try complete(orphans)
    try flushEvents()
    try flushRecords()
    let open = Set(left.map(\.call))
    let done = orphans.map(\.call).filter { !open.contains($0) }
    if !done.isEmpty { try journal.remove(done) }
    removals.removeAll()
    started.formUnion(open)
    return left
  }

  /// Of calls whose process died, returns those that have neither a record nor an event of their end. If it died between the two,
  /// the missing one is made from the other.
  private mutating func complete(_ orphans: [JournalEntry]) throws -> [JournalEntry] {
    let calls = Set(orphans.map(\.call))
    let recorded = try records.recorded(among: calls)
    let ended = events?.ended(among: calls) ?? [:]
    return orphans.filter { line in
      if let record = recorded[line.call] {
        if events != nil, ended[line.call] == nil { journalEnd(record) }
        return false
      }
      guard let record = ended[line.call] else { return true }
      waiting.append(record)
      return false
    }
  }

  mutating func handle(_ command: Command) {
    switch command {
    case .started(let line, let confirm):
      // Beyond the bound the call continues without a line, as it does when the journal is late.
      guard lines.count < Limits.waitingLines else { return }
      lines.append((line, confirm))
      started.insert(line.call)
    case .ended(let record): ended(record)
    case .event(let event): journal { $0.entry(event) }
    case .disowned(let call):
      lines.removeAll { $0.line.call == call }
      if started.remove(call) != nil { removals.append(call) }
    case .devices(let changes): for change in changes { note(change) }
    case .grants(let changes): for change in changes { note(change) }
    }
  }

  private mutating func ended(_ record: CallRecord) {
    journalEnd(record)
    guard waiting.count < Limits.waitingRecords else {
      lost += 1
      return
    }
    waiting.append(record)
  }

  private mutating func journalEnd(_ record: CallRecord) { journal { $0.entry(record) } }

  private mutating func journal(_ entry: (EventLog) -> EventJournal.Entry) {
    guard let events else { return }
    guard waitingEvents.count < Limits.waitingEvents else {
      lostEvents += 1
      return
    }
    waitingEvents.append(entry(events))
  }

  private mutating func note(_ change: UserGrants.Change) {
    guard grantChanges[change.user] != nil || grantChanges.count < Limits.waitingChanges else {
      lostChanges += 1
      return
    }
    grantChanges[change.user] = change
  }

  private mutating func note(_ change: DeviceChange) {
    let key =
      switch change {
      case .stored(let device): device.key
      case .removed(let key): key
      }
    guard changes[key] != nil || changes.count < Limits.waitingChanges else {
      lostChanges += 1
      return
    }
    changes[key] = change
  }

  /// Records that were dropped since the last call because memory for them was full.
  mutating func popLost() -> Int {
    defer { lost = 0 }
    return lost
  }

  /// Device changes that were dropped since the last call.
  mutating func drainLostChanges() -> Int {
    defer { lostChanges = 0 }
    return lostChanges
  }

  /// Events that were dropped since the last call.
  mutating func drainLostEvents() -> Int {
    defer { lostEvents = 0 }
    return lostEvents
  }

  /// True while journal entries of recorded calls must still be removed.
  var hasRemovals: Bool { !removals.isEmpty }

  /// Writes what it can to disk. Removals alone are written only when it `isIdle`.
  mutating func flush(isIdle: Bool = true) {
    problem = nil
    // first: the events that precede a call's journal entry or record
    attempt { me throws in try me.flushEvents() }
    attempt { me throws in try me.flushLines() }
    attempt { me throws in try me.flushRecords() }
    if isIdle || removals.count >= Limits.waitingRemovals { attempt { me throws in try me.flushRemovals() } }
    attempt { me throws in try me.flushDevices() }
    attempt { me throws in try me.flushGrants() }
  }

  private mutating func flushEvents() throws {
    guard let events, !waitingEvents.isEmpty else { return }
    eventsWritten += try events.append(waitingEvents)
    waitingEvents.removeAll(keepingCapacity: true)
  }

  private mutating func flushLines() throws {
    guard !lines.isEmpty else { return }
    // the journal entry stays until the event of the call's end is written
    let gone = waitingEvents.isEmpty ? removals : []
    try journal.change(adding: lines.map(\.line), removing: gone)
    if !gone.isEmpty { removals.removeAll(keepingCapacity: true) }
    for (line, confirm) in lines { confirm(line.call) }
    lines.removeAll(keepingCapacity: true)
  }

  private mutating func flushRecords() throws {
    guard !waiting.isEmpty else { return }
    try records.append(waiting)
    written += waiting.count
    let ended = Set(waiting.map(\.call))
    // A line that still waits for a broken journal is useless once its call has a record.
    lines.removeAll { ended.contains($0.line.call) }
    for call in ended where started.remove(call) != nil { removals.append(call) }
    waiting.removeAll(keepingCapacity: true)
  }

  private mutating func flushRemovals() throws {
    guard !removals.isEmpty, waitingEvents.isEmpty else { return }
    try journal.remove(removals)
    removals.removeAll(keepingCapacity: true)
  }

  private mutating func flushDevices() throws {
    guard !changes.isEmpty else { return }
    try devices.apply(Array(changes.values))
    changes.removeAll(keepingCapacity: true)
  }

  private mutating func flushGrants() throws {
    guard !grantChanges.isEmpty else { return }
    try grants?.apply(Array(grantChanges.values))
    grantChanges.removeAll(keepingCapacity: true)
  }

  private mutating func attempt(_ body: (inout Self) throws -> Void) {
    do {
      try body(&self)
    } catch {
      failures += 1
      problem = problem ?? "\(error)"
    }
  }
}
