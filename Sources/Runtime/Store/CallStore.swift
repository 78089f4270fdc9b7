public import CallModel
public import Devices
import EventJournal
import Glibc
public import Logging
import Synchronization
public import TrunklineBytes
public import TrunklinePlatform
public import TrunklineSIPDialogs

/// The store thread: journal of started calls, file of call records, devices. No thread waits for it.
///
/// A journal entry wakes it, as a call waits for the line; a record waits up to `Limits.groupCommitDelay` (10 ms) to be written with
/// others.
///
///     let store = try CallStore(sqlite: "/var/lib/trunkline/trunkline.db", records: "/var/lib/trunkline/calls.jsonl", readiness: readiness, logger: logger)
///     store.start(line) { call in control.post(.journalled(call)) }
///     store.end(record)
///     var registry = DeviceRegistry(store.devices)
///     store.change(registry.delete(key))
///     store.stop()
///
/// While a file cannot be written, up to `Limits.waitingRecords` records and every device's last state wait in memory, `/readyz`
/// states why, `trunkline_store_failing` is 1, and the write is tried again every second.
public final class CallStore: Sendable {
  /// Intervals that tests change.
  public struct Pace: Sendable {
    public var retry = Limits.retry
    public init() {}
  }
  private enum Message: Sendable {
    case command(StoreWriter.Command)
    case stream(file: String, RecordShipper.Append)
    case stop
  }

  /// Records written, and those of them that belong to calls of a killed process.
  public let written = Counter()
  public let orphans = Counter()
  /// Records that were dropped because memory for them was full.
  public let lost = Counter()
  /// Records that wait for the file to be writable again.
  public let waiting = Gauge()
  public let failures = Counter()
  /// 1 while a write has failed and is tried again.
  public let failing = Gauge()
  /// Devices whose last state waits to be written; and dropped changes, whose devices return with their next `device.put`.
  public let waitingChanges = Gauge()
  public let lostChanges = Counter()
  private let stream = RecordShipper.Counters()
  /// Devices stored at the start.
  public let devices: [Device]
  /// Grants of login tokens stored at the start.
  public let grants: [UserGrants.Entry]
  /// Trunk legs that a killed process left open; empty with `keepsOrphans`.
  public let orphanedLegs: [OrphanedLeg]
  /// With `keepsOrphans`: calls of a killed process that have no record in this file. Each must be passed to `end` or `disown`.
  public let orphanedLines: [JournalEntry]
  private let events: EventLog?
  private let lostEvents = Counter()
  private let onEvents = Mutex<(@Sendable () -> Void)?>(nil)
  private let mailbox: Mailbox<Message>
  private let thread: Mutex<NamedThread?>

  /// Opens all files (the journal is beside the database, `.started`), writes records for orphans of a killed process and starts
  /// the thread. Blocks; throws `StoreError`.
  /// - Parameters:
  ///   - keepsOrphans: other nodes exist, which may have written the records of orphans.
  ///   - written: called with records that are in their file, on the store's thread and once here; must not block.
  public convenience init(
    sqlite: String, records: String, events: EventSettings? = nil, keepsOrphans: Bool = false, readiness: Readiness,
    logger: Logger, written: @escaping @Sendable ([CallRecord]) -> Void = { _ in }
  ) throws {
    let file = try SQLiteFile(path: sqlite)
    let journal = try JournalFile(path: sqlite + ".started")
    try self.init(
      journal: journal, records: HistorySink(RecordFile(path: records), written: written), devices: SQLiteDevices(file),
      grants: SQLiteGrants(file),
      events: events.map { try EventLog($0) }, keepsOrphans: keepsOrphans, readiness: readiness, logger: logger)
  }

