import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform

/// A connection that we open, against a peer on loopback of which a test has the other end.
@Suite struct ClientConnectionTests {
  private static let bounds = ClientConnection.Bounds(readBytes: 4_096, readsPerStep: 4, unsentBytes: 100_000)
  private let loop: EventLoop
  private let listener: TCPListener
  private let received = Received()

  private final class Received {
    var bytes: [UInt8] = []
    var ends: [String] = []
    var peer: TCPSocket?
  }

  init() throws {
    loop = try EventLoop(name: "connection")
    listener = try TCPListener(bind: SocketAddress(.loopback, 0))
  }

  private func connect(_ bounds: ClientConnection.Bounds = bounds) throws -> ClientConnection {
    let connection = try ClientConnection(listener.localAddress, tls: nil, bounds: bounds, loop: loop)
    connection.handler = { [received, loop] event in
      switch event {
      case .received(let bytes): received.bytes += bytes
      case .closed(let why):
        received.ends.append(why)
        loop.stop()
      }
    }
    return connection
  }

  private func accept(_ then: @escaping (TCPSocket) -> Void) throws {
    try loop.register(listener.fd, .readable) { [received, listener] _ in
      guard let peer = try? listener.accept() else { return }
      received.peer = peer
      then(peer)
    }
  }

  /// Until it is stopped; a test that waits for nothing fails.
  private func run() {
    let loop = loop
    let late = loop.addTimer("late") { loop.stop() }
    loop.setTimer(late, at: MonotonicClock.now() + .seconds(20))
    loop.run()
  }

  @Test func `what was sent before it was open arrives, the answer comes, and the end is told once`() throws {
    let connection = try connect()
    connection.send { $0 += [1, 2, 3] }
    #expect(connection.waiting == 3)
    try accept { [received, loop] peer in
      try? loop.register(peer.fd, .readable) { _ in
        var buffer = [UInt8](repeating: 0, count: 16)
        guard case .bytes(let count)? = try? buffer.withUnsafeMutableBytes({ try peer.read(into: $0) }) else { return }
        _ = try? buffer.prefix(count).reversed().withUnsafeBytes { try peer.write($0) }
        loop.unregister(peer.fd)
        received.peer = nil
      }
    }
    run()
    #expect(received.bytes == [3, 2, 1] && received.ends == ["it closed the connection"])
    #expect(!connection.isOpen && connection.waiting == 0)
    connection.close()
    #expect(received.ends.count == 1)
  }

  @Test func `a peer that reads nothing is given up at the bound`() throws {
    let connection = try connect()
    try accept { _ in }
    let loop = loop
    var sent = 0
    var timer: EventLoop.TimerID?
    timer = loop.addTimer("timer") {
      guard connection.isOpen, let timer else { return }
      // more than the bound in one go, so that it is the kernel that takes or does not
      sent += 10_000
      connection.send { $0 += [UInt8](repeating: 0, count: 10_000) }
      connection.flush()
      loop.setTimer(timer, at: loop.now)
    }
    if let timer { loop.setTimer(timer, at: MonotonicClock.now()) }
    run()
    #expect(received.ends == ["the peer accepts no more bytes"] && sent > 100_000, "\(sent)")
  }

  @Test func `a peer that takes nothing any more is given up by the kernel, in the time that it is given`() throws {
    var bounds = Self.bounds
    bounds.unsentBytes = 64 << 20
    bounds.patience.unacknowledged = .milliseconds(200)
    let connection = try connect(bounds)
    try accept { _ in }
    // more than the kernels of both ends take
    connection.send { $0 += [UInt8](repeating: 0, count: 32 << 20) }
    run()
    #expect(received.ends.count == 1 && received.ends[0].contains("timed out"), "\(received.ends)")
    #expect(!connection.isOpen)
  }

  @Test func `the kernel asks an idle peer's system, and is as patient as it was told`() throws {
    let connection = try TCPSocket(connect: listener.localAddress)
    connection.limit(.usual)
    func option(_ level: Int32, _ name: Int32) -> Int32 {
      var (value, length): (Int32, socklen_t) = (0, 4)
      return getsockopt(connection.fd, level, name, &value, &length) == 0 ? value : -1
    }
    #expect(option(SOL_SOCKET, SO_KEEPALIVE) == 1 && option(Int32(IPPROTO_TCP), TCP_KEEPIDLE) == 15)
    #expect(option(Int32(IPPROTO_TCP), TCP_KEEPINTVL) == 5 && option(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT) == 6_000)
  }

  @Test func `a refused connection says why, and one that we close says nothing`() throws {
    let refused = try SocketAddress(.loopback, TCPListener(bind: SocketAddress(.loopback, 0)).localAddress.port)
    let connection = try ClientConnection(refused, tls: nil, bounds: Self.bounds, loop: loop)
    let (received, loop) = (received, loop)
    connection.handler = { event in
      if case .closed(let why) = event { received.ends.append(why) }
      loop.stop()
    }
    let ours = try connect()
    ours.close()
    run()
    #expect(received.ends.count == 1 && received.ends[0].contains("refused"), "\(received.ends)")
    #expect(!ours.isOpen)
  }
}
