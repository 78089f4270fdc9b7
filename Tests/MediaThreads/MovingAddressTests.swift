import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

@testable import MediaThreads

/// Addresses that come and go while calls run. Each of 127.0.0.0/8 is one of this machine's.
@Suite(.serialized) struct MovingAddressTests {
  private func address(_ last: UInt8, _ third: UInt8 = 0) -> MediaPlaneConfiguration.Address {
    .init(bind: IPAddress(127, 0, third, last))
  }
  private func plane(_ addresses: [MediaPlaneConfiguration.Address], appPort: UInt16 = 0, _ log: EventLog = EventLog()) throws
    -> MediaPlane
  {
    let configuration = MediaPlaneConfiguration(addresses: addresses, threads: 1, appPort: appPort, trunkPorts: 45_300...45_399)
    return try MediaPlane(configuration: configuration, identity: try DTLSIdentity()) { log.append($0) }
  }
  private func reserve(_ plane: MediaPlane, _ raw: UInt64) throws(MediaReservationError) -> MediaReservation {
    try plane.reserve(session: MediaSessionID(raw: raw), user: "alice", toward: .loopback)
  }

  @Test func `without an address no call gets media, and with the first one the next call does`() throws {
    let plane = try plane([])
    defer { plane.stop() }
    #expect(throws: MediaReservationError.noAddress) { _ = try reserve(plane, 1) }
    #expect(plane.shortage == nil && plane.address(advertisedTo: .loopback) == nil)
    #expect(plane.use([address(1)], localNetworks: LocalNetworks()) == [])
    let reservation = try reserve(plane, 1)
    #expect(reservation.trunkAddress.ip == .loopback && reservation.appCandidates.map(\.ip) == [.loopback])
    #expect(plane.use([], localNetworks: LocalNetworks()) == [] && plane.addresses.isEmpty)
    #expect(throws: MediaReservationError.noAddress) { _ = try reserve(plane, 2) }
  }

  @Test func `a call goes on at its address while new ones take another, and an address that comes back has its port`() throws {
    let log = EventLog()
    let plane = try plane([address(1)], log)
    defer { plane.stop() }
    let (id, leg) = (MediaSessionID(raw: 1), AppLegID(raw: 1))
    let first = try reserve(plane, 1)
    let local = AppLegLocal(ufrag: "gwufrag1", password: "gatewaypasswordgateway", ssrc: 99)
    plane.send(.addAppLeg(id, leg, local))
    #expect(plane.use([address(2)], localNetworks: LocalNetworks()) == [])
    let second = try reserve(plane, 2)
    #expect(second.trunkAddress.ip == address(2).bind && second.appCandidates.map(\.ip) == [address(2).bind])
    let app = try TestApp(
      encoding: .opus, gateway: first.appCandidates[0], gatewayUfrag: local.ufrag, gatewayPassword: local.password,
      fingerprint: first.fingerprint)
    plane.send(.setAppRemote(id, leg, app.remote(encoding: .opus), newLocal: nil, newAssociation: true))
    let isReady = try drive {
      try app.step()
      return app.isReady && log.has { if case .keysInstalled = $0 { true } else { false } }
    }
    #expect(isReady, "\(log.all)")
    #expect(plane.use([address(1), address(2)], localNetworks: LocalNetworks()) == [])
    #expect(try reserve(plane, 3).appCandidates == [first.appCandidates[0], second.appCandidates[0]])
  }

