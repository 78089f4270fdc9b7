import Bytes
import Glibc
import Platform

/// Writes log lines on a thread of its own, so that a slow disk or a full pipe never stops a call.
///
/// Policy: when 8,192 lines wait, further ones are dropped and counted, and the next line that is written says how many.
public final class LogSink: Sendable {
  /// Lines dropped because too many were waiting, or because the descriptor is gone.
  public let dropped = Counter()
  private let mailbox: Mailbox<Entry>
  private let thread: NamedThread

  private enum Entry: Sendable {
    case line([UInt8])
    case stop
  }

  /// Lines go to `fd`, which stays the caller's: 2 for standard error.
  public init(fd: Int32 = 2) throws(SystemError) {
    let mailbox = try Mailbox<Entry>(capacity: Limits.waitingLogLines)
    self.mailbox = mailbox
    let dropped = dropped
    thread = try NamedThread.start(name: "log") { Self.run(mailbox, fd, dropped) }
  }

  /// Any thread; never waits.
  func write(_ line: [UInt8]) {
    if !mailbox.post(.line(line)) { dropped.increment() }
  }

  /// Writes what is waiting and ends the thread. Lines written later are dropped. Call it once, before the process ends.
  public func stop() {
    while !mailbox.post(.stop) { sched_yield() }
    thread.join()
  }

  private static func run(_ mailbox: Mailbox<Entry>, _ fd: Int32, _ dropped: Counter) {
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
      if !writeAll(bytes, fd) { dropped.increment(by: UInt64(entries.count)) }
      if stopping { return }
    }
  }

  private static func writeAll(_ bytes: [UInt8], _ fd: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR && errno != EAGAIN { return false }
    }
    return true
  }

  public var metrics: [MetricFamily] {
    [.counter("trunkline_log_lines_dropped_total", "Log lines dropped because too many were waiting.", dropped)]
  }
}
