public import ArgumentParser
import Dispatch
import Foundation
import Glibc
public import TrunklineBytes

/// Writes lines to standard error, safe for a terminal.
package func complain(_ text: String) { FileHandle.standardError.write(Data((TerminalText.page(text) + "\n").utf8)) }

/// Standard output, line by line even if it is a pipe. All text of callers, apps and servers reaches a terminal through this
/// type: control characters are replaced (`TerminalText`), in JSON escaped.
package enum Console {
  /// One line or several, followed by a line feed.
  package static func line(_ text: String) { write(TerminalText.page(text) + "\n") }

  /// JSON of the same meaning, followed by a line feed.
  package static func json(_ text: String) { write(TerminalText.json(text) + (text.hasSuffix("\n") ? "" : "\n")) }

  /// A page of the gateway, which ends its lines itself.
  package static func page(_ text: String) { write(TerminalText.page(text)) }

  /// Output for another program, such as CSV: unchanged, unless it goes to a terminal.
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

/// Calls `stop` at SIGINT and SIGTERM, on its own thread, as long as the object lives.
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
