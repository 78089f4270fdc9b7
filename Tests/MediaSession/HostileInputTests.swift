import Bytes
import RTP
import Testing

@testable import MediaSession

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
    #expect(statistics.fromApp.repairedByFECMilliseconds > 0)
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    #expect(bench.toTrunk.count >= min(350, speech.count) - 1)
  }
}
