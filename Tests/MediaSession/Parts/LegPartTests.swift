import Testing
import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSRTP
import TrunklineSTUN

@testable import TrunklineMediaSession

private let home = SocketAddress(IPAddress(198, 51, 100, 9), 50_000)
private let elsewhere = SocketAddress(IPAddress(198, 51, 100, 9), 50_001)
private let third = SocketAddress(IPAddress(203, 0, 113, 5), 4_000)
private let route = PacketRoute(raw: 3)
private func seconds(_ count: Double) -> Instant { .zero + .nanoseconds(Int64(count * 1e9)) }

/// The pair of an app leg alone, beside an agent that gets the same checks.
@Suite struct AppPathTests {
  private func agent() -> LiteAgent { LiteAgent(ufrag: "gwuf", password: "gatewaypasswordgateway") }

  private func check(_ agent: inout LiteAgent, from source: SocketAddress, nominates: Bool, at now: Instant) {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 512, alignment: 8)
    defer { room.deallocate() }
    var writer = STUNWriter(.request, transaction: TransactionID(high: 1, low: 2), into: room)
    writer.addUsername(recipient: Array("gwuf".utf8), sender: Array("appu".utf8))
    writer.addPriority(100)
    writer.addControlling(tieBreaker: 5)
    if nominates { writer.addUseCandidate() }
    writer.addIntegrity(IntegrityKey(password: "gatewaypasswordgateway"))
    writer.addFingerprint()
    let count = writer.finish() ?? 0
    let reply = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 8)
    defer { reply.deallocate() }
    _ = agent.handle(UnsafeRawBufferPointer(rebasing: room[..<count]), from: source, at: now, reply: reply)
  }

  private func nominated(_ agent: inout LiteAgent) -> AppPath {
    var path = AppPath()
    check(&agent, from: home, nominates: true, at: .zero)
    path.nominated(home, route)
    path.received(from: home, at: .zero)
    return path
  }

  @Test func `the last validated address is used until a nomination, which later ones replace`() {
    var path = AppPath()
    path.validated(home, route)
    path.validated(elsewhere, PacketRoute(raw: 4))
    #expect(path.address == elsewhere && path.route == PacketRoute(raw: 4) && !path.isNominated)
    path.nominated(home, route)
    path.validated(third, PacketRoute(raw: 5))
    #expect(path.address == home && path.route == route && path.isNominated)
    path.nominated(third, route)
    #expect(path.address == third)
  }

  @Test func `without a nomination no packet moves the pair`() {
    var (path, agent) = (AppPath(), agent())
    for step in 0..<20 {
      let moved = path.move(to: elsewhere, route, agent: &agent, at: seconds(Double(10 + step)))
      #expect(moved == nil)
    }
    path.startOver()
    #expect(path.address == nil)
  }

  @Test func `an address that was checked since the pair fell silent moves it after a second, not before`() {
    var agent = agent()
    var path = nominated(&agent)
    check(&agent, from: elsewhere, nominates: false, at: seconds(0.5))
    var moved = path.move(to: elsewhere, route, agent: &agent, at: seconds(0.9))
    #expect(moved == nil && path.address == home)
    moved = path.move(to: elsewhere, PacketRoute(raw: 8), agent: &agent, at: seconds(1.1))
    #expect(moved?.remote == elsewhere && path.address == elsewhere && path.route == PacketRoute(raw: 8))
    let from = [path.received(from: home, at: seconds(1.2)), path.received(from: elsewhere, at: seconds(1.2))]
    #expect(from == [false, true])
  }

  @Test func `a check before the silence does not move it`() {
    var agent = agent()
    var path = nominated(&agent)
    check(&agent, from: elsewhere, nominates: false, at: seconds(0.5))
    path.received(from: home, at: seconds(0.6))
    let moved = path.move(to: elsewhere, route, agent: &agent, at: seconds(2))
    #expect(moved == nil && path.address == home)
  }

  @Test func `five packets in a row from an unchecked address move a pair that is silent for 2,5 s`() {
    var agent = agent()
    var path = nominated(&agent)
    var moves: [Bool] = []
    // a packet from a third address begins the row again
    for source in [elsewhere, elsewhere, elsewhere, elsewhere, third, elsewhere, elsewhere, elsewhere, elsewhere, elsewhere] {
      let moved = path.move(to: source, route, agent: &agent, at: seconds(3))
      moves.append(moved != nil)
    }
    #expect(moves == Array(repeating: false, count: 9) + [true] && path.address == elsewhere)
  }

  @Test func `the same row within the 2,5 s, or while the pair sends, moves nothing`() {
    var agent = agent()
    var path = nominated(&agent)
    for step in 0..<10 {
      let moved = path.move(to: elsewhere, route, agent: &agent, at: seconds(1 + Double(step) * 0.1))
      #expect(moved == nil)
    }
    path.received(from: home, at: seconds(2.4))
    let moved = path.move(to: elsewhere, route, agent: &agent, at: seconds(2.6))
    #expect(moved == nil && path.address == home)
  }
}

