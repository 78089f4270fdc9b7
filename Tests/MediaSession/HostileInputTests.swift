import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

@Suite struct HostileInputTests {
  @Test(arguments: [1, 2, 3] as [UInt64]) func `random and damaged datagrams never end a session`(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var bench = try Bench()
    bench.connect()
    for step in 0..<3_000 {
      let length = Int(random.next() % 1_600)
      var bytes = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      if length > 2, step % 2 == 0 { bytes[0] = [0x80, 0x90, 0xa0, 0x81, 0x00, 22][Int(random.next() % 6)] }
      if length > 2, step % 3 == 0 { bytes[1] = [0, 101, 111, 110, 200, 201, 205][Int(random.next() % 7)] }
      switch random.next() % 3 {
      case 0:
        bytes.withUnsafeBytes { bench.session.handleTrunk($0, from: Bench.trunkAddress, at: bench.now, into: &bench.output) }
      case 1:
        let source = SocketAddress(Bench.trunkAddress.ip, 30_001)
        bytes.withUnsafeBytes { bench.session.handleTrunkControl($0, from: source, at: bench.now, into: &bench.output) }
      default: bytes.withUnsafeMutableBytes { bench.appDatagram($0) }
      }
      bench.collect()
      if step % 4 == 0 { bench.tick() }
    }
    let before = bench.toApp.count
    for frame in 0..<100 {
      bench.trunkSays(tone(frame))
      try bench.appSays(tone(frame))
      bench.tick()
    }
    #expect(bench.toApp.count > before + 50, "seed \(seed)")
    #expect(level(bench.heardByTrunk.suffix(1_600)) > 3_000, "seed \(seed)")
  }

