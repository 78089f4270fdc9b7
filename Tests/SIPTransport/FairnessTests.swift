import Logging
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import TrunklineSIPTransport

/// Peers that send more than can be handled: the loop stands still while they fill the kernel's buffers, then runs on this thread.
@Suite struct FairnessTests {
  private final class Received {
    var byPeer: [SocketAddress: Int] = [:]
    var ends: SocketAddress?
  }

  private struct Stand {
    let loop: EventLoop
    let sockets: SIPSockets
    let received = Received()

    init() throws {
      loop = try EventLoop(name: "fair")
      let (loop, received) = (loop, received)
      sockets = try SIPSockets(
        loop: loop, udp: [SocketAddress(.loopback, 0), SocketAddress(.loopback, 0)], tcp: [SocketAddress(.loopback, 0)],
        trunks: Rig.list(["127.0.0.1/32"]), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      ) { input in
        guard case .received(_, let flow, _) = input else { return }
        received.byPeer[flow.remote, default: 0] += 1
        if flow.remote == received.ends { loop.stop() }
      }
    }

    /// Runs the loop until a peer's message is delivered, and gives what others have had by then.
    func run(untilReceived peer: SocketAddress) -> [SocketAddress: Int] {
      (received.ends, received.byPeer) = (peer, [:])
      loop.run()
      return received.byPeer
    }
  }

  @Test func `a flood of datagrams holds up other sockets for a turn's share only`() throws {
    let stand = try Stand()
    defer { stand.sockets.close() }
    let flooder = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let quiet = try UDPSocket(bind: SocketAddress(.loopback, 0))
    for _ in 0..<400 { try flooder.say(options, to: stand.sockets.udpAddresses[0]) }
    try quiet.say(options, to: stand.sockets.udpAddresses[1])
    let received = stand.run(untilReceived: quiet.localAddress)
    #expect(received[flooder.localAddress, default: 0] <= Limits.datagramsPerStep)
    #expect(received[quiet.localAddress] == 1)
  }

  @Test func `after a stranger's datagram the next ones wait for each other, and nobody's is lost`() throws {
    let stand = try Stand()
    defer { stand.sockets.close() }
    let (stranger, trunk, other) = (
      try UDPSocket(bind: SocketAddress(IPAddress(127, 0, 0, 2), 0)), try UDPSocket(bind: SocketAddress(.loopback, 0)),
      try UDPSocket(bind: SocketAddress(.loopback, 0))
    )
    try stranger.say(options, to: stand.sockets.udpAddresses[0])
    try other.say(options, to: stand.sockets.udpAddresses[1])
    _ = stand.run(untilReceived: other.localAddress)
    try trunk.say(options, to: stand.sockets.udpAddresses[0])
    try other.say(options, to: stand.sockets.udpAddresses[1])
    #expect(stand.run(untilReceived: other.localAddress)[trunk.localAddress] == nil, "the socket rests in this turn")
    #expect(stand.run(untilReceived: trunk.localAddress)[trunk.localAddress] == 1)
  }

  @Test func `datagrams that come faster than they are read are a backlog until the buffer is empty`() throws {
    let stand = try Stand()
    defer { stand.sockets.close() }
    let flooder = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let quiet = try UDPSocket(bind: SocketAddress(.loopback, 0))
    func turn() throws {
      try quiet.say(options, to: stand.sockets.udpAddresses[1])
      _ = stand.run(untilReceived: quiet.localAddress)
    }
    try turn()
    #expect(stand.sockets.backlog == .zero)
    for _ in 0..<(3 * Limits.datagramsPerStep) { try flooder.say(options, to: stand.sockets.udpAddresses[0]) }
    try turn()
    try turn()
    #expect(stand.sockets.backlog > .zero)
    try turn()
    #expect(stand.sockets.backlog == .zero)
  }

  @Test func `a connection that sends without end holds up the others for a turn's share only`() throws {
    let stand = try Stand()
    defer { stand.sockets.close() }
    let listener = stand.sockets.tcpAddresses[0]
    let flooder = try TCPSocket(connect: listener)
    let quiet = try TCPSocket(connect: listener)
    for peer in [flooder, quiet] {
      try peer.say(options)
      _ = stand.run(untilReceived: try #require(peer.localAddress))
    }
    // ready first, and 1,200 messages long
    try flooder.say(String(repeating: options, count: 100_000 / options.utf8.count))
    try quiet.say(options)
    let received = stand.run(untilReceived: try #require(quiet.localAddress))
    #expect(received[try #require(flooder.localAddress), default: 0] <= Limits.readBytesPerStep / options.utf8.count + 1)
    // and nothing of the flood is lost
    let datagram = try UDPSocket(bind: SocketAddress(.loopback, 0))
    var total = received[try #require(flooder.localAddress), default: 0]
    for _ in 0..<40 {
      try datagram.say(options, to: stand.sockets.udpAddresses[0])
      total += stand.run(untilReceived: datagram.localAddress)[try #require(flooder.localAddress), default: 0]
    }
    #expect(total == 100_000 / options.utf8.count)
  }
}
