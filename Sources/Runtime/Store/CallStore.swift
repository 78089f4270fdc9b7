public import Bytes
public import CallFlow
public import Logging
public import Platform
import Glibc
import Synchronization

/// The store thread: journal of started calls and file of call records. Nobody waits for it.
///
///     let store = try CallStore(sqlite: "/var/lib/trunkline/trunkline.db", records: "/var/lib/trunkline/calls.jsonl", readiness: readiness, logger: logger)
///     store.start(line) { call in control.post(.journalled(call)) }
///     store.end(record)
///     store.stop()
///
/// While a file cannot be written, up to `Limits.waitingRecords` records wait in memory, `/readyz` says why, and every second is a new try.
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
  private let mailbox: Mailbox<Message>
  private let thread: Mutex<NamedThread?>

  /// Opens both files, gives orphans of a killed process their record and starts the thread. Blocks; throws `StoreError`.
  public convenience init(sqlite: String, records: String, readiness: Readiness, logger: Logger) throws {
    try self.init(
      journal: SQLiteJournal(path: sqlite), records: RecordFile(path: records), readiness: readiness, logger: logger)
  }

  public init(
    journal: any Journal, records: any RecordSink, readiness: Readiness, logger: Logger, pace: Pace = Pace()
  ) throws {
    var writer = StoreWriter(journal: journal, records: records)
    let found = try writer.recover(nowMilliseconds: WallClock.nowMilliseconds())
    orphans.increment(by: UInt64(found))
    written.increment(by: UInt64(found))
    if found > 0 { logger.notice("calls of a process that died got a record", metadata: ["calls": "\(found)", "reason": "gatewayRestart"]) }
    mailbox = try Mailbox(capacity: Limits.mailbox)
    thread = Mutex(nil)
    readiness.set("store", ready: true)
    let start = writer
    let running = try NamedThread.start(name: "store", logger: logger) { [self] in
      run(start, readiness: readiness, logger: logger, pace: pace)
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. `confirm` is called on the store thread once the line is on disk, never if it does not get there.
  public func start(_ line: StartLine, confirm: @escaping @Sendable (CallID) -> Void) {
    mailbox.post(.command(.started(line, confirm: confirm)))
  }

  /// Any thread. The record is written, or waits in memory, or (beyond every bound) is counted as lost.
  public func end(_ record: CallRecord) {
    if !mailbox.post(.command(.ended(record))) { lost.increment() }
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
      .counter("trunkline_store_failures_total", "Failed writes of the journal or the records file.", failures),
    ]
  }
  public var queue: MailboxReading { mailbox.reading("store") }

  private func run(_ start: StoreWriter, readiness: Readiness, logger: Logger, pace: Pace) {
    var writer = start
    var batch: [Message] = []
    var running = true
    var told: String?
    while running {
      batch.removeAll(keepingCapacity: true)
      mailbox.wait(into: &batch, timeout: writer.problem == nil ? nil : pace.retry)
      for message in batch {
        if case .command(let command) = message { writer.take(command) } else { running = false }
      }
      let before = (writer.written, writer.failures)
      writer.flush()
      written.increment(by: UInt64(writer.written - before.0))
      failures.increment(by: UInt64(writer.failures - before.1))
      lost.increment(by: UInt64(writer.takeLost()))
      waiting.set(Int64(writer.waitingRecords))
      if let problem = writer.problem {
        readiness.set("store", ready: false, why: "\(problem); \(writer.waitingRecords) records wait in memory")
      } else {
        readiness.set("store", ready: true)
      }
      if writer.problem != told {
        if let problem = writer.problem {
          logger.error("store cannot write", metadata: ["why": "\(problem)"])
        } else {
          logger.notice("store writes again")
        }
        told = writer.problem
      }
    }
    if writer.waitingRecords > 0 {
      logger.error("call records were not written", metadata: ["records": "\(writer.waitingRecords)", "why": "\(writer.problem ?? "")"])
    }
  }
}