  public init(
    journal: any Journal, records: any RecordSink, devices: any LocalDeviceStore, grants: (any GrantStore)? = nil,
    events: EventLog? = nil, keepsOrphans: Bool = false, readiness: Readiness, logger: Logger, pace: Pace = Pace()
  ) throws {
    var writer = StoreWriter(journal: journal, records: records, devices: devices, grants: grants, events: events)
    self.events = events
    self.devices = try devices.all()
    self.grants = try grants?.grants() ?? []
    let found = keepsOrphans ? [] : try writer.recover(nowMilliseconds: WallClock.nowMilliseconds())
    orphanedLines = keepsOrphans ? try writer.inherit() : []
    orphanedLegs = found.flatMap { $0.legs ?? [] }
    orphans.increment(by: UInt64(found.count))
    written.increment(by: UInt64(found.count))
    if !found.isEmpty {
      logger.notice(
        "calls of a process that died got a record; their legs are closed now",
        metadata: ["calls": "\(found.count)", "legs": "\(orphanedLegs.count)", "reason": "gatewayRestart"])
    }
    mailbox = try Mailbox(capacity: Limits.mailbox)
    thread = Mutex(nil)
    readiness.set("store", ready: true)
    let start = writer
    let running = try NamedThread.start(name: "store", logger: logger) { [self] in
      run(start, readiness: readiness, logger: logger, pace: pace)
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. `confirm` is called on the store thread once the line is on disk, and not at all if it is not written. With
  /// `gathers` the thread is not woken until the next `wake`.
  public func start(_ line: JournalEntry, gathers: Bool = false, confirm: @escaping @Sendable (CallID) -> Void) {
    mailbox.post(.command(.started(line, confirm: confirm)), gathers ? .gathered : .now)
  }

  /// Any thread, after `start` with `gathers`.
  public func wake() { mailbox.wake() }

  /// Any thread. The record is written within `Limits.groupCommitDelay`, or waits in memory, or is counted as lost if memory for
  /// it is full.
  public func end(_ record: CallRecord) {
    if !mailbox.post(.command(.ended(record)), .deferred) { lost.increment() }
  }

  /// Any thread. Removes the journal entry of a call whose record another node writes.
  public func disown(_ call: CallID) { mailbox.post(.command(.disowned(call))) }

  /// Any thread. Changes are written in order, and kept in memory while the file cannot be written.
  public func change(_ changes: [DeviceChange]) {
    guard !changes.isEmpty else { return }
    if !mailbox.post(.command(.devices(changes))) { lostChanges.increment(by: UInt64(changes.count)) }
  }

  /// Any thread. As `change` of devices, for grants of login tokens.
  public func change(_ changes: [UserGrants.Change]) {
    guard !changes.isEmpty else { return }
    if !mailbox.post(.command(.grants(changes))) { lostChanges.increment(by: UInt64(changes.count)) }
  }

  /// Any thread. In order with `start` and `end`: an event is written before a later journal entry or record.
  public func append(_ event: GatewayEvent) {
    if events != nil, !mailbox.post(.command(.event(event)), .deferred) { lostEvents.increment() }
  }

  /// Any thread. `reported` is called on the store's thread when the event journal has grown; it must not block.
  public func onEvents(_ reported: @escaping @Sendable () -> Void) { onEvents.withLock { $0 = reported } }

  /// Any thread, once. From now on each line of the records file `file` is also passed to `append`, beginning with the first that
  /// earlier processes did not deliver.
  /// - Parameter append: called on the store's thread, with at most `Limits.streamedUnanswered` (64) records unanswered, 1,000 a
  ///   second. It must not block, and answers each once, on any thread; a failed record is passed again.
  public func stream(
    _ file: String, to append: @escaping @Sendable (CallID, [UInt8], @escaping @Sendable (RecordAnswer) -> Void) -> Void
  ) {
    mailbox.post(.stream(file: file, append))
  }

  /// Writes what it can of the waiting changes, and ends the thread. If the stream answers, it gets the last records, for
  /// `Limits.lastRecords` (2 s).
  public func stop() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    while !mailbox.post(.stop) { _ = Glibc.sched_yield() }
    running.join()
  }

  public var metrics: [MetricFamily] {
    (events?.metrics ?? []) + [
      .counter(
        "trunkline_events_lost_total", help: "Events dropped because memory was full while the journal was not writable.",
        lostEvents),
      .counter("trunkline_records_written_total", help: "Call records written.", written),
      .counter("trunkline_records_orphans_total", help: "Records of calls that a killed process left without an end.", orphans),
      .counter(
        "trunkline_records_lost_total", help: "Records dropped because memory was full while the file was not writable.", lost),
      .gauge("trunkline_records_waiting", help: "Call records in memory until the file can be written.", waiting),
      .counter("trunkline_store_failures_total", help: "Failed writes of journal, records file or devices.", failures),
      .gauge(
        "trunkline_store_failing", help: "1 while the store cannot be written: free the disk or find what holds its lock.",
        failing),
      .gauge(
        "trunkline_device_changes_waiting", help: "Devices whose last state is in memory until the store can be written.",
        waitingChanges),
      .counter(
        "trunkline_device_changes_lost_total", help: "Device changes dropped as memory was full while the store failed.",
        lostChanges),
      .counter("trunkline_records_streamed_total", help: "Call records added to the cluster's stream.", stream.streamed),
      .counter(
        "trunkline_records_superseded_total",
        help: "Call records whose call had one in the stream: sent again after a restart, or another node's.", stream.superseded),
      .counter(
        "trunkline_records_stream_failures_total", help: "Failed writes of records to the stream, which are retried.",
        stream.failures),
      .gauge(
        "trunkline_records_stream_waiting_bytes", help: "Bytes of the records file that are not in the stream yet.",
        stream.waitingBytes),
      .counter(
        "trunkline_records_unreadable_total", help: "Lines of the records file that are not a record, and were not streamed.",
        stream.unreadable),
    ]
  }
  public var queue: MailboxReading { mailbox.reading("store") }

  private func run(_ start: StoreWriter, readiness: Readiness, logger: Logger, pace: Pace) {
    var writer = start
    var shipper: RecordShipper?
    var batch: [Message] = []
    var running = true
    var stopBy: Instant?
    var reported: String?
    // After work it waits once for a group commit: records that arrive meanwhile are written together, with the removals of the
    // last ones.
    var due: Instant?
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    while running {
      batch.removeAll(keepingCapacity: true)
      let wake = [due, shipper?.nextStep, stopBy].compactMap(\.self).min()
      mailbox.wait(
        into: &batch, timeout: wake.map { max(.zero, $0 - MonotonicClock.now()) },
        includesDeferred: due != nil && writer.problem == nil, heartbeat: heartbeat)
      for message in batch {
        switch message {
        case .command(let command): writer.handle(command)
        case .stream(let file, let append):
          shipper = RecordShipper(
            path: file, counters: stream, logger: logger, wake: { [mailbox] in mailbox.event.signal() }, append: append)
        case .stop: stopBy = MonotonicClock.now() + Limits.lastRecords
        }
      }
      let now = MonotonicClock.now()
      defer {
        shipper?.step(at: now)
        if let stopBy { running = now < stopBy && shipper?.isIdle == false }
      }
      guard !batch.isEmpty || due.map({ $0 <= now }) ?? false else { continue }
      let before = (written: writer.written, failures: writer.failures, events: writer.eventsWritten)
      writer.flush(isIdle: batch.isEmpty || stopBy != nil)
      if writer.written != before.written { shipper?.recordsWritten() }
      if writer.eventsWritten != before.events { onEvents.withLock { $0 }?() }
      due =
        writer.problem != nil
        ? now + pace.retry : !batch.isEmpty || writer.hasRemovals ? now + Limits.groupCommitDelay : nil
      count(&writer, since: (before.written, before.failures))
      append(writer, &reported, readiness: readiness, logger: logger, pace: pace)
    }
    if writer.waitingRecords > 0 {
      logger.error(
        "call records were not written", metadata: ["records": "\(writer.waitingRecords)", "why": "\(writer.problem ?? "")"])
    }
  }

  private func count(_ writer: inout StoreWriter, since before: (written: Int, failures: Int)) {
    written.increment(by: UInt64(writer.written - before.written))
    failures.increment(by: UInt64(writer.failures - before.failures))
    lost.increment(by: UInt64(writer.popLost()))
    lostChanges.increment(by: UInt64(writer.drainLostChanges()))
    lostEvents.increment(by: UInt64(writer.drainLostEvents()))
    waiting.set(Int64(writer.waitingRecords))
    waitingChanges.set(Int64(writer.waitingChanges))
    failing.set(writer.problem == nil ? 0 : 1)
  }

  private func append(_ writer: StoreWriter, _ reported: inout String?, readiness: Readiness, logger: Logger, pace: Pace) {
    if let problem = writer.problem {
      readiness.set(
        "store", ready: false,
        why: "\(problem); \(writer.waitingRecords) records and \(writer.waitingChanges) devices wait in memory")
    } else {
      readiness.set("store", ready: true)
    }
    if writer.problem != reported {
      if let problem = writer.problem {
        logger.error(
          "the store cannot write: changes of calls and devices stay in memory and are lost if the gateway stops; free the disk or find the process that holds the file",
          metadata: ["why": "\(problem)", "retry": "\(pace.retry)"])
      } else {
        logger.notice("the store can write again")
      }
      reported = writer.problem
    }
  }
}
