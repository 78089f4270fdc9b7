import Glibc
public import Logging
import TrunklineBytes

/// The addresses of a host's name. getaddrinfo(3) resolves a name on a thread of a bounded pool (`LookupPool`): the system's
/// resolver may take many seconds, which must not delay open connections.
public enum HostLookup {
  /// The user of a look-up. Each has its own pool: names that hang for one do not delay the other.
  public enum Asker: Sendable { case streams, sharedStore }

  private static let streams = LookupPool(thread: "stream-name", resolve: resolve)
  private static let sharedStore = LookupPool(thread: "store-lookup", resolve: resolve)

  /// `then` is called once, on the loop's thread: at once for an address, else when the resolver has answered. It gets nothing if
  /// there is no answer, or if the look-up had to wait beyond `deadline`.
  public static func find(
    _ host: String, _ port: UInt16, for asker: Asker, by deadline: Instant, loop: EventLoop, logger: Logger,
    then: @escaping ([SocketAddress]) -> Void
  ) {
    if let ip = IPAddress(host) { return then([SocketAddress(ip, port)]) }
    let box = Box(then)
    let pool = asker == .streams ? streams : sharedStore
    let isQueued = pool.ask(host, port, by: deadline, logger: logger) { found in loop.post { box.then(found) } }
    if !isQueued { then([]) }
  }

  /// Made and called on the loop's thread only; the pool's thread only passes it on.
  private struct Box: @unchecked Sendable {
    let then: ([SocketAddress]) -> Void
    init(_ then: @escaping ([SocketAddress]) -> Void) { self.then = then }
  }

  @Sendable private static func resolve(_ host: String, _ port: UInt16) -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return [] }
    defer { freeaddrinfo(list) }
    var found: [SocketAddress] = []
    var next = list
    while let entry = next, found.count < Limits.hostAddresses {
      var text = [CChar](repeating: 0, count: 64)
      if getnameinfo(entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 {
        let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if let ip = IPAddress(name) { found.append(SocketAddress(ip, port)) }
      }
      next = entry.pointee.ai_next
    }
    return found
  }
}
