import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

@Suite struct ConnectionTests {
  @Test func `messages come whole however the segments cut them, and answers go back on the connection`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let peer = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first))
    try peer.say(options + options + String(options.prefix(20)))
    #expect(rig.messages(2).count == 2)
    for character in options.dropFirst(20) { try peer.say(String(character)) }
    let messages = rig.messages(3)
    #expect(messages.map(\.text) == [options, options, options])
    let flow = try #require(messages.first).flow
    #expect(Set(messages.map(\.flow)).count == 1)
    #expect(flow.local == rig.sockets.tcpAddresses.first && flow.remote == peer.localAddress)
    rig.send(ok, flow)
    #expect(try peer.receive(ok.utf8.count) == ok)
    #expect(rig.metric("trunkline_sip_connections") == 1)
    #expect(rig.metric("trunkline_sip_messages_total", "in", "tcp", "OPTIONS") == 3)
  }

  @Test func `a ping between messages is answered with one line end`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let peer = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first))
    try peer.say("\r\n\r\n")
    #expect(try peer.receive(2) == "\r\n")
  }

  @Test func `a message to a peer opens one connection, which both directions then use`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let carrier = try TCPListener(bind: SocketAddress(.loopback, 0))
    let flow = try #require(try rig.flow(.tcp, toward: carrier.localAddress))
    rig.send(options, flow)
    rig.send(options, flow)
    #expect(ready(carrier.fd))
    let peer = try #require(try carrier.accept())
    #expect(try peer.receive(2 * options.utf8.count) == options + options)
    try peer.say(ok)
    let answer = try #require(rig.messages(1).first)
    #expect(answer.text == ok && answer.flow == flow)
    rig.send(options, flow)
    #expect(try peer.receive(options.utf8.count) == options)
    #expect(try carrier.accept() == nil)
  }

  @Test func `a peer that refuses connections is told as failed`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    var carrier: TCPListener? = try TCPListener(bind: SocketAddress(.loopback, 0))
    let remote = try #require(carrier).localAddress
    carrier = nil
    let flow = try #require(try rig.flow(.tcp, toward: remote))
    rig.send(options, flow)
    #expect(rig.failures(1) == [flow] && rig.peerFailures == [.refused])
    #expect(rig.reaches(0, "trunkline_sip_connections"))
  }

  @Test func `a connection to nobody's address is never made`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let carrier = try TCPListener(bind: SocketAddress(IPAddress(127, 0, 0, 9), 0))
    let flow = Flow(transport: .tcp, local: try #require(rig.sockets.tcpAddresses.first), remote: carrier.localAddress)
    rig.send(options, flow)
    #expect(rig.failures(1) == [flow] && rig.peerFailures == [nil], "of whoever may be there nothing is known")
    #expect(try carrier.accept() == nil)
  }

  @Test func `a connection that the peer closes is told, and is gone`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    var peer: TCPSocket? = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first))
    try peer?.say(options)
    let flow = try #require(rig.messages(1).first).flow
    peer = nil
    #expect(rig.failures(2) == [flow] && rig.peerFailures == [.closed])
    #expect(rig.metric("trunkline_sip_connections") == 0)
  }

  @Test func `who takes a connection and closes it has not refused it: one who takes us for a stranger lives`() throws {
    let (rig, other) = (try Rig(udp: []), try Rig(udp: [], peers: ["127.0.0.9/32"]))
    defer {
      rig.stop()
      other.stop()
    }
    let address = try #require(other.sockets.tcpAddresses.first)
    let flow = try #require(try rig.flow(.tcp, toward: address))
    rig.send(options, flow)
    #expect(rig.failures(1) == [flow] && rig.peerFailures == [.closed])
  }

  @Test func `a stranger's connection is closed unread`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let stranger = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first), from: IPAddress(127, 0, 0, 2))
    #expect(ready(stranger.fd, POLLOUT))
    try? stranger.say(options)
    #expect(try stranger.isClosed())
    #expect(rig.metric("trunkline_sip_dropped_total", "stranger") == 1)
    #expect(rig.messages(0).isEmpty)
  }

  @Test func `a stream that lost its framing is handed over once, counted and closed`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let peer = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first))
    try peer.say(options + "OPTIONS sip:a@b SIP/2.0\r\nContent-Length: many\r\n\r\n" + options)
    #expect(rig.messages(2).count == 2)
    #expect(try peer.isClosed())
    #expect(rig.metric("trunkline_sip_dropped_total", "framing") == 1)
    #expect(rig.reaches(0, "trunkline_sip_connections"))
  }

  @Test func `connections of one trunk are limited, and one that ends makes room`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let address = try #require(rig.sockets.tcpAddresses.first)
    var peers = try (0..<64).map { _ in try TCPSocket(connect: address) }
    for peer in peers { #expect(ready(peer.fd, POLLOUT)) }
    #expect(rig.reaches(64, "trunkline_sip_connections"))
    let refused = try TCPSocket(connect: address)
    #expect(ready(refused.fd, POLLOUT))
    #expect(try refused.isClosed())
    #expect(rig.metric("trunkline_sip_dropped_total", "connection_limit") == 1)
    peers.removeLast()
    #expect(rig.reaches(63, "trunkline_sip_connections"))
    let welcome = try TCPSocket(connect: address)
    #expect(ready(welcome.fd, POLLOUT))
    try welcome.say(options)
    #expect(rig.wait(2).count == 2)
  }

  @Test func `a peer that does not read is closed when too much waits for it, others go on`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let address = try #require(rig.sockets.tcpAddresses.first)
    let deaf = try TCPSocket(connect: address)
    try deaf.say(options)
    let flow = try #require(rig.messages(1).first).flow
    let large = [UInt8](repeating: 65, count: 60_000)
    // the kernel takes a few megabytes, then 512 KiB wait here
    for _ in 0..<400 { rig.send(large, flow) }
    #expect(rig.failures(2).first == flow)
    #expect(rig.metric("trunkline_sip_dropped_total", "slow_reader") ?? 0 >= 1)
    let other = try TCPSocket(connect: address)
    try other.say(options)
    let deadline = MonotonicClock.now() + .seconds(5)
    var isReceived = false
    for count in 3... where !isReceived && MonotonicClock.now() < deadline {
      isReceived = rig.messages(count).contains { $0.flow.remote == other.localAddress }
      if isReceived || MonotonicClock.now() >= deadline { break }
    }
    #expect(isReceived)
  }

  @Test func `closing ends every connection`() throws {
    let rig = try Rig(udp: [])
    let peer = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first))
    try peer.say(options)
    #expect(rig.messages(1).count == 1)
    rig.stop()
    #expect(try peer.isClosed())
    #expect(rig.metric("trunkline_sip_connections") == 0)
  }
}