@Suite struct LegHandshakeTests {
  @Test func `an association starts once and fails once; a later address gets the retransmissions`() {
    var handshake = LegHandshake()
    #expect(handshake.address == nil && handshake.isCurrent(0))
    let starts = [handshake.start(toward: home, route), handshake.start(toward: elsewhere, route)]
    let fails = [handshake.fail(), handshake.fail()]
    #expect(starts == [true, false] && fails == [true, false] && handshake.address == elsewhere)
  }

  @Test func `a replaced association starts and fails again, and results of the former one are not current`() {
    var handshake = LegHandshake()
    _ = (handshake.start(toward: home, route), handshake.fail())
    handshake.replace()
    let again = [handshake.start(toward: home, route), handshake.fail()]
    #expect(again == [true, true] && !handshake.isCurrent(0) && handshake.isCurrent(1) && !handshake.isCurrent(2))
  }

  @Test func `datagrams beyond the budget are refused and do not move the answers`() {
    var handshake = LegHandshake()
    let accepted = (0..<Limits.handshakeDatagramBurst).filter { _ in handshake.received(from: home, route, at: .zero) }
    let beyond = handshake.received(from: third, route, at: .zero)
    #expect(accepted.count == Limits.handshakeDatagramBurst && !beyond && handshake.address == home)
    let later = handshake.received(from: third, route, at: seconds(1))
    #expect(later && handshake.address == third)
  }
}

@Suite struct LegKeysTests {
  /// A packet of the app under the keys of `seed`.
  private func packet(_ sequence: UInt8, _ seed: UInt8) throws -> [UInt8] {
    var sender = try SRTPSender(.aeadAES128GCM, Bench.keyMaterial(seed).client)
    var room: [UInt8] = [0x80, 111, 0, sequence, 0, 0, 0, 0, 0, 0, 0x99, 0x99] + [UInt8](repeating: 5, count: 40)
    var count = room.count
    room += [UInt8](repeating: 0, count: 32)
    try room.withUnsafeMutableBytes { try sender.protect($0, count: &count) }
    return Array(room[..<count])
  }
  private func opens(_ keys: inout LegKeys, _ packet: [UInt8]) -> Bool {
    var (bytes, count) = (packet, packet.count)
    let isOpen = bytes.withUnsafeMutableBytes { room in
      do throws(SRTPError) {
        try keys.unprotect(room, isControl: false, count: &count)
        return true
      } catch { return false }
    }
    // What is refused stays as it was.
    if !isOpen { #expect(bytes == packet && count == packet.count) }
    return isOpen
  }
  private func install(_ keys: inout LegKeys, _ seed: UInt8) throws {
    try keys.install(Bench.keyMaterial(seed), isClient: false, seed: 1)
  }

  @Test func `without keys nothing is installed, and replacing the association changes nothing`() {
    var keys = LegKeys()
    keys.associationReplaced(inCall: true)
    keys.associationReplaced(inCall: false)
    let (installed, name, retired) = (keys.isInstalled, keys.profileName, keys.drainRetirements())
    #expect(!installed && name == nil && retired == 0)
  }

  @Test func `newer keys wait for their first packet; until then the older ones are used, then never again`() throws {
    var keys = LegKeys()
    try install(&keys, 1)
    try install(&keys, 2)
    var opened = [opens(&keys, try packet(1, 1)), opens(&keys, try packet(2, 1)), opens(&keys, try packet(3, 9))]
    #expect(opened == [true, true, false])
    opened = [opens(&keys, try packet(4, 2)), opens(&keys, try packet(5, 1)), opens(&keys, try packet(6, 2))]
    #expect(opened == [true, false, true])
  }

  @Test func `a third association replaces the keys that wait`() throws {
    var keys = LegKeys()
    for seed: UInt8 in 1...3 { try install(&keys, seed) }
    let opened = [opens(&keys, try packet(1, 2)), opens(&keys, try packet(1, 1)), opens(&keys, try packet(2, 3))]
    #expect(opened == [false, true, true])
  }

  @Test func `a new association drops all keys before the connect, in a call only those that wait`() throws {
    var keys = LegKeys()
    try install(&keys, 1)
    try install(&keys, 2)
    keys.associationReplaced(inCall: true)
    let opened = [opens(&keys, try packet(1, 2)), opens(&keys, try packet(1, 1))]
    #expect(opened == [false, true])
    keys.associationReplaced(inCall: false)
    let isInstalled = keys.isInstalled
    #expect(!isInstalled)
  }

  @Test func `a packet opens once`() throws {
    var keys = LegKeys()
    try install(&keys, 1)
    let one = try packet(1, 1)
    let opened = [opens(&keys, one), opens(&keys, one)]
    #expect(opened == [true, false])
  }
}
