import BenchKit
import Foundation
import Glibc

/// Datagrams of loopback that take their time, both ways; each of the app's sockets has one of its own towards the gateway. Lives as long as the
/// process.
final class FarRelay: Sendable {
  let port: UInt16
  private let fd: Int32
  private let target: UInt16
  private let nanoseconds: Int64

  init?(to target: UInt16, milliseconds: Int) {
    guard let (fd, port) = Self.bound() else { return nil }
    (self.fd, self.port, self.target, nanoseconds) = (fd, port, target, Int64(milliseconds) * 1_000_000)
    let thread = Thread { [self] in run() }
    thread.name = "far-relay"
    thread.start()
  }

  private static func bound() -> (Int32, UInt16)? {
    let fd = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var address = loopbackAddress(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, length) == 0 && getsockname(fd, $0, &length) == 0 }
    }
    return isBound ? (fd, UInt16(bigEndian: address.sin_port)) : nil
  }

  private struct Waiting {
    var due: Int64
    var fd: Int32
    var to: sockaddr_in
    var bytes: [UInt8]
  }

  private func run() {
    var waiting: [Waiting] = []
    /// Of the gateway's side, by the app's address.
    var upstream: [UInt64: Int32] = [:]
    var apps: [Int32: sockaddr_in] = [:]
    var buffer = [UInt8](repeating: 0, count: 2_048)
    while true {
      var polls = ([fd] + apps.keys).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      let wait = waiting.first.map { max(0, ($0.due - Marks.now() + 999_999) / 1_000_000) } ?? 1_000
      _ = poll(&polls, nfds_t(polls.count), Int32(wait))
      for entry in polls where entry.revents != 0 {
        var from = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &from) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { recvfrom(entry.fd, &buffer, buffer.count, 0, $0, &length) }
        }
        guard count > 0 else { continue }
        let due = Marks.now() + nanoseconds
        if let app = apps[entry.fd] {
          waiting.append(Waiting(due: due, fd: fd, to: app, bytes: Array(buffer[..<count])))
          continue
        }
        let key = UInt64(from.sin_addr.s_addr) << 16 | UInt64(from.sin_port)
        if upstream[key] == nil, let (made, _) = Self.bound() { (upstream[key], apps[made]) = (made, from) }
        guard let out = upstream[key] else { continue }
        waiting.append(Waiting(due: due, fd: out, to: loopbackAddress(target), bytes: Array(buffer[..<count])))
      }
      let now = Marks.now()
      while let first = waiting.first, first.due <= now {
        var to = first.to
        _ = withUnsafePointer(to: &to) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            sendto(first.fd, first.bytes, first.bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
          }
        }
        waiting.removeFirst()
      }
    }
  }
}
