import Foundation
import Glibc

/// The gateway that a bench starts as a separate process.
public enum Gateway {
  /// TRUNKLINE_BINARY, or the binary built beside this bench: both are of one release build.
  public static var binary: String {
    ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"]
      ?? URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("trunkline").path
  }
  /// `trunkline-lab` beside the gateway's binary.
  public static var lab: String {
    URL(fileURLWithPath: binary).deletingLastPathComponent().appendingPathComponent("trunkline-lab").path
  }

  /// True if the gateway's `/readyz` answers 200.
  public static func isReady(admin: UInt16) -> Bool { page("/readyz", admin: admin) != nil }

  /// The body of a page at the gateway's admin port; nil: no answer, or not 200.
  public static func page(_ path: String, admin: UInt16) -> String? {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(fd) }
    var address = loopbackAddress(admin)
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    let request = Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(admin)\r\nConnection: close\r\n\r\n".utf8)
    guard connected, send(fd, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return nil }
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(fd, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      answer += buffer[..<count]
    }
    let text = String(decoding: answer, as: UTF8.self)
    guard text.hasPrefix("HTTP/1.1 200"), let head = text.range(of: "\r\n\r\n") else { return nil }
    return String(text[head.upperBound...])
  }

  /// Samples of a metric family by their labels as written (`{command="enter"}`, or empty).
  public static func metric(_ name: String, admin: UInt16) -> [String: Double] {
    var out: [String: Double] = [:]
    for line in (page("/metrics", admin: admin) ?? "").split(separator: "\n") where line.hasPrefix(name) {
      let rest = line.dropFirst(name.count)
      guard rest.first == "{" || rest.first == " ", let blank = rest.lastIndex(of: " ") else { continue }
      out[String(rest[..<blank])] = Double(rest[rest.index(after: blank)...])
    }
    return out
  }

  /// A WAV file of silent telephone audio.
  public static func silence(seconds: Int) -> Data {
    func number(_ value: Int, _ octets: Int) -> [UInt8] { (0..<octets).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
    let size = seconds * 16_000
    var head = Array("RIFF".utf8) + number(36 + size, 4) + Array("WAVEfmt ".utf8) + number(16, 4)
    head += number(1, 2) + number(1, 2) + number(8_000, 4) + number(16_000, 4) + number(2, 2) + number(16, 2)
    return Data(head + Array("data".utf8) + number(size, 4)) + Data(count: size)
  }
}

public func loopbackAddress(_ port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), UInt32(0x7f00_0001).bigEndian)
  address.sin_port = port.bigEndian
  return address
}

public enum FreePorts {
  /// Above the `trunk_ports` of the benches, below the ports that the kernel assigns (32768 and above): no other socket gets one
  /// before its owner binds it.
  private static let range: Range<UInt16> = 24_000..<32_760

  /// Loopback ports that are free for UDP and TCP; all are bound at once, so that they differ. A port that is free for UDP only
  /// may belong to a connection of an earlier bench in TIME_WAIT: no process can listen there for a minute.
  public static func loopback(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    defer { for socket in sockets { close(socket) } }
    var ports: [UInt16] = []
    for port in range.shuffled() where ports.count < count {
      guard let udp = bound(SOCK_DGRAM, port) else { continue }
      sockets.append(udp)
      guard let tcp = bound(SOCK_STREAM, port) else { continue }
      sockets.append(tcp)
      ports.append(port)
    }
    guard ports.count == count else { throw BenchError(text: "no \(count) free ports") }
    return ports
  }

  /// Its descriptor.
  private static func bound(_ kind: __socket_type, _ port: UInt16) -> Int32? {
    let fd = socket(AF_INET, Int32(kind.rawValue), 0)
    var address = loopbackAddress(port)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    if isBound { return fd }
    close(fd)
    return nil
  }
}
