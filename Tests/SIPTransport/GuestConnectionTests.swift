import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import TrunklineSIPTransport

/// Connections of peers that no list names, where a trunk takes such: few, short, and never all there are.
@Suite struct GuestConnectionTests {
  private func rig() throws -> Rig { try Rig(udp: [], anyPeer: "guests") }

  private func guest(_ rig: Rig, _ last: UInt8) throws -> TCPSocket {
    let socket = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first), from: IPAddress(127, 0, 0, last))
    #expect(ready(socket.fd, POLLOUT))
    return socket
  }

  @Test func `an address has four connections until one of them has authenticated`() throws {
    let rig = try rig()
    defer { rig.stop() }
    let first = try (0..<4).map { _ in try guest(rig, 20) }
    #expect(rig.reaches(4, "trunkline_sip_guest_connections"))
    let fifth = try guest(rig, 20)
    #expect(try fifth.isClosed())
    #expect(rig.metric("trunkline_sip_dropped_total", "guest_limit") == 1)
    try first[0].say(options)
    let flow = try #require(rig.messages(1).first).flow
    _ = try rig.onLoop { sockets in
      sockets.authenticated(flow)
      return true
    }
    #expect(rig.metric("trunkline_sip_guest_connections") == 3)
    let again = try guest(rig, 20)
    try again.say(options)
    #expect(rig.message(of: again.localAddress) != nil)
  }

  @Test func `guests hold half of a trunk's connections, and a later one replaces a connection of the guest with most`() throws {
    let rig = try rig()
    defer { rig.stop() }
    var held: [TCPSocket] = []
    for last in 20..<UInt8(28) { for _ in 0..<4 { held.append(try guest(rig, last)) } }
    #expect(rig.reaches(32, "trunkline_sip_guest_connections"))
    let late = try guest(rig, 60)
    try late.say(options)
    #expect(rig.message(of: late.localAddress)?.trunk == "guests")
    #expect(held.count { ready($0.fd, milliseconds: 0) } == 1, "one of an address with four was closed")
    #expect(rig.metric("trunkline_sip_guest_connections") == 32 && rig.metric("trunkline_sip_connections") == 32)
    #expect(rig.metric("trunkline_sip_dropped_total", "guest_table") == 1)
    let listed = try (0..<32).map { _ in try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first)) }
    #expect(rig.reaches(64, "trunkline_sip_connections"), "the others' half is theirs")
    _ = listed
  }

  @Test func `an IPv6 subscriber counts as one, and nobody gives way to one who has as much`() throws {
    func flow(_ text: String, _ port: UInt16) throws -> Flow {
      Flow(
        transport: .tcp, local: SocketAddress(.loopback, 5060), remote: SocketAddress(try #require(IPAddress(text)), port))
    }
    func guest(_ text: String, _ age: Int) throws -> GuestTable.Guest {
      .init(flow: try flow(text, 1), until: .zero + .seconds(1_000 - age))
    }
    let four = try (1...4).map { try guest("2001:db8::\($0)", $0) }
    #expect(GuestTable.verdict(on: try #require(IPAddress("2001:db8::99")), among: four) == .addressFull)
    #expect(GuestTable.verdict(on: try #require(IPAddress("2001:db8:0:1::99")), among: four) == .admitted)
    let single = try (0..<32).map { try guest("2001:db8:1:\($0)::1", $0) }
    #expect(GuestTable.verdict(on: try #require(IPAddress("2001:db8:1:5::2")), among: single) == .tableFull)
    #expect(
      GuestTable.verdict(on: try #require(IPAddress("2001:db8::1")), among: single)
        == .admittedFor(try flow("2001:db8:1:31::1", 1)), "the oldest of all")
    let mixed = Array(single.dropLast(4)) + four
    #expect(
      GuestTable.verdict(on: try #require(IPAddress("2001:db8:1:5::2")), among: mixed) == .admittedFor(try flow("2001:db8::4", 1))
    )
  }

  @Test func `a guest that only talks is closed after twenty messages`() throws {
    let rig = try rig()
    defer { rig.stop() }
    let peer = try guest(rig, 20)
    try peer.say(String(repeating: options, count: 25))
    #expect(try peer.isClosed())
    #expect(rig.messages(21).count == 20)
    #expect(rig.metric("trunkline_sip_dropped_total", "unauthenticated") == 1)
  }

  @Test func `an answer to a guest that has gone opens no connection to it`() throws {
    let rig = try rig()
    defer { rig.stop() }
    let listener = try TCPListener(bind: SocketAddress(IPAddress(127, 0, 0, 20), 0))
    let flow = Flow(transport: .tcp, local: try #require(rig.sockets.tcpAddresses.first), remote: listener.localAddress)
    rig.send(ok, flow)
    #expect(rig.failures(1) == [flow])
    #expect(rig.metric("trunkline_sip_connections") == 0)
    rig.send(options, flow)
    #expect(ready(listener.fd), "a request within a dialog does")
  }

  @Test(
    arguments: [(0x16, "tls_on_plain"), (0, "not_sip"), (0x80, "not_sip"), (0x20, "not_sip"), (0x3c, "not_sip")]
      as [(UInt8, String)])
  func `what begins like no SIP message closes its connection at once`(first: UInt8, reason: String) throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let peer = try TCPSocket(connect: try #require(rig.sockets.tcpAddresses.first))
    #expect(ready(peer.fd, POLLOUT))
    let bytes: [UInt8] = [first, 3, 1]
    #expect(try bytes.withUnsafeBytes { try peer.write($0) } == 3)
    #expect(try peer.isClosed())
    #expect(rig.metric("trunkline_sip_dropped_total", reason) == 1)
    #expect(rig.reaches(0, "trunkline_sip_connections"))
  }

  @Test func `an address that connects without end is closed at once when it has had its second's share`() throws {
    let rig = try Rig(udp: [])
    defer { rig.stop() }
    let address = try #require(rig.sockets.tcpAddresses.first)
    var count = 0
    while rig.metric("trunkline_sip_dropped_total", "connection_rate") == 0, count < 5_000 {
      _ = try TCPSocket(connect: address)
      count += 1
    }
    #expect(count >= 128 && count < 5_000)
  }
}
