import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

@Suite struct DatagramTests {
  @Test(arguments: [IPAddress.loopback, IPAddress(v6High: 0, low: 1)])
  func `a trunk's datagram is delivered with its flow, and the answer comes from where it was sent to`(_ ip: IPAddress) throws {
    guard let peer = try? UDPSocket(bind: SocketAddress(ip, 0)) else {
      #expect(ip.family == .v6, "IPv4 loopback must work")
      return
    }
    let rig = try Rig(udp: [SocketAddress(ip, 0)], tcp: [])
    defer { rig.stop() }
    let ours = try #require(rig.sockets.udpAddresses.first)
    try peer.say(options, to: ours)
    let (text, flow, trunk) = try #require(rig.messages(1).first)
    #expect(text == options && trunk == "carrier")
    #expect(flow == Flow(transport: .udp, local: ours, remote: peer.localAddress))
    rig.send(ok, flow)
    let received = try #require(try peer.receive())
    #expect(received.text == ok && received.from == ours)
    #expect(rig.metric("trunkline_sip_messages_total", "in", "udp", "OPTIONS") == 1)
    #expect(rig.metric("trunkline_sip_messages_total", "out", "udp", "200") == 1)
  }

  @Test func `a stranger gets silence and is counted`() throws {
    let rig = try Rig(tcp: [])
    defer { rig.stop() }
    let ours = try #require(rig.sockets.udpAddresses.first)
    let stranger = try UDPSocket(bind: SocketAddress(IPAddress(127, 0, 0, 2), 0))
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0))
    try stranger.say(options, to: ours)
    try stranger.say("\0junk", to: ours)
    try peer.say(options, to: ours)
    #expect(rig.messages(1).map(\.flow.remote) == [peer.localAddress])
    #expect(rig.metric("trunkline_sip_dropped_total", "stranger") == 2)
    #expect(try stranger.receive(milliseconds: 0) == nil)
  }

  @Test func `a wildcard listener names the address that the peer sees`() throws {
    let rig = try Rig(udp: [SocketAddress(.any, 0)], tcp: [])
    defer { rig.stop() }
    let port = try #require(rig.sockets.udpAddresses.first).port
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0))
    try peer.say(options, to: SocketAddress(.loopback, port))
    let flow = try #require(rig.messages(1).first).flow
    #expect(flow.local == SocketAddress(.loopback, port))
    rig.send(ok, flow)
    #expect(try peer.receive()?.from == SocketAddress(.loopback, port))
    #expect(try rig.flow(.udp, toward: peer.localAddress) == flow)
    #expect(try rig.flow(.tcp, toward: SocketAddress(.loopback, 1)) == nil)
  }

  /// All of 127.0.0.0/8 are addresses of this machine.
  @Test
  func `a request to another address of the machine is answered from that address, beside one to the first in the same turn`()
    throws
  {
    let rig = try Rig(udp: [SocketAddress(.any, 0)], tcp: [])
    defer { rig.stop() }
    let port = try #require(rig.sockets.udpAddresses.first).port
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let own = [IPAddress(127, 0, 0, 9), .loopback, IPAddress(127, 0, 0, 10)].map { SocketAddress($0, port) }
    for address in own { try peer.say(options, to: address) }
    let flows = rig.messages(3).map(\.flow)
    #expect(flows.map(\.local) == own)
    try rig.onLoop { sockets in
      for flow in flows { sockets.send(.init(bytes: Array(ok.utf8), flow: flow)) }
    }
    for address in own { #expect(try peer.receive()?.from == address) }
  }

  @Test func `a listener on loopback has no flow to another machine, one to this machine's other addresses`() throws {
    let rig = try Rig(udp: [SocketAddress(.loopback, 0)], tcp: [])
    defer { rig.stop() }
    #expect(try rig.flow(.udp, toward: SocketAddress(IPAddress(192, 0, 2, 77), 5060)) == nil)
    for own in try localAddresses() where own.family == .v4 {
      #expect(try rig.flow(.udp, toward: SocketAddress(own, 5060)) != nil)
    }
    #expect(try rig.flow(.udp, toward: SocketAddress(IPAddress(127, 0, 0, 9), 5060)) != nil)
  }

  @Test func `a listener waits for its address, and nothing new goes out from there before`() throws {
    let (absent, server) = (IPAddress(192, 0, 2, 77), SocketAddress(IPAddress(192, 0, 2, 78), 5060))
    let rig = try Rig(udp: [SocketAddress(absent, 0)], tcp: [SocketAddress(absent, 0)])
    defer { rig.stop() }
    #expect(
      try rig.onLoop {
        $0.networkChanged(absent: [absent]); return $0.flow(.udp, toward: server) == nil
      })
    #expect(
      try rig.onLoop {
        $0.networkChanged(absent: []); return $0.flow(.udp, toward: server)?.local.ip == absent
      })
  }

  @Test func `an address that the machine no longer has does not keep a message back`() throws {
    let rig = try Rig(udp: [SocketAddress(.any, 0)], tcp: [], peers: ["127.0.0.1/32"])
    defer { rig.stop() }
    let port = try #require(rig.sockets.udpAddresses.first).port
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let gone = Flow(transport: .udp, local: SocketAddress(IPAddress(198, 51, 100, 77), port), remote: peer.localAddress)
    rig.send(ok, gone)
    #expect(try peer.receive()?.from == SocketAddress(.loopback, port))
    #expect(rig.failures(0) == [])
  }

  @Test(arguments: [IPAddress.any, .any6])
  func `an ICMP error is read for what it is, whatever the kernel tells beside it`(any: IPAddress) throws {
    guard let rig = try? Rig(udp: [SocketAddress(any, 0)], tcp: []) else { return #expect(any.family == .v6) }
    defer { rig.stop() }
    let port = try #require(rig.sockets.udpAddresses.first).port
    let (own, other): (IPAddress, IPAddress) = any.family == .v4 ? (IPAddress(127, 0, 0, 9), .loopback) : (.loopback6, .loopback6)
    var gone: UDPSocket? = try UDPSocket(bind: SocketAddress(other, 0))
    let dead = Flow(transport: .udp, local: SocketAddress(own, port), remote: try #require(gone).localAddress)
    gone = nil
    rig.send(options, dead)
    #expect(rig.failures(1).map(\.remote) == [dead.remote] && rig.peerFailures == [.refused])
  }

  @Test func `keep-alives and empty datagrams are not messages`() throws {
    let rig = try Rig(tcp: [])
    defer { rig.stop() }
    let ours = try #require(rig.sockets.udpAddresses.first)
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0))
    for text in ["\r\n\r\n", "", "\0", options] { try peer.say(text, to: ours) }
    #expect(rig.messages(1).map(\.text) == [options])
    #expect(rig.metric("trunkline_sip_dropped_total", "keep_alive") == 3)
  }

  @Test func `a peer that is gone is told as failed, and a message to another is not hurt by it`() throws {
    let rig = try Rig(tcp: [])
    defer { rig.stop() }
    let ours = try #require(rig.sockets.udpAddresses.first)
    var gone: UDPSocket? = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let dead = Flow(transport: .udp, local: ours, remote: try #require(gone).localAddress)
    gone = nil
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let live = Flow(transport: .udp, local: ours, remote: peer.localAddress)
    for _ in 0..<20 {
      rig.send(options, dead)
      rig.send(ok, live)
    }
    for _ in 0..<20 { #expect(try peer.receive()?.text == ok) }
    let failed = rig.failures(1)
    #expect(!failed.isEmpty && failed.allSatisfy { $0 == dead } && rig.peerFailures.allSatisfy { $0 == .refused })
    #expect(rig.metric("trunkline_sip_transport_failures_total", "udp") ?? 0 >= 1)
  }

  @Test func `many messages of one turn all arrive, in order`() throws {
    let rig = try Rig(tcp: [])
    defer { rig.stop() }
    let ours = try #require(rig.sockets.udpAddresses.first)
    let peer = try UDPSocket(bind: SocketAddress(.loopback, 0), receiveBufferBytes: 1 << 20)
    let flow = Flow(transport: .udp, local: ours, remote: peer.localAddress)
    try rig.onLoop { sockets in
      for number in 0..<150 { sockets.send(.init(bytes: Array("INFO \(number)".utf8), flow: flow)) }
    }
    for number in 0..<150 { #expect(try peer.receive()?.text == "INFO \(number)") }
  }

  @Test func `a message for a flow without a listener fails`() throws {
    let rig = try Rig(tcp: [])
    defer { rig.stop() }
    let flow = Flow(transport: .udp, local: SocketAddress(.loopback, 1), remote: SocketAddress(.loopback, 2))
    rig.send(options, flow)
    #expect(rig.failures(1) == [flow])
    #expect(rig.metric("trunkline_sip_dropped_total", "no_listener") == 1)
  }

  @Test func `a new allow-list holds from the next datagram on`() throws {
    let rig = try Rig(tcp: [])
    defer { rig.stop() }
    let ours = try #require(rig.sockets.udpAddresses.first)
    let first = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let second = try UDPSocket(bind: SocketAddress(IPAddress(127, 0, 0, 2), 0))
    try first.say(options, to: ours)
    #expect(rig.messages(1).count == 1)
    try rig.onLoop { $0.replaceTrunks(Rig.list(["127.0.0.2"])) }
    try first.say(options, to: ours)
    try second.say(options, to: ours)
    #expect(rig.messages(2).map(\.flow.remote) == [first.localAddress, second.localAddress])
  }

  @Test func `a second gateway on the address is told what to do`() throws {
    let rig = try Rig()
    defer { rig.stop() }
    let error = #expect(throws: SystemError.self) { _ = try Rig(udp: rig.sockets.udpAddresses, tcp: []) }
    #expect(error?.description.contains("listen.sip.udp") == true && error?.isAddressInUse == true)
    let second = #expect(throws: SystemError.self) { _ = try Rig(udp: [], tcp: rig.sockets.tcpAddresses) }
    #expect(second?.description.contains("listen.sip.tcp") == true)
  }

  @Test func `the longest prefix names the trunk, among equals the first`() throws {
    func network(_ text: String) throws -> IPNetwork { try #require(IPNetwork(text)) }
    let list = AllowList([
      ("wide", [try network("10.0.0.0/8"), try network("2001:db8::/32")]), ("narrow", [try network("10.1.0.0/16")]),
      ("same", [try network("10.1.0.0/16")]),
    ])
    #expect(list.trunk(of: IPAddress(10, 1, 2, 3)) == "narrow")
    #expect(list.trunk(of: IPAddress(10, 2, 2, 3)) == "wide")
    #expect(list.trunk(of: try #require(IPAddress("::ffff:10.2.2.3"))) == "wide")
    #expect(list.trunk(of: try #require(IPAddress("2001:db8::1"))) == "wide")
    #expect(list.trunk(of: IPAddress(11, 0, 0, 1)) == nil)
  }
}
