import Testing
import TrunklineBytes
import TrunklineICE
import TrunklineSTUN
import TrunklineTURN

@testable import TrunklineClientMachines

@Suite struct RelayPathsTests {
  private static let relayed = SocketAddress(IPAddress(192, 0, 2, 15), 50_000)
  private static let direct = CandidatePair(local: phoneAddress, remote: gatewayAddress)
  private static let overRelay = CandidatePair(local: relayed, remote: gatewayAddress)

  /// The relays, and a server that allocates for each connection that is opened.
  private struct Rig {
    var relays = RelayPaths()
    var output = ClientMedia.Output()

    mutating func prepare(_ generation: Int, startsAt: Double = 1) throws {
      let server = try #require(TURNServer(url: "turns:turn.example", username: "u", password: "p"))
      relays.prepare(
        [server], peers: [gatewayAddress], generation: generation, startsAt: seconds(startsAt), random: .seeded(3))
    }
    mutating func connects() -> [Int] {
      defer { output.removeAll() }
      return output.connects.map(\.connection)
    }
    mutating func disconnects() -> [Int] {
      defer { output.removeAll() }
      return output.disconnects
    }
    /// Opens the connection and answers the request for an allocation.
    mutating func allocate(_ number: Int, at time: Double = 1) -> [ClientRelays.Event] {
      output.removeAll()
      relays.opened(number, at: seconds(time), into: &output)
      var reply = [UInt8](repeating: 0, count: 500)
      var count = 0
      output.forEachRelayed { request, _ in
        guard let asked = try? STUNMessage(request), count == 0 else { return }
        count = reply.withUnsafeMutableBytes { room in
          var writer = STUNWriter(.success, method: asked.method, transaction: asked.transaction, into: room)
          writer.addRelayedAddress(RelayPathsTests.relayed)
          return writer.finish() ?? 0
        }
      }
      _ = relays.received(number, Array(reply[..<count]), at: seconds(time), into: &output) { _, _ in }
      output.removeAll()
      return relays.drainEvents()
    }
    /// Through which way a packet for the gateway is sent from the relayed address.
    mutating func way() -> String {
      output.removeAll()
      [1 as UInt8].withUnsafeBytes { relays.send($0, from: RelayPathsTests.relayed, to: gatewayAddress, into: &output) }
      var numbers: [Int] = []
      output.forEachRelayed { numbers.append($1) }
      defer { output.removeAll() }
      return output.hasDatagrams ? "socket" : "\(numbers)"
    }
    /// The relays of generation 1 carry media.
    static func carrying() throws -> Rig {
      var rig = Rig()
      try rig.prepare(1)
      rig.relays.handleTimeout(at: seconds(1), into: &rig.output)
      #expect(rig.allocate(16) == [.ready(RelayPathsTests.relayed)])
      rig.relays.nominated(RelayPathsTests.overRelay, isConnected: true, at: seconds(2), into: &rig.output)
      #expect(rig.way() == "[16]")
      return rig
    }
  }

  @Test func `relays start at their time, once, and are prepared once for a generation`() throws {
    var rig = Rig()
    try rig.prepare(1)
    try rig.prepare(2, startsAt: 9)
    #expect(rig.relays.nextDeadline == seconds(1))
    rig.relays.handleTimeout(at: seconds(0.9), into: &rig.output)
    holds(rig.connects() == [])
    rig.relays.handleTimeout(at: seconds(1), into: &rig.output)
    rig.relays.handleTimeout(at: seconds(1), into: &rig.output)
    holds(rig.connects() == [16], "of the first generation")
  }

  @Test func `without relays nothing is due, no news has an effect, and packets go through the socket`() {
    var rig = Rig()
    let now = seconds(1)
    rig.relays.handleTimeout(at: now, into: &rig.output)
    rig.relays.opened(16, at: now, into: &rig.output)
    rig.relays.closed(16, "reset", at: now, into: &rig.output)
    let local = rig.relays.received(16, [0x40, 0, 0, 1], at: now, into: &rig.output) { _, _ in Issue.record("no relay") }
    rig.relays.nominated(Self.overRelay, isConnected: true, at: now, into: &rig.output)
    rig.relays.renew(mediaUses: nil, at: now, into: &rig.output)
    for _ in 0..<2 { rig.relays.close(at: now, into: &rig.output) }
    #expect(local == nil && rig.relays.nextDeadline == nil && rig.output.connects.isEmpty && rig.output.disconnects.isEmpty)
    holds(rig.relays.drainEvents() == [] && rig.relays.drainFormerEvents() == [] && rig.way() == "socket")
  }

