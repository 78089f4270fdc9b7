import BenchKit
import Glibc
import TrunklinePlatform

/// An app on a WebSocket: sends `hello`, acknowledges numbered messages, answers pings, and reports each message with its time.
final class AppSocket {
  enum Stage { case connecting, upgrading, greeting, welcome, closed }
  struct Message {
    var type: String
    var text: String
    var at: UInt64
    /// A text field of the message or of an object in it: the first with that name.
    func field(_ name: String) -> String? {
      guard let start = text.range(of: "\"\(name)\":\"") else { return nil }
      return String(text[start.upperBound...].prefix { $0 != "\"" })
    }
  }

  let user: String
  private(set) var stage = Stage.connecting
  let began = monotonicNanoseconds()
  private(set) var welcomedAt: UInt64 = 0
  var onMessage: (Message) -> Void = { _ in }
  private let reactor: Reactor
  private let fd: Int32
  private let tls: TLSSession?
  private let hello: String
  private var unread: [UInt8] = []
  private var unsent: [UInt8] = []

  init(_ reactor: Reactor, port: UInt16, user: String, token: String, tls: TLSContext? = nil) {
    (self.reactor, self.user) = (reactor, user)
    self.tls = tls.flatMap { TLSSession($0, isServer: false) }
    hello =
      #"{"t":"hello","id":"\#(randomUUID())","d":{"auth":"\#(token)","device":{"id":"phone","platform":"ios"},"caps":["nodes"],"state":"fg"}}"#
    fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var yes: Int32 = 1
    setsockopt(fd, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = loopbackAddress(port)
    _ = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    reactor.add(fd, .write) { [unowned self] in ready() }
    let upgrade =
      "GET /v1/connect HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: trunkline.v1\r\n\r\n"
    self.tls?.start()
    put(Array(upgrade.utf8))
  }

  deinit { end() }

  /// Ends without a closing handshake, like a lost network.
  func end() {
    guard stage != .closed else { return }
    stage = .closed
    reactor.remove(fd)
    close(fd)
  }

  /// Ends with a closing handshake: the app logs off.
  func finish() {
    guard stage == .welcome else { return end() }
    frame(8, [0x03, 0xe8])
    flush()
    end()
  }

  func send(_ text: String) {
    frame(1, Array(text.utf8))
    flush()
  }

  /// Declines every call that is offered.
  func declines() {
    var sent = 0
    onMessage = { [unowned self] message in
      guard message.type == "call.offer", let call = message.field("call") else { return }
      sent += 1
      send(#"{"t":"call.reject","id":"\#(randomUUID())","seq":\#(sent),"call":"\#(call)","d":{}}"#)
    }
  }

  // MARK: bytes

  private func ready() {
    if stage == .connecting { stage = .upgrading }
    flush()
    guard stage != .closed else { return }
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = buffer.withUnsafeMutableBytes { recv(fd, $0.baseAddress, $0.count, 0) }
      if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { break }
      guard count > 0 else { return end() }
      take(buffer[..<count])
    }
    read()
    flush()
  }

  private func take(_ bytes: ArraySlice<UInt8>) {
    guard let tls else { return unread += bytes }
    var plain: [UInt8] = []
    var room = [UInt8](repeating: 0, count: 16_384)
    bytes.withUnsafeBytes { bytes in
      room.withUnsafeMutableBytes { tls.received(bytes, plain: { plain += $0 }, into: $0) }
    }
    unread += plain
  }

  private func put(_ bytes: [UInt8]) {
    if let tls { _ = tls.write(bytes) } else { unsent += bytes }
  }

  private func frame(_ opcode: UInt8, _ content: [UInt8]) {
    // a mask of zeros is a valid mask
    var out: [UInt8] = [0x80 | opcode]
    if content.count < 126 {
      out.append(0x80 | UInt8(content.count))
    } else {
      out += [0x80 | 126, UInt8(content.count >> 8), UInt8(content.count & 255)]
    }
    put(out + [0, 0, 0, 0] + content)
  }

  private func flush() {
    guard stage != .closed, stage != .connecting else { return }
    tls?.drainUnsent(into: &unsent)
    if !unsent.isEmpty {
      let count = unsent.withUnsafeBytes { Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno != EAGAIN { return end() }
      unsent.removeFirst(max(0, count))
    }
    reactor.change(fd, unsent.isEmpty ? .read : [.read, .write])
  }

  private func read() {
    while stage != .closed {
      if stage == .upgrading {
        guard let end = String(decoding: unread, as: UTF8.self).range(of: "\r\n\r\n") else { return }
        let head = String(decoding: unread, as: UTF8.self)[..<end.upperBound]
        guard head.hasPrefix("HTTP/1.1 101") else { return self.end() }
        unread.removeFirst(head.utf8.count)
        stage = .greeting
        frame(1, Array(hello.utf8))
      }
      guard unread.count >= 2 else { return }
      var (length, start) = (Int(unread[1] & 127), 2)
      if length == 126 {
        guard unread.count >= 4 else { return }
        (length, start) = (Int(unread[2]) << 8 | Int(unread[3]), 4)
      }
      guard length < 127 || start == 4 else { return end() }
      guard unread.count >= start + length else { return }
      let (opcode, content) = (unread[0] & 15, Array(unread[start..<(start + length)]))
      unread.removeFirst(start + length)
      switch opcode {
      case 1: received(String(decoding: content, as: UTF8.self))
      case 9: frame(10, content)
      case 8: end()
      default: break
      }
    }
  }

  private func received(_ text: String) {
    let at = monotonicNanoseconds()
    var type = Message(type: "", text: text, at: at).field("t") ?? ""
    // the object in a push has its own type
    if type == "call" { type = "call.wake" }
    if type == "welcome" {
      stage = .welcome
      welcomedAt = at
    }
    onMessage(Message(type: type, text: text, at: at))
    guard let start = text.range(of: "\"seq\":") else { return }
    frame(1, Array(#"{"t":"ack","ack":\#(text[start.upperBound...].prefix { $0.isNumber })}"#.utf8))
  }
}
