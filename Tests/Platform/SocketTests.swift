import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform

@Suite struct SocketTests {
  @Test(arguments: ["192.0.2.1:5060", "[2001:db8::1]:5060", "0.0.0.0:0", "[::]:65535"])
  func `an address survives the kernel's form`(_ text: String) throws {
    let address = try #require(SocketAddress(text))
    var storage = sockaddr_storage()
    let length = address.write(to: &storage)
    #expect(length == socklen_t(address.ip.family == .v4 ? 16 : 28))
    #expect(SocketAddress(&storage) == address)
  }

  @Test func `an IPv4-mapped address is IPv4, another family is nothing`() throws {
    var storage = sockaddr_storage()
    _ = try #require(SocketAddress("[::ffff:c000:201]:9")).write(to: &storage)
    #expect(SocketAddress(&storage) == SocketAddress("192.0.2.1:9"))
    storage.ss_family = sa_family_t(AF_UNIX)
    #expect(SocketAddress(&storage) == nil)
  }

  @Test(arguments: [IPAddress.loopback, IPAddress(v6High: 0, low: 1)])
  func `a datagram arrives with its sender's address`(_ ip: IPAddress) throws {
    guard let a = try? UDPSocket(bind: SocketAddress(ip, 0), receiveBufferBytes: 65_536, sendBufferBytes: 65_536) else {
      #expect(ip.family == .v6, "IPv4 loopback must work")
      return
    }
    let b = try UDPSocket(bind: SocketAddress(ip, 0))
    #expect(a.localAddress.port != 0)
    #expect(try a.send([1, 2, 3], to: b.localAddress))
    #expect(poll(b.fd))
    var buffer = [UInt8](repeating: 0, count: 100)
    let got = try buffer.withUnsafeMutableBytes { try b.receive(into: $0) }
    #expect(got?.count == 3 && got?.from == a.localAddress)
    #expect(buffer.prefix(3) == [1, 2, 3])
    #expect(try buffer.withUnsafeMutableBytes { try b.receive(into: $0) } == nil)
  }

  @Test(arguments: [
    (IPAddress.any, IPAddress(127, 0, 0, 9), true), (.any, .loopback, true), (.any6, .loopback6, true),
    (.loopback, .loopback, false),
  ])
  func `a socket at all addresses says which one a datagram was sent to`(bound: IPAddress, own: IPAddress, says: Bool) throws {
    guard let socket = try? UDPSocket(bind: SocketAddress(bound, 0)) else { return #expect(bound.family == .v6) }
    if says { #expect(socket.wantsLocalAddresses()) }
    let peer = try UDPSocket(bind: SocketAddress(own, 0))
    try peer.send([1, 2, 3], to: SocketAddress(own, socket.localAddress.port))
    #expect(poll(socket.fd))
    var buffer = [UInt8](repeating: 0, count: 100)
    let got = try buffer.withUnsafeMutableBytes { try socket.receiveWithLocal(into: $0) }
    #expect(got?.count == 3 && got?.from == peer.localAddress && got?.local == (says ? own : nil))
    #expect(try buffer.withUnsafeMutableBytes { try socket.receiveWithLocal(into: $0) } == nil)
  }

  @Test func `from loopback nothing is routed to another machine`() {
    #expect(routeAddress(toward: SocketAddress(.loopback, 9), from: .loopback) == .loopback)
    #expect(routeAddress(toward: SocketAddress(IPAddress(192, 0, 2, 77), 9), from: .loopback) == nil)
    #expect(routeAddress(toward: SocketAddress(.loopback, 9), from: IPAddress(192, 0, 2, 77)) == nil)
  }

  @Test func `a second socket on an address is refused with its name and a way out`() throws {
    let first = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let error = #expect(throws: SystemError.self) { _ = try UDPSocket(bind: first.localAddress, setting: "listen.sip.udp") }
    #expect(error?.isAddressInUse == true)
    let text = error?.description ?? ""
    #expect(text.contains("\(first.localAddress)") && text.contains("listen.sip.udp") && text.contains("another process"))

    let listener = try TCPListener(bind: SocketAddress(.loopback, 0))
    let second = #expect(throws: SystemError.self) { _ = try TCPListener(bind: listener.localAddress) }
    #expect(second?.isAddressInUse == true)
  }

  @Test func `an address of another machine cannot be bound, and the error says why`() throws {
    let error = #expect(throws: SystemError.self) { _ = try UDPSocket(bind: SocketAddress(IPAddress(192, 0, 2, 1), 0)) }
    #expect(error?.description.contains("this machine has no such address") == true)
  }

  @Test func `out of descriptors is named`() {
    let error = SystemError("accept tcp on", code: EMFILE)
    #expect(error.isOutOfDescriptors)
    #expect(error.description.contains("ulimit -n"))
  }

  @Test func `a TCP connection carries bytes both ways and tells its end`() throws {
    let listener = try TCPListener(bind: SocketAddress(.loopback, 0))
    #expect(try listener.accept() == nil)
    var client: TCPSocket? = try TCPSocket(connect: listener.localAddress)
    #expect(poll(listener.fd))
    let server = try #require(try listener.accept())
    #expect(poll(try #require(client).fd, POLLOUT))
    #expect(client?.connectionError() == nil)
    #expect(client?.localAddress == server.remoteAddress)
    #expect(try client?.write([7, 8]) == 2)
    #expect(poll(server.fd))
    var buffer = [UInt8](repeating: 0, count: 10)
    #expect(try buffer.withUnsafeMutableBytes { try server.read(into: $0) } == .bytes(2))
    #expect(try buffer.withUnsafeMutableBytes { try server.read(into: $0) } == .wait)
    client = nil
    #expect(poll(server.fd))
    #expect(try buffer.withUnsafeMutableBytes { try server.read(into: $0) } == .closed)
  }

  @Test func `a refused connection reports its error`() throws {
    var listener: TCPListener? = try TCPListener(bind: SocketAddress(.loopback, 0))
    let address = try #require(listener).localAddress
    listener = nil
    guard let client = try? TCPSocket(connect: address) else { return }
    #expect(poll(client.fd, POLLOUT))
    #expect(client.connectionError()?.code == ECONNREFUSED)
  }

  @Test func `the machine's own addresses are neither link-local nor unspecified, IPv4 first`() throws {
    let all = try localAddresses(loopback: true)
    #expect(all.contains(.loopback))
    #expect(!all.contains { $0.isLinkLocal || $0.isUnspecified })
    #expect(Set(all).count == all.count)
    let firstSix = all.firstIndex { $0.family == .v6 } ?? all.endIndex
    #expect(!all[firstSix...].contains { $0.family == .v4 })
    #expect(!(try localAddresses().contains { $0.isLoopback }))
    #expect(!(try localAddresses(loopback: nil)).isEmpty)
  }

  @Test func `toward loopback the route starts at loopback`() {
    #expect(routeAddress(toward: SocketAddress(.loopback, 5060)) == .loopback)
  }

  @Test func `clocks move forward`() {
    let a = MonotonicClock.now()
    #expect(MonotonicClock.now() >= a)
    #expect(WallClock.nowMilliseconds() > 1_700_000_000_000)
    #expect(RandomSource.system.next() != RandomSource.system.next())
  }
}

private func poll(_ fd: Int32, _ events: Int32 = POLLIN) -> Bool {
  var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
  return Glibc.poll(&entry, 1, 5_000) > 0
}

extension TCPSocket {
  fileprivate func write(_ bytes: [UInt8]) throws -> Int { try bytes.withUnsafeBytes { try write($0) } }
}
