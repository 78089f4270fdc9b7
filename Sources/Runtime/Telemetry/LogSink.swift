import Glibc
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// Writes log lines on its own thread, so that a slow disk or a full pipe never stops a call.
///
/// Policy: when 8,192 lines wait, further ones are dropped and counted, and the next written line states how many, and why. The
/// end of the process does not wait for a stopped reader: `stop` takes `Limits.lastLogTime` at most.
///
/// | the descriptor is | then | `fault` |
/// |---|---|---|
/// | a full pipe or socket, a terminal that was stopped | lines wait | it has no reader |
/// | a pipe or socket without a reader | lines are dropped | its reader is gone |
/// | a terminal that was closed | lines are dropped | its terminal is gone |
/// | a file on a full disk | lines are dropped until there is room | the disk is full |
/// | closed | lines are dropped | it is closed |
public final class LogSink: Sendable {
  /// Lines dropped because too many were waiting, or because the descriptor cannot be written (see the table).
  public let dropped = Counter()
  let rates = LogRates()
  /// Lines omitted because one cause produced too many (`LogRates`).
  public var omitted: Counter { rates.omitted }
  private let mailbox: Mailbox<Entry>
  private let thread: NamedThread
  private let ending: Ending
  private let health = Health()

  /// The fault that keeps lines from being written, and the closure that is notified of its changes.
  private final class Health: Sendable {
    private let state = Mutex<(fault: String?, report: (@Sendable (String?) -> Void)?)>((nil, nil))
    var fault: String? { state.withLock { $0.fault } }

    func set(_ fault: String?) {
      let report = state.withLock { state -> (@Sendable (String?) -> Void)? in
        guard state.fault != fault else { return nil }
        state.fault = fault
        return state.report
      }
      report?(fault)
    }
    func onChange(_ report: @escaping @Sendable (String?) -> Void) {
      let fault = state.withLock { state in
        state.report = report
        return state.fault
      }
      if fault != nil { report(fault) }
    }
  }

  /// The fault that keeps lines from being written now; nil: none.
  public var fault: String? { health.fault }
  /// `report` is called when the fault changes, on the log's thread, and at once if there is one.
  public func onFault(_ report: @escaping @Sendable (String?) -> Void) { health.onChange(report) }

  /// When the thread must end, in nanoseconds of the monotonic clock.
  private final class Ending: Sendable {
    let at = Atomic<Int64>(.max)
    var isOver: Bool { MonotonicClock.now().nanoseconds >= at.load(ordering: .relaxed) }
  }

  private enum Entry: Sendable {
    case line([UInt8])
    case stop
  }

  /// Lines are written to `fd`, which the caller owns: 2 for standard error.
  public init(fd: Int32 = 2) throws(SystemError) {
    let mailbox = try Mailbox<Entry>(capacity: Limits.waitingLogLines)
    self.mailbox = mailbox
    let (dropped, ending, health) = (dropped, Ending(), health)
    self.ending = ending
    thread = try NamedThread.start(name: "log") { Self.run(mailbox, to: fd, dropped: dropped, ending: ending, health: health) }
  }

  /// Any thread; never waits.
  func write(_ line: [UInt8]) {
    if !mailbox.post(.line(line)) { dropped.increment() }
  }

  /// Writes waiting lines, as far as the descriptor accepts them within `Limits.lastLogTime`, and ends the thread. Lines written
  /// later are dropped. Call it once, before the process ends.
  public func stop() {
    for rest in rates.sweep(at: MonotonicClock.now(), isLast: true) {
      var line = JSONText()
      line.field("level", "notice")
      line.field("label", rest.kind.label)
      line.field("msg", LogRates.summary)
      for (name, value) in rest.fields.sorted(by: { $0.key < $1.key }) {
        line.field(name, "\(value)", limit: Limits.logValueBytes)
      }
      write(line.object + [UInt8(ascii: "\n")])
    }
    ending.at.store((MonotonicClock.now() + Limits.lastLogTime).nanoseconds, ordering: .relaxed)
    // a full mailbox: its thread writes, and checks the clock
    while !mailbox.post(.stop), !ending.isOver { _ = poll(nil, 0, 10) }
    thread.join()
  }

  private static func run(_ mailbox: Mailbox<Entry>, to fd: Int32, dropped: Counter, ending: Ending, health: Health) {
    var entries: [Entry] = []
    var reported: UInt64 = 0
    // why lines were dropped since the last report
    var why = "it was read too slowly"
    while true {
      entries.removeAll(keepingCapacity: true)
      mailbox.wait(into: &entries, limit: Limits.logLinesPerWrite)
      var bytes: [UInt8] = []
      var stopping = false
      for entry in entries {
        switch entry {
        case .line(let line): bytes += line
        case .stop: stopping = true
        }
      }
      let lost = dropped.value
      var reporting = reported
      if lost > reported, !bytes.isEmpty {
        let text = "\(lost - reported) log lines were dropped: \(why)"
        bytes += Array("{\"level\":\"warning\",\"label\":\"log\",\"msg\":\"\(text)\"}\n".utf8)
        reporting = lost
      }
      if writeAll(bytes, to: fd, ending: ending, health: health) {
        reported = reporting
        why = "it was read too slowly"
      } else {
        dropped.increment(by: Self.lines(entries))
        why = health.fault ?? why
      }
      guard stopping || ending.isOver else { continue }
      // lines that can no longer be written
      entries.removeAll()
      mailbox.drain(into: &entries)
      return dropped.increment(by: Self.lines(entries))
    }
  }

  private static func lines(_ entries: [Entry]) -> UInt64 {
    UInt64(
      entries.count {
        guard case .line = $0 else { return false }
        return true
      })
  }

  /// Polls before each piece; a pipe that is writable accepts a whole piece (PIPE_BUF). So no write blocks past the end, and none
  /// spins on a descriptor that another process has made non-blocking.
  private static func writeAll(_ bytes: [UInt8], to fd: Int32, ending: Ending, health: Health) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      var room = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
      guard poll(&room, 1, Limits.logWaitMilliseconds) > 0 else {
        if ending.isOver { return false }
        health.set("it is full, and its reader does not read")
        continue
      }
      let count = rest.prefix(Int(PIPE_BUF)).withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
      let code = errno
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if code != EINTR && code != EAGAIN {
        health.set(cause(code))
        return false
      }
    }
    if !bytes.isEmpty { health.set(nil) }
    return true
  }

  private static func cause(_ code: Int32) -> String {
    switch code {
    case EPIPE, ECONNRESET, ENOTCONN: "its reader has ended"
    case EIO: "its terminal was closed"
    case EBADF: "it is closed"
    case ENOSPC, EDQUOT: "the disk is full"
    case EFBIG: "the file is as large as it may be"
    default: String(cString: strerror(code))
    }
  }

  public var metrics: [MetricFamily] {
    [
      .counter("trunkline_log_lines_dropped_total", help: "Log lines dropped because too many were waiting.", dropped),
      .counter(
        "trunkline_log_lines_omitted_total", help: "Log lines left out because one peer caused too many.", rates.omitted),
    ]
  }
}
