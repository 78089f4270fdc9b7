import Foundation
import Glibc

/// A path to a port that delays or swallows everything: bytes are forwarded in both directions on threads of their own.
final class SlowPath: @unchecked Sendable {
  let port: UInt16
  private let listener: Int32
  private let delay: Double
  private let lock = NSLock()
  private var swallows = false
  private var sockets: [Int32] = []

  init(to target: UInt16, delay: Double) throws {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let done = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        bind(socket, raw, length) == 0 && listen(socket, 16) == 0 && getsockname(socket, raw, &length) == 0
      }
    }
    guard done else { throw PeerFailure(description: "no path") }
    (listener, port, self.delay) = (socket, UInt16(bigEndian: address.sin_port), delay)
    Thread.detachNewThread { [weak self, socket] in
      while true {
        let client = accept(socket, nil, nil)
        guard client >= 0, let self else { return }
        self.carry(client, target)
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
  }

  /// From now on bytes are dropped, and neither end is notified; dropped bytes are lost.
  func swallow(_ on: Bool) {
    lock.withLock {
      swallows = on
      // earlier connections are half open for good, so they are closed; new ones work
      if !on { for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) } }
    }
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = port.bigEndian
    return address
  }

  private func carry(_ client: Int32, _ target: UInt16) {
    let server = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(target)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(server, $0, size) }
    }
    lock.withLock { sockets += [client, server] }
    for (from, to) in [(client, server), (server, client)] {
      Thread.detachNewThread { [weak self, delay] in
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
          let count = recv(from, &buffer, buffer.count, 0)
          guard count > 0 else { break }
          if delay > 0 { usleep(UInt32(delay * 1e6)) }
          if self?.lock.withLock({ self?.swallows ?? false }) ?? false { continue }
          var sent = 0
          while sent < count {
            let step = buffer.withUnsafeBytes { send(to, $0.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL)) }
            guard step > 0 else { return }
            sent += step
          }
        }
        shutdown(to, Int32(SHUT_RDWR))
      }
    }
  }
}
