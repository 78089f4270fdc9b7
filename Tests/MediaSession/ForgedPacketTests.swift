import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

/// Nothing is learnt, counted as received or forwarded before the tag was verified.
@Suite struct ForgedPacketTests {
  /// All state of a session that a packet from the app could change, except the count of dropped packets.
  private struct Picture: Equatable {
    var statistics: MediaStatistics
    var address: SocketAddress?
    var authenticated: Instant?
    var highest: UInt32
    var received: UInt64
    var jitter: UInt32
    var depth: Int
    var nextTimestamp: UInt32
    var toTrunk: Int
    var events: Int
    var silent: Bool

    init(_ bench: inout Bench) {
      statistics = bench.session.statistics()
      statistics.fromApp.dropped = 0
      let leg = bench.session.apps.slots
      (address, authenticated, silent) = (leg[0].path.address, leg[0].liveness.last, leg[0].liveness.isSilent)
      (highest, received) = (leg[0].reception.highestSequence, leg[0].reception.received)
      jitter = leg[0].reception.jitter
      let receiver = bench.session.uplink.receiver.receiver
      (depth, nextTimestamp) = receiver.map { ($0.pointee.depth, $0.pointee.nextTimestamp.raw) } ?? (-1, 0)
      (toTrunk, events) = (bench.toTrunk.count, bench.events.count)
    }
  }

  @Test(arguments: [AudioEncoding.opus, .pcmu])
  func `forged, damaged and replayed packets change nothing but the count of dropped ones`(
    _ encoding: AudioEncoding
  ) throws {
    var bench = try Bench(app: encoding)
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    let stranger = SocketAddress(IPAddress(203, 0, 113, 5), 4_000)
    var forger = try SRTPSender(.aeadAES128GCM, Bench.keyMaterial(77).client)
    var random = SplitMix64(seed: 3)
    let genuine = try sealed(&bench, 60)
    let before = Picture(&bench)
    let dropped = bench.session.statistics().fromApp.dropped
    var sent: UInt64 = 0
    for step in 0..<600 {
      var bytes: [UInt8]
      switch step % 4 {
      case 0: bytes = try protect(clear(bench.appSequence &+ UInt16(step), 0x9999, 111))  // the stream's own next numbers
      case 1: bytes = try protect(clear(UInt16(step), 0x4242, 111))  // another source
      case 2:
        bytes = genuine[step % genuine.count]
        bytes[Int(random.next() % UInt64(bytes.count - 2)) + 2] ^= 1 << UInt8(random.next() % 8)
      default: bytes = try protectControl(&forger)
      }
      bytes.withUnsafeMutableBytes { bench.appDatagram($0, from: step % 3 == 0 ? stranger : Bench.appAddress) }
      sent += 1
    }
    let after = Picture(&bench)
    #expect(after == before)
    #expect(bench.session.statistics().fromApp.dropped == dropped + sent)
    // Packets damaged above arrive as they were sent: the replay window has not stored them.
    for packet in genuine {
      var bytes = packet
      bytes.withUnsafeMutableBytes { bench.appDatagram($0) }
    }
    #expect(bench.session.statistics().fromApp.packets == before.statistics.fromApp.packets + UInt64(genuine.count))
    // A second time each is a replay.
    let replayed = Picture(&bench)
    for packet in genuine {
      var bytes = packet
      bytes.withUnsafeMutableBytes { bench.appDatagram($0) }
    }
    let end = Picture(&bench)
    #expect(end == replayed)
  }

  @Test func `an authentic packet from another address is taken, and our packets still go to the nominated one`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    let packets = try sealed(&bench, 10)
    for packet in packets {
      var bytes = packet
      bytes.withUnsafeMutableBytes { bench.appDatagram($0, from: SocketAddress(IPAddress(203, 0, 113, 5), 4_000)) }
    }
    let before = bench.toApp.count
    try bench.run(frames: 20, trunk: { tone($0) })
    #expect(bench.toApp.count > before)
    #expect(bench.toApp.allSatisfy { $0.destination == Bench.appAddress })
  }

  @Test func `forged packets do not use up what the app may send`() throws {
    var bench = try Bench()
    bench.connect()
    for step in 0..<5_000 {
      var bytes = try protect(clear(UInt16(truncatingIfNeeded: step), 0x9999, 111))
      bytes.withUnsafeMutableBytes { bench.appDatagram($0) }
    }
    try bench.run(frames: 50, app: { tone($0) })
    #expect(bench.session.statistics().fromApp.packets == 50)
    #expect(bench.output.drainDrops(.overBudget) == 0)
  }

  // MARK: Packets

  private func clear(_ sequence: UInt16, _ ssrc: UInt32, _ type: UInt8) -> [UInt8] {
    let header: [UInt8] = [0x80, type, UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence), 0, 0, 0, 0]
    return header + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * $0)) } + [UInt8](repeating: 0x55, count: 80)
  }

  /// With its own keys, made again for each packet: a forger may use a number as often as it likes.
  private func protect(_ packet: [UInt8]) throws -> [UInt8] {
    var room = packet + [UInt8](repeating: 0, count: 32)
    var count = packet.count
    var fresh = try SRTPSender(.aeadAES128GCM, Bench.keyMaterial(77).client)
    try room.withUnsafeMutableBytes { try fresh.protect($0, count: &count) }
    return Array(room[..<count])
  }

  private func protectControl(_ sender: inout SRTPSender) throws -> [UInt8] {
    // A sender report that a session would store for LSR.
    let packet: [UInt8] = [0x80, 200, 0, 6, 0, 0, 0x99, 0x99] + [UInt8](repeating: 7, count: 20)
    var room = packet + [UInt8](repeating: 0, count: 32)
    var count = packet.count
    try room.withUnsafeMutableBytes { try sender.protectRTCP($0, count: &count) }
    return Array(room[..<count])
  }

  /// The app's next `count` packets, not sent yet.
  private func sealed(_ bench: inout Bench, _ count: Int) throws -> [[UInt8]] {
    try (0..<count).map { step in
      var octets = [UInt8](repeating: 0, count: 400)
      var span = octets.mutableSpan
      let frame = tone(step)
      let length = try bench.appEncoder.encode(frame.span, into: &span)
      let header = RTPHeader(
        payloadType: bench.app.payloadType, marker: false, sequence: SequenceNumber(raw: bench.appSequence),
        timestamp: RTPTimestamp(raw: bench.appTimestamp), ssrc: SSRC(raw: 0x9999))
      bench.appSequence &+= 1
      bench.appTimestamp &+= UInt32(bench.appEncoder.units(ofSamples: 160))
      var room = [UInt8](repeating: 0, count: 12 + length + 32)
      var writing = room.mutableSpan
      _ = header.write(into: &writing)
      room.replaceSubrange(12..<(12 + length), with: octets[..<length])
      var total = 12 + length
      try room.withUnsafeMutableBytes { try bench.appSender.protect($0, count: &total) }
      return Array(room[..<total])
    }
  }
}