  @Test func `authentic packets with hostile contents never end a session`() throws {
    var random = SplitMix64(seed: 5)
    var bench = try Bench()
    bench.connect()
    for step in 0..<3_000 {
      let payload = (0..<Int(random.next() % 700)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      let type: UInt8 = [111, 110, 126, 0, 77][Int(random.next() % 5)]
      let timestamp = step % 5 == 0 ? UInt32(truncatingIfNeeded: random.next()) : nil
      try bench.appSends(payload, payloadType: type, timestamp: timestamp)
      bench.tick()
    }
    #expect(bench.toTrunk.isContinuous)
    #expect(bench.toTrunk.count >= 2_000)
  }

  @Test func `with a twentieth lost both streams stay continuous and Opus repairs`() throws {
    var random = SplitMix64(seed: 9)
    var bench = try Bench()
    bench.connect()
    for frame in 0..<min(350, speech.count) {
      if random.next() % 20 == 0 {
        bench.trunkSequence &+= 1
        bench.trunkTimestamp &+= 160
      } else {
        bench.trunkSays(speech[frame])
      }
      if random.next() % 20 == 0 {
        bench.appSequence &+= 1
        bench.appTimestamp &+= 960
      } else {
        try bench.appSays(speech[frame])
      }
      bench.tick()
    }
    let statistics = bench.session.statistics()
    #expect(statistics.fromTrunk.lost > 5 && statistics.fromApp.lost > 5)
    #expect(statistics.fromApp.playout.repairedMilliseconds > 0)
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    #expect(bench.toTrunk.count >= min(350, speech.count) - 1)
  }

  /// Datagrams that are wrong in one respect, each with the count that must grow by one.
  private static let wrong: [(String, [UInt8], MediaDrop)] = {
    let header: [UInt8] = [0x80, 0, 0, 200, 0, 0, 0, 9, 0, 0, 0x12, 0x34]
    func with(_ first: UInt8, _ rest: [UInt8]) -> [UInt8] { [first] + header.dropFirst() + rest }
    return [
      ("nothing", [], .malformed), ("one octet", [0x80], .malformed), ("a cut header", Array(header.prefix(11)), .malformed),
      ("version 1", with(0x40, [1, 2, 3]), .malformed), ("15 CSRCs that are not there", with(0x8f, [1, 2, 3]), .malformed),
      ("an extension that is not there", with(0x90, []), .malformed),
      ("an extension longer than the packet", with(0x90, [0xbe, 0xde, 0xff, 0xff, 1, 2, 3, 4]), .malformed),
      ("an extension that ends one octet after it", with(0x90, [0xbe, 0xde, 0, 1, 1, 2, 3]), .malformed),
      ("padding of zero", with(0xa0, [1, 2, 3, 0]), .malformed),
      ("padding longer than the payload", with(0xa0, [1, 2, 3, 5]), .malformed),
      ("padding without payload", with(0xa0, []), .malformed), ("all padding", with(0xa0, [0, 0, 0, 4]), .empty),
      ("no payload", header, .empty), ("an extension and no payload", with(0x90, [0xbe, 0xde, 0, 1, 0, 0, 0, 0]), .empty),
      ("an unknown payload type", [0x80, 77] + header.dropFirst(2) + [1, 2, 3], .unknownPayloadType),
      ("a cut telephone-event", [0x80, 101] + header.dropFirst(2) + [1, 2, 3], .malformed),
      ("1501 octets", header + [UInt8](repeating: 0xff, count: 1_489), .malformed),
    ]
  }()

  @Test func `lying lengths, empty payloads and cut packets are counted by their kind, and the call goes on`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    for (name, bytes, reason) in Self.wrong {
      _ = bench.output.drainDrops(reason)
      // The number and source are the stream's own, so that nothing else is wrong with it.
      var packet = bytes
      if packet.count >= 12 {
        (packet[2], packet[3]) = (UInt8(bench.trunkSequence >> 8), UInt8(truncatingIfNeeded: bench.trunkSequence))
        bench.trunkSequence &+= 1
      }
      packet.withUnsafeBytes { bench.session.handleTrunk($0, from: Bench.trunkAddress, at: bench.now, into: &bench.output) }
      bench.collect()
      #expect(bench.output.drainDrops(reason) == 1, "\(name)")
      try bench.run(frames: 2, trunk: { tone($0) }, app: { tone($0) })
    }
    let heard = bench.heardByApp.count
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.heardByApp.count == heard + 50 * 160)
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    #expect(level(bench.heardByApp.suffix(4_000)) > 3_000 && level(bench.heardByTrunk.suffix(4_000)) > 3_000)
  }

  @Test func `empty, impossible and cut Opus payloads under a good tag are counted, and the call goes on`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 20, app: { tone($0) })
    // TOC bytes of code 3 with no frame count, with 0 and 63 frames, a 120 ms one, and lengths beyond the packet.
    let payloads: [[UInt8]] = [
      [0x0b], [0x0b, 0], [0x0b, 0x3f], [0xfb, 0x86], [0x0a, 0xff], [0x0a, 0xff, 0xff, 1], [0x0b, 0x81, 0xff],
    ]
    for payload in payloads {
      try bench.appSends(payload, payloadType: 111)
      bench.appTimestamp &+= 960
      bench.tick()
    }
    try bench.appSends([], payloadType: 111)
    #expect(bench.output.drainDrops(.empty) == 1)
    #expect(bench.output.drainDrops(.undecodable) + UInt64(bench.damaged) >= UInt64(payloads.count))
    try bench.run(frames: 60, app: { tone($0) })
    #expect(bench.toTrunk.isContinuous)
    #expect(level(bench.heardByTrunk.suffix(4_000)) > 3_000)
  }

  @Test(arguments: [AudioEncoding.opus, .pcmu])
  func `one SSRC as fast as a core can send is cut to the budget, and a stall's burst is not`(
    _ encoding: AudioEncoding
  ) throws {
    var bench = try Bench(app: encoding)
    bench.connect()
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    let before = (bench.session.statistics(), bench.toApp.count)
    _ = bench.output.drainDrops(.overBudget)
    for step in 0..<20_000 { bench.trunkSays(tone(step)) }
    let taken = bench.session.statistics().fromTrunk.packets - before.0.fromTrunk.packets
    #expect(taken <= UInt64(Limits.packetBurst))
    #expect(bench.output.drainDrops(.overBudget) == 20_000 - taken)
    #expect(bench.toApp.count - before.1 <= Limits.packetBurst)
    // The sender comes to its senses, and so does the call.
    try bench.run(frames: 100, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.toTrunk.isContinuous)
    #expect(level(bench.heardByApp.suffix(4_000)) > 3_000)
    // 3 s held back by the network and delivered at once.
    bench.now = bench.now + .seconds(3)
    _ = bench.output.drainDrops(.overBudget)
    for step in 0..<300 { bench.trunkSays(tone(step)) }
    #expect(bench.output.drainDrops(.overBudget) == 0)
  }

  @Test(arguments: [1, 2] as [UInt64])
  func `timestamps that jump and run backwards, and types that change, leave both streams continuous`(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var bench = try Bench()
    bench.connect()
    for step in 0..<400 {
      var jump: UInt32?
      switch step / 50 {
      case 1: jump = UInt32(truncatingIfNeeded: random.next())  // anywhere
      case 2: jump = bench.trunkTimestamp &- UInt32(step) &* 160  // backwards
      case 3: jump = 7  // stands still
      default: break
      }
      let type: UInt8 = step / 50 == 4 ? [0, 8, 13, 77, 101][step % 5] : 0
      let octets = (0..<160).map { UInt8(truncatingIfNeeded: step &* 31 &+ $0) | 0x70 }
      bench.trunkSends(octets, payloadType: type, timestamp: jump)
      bench.trunkTimestamp &+= 160
      try bench.appSays(tone(step))
      bench.tick()
    }
    let statistics = bench.session.statistics()
    #expect(statistics.fromTrunk.packets == 400)
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    try bench.run(frames: 60, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByApp.suffix(4_000)) > 3_000 && level(bench.heardByTrunk.suffix(4_000)) > 3_000)
  }
}

extension Bench {
  /// Payloads of the app that the decoder refused.
  var damaged: Int { Int(session.uplink.receiver.statistics.damaged) }
}
