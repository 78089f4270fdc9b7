public import ArgumentParser
public import Bytes
import Dispatch
import Foundation
import Glibc

/// Lines on standard error, safe for a terminal.
package func complain(_ text: String) { FileHandle.standardError.write(Data((TerminalText.page(text) + "\n").utf8)) }

/// Standard output, a line at a time also when it is a pipe. Only here does text of callers, apps and servers reach a terminal: what would
/// move its cursor is replaced (`TerminalText`), in JSON escaped.
package enum Console {
  /// One line or several, with a line feed behind them.
  package static func line(_ text: String) { write(TerminalText.page(text) + "\n") }

  /// JSON, which stays the same JSON, with a line feed behind it.
  package static func json(_ text: String) { write(TerminalText.json(text) + (text.hasSuffix("\n") ? "" : "\n")) }

  /// A page of the gateway as it is, which ends its lines itself.
  package static func page(_ text: String) { write(TerminalText.page(text)) }

  /// What another program is to read, such as CSV: unchanged, unless a person would.
  package static func data(_ text: String) { write(isatty(1) == 1 ? TerminalText.page(text) : text) }

  private static func write(_ text: String) {
    let bytes = Array(text.utf8)
    var start = 0
    while start < bytes.count {
      let written = bytes[start...].withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
      guard written > 0 || errno == EINTR else { return }
      start += max(0, written)
    }
  }
}

/// Calls `stop` at SIGINT and SIGTERM, on a thread of its own, as long as the object lives.
package final class StopSignal {
  private let sources: [any DispatchSourceSignal]

  package init(_ stop: @escaping @Sendable () -> Void) {
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler(handler: DispatchWorkItem(block: stop))
      source.resume()
      return source
    }
  }

  deinit { for source in sources { source.cancel() } }
}

extension SocketAddress: ExpressibleByArgument {
  public init?(argument: String) { self.init(argument) }
}
