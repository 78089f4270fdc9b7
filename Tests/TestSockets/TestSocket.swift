import Foundation
public import TrunklineBytes
import TrunklinePlatform

/// A blocking TCP client with just enough HTTP and RFC 6455 to misbehave in every required way. Reads end after 10 s.
public final class TestSocket {
  public enum Frame: Equatable {
    case text(String)
    case ping([UInt8])
    case close(UInt16?)
    /// The connection ended, with or without a reset.
    case end
    case timeout
  }

  public let fd: Int32
  private var buffer: [UInt8] = []

  public init(_ address: SocketAddress, receiveBuffer: Int32? = nil) throws {
    fd = socket(address.ip.family == .v4 ? AF_INET : AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
    if var size = receiveBuffer { setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, 4) }
    var time = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    var storage = sockaddr_storage()
    let length = address.write(to: &storage)
    let result = withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(fd, $0, length) }
    }
    guard result == 0 else { throw SystemError("connect", address: address) }
  }

  deinit { close(fd) }

  /// False when the peer accepts no more.
  @discardableResult public func write(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Foundation.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count <= 0 { return false }
      sent += count
    }
    return true
  }
  @discardableResult public func write(_ text: String) -> Bool { write(Array(text.utf8)) }

  /// False at the end of the stream, nil after 10 s.
  private func fill() -> Bool? {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = recv(fd, &chunk, chunk.count, 0)
    if count < 0, errno == EAGAIN { return nil }
    if count <= 0 { return false }
    buffer += chunk.prefix(count)
    return true
  }

  /// A response's head and body (by content-length); nil if the connection ends first.
  public func response() -> (head: String, body: [UInt8])? {
    while true {
      let text = String(decoding: buffer, as: UTF8.self)
      if let end = text.range(of: "\r\n\r\n") {
        let head = String(text[..<end.lowerBound])
        let length = head.lowercased().split(separator: "\r\n").compactMap { line in
          line.hasPrefix("content-length:") ? Int(line.dropFirst(15).trimmingCharacters(in: .whitespaces)) : nil
        }.first
        let start = Array(head.utf8).count + 4
        let needed = head.hasPrefix("HTTP/1.1 101") ? 0 : length ?? 0
        if buffer.count >= start + needed {
          let body = Array(buffer[start..<start + needed])
          buffer.removeFirst(start + needed)
          return (head, body)
        }
      }
      if fill() != true { return nil }
    }
  }

  /// This many octets, or all until the peer closes if there are fewer; nil after 10 s.
  public func octets(_ count: Int) -> [UInt8]? {
    while buffer.count < count {
      guard let more = fill() else { return nil }
      if !more { break }
    }
    defer { buffer.removeFirst(min(count, buffer.count)) }
    return Array(buffer.prefix(count))
  }

  /// The first of these that has octets, or is closed, within 10 s; octets that were received before must have been read.
  public static func firstReadable(_ sockets: [TestSocket]) -> TestSocket? {
    var polled = sockets.map { pollfd(fd: $0.fd, events: Int16(POLLIN), revents: 0) }
    guard poll(&polled, nfds_t(polled.count), 10_000) > 0 else { return nil }
    return polled.firstIndex { $0.revents != 0 }.map { sockets[$0] }
  }

  /// The status of the answer to an upgrade request, nil if it was closed without one.
  public func upgrade(
    path: String = "/v1/connect", subprotocol: String? = "trunkline.v1", origin: String? = nil, host: String = "gateway.test"
  ) -> Int? {
    var text = "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    text += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    if let subprotocol { text += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
    if let origin { text += "Origin: \(origin)\r\n" }
    write(text + "\r\n")
    guard let head = response()?.head else { return nil }
    return head.split(separator: " ").dropFirst().first.flatMap { Int($0) }
  }

  /// One masked frame (RFC 6455 §5.2).
  public static func frame(_ opcode: UInt8, _ payload: [UInt8], final: Bool = true) -> [UInt8] {
    var out: [UInt8] = [(final ? 0x80 : 0) | opcode]
    if payload.count < 126 {
      out.append(0x80 | UInt8(payload.count))
    } else if payload.count < 65_536 {
      out += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
    } else {
      out.append(0x80 | 127)
      for shift in stride(from: 56, through: 0, by: -8) { out.append(UInt8(payload.count >> shift & 255)) }
    }
    let mask: [UInt8] = [1, 2, 3, 4]
    out += mask
    for (index, byte) in payload.enumerated() { out.append(byte ^ mask[index % 4]) }
    return out
  }

  @discardableResult public func text(_ text: String) -> Bool { write(Self.frame(1, Array(text.utf8))) }

  public func next() -> Frame {
    while true {
      if let (opcode, payload, size) = parsed() {
        buffer.removeFirst(size)
        switch opcode {
        case 1: return .text(String(decoding: payload, as: UTF8.self))
        case 8: return .close(payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : nil)
        case 9: return .ping(payload)
        default: continue
        }
      }
      switch fill() {
      case .some(true): continue
      case .some(false): return .end
      case .none: return .timeout
      }
    }
  }

  private func parsed() -> (UInt8, [UInt8], Int)? {
    guard buffer.count >= 2 else { return nil }
    var start = 2
    var length = Int(buffer[1] & 127)
    if length == 126 {
      guard buffer.count >= 4 else { return nil }
      (length, start) = (Int(buffer[2]) << 8 | Int(buffer[3]), 4)
    } else if length == 127 {
      guard buffer.count >= 10 else { return nil }
      (length, start) = (buffer[2..<10].reduce(0) { $0 << 8 | Int($1) }, 10)
    }
    guard buffer.count >= start + length else { return nil }
    return (buffer[0] & 15, Array(buffer[start..<start + length]), start + length)
  }

  /// The code of the peer's close frame; messages before it are skipped. Nil if the connection ends without one.
  public func closeCode() -> UInt16? {
    while true {
      switch next() {
      case .text, .ping: continue
      case .close(let code): return code
      case .end, .timeout: return nil
      }
    }
  }
}