  @Test func `a hundred addresses one after the other leave the sockets of a few, and a call keeps its own`() throws {
    let log = EventLog()
    let plane = try plane([address(1)], log)
    defer { plane.stop() }
    let first = try reserve(plane, 1)
    for index in 1...100 { #expect(plane.use([address(UInt8(index), 1)], localNetworks: LocalNetworks()) == []) }
    // what the call was offered is still bound
    #expect(throws: SystemError.self) { _ = try UDPSocket(bind: first.appCandidates[0]) }
    plane.send(.close(MediaSessionID(raw: 1)))
    let isFree = drive { (try? UDPSocket(bind: first.appCandidates[0])) != nil }
    #expect(isFree, "the last call that was offered it is over")
    let bound = openDescriptors().filter { $0.contains("socket") }.count
    #expect(bound < 60, "\(bound)")
  }

  @Test func `a trunk leg whose address went has ports at another, and only then`() throws {
    let plane = try plane([address(1, 2)])
    defer { plane.stop() }
    let id = MediaSessionID(raw: 1)
    let before = try reserve(plane, 1).trunkAddress
    func move(isHere: Bool = false) throws -> SocketAddress? { try plane.move(session: id, toward: .loopback) { _ in isHere } }
    #expect(try move() == nil, "it is one of today's")
    _ = plane.use([], localNetworks: LocalNetworks())
    #expect(try move() == nil, "there is no other")
    _ = plane.use([address(2, 2)], localNetworks: LocalNetworks())
    #expect(try move(isHere: true) == nil, "the machine still has it")
    let after = try #require(try move())
    #expect(after.ip == address(2, 2).bind && after.port.isMultiple(of: 2))
    #expect(try move() == nil, "once")
    // it follows the way from then on: to loopback that is 127.0.0.1
    _ = plane.use([address(2, 2), address(1)], localNetworks: LocalNetworks())
    let next = try #require(try move(isHere: true))
    #expect(next.ip == .loopback)
    #expect(throws: SystemError.self) { _ = try UDPSocket(bind: next) }
    let isFree = drive { (try? UDPSocket(bind: before)) != nil }
    #expect(isFree, "the ports of before are given back")
    #expect(try plane.move(session: MediaSessionID(raw: 2), toward: .loopback) { _ in false } == nil, "no such session")
    plane.send(.close(id))
    let isOver = drive { (try? UDPSocket(bind: next)) != nil }
    #expect(isOver)
  }

  @Test func `an address whose port another process holds is left out until it is free, and the others serve`() throws {
    var taken: UDPSocket? = try UDPSocket(bind: SocketAddress(address(3).bind, 0))
    let port = try #require(taken).localAddress.port
    let plane = try plane([address(1)], appPort: port)
    defer { plane.stop() }
    let refused = plane.use([address(1), address(3)], localNetworks: LocalNetworks())
    #expect(refused.count == 1 && refused[0].isAddressInUse && "\(refused[0])".contains("media.app_port"))
    #expect(plane.addresses == [address(1)])
    taken = nil
    #expect(plane.use([address(1), address(3)], localNetworks: LocalNetworks()) == [])
    #expect(plane.addresses == [address(1), address(3)])
  }

  @Test func `of addresses that went, those that went last are kept`() {
    var book = AddressBook()
    for index in 1...UInt8(Limits.absentAddresses + 2) { book.add(address(index).bind, ports: [UInt16(index)]) }
    var retired: [IPAddress] = []
    for index in 1...UInt8(Limits.absentAddresses + 1) { retired += book.use([address(index)]) }
    #expect(retired.isEmpty && book.absent.first == address(1).bind)
    // it comes back for a moment: now it is the one that went last
    retired = book.use([address(1)])
    #expect(retired.isEmpty && book.candidates(thread: 0) == [SocketAddress(address(1).bind, 1)])
    retired = book.use([address(UInt8(Limits.absentAddresses + 2))])
    #expect(retired == [address(2).bind])
    #expect(book.ports[address(2).bind] == nil && book.ports[address(1).bind] == [1])
  }

  @Test func `a socket is closed when the oldest session is younger than its end`() throws {
    var sockets = AppSockets()
    let one = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let two = try UDPSocket(bind: SocketAddress(address(2).bind, 0))
    var slots = [sockets.add(one), sockets.add(two)]
    var descriptors = (0...2).map { sockets.descriptor($0) }
    #expect(slots == [0, 1] && descriptors == [one.fd, two.fd, -1])
    sockets.retire(.loopback, after: 5)
    let (before, after) = (sockets.over(oldest: 4), sockets.over(oldest: 5))
    #expect(before == [] && after == [one.fd])
    sockets.close(oldest: 5)
    descriptors = (0...1).map { sockets.descriptor($0) }
    let hasRetired = sockets.hasRetired
    #expect(!hasRetired && descriptors == [-1, two.fd])
    slots = [sockets.add(one)]
    #expect(slots == [0], "the slot is reused")
  }
}
