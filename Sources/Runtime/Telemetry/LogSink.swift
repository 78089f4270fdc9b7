import Bytes
import Glibc
import Platform
import Synchronization

/// Writes log lines on a thread of its own, so that a slow disk or a full pipe never stops a call.
///
/// Policy: when 8,192 lines wait, further ones are dropped and counted, and the next line that is written says how many. The end of the process
/// does not wait for a reader that has stopped: `stop` takes `Limits.lastLogTime` at most.
public final class LogSink: Sendable {
  /// Lines dropped because too many were waiting, or because the descriptor is gone.
  public let dropped = Counter()
  let rates = LogRates()
  /// Lines left out because one who caused them caused too many (`LogRates`).
  public var omitted: Counter { rates.omitted }
  private let mailbox: Mailbox<Entry>
  private let thread: NamedThread
  private let ending: Ending

  /// When the thread has to be over, in nanoseconds of the monotonic clock.
  private final class Ending: Sendable {
    let at = Atomic<Int64>(.max)
    var isOver: Bool { MonotonicClock.now().nanoseconds >= at.load(ordering: .relaxed) }
  }

  private enum Entry: Sendable {
    case line([UInt8])
    case stop
  }

  /// Lines go to `fd`, which stays the caller's: 2 for standard error.
  public init(fd: Int32 = 2) throws(SystemError) {
    let mailbox = try Mailbox<Entry>(capacity: Limits.waitingLogLines)
    self.mailbox = mailbox
    let (dropped, ending) = (dropped, Ending())
    self.ending = ending
    thread = try NamedThread.start(name: "log") { Self.run(mailbox, fd, dropped, ending) }
  }

  /// Any thread; never waits.
  func write(_ line: [UInt8]) {
    if !mailbox.post(.line(line)) { dropped.increment() }
  }

  /// Writes what is waiting, as far as it is taken within `Limits.lastLogTime`, and ends the thread. Lines written later are dropped. Call it
  /// once, before the process ends.
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
    // a full box: its thread writes, and looks at the clock
    while !mailbox.post(.stop), !ending.isOver { _ = poll(nil, 0, 10) }
    thread.join()
  }

  private static func run(_ mailbox: Mailbox<Entry>, _ fd: Int32, _ dropped: Counter, _ ending: Ending) {
    var entries: [Entry] = []
    var reported: UInt64 = 0
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
      if lost > reported, !bytes.isEmpty {
        bytes += Array("{\"level\":\"warning\",\"label\":\"log\",\"msg\":\"\(lost - reported) log lines were dropped\"}\n".utf8)
        reported = lost
      }
      if !writeAll(bytes, fd, ending) { dropped.increment(by: UInt64(entries.count)) }
      if stopping || ending.isOver { return }
    }
  }

  /// Waits for room before each piece, and a pipe that says it has room takes a piece whole (PIPE_BUF): so no write blocks past the end, and
  /// none spins where somebody has made the descriptor non-blocking.
  private static func writeAll(_ bytes: [UInt8], _ fd: Int32, _ ending: Ending) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      var room = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
      guard poll(&room, 1, Limits.logWaitMilliseconds) > 0 else {
        if ending.isOver { return false }
        continue
      }
      let count = rest.prefix(Int(PIPE_BUF)).withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR && errno != EAGAIN { return false }
    }
    return true
  }

  public var metrics: [MetricFamily] {
    [
      .counter("trunkline_log_lines_dropped_total", "Log lines dropped because too many were waiting.", dropped),
      .counter(
        "trunkline_log_lines_omitted_total", "Log lines left out because one who caused them caused too many.", rates.omitted),
    ]
  }
}
