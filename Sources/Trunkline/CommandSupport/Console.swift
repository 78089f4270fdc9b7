public import ArgumentParser
public import Bytes
import Dispatch
import Foundation
import Glibc

/// A line on standard error.
package func complain(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

/// Standard output a line at a time, also when it is a pipe.
package enum Console {
  package static func line(_ text: String) {
    let bytes = Array((text + "\n").utf8)
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
