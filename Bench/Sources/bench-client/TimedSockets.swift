import Foundation
import TrunklineCallKit

/// WebSockets that note when frames are written and when they come.
final class TimedSockets: SocketConnector {
  private let sockets: any SocketConnector
  private let marks: Marks
  private let noted: @Sendable (String) -> Void

  init(_ sockets: any SocketConnector, _ marks: Marks, noted: @escaping @Sendable (String) -> Void) {
    (self.sockets, self.marks, self.noted) = (sockets, marks, noted)
  }

  /// `call.ringing` of `{"t":"call.ringing",…}`.
  static func type(_ text: [UInt8]) -> String? {
    let key = Array(#""t":""#.utf8)
    guard let start = text.indices.first(where: { text[$0...].starts(with: key) }) else { return nil }
    return String(decoding: text[(start + key.count)...].prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
  }

  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
    marks.note("open")
    let socket = sockets.open(url) { [marks] event in
      switch event {
      case .opened: marks.note("opened")
      case .received(let text): if let type = Self.type(text) { marks.note("← " + type) }
      case .closed: break
      }
      events(event)
    }
    return TimedSocket(socket: socket, marks: marks, noted: noted)
  }

  func post(_ url: String, bearer: String, body: [UInt8]) { sockets.post(url, bearer: bearer, body: body) }

  private struct TimedSocket: Socket {
    let socket: any Socket
    let marks: Marks
    let noted: @Sendable (String) -> Void

    func send(_ text: [UInt8]) {
      socket.send(text)
      guard let type = TimedSockets.type(text) else { return }
      marks.note(type)
      noted(type)
    }
    func close(_ code: UInt16) { socket.close(code) }
  }
}