  @Test func `a nominated path without the relay releases it once it is connected; before its time it never starts`() throws {
    for isConnected in [false, true] {
      var rig = Rig()
      try rig.prepare(1)
      rig.relays.nominated(Self.direct, isConnected: isConnected, at: seconds(0.5), into: &rig.output)
      rig.relays.handleTimeout(at: seconds(1), into: &rig.output)
      holds(rig.connects() == [] && rig.relays.nextDeadline == nil)
    }
    var rig = Rig()
    try rig.prepare(1)
    rig.relays.handleTimeout(at: seconds(1), into: &rig.output)
    _ = rig.connects()
    rig.relays.nominated(Self.direct, isConnected: false, at: seconds(2), into: &rig.output)
    holds(rig.disconnects() == [])
    rig.relays.nominated(Self.direct, isConnected: true, at: seconds(2), into: &rig.output)
    holds(rig.disconnects() == [16])
  }

  @Test func `an allocation that media uses serves through a restart, until 5 s after the next path`() throws {
    var rig = try Rig.carrying()
    rig.relays.renew(mediaUses: Self.relayed, at: seconds(3), into: &rig.output)
    holds(rig.disconnects() == [] && rig.way() == "[16]")
    try rig.prepare(2, startsAt: 3)
    rig.relays.handleTimeout(at: seconds(3), into: &rig.output)
    holds(rig.connects() == [32], "the next generation has numbers of its own")
    rig.relays.nominated(Self.direct, isConnected: true, at: seconds(4), into: &rig.output)
    holds(rig.disconnects() == [32] && rig.way() == "[16]")
    rig.relays.handleTimeout(at: seconds(8.9), into: &rig.output)
    holds(rig.disconnects() == [])
    for time in [9.0, 10] { rig.relays.handleTimeout(at: seconds(time), into: &rig.output) }
    holds(rig.disconnects() == [16] && rig.way() == "socket" && rig.relays.nextDeadline == nil)
  }

  @Test func `a restart closes what media does not use, and a second one the former`() throws {
    var rig = try Rig.carrying()
    rig.relays.renew(mediaUses: phoneAddress, at: seconds(3), into: &rig.output)
    holds(rig.disconnects() == [16] && rig.way() == "socket")
    rig = try Rig.carrying()
    rig.relays.renew(mediaUses: Self.relayed, at: seconds(3), into: &rig.output)
    try rig.prepare(2, startsAt: 3)
    rig.relays.handleTimeout(at: seconds(3), into: &rig.output)
    _ = rig.allocate(32, at: 3)
    rig.relays.renew(mediaUses: Self.relayed, at: seconds(4), into: &rig.output)
    holds(rig.disconnects() == [16] && rig.way() == "[32]")
  }

  @Test func `the end of a connection is that of its own generation, and of no other`() throws {
    var rig = try Rig.carrying()
    rig.relays.closed(99, "reset", at: seconds(3), into: &rig.output)
    holds(rig.relays.drainEvents() == [] && rig.way() == "[16]")
    rig.relays.renew(mediaUses: Self.relayed, at: seconds(3), into: &rig.output)
    try rig.prepare(2, startsAt: 3)
    for _ in 0..<2 { rig.relays.closed(16, "reset", at: seconds(3), into: &rig.output) }
    holds(rig.relays.drainFormerEvents() == [.lost(Self.relayed, "reset")] && rig.relays.drainEvents() == [])
    holds(rig.way() == "socket")
  }

  @Test func `the end of the call closes both generations, once`() throws {
    var rig = try Rig.carrying()
    rig.relays.renew(mediaUses: Self.relayed, at: seconds(3), into: &rig.output)
    try rig.prepare(2, startsAt: 3)
    rig.relays.handleTimeout(at: seconds(3), into: &rig.output)
    _ = rig.connects()
    for _ in 0..<2 { rig.relays.close(at: seconds(4), into: &rig.output) }
    holds(rig.disconnects().sorted() == [16, 32] && rig.relays.nextDeadline == nil && rig.way() == "socket")
  }
}
