import Bytes
import Glibc
import Logging
import Platform

/// The address of a host's name. A name that is no address is asked for by getaddrinfo(3) on a thread of its own: the system's resolver may take
/// many seconds, which connections that stand must not notice.
enum HostLookup {
  /// `then` is called on the loop's thread: at once for an address, else when the resolver has answered.
  static func find(_ address: EngineSettings.Address, loop: EventLoop, logger: Logger, then: @escaping (SocketAddress?) -> Void) {
    if let ip = IPAddress(address.host) { return then(SocketAddress(ip, address.port)) }
    let box = Box(then)
    do throws(SystemError) {
      _ = try NamedThread.start(name: "engine-name", logger: logger) {
        let found = resolve(address)
        loop.post { box.then(found) }
      }
    } catch {
      then(nil)
    }
  }

  /// Made and called on the loop's thread only; the other thread carries it.
  private struct Box: @unchecked Sendable {
    let then: (SocketAddress?) -> Void
    init(_ then: @escaping (SocketAddress?) -> Void) { self.then = then }
  }

  private static func resolve(_ address: EngineSettings.Address) -> SocketAddress? {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address.host, String(address.port), &hints, &list) == 0 else { return nil }
    defer { freeaddrinfo(list) }
    var next = list
    while let entry = next {
      var text = [CChar](repeating: 0, count: 64)
      if getnameinfo(entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 {
        let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if let ip = IPAddress(name) { return SocketAddress(ip, address.port) }
      }
      next = entry.pointee.ai_next
    }
    return nil
  }
}
