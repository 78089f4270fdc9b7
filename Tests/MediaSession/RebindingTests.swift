import Testing
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

/// A NAT gives the app another port during a call (a rebinding), and events that are not one.
@Suite struct RebindingTests {
  private static let moved = SocketAddress(IPAddress(198, 51, 100, 9), 50_777)
  private static let third = SocketAddress(IPAddress(203, 0, 113, 5), 9)

  private func moves(_ bench: borrowing Bench) -> [SocketAddress] {
    bench.events.compactMap { if case .appMoved(_, _, let address) = $0 { address } else { nil } }
  }

  /// A connected call whose app was received from the nominated address.
  private func connected() throws -> Bench {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, app: { tone($0) })
    return bench
  }

  private func speak(_ bench: inout Bench, frames: Int, from address: SocketAddress) throws {
    for _ in 0..<frames {
      try bench.appSends([0xf8, 0xff, 0xfe], payloadType: bench.app.payloadType, from: address)
      bench.appTimestamp &+= 960
      bench.tick()
    }
  }

  /// Where the next 20 ms of the trunk's talk go.
  private func destination(_ bench: inout Bench) throws -> SocketAddress? {
    try bench.run(frames: 4, trunk: { tone($0) })
    return bench.toApp.last?.destination
  }

  @Test func `checks that do not nominate and SRTP from another port are followed after a second of silence`() throws {
    var bench = try connected()
    #expect(try destination(&bench) == Bench.appAddress)
    bench.check(nominate: false, from: Self.moved)
    try speak(&bench, frames: 42, from: Self.moved)
    #expect(moves(bench).isEmpty, "not yet a second")
    try speak(&bench, frames: 10, from: Self.moved)
    #expect(moves(bench) == [Self.moved])
    #expect(try destination(&bench) == Self.moved)
    // Nominated again at the old address, as by an app whose old path works.
    bench.check(nominate: true)
    #expect(try destination(&bench) == Bench.appAddress)
  }

  @Test func `a check alone, or SRTP alone, moves nothing`() throws {
    var bench = try connected()
    try bench.run(frames: 100)
    bench.check(nominate: false, from: Self.moved)
    try bench.run(frames: 100)
    #expect(try destination(&bench) == Bench.appAddress)
    // An address that was checked before the pair fell silent.
    var early = try connected()
    early.check(nominate: false, from: Self.moved)
    try early.run(frames: 10, app: { tone($0) })
    try early.run(frames: 60)
    try speak(&early, frames: 10, from: Self.moved)
    #expect(moves(early).isEmpty)
    #expect(try destination(&early) == Bench.appAddress)
    early.check(nominate: false, from: Self.moved)
    try speak(&early, frames: 1, from: Self.moved)
    #expect(moves(early) == [Self.moved])
  }

  @Test func `packets that were recorded and are sent again from elsewhere move nothing`() throws {
    var bench = try connected()
    var recorded: [[UInt8]] = []
    for _ in 0..<80 {
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 200, alignment: 8)
      defer { room.deallocate() }
      let header = RTPHeader(
        payloadType: bench.app.payloadType, marker: false, sequence: SequenceNumber(raw: bench.appSequence),
        timestamp: RTPTimestamp(raw: bench.appTimestamp), ssrc: SSRC(raw: bench.appSSRC))
      var octets = [UInt8](repeating: 0, count: 12)
      var span = octets.mutableSpan
      _ = header.write(into: &span)
      room.copyBytes(from: octets + [0xf8, 0xff, 0xfe])
      var count = 15
      try bench.appSender.protect(room, count: &count)
      (bench.appSequence, bench.appTimestamp) = (bench.appSequence &+ 1, bench.appTimestamp &+ 960)
      recorded.append(Array(room[..<count]))
    }
    // The copy always arrives before the original, and the attacker has also replayed a recorded check.
    bench.check(nominate: false, from: Self.third)
    for packet in recorded {
      for address in [Self.third, Bench.appAddress] {
        var copy = packet
        copy.withUnsafeMutableBytes { bench.appDatagram($0, from: address) }
      }
      bench.tick()
    }
    #expect(moves(bench).isEmpty)
    #expect(try destination(&bench) == Bench.appAddress)
    // The original is silent; a replayed packet does not count as the app's.
    for packet in recorded.suffix(60) {
      var copy = packet
      copy.withUnsafeMutableBytes { bench.appDatagram($0, from: Self.third) }
      bench.tick()
    }
    bench.check(nominate: false, from: Self.third)
    for packet in recorded.suffix(10) {
      var copy = packet
      copy.withUnsafeMutableBytes { bench.appDatagram($0, from: Self.third) }
      bench.tick()
    }
    #expect(moves(bench).isEmpty)
    #expect(try destination(&bench) == Bench.appAddress)
  }

  @Test func `three addresses in turn move it at most once a second`() throws {
    var bench = try connected()
    let start = bench.now
    let addresses = [Self.moved, Self.third, SocketAddress(IPAddress(203, 0, 113, 6), 10)]
    for turn in 0..<500 {
      let address = addresses[turn % 3]
      bench.check(nominate: false, from: address)
      try speak(&bench, frames: 1, from: address)
    }
    let seconds = Int((bench.now - start).milliseconds / 1_000)
    #expect((1...seconds).contains(moves(bench).count), "\(moves(bench).count) in \(seconds) s")
    // It is received at whichever address it has, and stays there.
    #expect(moves(bench).count == 1)
  }

  @Test func `a check of an old generation moves nothing; one of the newer does once that is nominated`() throws {
    var bench = try connected()
    var remote = bench.app
    remote.generation = 2
    remote.ufrag = "app2"
    let local = AppLegLocal(ufrag: "gwu2", password: "secondpasswordgateway2", ssrc: 0xabcd_0001)
    bench.command(.setAppRemote(Bench.id, Bench.leg, remote, newLocal: local, newAssociation: false))
    bench.check(nominate: true, ufrag: "gwu2", sender: "app2", password: "secondpasswordgateway2")
    try speak(&bench, frames: 1, from: Bench.appAddress)
    try bench.run(frames: 60)
    bench.check(nominate: false, from: Self.moved)
    try speak(&bench, frames: 5, from: Self.moved)
    #expect(moves(bench).isEmpty, "the old ufrag")
    bench.check(nominate: false, from: Self.moved, ufrag: "gwu2", sender: "app2", password: "secondpasswordgateway2")
    try speak(&bench, frames: 1, from: Self.moved)
    #expect(moves(bench) == [Self.moved])
  }

  // MARK: Apps without checks

  @Test func `an app that sends no checks in a call is followed after two and a half seconds of silence, and heard all the time`()
    throws
  {
    var bench = try connected()
    let received = bench.toTrunk.count
    try speak(&bench, frames: 120, from: Self.moved)
    #expect(moves(bench).isEmpty, "not yet")
    #expect(bench.toTrunk.count - received >= 118, "the trunk hears it from wherever it speaks")
    try speak(&bench, frames: 10, from: Self.moved)
    #expect(moves(bench) == [Self.moved])
    #expect(try destination(&bench) == Self.moved)
  }

  @Test func `packets from three addresses in turn, without checks, move nothing`() throws {
    var bench = try connected()
    let addresses = [Self.moved, Self.third, SocketAddress(IPAddress(203, 0, 113, 6), 10)]
    for turn in 0..<600 { try speak(&bench, frames: 1, from: addresses[turn % 3]) }
    #expect(moves(bench).isEmpty)
    #expect(try destination(&bench) == Bench.appAddress)
    // Two of them stop: five in a row come from the remaining one.
    try speak(&bench, frames: 5, from: Self.third)
    #expect(moves(bench) == [Self.third])
  }

  @Test func `copies of an app's packets, without checks, move nothing however long the app is silent`() throws {
    var bench = try connected()
    let copy = try recorded(&bench)
    try bench.run(frames: 1)
    for _ in 0..<250 {
      for packet in copy {
        var packet = packet
        packet.withUnsafeMutableBytes { bench.appDatagram($0, from: Self.third) }
      }
      bench.tick()
    }
    #expect(moves(bench).isEmpty)
    #expect(try destination(&bench) == Bench.appAddress)
  }

  /// Six packets that were received already.
  private func recorded(_ bench: inout Bench) throws -> [[UInt8]] {
    var packets: [[UInt8]] = []
    for _ in 0..<6 {
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 200, alignment: 8)
      defer { room.deallocate() }
      let header = RTPHeader(
        payloadType: bench.app.payloadType, marker: false, sequence: SequenceNumber(raw: bench.appSequence),
        timestamp: RTPTimestamp(raw: bench.appTimestamp), ssrc: SSRC(raw: bench.appSSRC))
      var octets = [UInt8](repeating: 0, count: 12)
      var span = octets.mutableSpan
      _ = header.write(into: &span)
      room.copyBytes(from: octets + [0xf8, 0xff, 0xfe])
      var count = 15
      try bench.appSender.protect(room, count: &count)
      (bench.appSequence, bench.appTimestamp) = (bench.appSequence &+ 1, bench.appTimestamp &+ 960)
      packets.append(Array(room[..<count]))
      var own = Array(room[..<count])
      own.withUnsafeMutableBytes { bench.appDatagram($0) }
      bench.tick()
    }
    return packets
  }

  // MARK: Restarts

  private func restart(_ bench: inout Bench, isDTLSServer: Bool = false, newAssociation: Bool = false) {
    var remote = bench.app
    (remote.generation, remote.ufrag, remote.isDTLSServer) = (2, "app2", isDTLSServer)
    let local = AppLegLocal(ufrag: "gwu2", password: "secondpasswordgateway2", ssrc: 0xabcd_0001)
    bench.command(.setAppRemote(Bench.id, Bench.leg, remote, newLocal: local, newAssociation: newAssociation))
  }

  private func checkAgain(_ bench: inout Bench, nominate: Bool, from address: SocketAddress) {
    bench.check(nominate: nominate, from: address, ufrag: "gwu2", sender: "app2", password: "secondpasswordgateway2")
  }

  @Test func `a restart in the middle of a rebinding: the new generation decides, and the old ufrag no longer moves anything`()
    throws
  {
    var bench = try connected()
    bench.check(nominate: false, from: Self.moved)
    try speak(&bench, frames: 30, from: Self.moved)
    restart(&bench)
    try speak(&bench, frames: 30, from: Self.moved)
    #expect(moves(bench).isEmpty || moves(bench) == [Self.moved])
    checkAgain(&bench, nominate: true, from: Self.third)
    #expect(try destination(&bench) == Self.third)
    for frame in 0..<100 {
      bench.check(nominate: frame % 2 == 0, from: Self.moved)
      try speak(&bench, frames: 1, from: Self.third)
    }
    #expect(try destination(&bench) == Self.third, "the old ufrag")
    #expect(!moves(bench).contains(Self.third), "nominated, not followed")
  }

  @Test func `a restart whose checks never arrive does not keep the call from the port that sends`() throws {
    var bench = try connected()
    try speak(&bench, frames: 30, from: Self.moved)
    restart(&bench)
    try speak(&bench, frames: 110, from: Self.moved)
    #expect(moves(bench) == [Self.moved])
    #expect(try destination(&bench) == Self.moved)
    checkAgain(&bench, nominate: true, from: Bench.appAddress)
    #expect(try destination(&bench) == Bench.appAddress)
  }

  @Test(arguments: [false, true])
  func `a restart changes the DTLS role: the old keys serve until the first packet under the new ones`(
    inRebinding: Bool
  ) throws {
    var bench = try connected()
    let address = inRebinding ? Self.moved : Bench.appAddress
    if inRebinding { try speak(&bench, frames: 20, from: address) }
    bench.handshakes.removeAll()
    restart(&bench, isDTLSServer: true, newAssociation: true)
    checkAgain(&bench, nominate: true, from: address)
    let starts = bench.handshakes.filter { if case .start(let key) = $0 { key.association == 1 } else { false } }
    #expect(starts.count == 1, "our ClientHello, once")
    let received = bench.toTrunk.count
    try speak(&bench, frames: 10, from: address)
    #expect(bench.toTrunk.count - received >= 9, "under the old keys")
    let keys = Bench.keyMaterial(77)
    bench.complete(keys, association: 1)
    try bench.run(frames: 4, trunk: { tone($0) })
    #expect(bench.toApp.last?.destination == address, "still under the old keys")
    // The app is the server now, so its keys are swapped.
    bench.appSender = try SRTPSender(keys.profile, keys.server)
    bench.appReceiver = try SRTPReceiver(keys.profile, keys.client)
    let before = (bench.toTrunk.count, bench.toApp.count)
    try speak(&bench, frames: 1, from: address)
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.toTrunk.count - before.0 >= 19)
    #expect(bench.toApp.count - before.1 >= 18 && bench.events.allSatisfy { if case .appLegFailed = $0 { false } else { true } })
  }

  // MARK: One way

  private func oneWay(_ bench: borrowing Bench) -> [AudioDirection] {
    bench.events.compactMap { if case .appOneWay(_, _, let direction) = $0 { direction } else { nil } }
  }

  private func block(_ highest: UInt32) -> ReportBlock {
    ReportBlock(source: SSRC(raw: 0xabcd_0001), fractionLost: 0, cumulativeLost: 0, highestSequence: highest, jitter: 0)
  }

  @Test func `report blocks that do not advance while the app is sent to are reported`() throws {
    var bench = try connected()
    var highest: UInt32 = 100
    for _ in 0..<10 {
      try bench.run(frames: 50, trunk: { tone($0) })
      highest += 50
      try bench.appReports(block(highest))
    }
    #expect(oneWay(bench).isEmpty)
    for _ in 0..<4 {
      try bench.run(frames: 50, trunk: { tone($0) })
      try bench.appReports(block(highest))
    }
    #expect(oneWay(bench) == [.trunkToApp])
  }

  @Test func `sender reports that count packets of which none arrives are reported; a pause is not`() throws {
    var bench = try connected()
    var sent: UInt32 = 10
    for second in 0..<30 {
      // Ten seconds of speech, ten of a pause, ten of speech that something on the way swallows.
      try bench.run(frames: 50, app: { second < 10 ? tone($0) : nil })
      if second < 10 || second >= 20 { sent += 50 }
      try bench.appReports(block(100 + UInt32(bench.toApp.count)), sent: sent)
      #expect(oneWay(bench).isEmpty || second >= 22, "\(second)")
    }
    #expect(oneWay(bench).first == .appToTrunk && !oneWay(bench).contains(.trunkToApp))
  }

  @Test func `counters that begin again, and a pause of the trunk's, are not one way`() throws {
    var bench = try connected()
    for second in 0..<20 {
      try bench.run(frames: 50)
      try bench.appReports(block((second < 10 ? 100 : 3) + UInt32(bench.toApp.count)), sent: second % 2 == 0 ? 5_000 : 4)
    }
    #expect(oneWay(bench).isEmpty)
  }
}
