public import Bytes
public import CallFlow
public import Devices
import Glibc
public import Logging
public import Platform
public import SIPDialogs
import Synchronization

/// The store thread: journal of started calls, file of call records, devices. Nobody waits for it.
///
/// A start line wakes it, as a call waits for it; a record waits up to `Limits.groupCommitDelay` (10 ms) for something to go with.
///
///     let store = try CallStore(sqlite: "/var/lib/trunkline/trunkline.db", records: "/var/lib/trunkline/calls.jsonl", readiness: readiness, logger: logger)
///     store.start(line) { call in control.post(.journalled(call)) }
///     store.end(record)
///     var registry = DeviceRegistry(store.devices)
///     store.change(registry.delete(key))
///     store.stop()
///
/// While a file cannot be written, up to `Limits.waitingRecords` records and every device's last state wait in memory, `/readyz` says
/// why, `trunkline_store_failing` is 1, and every second is a new try.
public final class CallStore: Sendable {
  /// What tests change.
  public struct Pace: Sendable {
    public var retry = Limits.retry
    public init() {}
  }
  private enum Message: Sendable {
    case command(StoreWriter.Command)
    case stop
  }

  /// Records written, among them those of calls that a killed process left.
  public let written = Counter()
  public let orphans = Counter()
  /// Records that found no room in memory.
  public let lost = Counter()
  /// Records that wait for the file to be writable again.
  public let waiting = Gauge()
  public let failures = Counter()
  /// 1 while something could not be written.
  public let failing = Gauge()
  /// Devices whose last state waits; and changes that found no room: those devices come back with their next `device.put`.
  public let waitingChanges = Gauge()
  public let lostChanges = Counter()
  /// What was stored at the start.
  public let devices: [Device]
  /// What a killed process has left open toward trunks.
  public let orphanedLegs: [OrphanedLeg]
  private let mailbox: Mailbox<Message>
  private let thread: Mutex<NamedThread?>

  /// Opens all files (the journal is beside the database, `.started`), gives orphans of a killed process their record and starts the
  /// thread. Blocks; throws `StoreError`.
  public convenience init(sqlite: String, records: String, readiness: Readiness, logger: Logger) throws {
    let file = try SQLiteFile(path: sqlite)
    let journal = try JournalFile(path: sqlite + ".started")
    try Self.move(from: SQLiteJournal(file), to: journal)
    try self.init(
      journal: journal, records: RecordFile(path: records), devices: SQLiteDevices(file), readiness: readiness, logger: logger)
  }

  /// Earlier versions had the start lines in the database.
  private static func move(from old: SQLiteJournal, to journal: JournalFile) throws {
    let lines = try old.lines()
    guard !lines.isEmpty else { return }
    try journal.add(lines)
    try old.remove(lines.map(\.call))
  }

  public init(
    journal: any Journal, records: any RecordSink, devices: any DeviceStore, readiness: Readiness,
    logger: Logger,
    pace: Pace = Pace()
  ) throws {
    var writer = StoreWriter(journal: journal, records: records, devices: devices)
    self.devices = try devices.devices()
    let found = try writer.recover(nowMilliseconds: WallClock.nowMilliseconds())
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

  /// Any thread. `confirm` is called on the store thread once the line is on disk, never if it does not get there. With `gathers` the
  /// thread hears of it with the next `wake`.
  public func start(_ line: StartLine, gathers: Bool = false, confirm: @escaping @Sendable (CallID) -> Void) {
    mailbox.post(.command(.started(line, confirm: confirm)), gathers ? .gathered : .now)
  }

  /// Any thread, after `start` with `gathers`.
  public func wake() { mailbox.wake() }

  /// Any thread. The record is written within `Limits.groupCommitDelay`, or waits in memory, or (beyond every bound) is counted as lost.
  public func end(_ record: CallRecord) {
    if !mailbox.post(.command(.ended(record)), .deferred) { lost.increment() }
  }

  /// Any thread. In order; kept in memory while the file cannot be written.
  public func change(_ changes: [DeviceChange]) {
    guard !changes.isEmpty else { return }
    if !mailbox.post(.command(.devices(changes))) { lostChanges.increment(by: UInt64(changes.count)) }
  }

  /// Writes what waits, as far as it goes, and ends the thread.
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
    [
      .counter("trunkline_records_written_total", "Call records written.", written),
      .counter("trunkline_records_orphans_total", "Records of calls that a killed process left without an end.", orphans),
      .counter("trunkline_records_lost_total", "Call records that found no room while the file could not be written.", lost),
      .gauge("trunkline_records_waiting", "Call records in memory until the file can be written.", waiting),
      .counter("trunkline_store_failures_total", "Failed writes of journal, records file or devices.", failures),
      .gauge(
        "trunkline_store_failing", "1 while the store cannot be written: free the disk or find who holds its lock.", failing),
      .gauge(
        "trunkline_device_changes_waiting", "Devices whose last state is in memory until the store can be written.",
        waitingChanges),
      .counter(
        "trunkline_device_changes_lost_total", "Changes of devices that found no room while the store failed.", lostChanges),
    ]
  }
  public var queue: MailboxReading { mailbox.reading("store") }

  private func run(_ start: StoreWriter, readiness: Readiness, logger: Logger, pace: Pace) {
    var writer = start
    var batch: [Message] = []
    var running = true
    var told: String?
    var hasWorked = false
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    while running {
      batch.removeAll(keepingCapacity: true)
      // After work it waits once for a group commit: records that come meanwhile are written together, with the removals of the last ones.
      let isGrouping = writer.problem == nil && (hasWorked || writer.hasRemovals)
      let timeout = isGrouping ? Limits.groupCommitDelay : writer.problem == nil ? nil : pace.retry
      mailbox.wait(into: &batch, timeout: timeout, takesDeferred: isGrouping, heartbeat: heartbeat)
      hasWorked = !batch.isEmpty
      for message in batch {
        if case .command(let command) = message { writer.take(command) } else { running = false }
      }
      let before = (writer.written, writer.failures)
      writer.flush(isIdle: !hasWorked || !running)
      written.increment(by: UInt64(writer.written - before.0))
      failures.increment(by: UInt64(writer.failures - before.1))
      lost.increment(by: UInt64(writer.takeLost()))
      lostChanges.increment(by: UInt64(writer.takeLostChanges()))
      waiting.set(Int64(writer.waitingRecords))
      waitingChanges.set(Int64(writer.waitingChanges))
      failing.set(writer.problem == nil ? 0 : 1)
      if let problem = writer.problem {
        readiness.set(
          "store", ready: false,
          why: "\(problem); \(writer.waitingRecords) records and \(writer.waitingChanges) devices wait in memory")
      } else {
        readiness.set("store", ready: true)
      }
      if writer.problem != told {
        if let problem = writer.problem {
          logger.error(
            "store cannot write: calls and devices go on in memory and are lost if the gateway stops now; free the disk or find who holds the file",
            metadata: ["why": "\(problem)", "retry": "\(pace.retry)"])
        } else {
          logger.notice("store writes again")
        }
        told = writer.problem
      }
    }
    if writer.waitingRecords > 0 {
      logger.error(
        "call records were not written", metadata: ["records": "\(writer.waitingRecords)", "why": "\(writer.problem ?? "")"])
    }
  }
}
