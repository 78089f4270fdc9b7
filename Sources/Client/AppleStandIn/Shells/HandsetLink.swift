import Foundation

/// The app's end of a connection to a handset in another process: its path is in the environment (`APPLE_STAND_IN`).
final class HandsetLink: Sendable {
  static let variable = "APPLE_STAND_IN"

  let process: AppProcess
  private let socket: UnixSocket

  /// Nil if no handset listens at `path`.
  init?(path: String) {
    guard let socket = UnixSocket(path: path) else { return nil }
    self.socket = socket
    process = AppProcess { _, message in
      if let line = MessageLines.line(message) {
        socket.write(line)
      } else {
        Self.complain("a message of the app is longer than \(MessageLines.limit) bytes and not sent")
      }
    }
    process.send(.launched(process: ProcessInfo.processInfo.processIdentifier))
    let process = process
    Thread.detachNewThread { Self.read(socket, for: process) }
  }

  /// Reads until the handset disconnects: then the system's daemon has crashed, and every call with it.
  private static func read(_ socket: UnixSocket, for process: AppProcess) {
    var lines = MessageLines()
    while true {
      let bytes = socket.read()
      guard !bytes.isEmpty, let messages = try? lines.append(bytes, as: PhoneMessage.self) else { break }
      for message in messages { process.receive(message) }
    }
    process.receive(.reset)
    Self.complain("the handset has ended")
  }

  static func complain(_ text: String) { FileHandle.standardError.write(Data("AppleStandIn: \(text)\n".utf8)) }
}
