import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Reports of each leg: to the trunk by RTCP XR, to control in the statistics.
@Suite struct LegReportTests {
  /// The first XR packet's block in a compound datagram.
  private func metrics(_ datagram: [UInt8]) -> [UInt8]? {
    var offset = 0
    while offset + 4 <= datagram.count {
      let length = 4 + 4 * (Int(datagram[offset + 2]) << 8 | Int(datagram[offset + 3]))
      if datagram[offset + 1] == 207 { return Array(datagram[offset..<offset + length]) }
      offset += length
    }
    return nil
  }
  private func lossy(_ bench: inout Bench, frames: Int = 600) throws {
    for frame in 0..<frames {
      // Every fifth second has a burst: four of six packets lost.
      if [100, 101, 103, 105].contains(frame % 250) {
        bench.trunkSequence &+= 1
        bench.trunkTimestamp &+= 160
      } else {
        bench.trunkSays(speech[frame % speech.count])
      }
      bench.tick()
    }
  }

  @Test func `a trunk that asks gets VoIP metrics of what it sent`() throws {
    var bench = try Bench(adjust: { $0.wantsVoIPMetrics = true })
    bench.connect()
    try lossy(&bench)
    let block = try #require(bench.toTrunkControl.compactMap { metrics($0) }.last)
    #expect(block.count == 44 && Array(block[8..<12]) == [7, 0, 0, 8])
    #expect(Array(block[12..<16]) == [0, 0, 0x12, 0x34], "about the trunk's SSRC")
    #expect(block[16] >= 3 && block[16] <= 6, "loss of about 1.6 % in 1/256: \(block[16])")
    #expect(block[18] == UInt8(256 * 4 / 6), "burst density")
    #expect(UInt16(block[20]) << 8 | UInt16(block[21]) == 120, "a burst is six packets of 20 ms")
    #expect(block[31] == 16)
    #expect(block[34] > 30 && block[34] < 45 && block[35] > 30 && block[35] < 45, "scores \(block[34]) \(block[35])")
    #expect(
      Int8(bitPattern: block[28]) < 0 && Int8(bitPattern: block[28]) > -35, "speech level \(Int8(bitPattern: block[28])) dBm0")
  }

  @Test func `what play-out decided is in the statistics`() throws {
    var bench = try Bench()
    bench.connect()
    try lossy(&bench)
    bench.trunkSends([UInt8](repeating: 1, count: 1_000), payloadType: bench.trunk.payloadType)
    bench.tick()
    bench.command(.close(Bench.id))
    let closed = bench.events.compactMap { event in if case .closed(_, let statistics) = event { statistics } else { nil } }
    let counts = try #require(closed.last).fromTrunk.playout
    #expect(counts.fetched > 500 && counts.missing == 8 && counts.damaged == 1)
    #expect(counts.waits > 0)
  }

  @Test func `a trunk that does not ask gets none`() throws {
    var bench = try Bench()
    bench.connect()
    try lossy(&bench)
    #expect(!bench.toTrunkControl.isEmpty && bench.toTrunkControl.allSatisfy { metrics($0) == nil })
  }

  @Test func `an app gets a report of losses each second, a trunk each five seconds`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 1_000, trunk: { tone($0) }, app: { tone($0) })
    #expect((14...30).contains(bench.toAppControl.count), "\(bench.toAppControl.count) reports in 20 s")
    #expect((3...7).contains(bench.toTrunkControl.count), "\(bench.toTrunkControl.count) reports in 20 s")
  }

  @Test func `reports go where the trunk said`() throws {
    let control = SocketAddress(IPAddress(192, 0, 2, 77), 5_555)
    var bench = try Bench(adjust: { $0.remoteControl = control })
    bench.connect()
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    for _ in 0..<400 {
      for direction in AudioDirection.allCases { bench.session.tick(direction, at: bench.now, into: &bench.output) }
      for index in 0..<bench.output.packets.count where bench.output.packets[entry: index].route == Bench.controlRoute {
        #expect(bench.output.packets[entry: index].destination == control)
      }
      bench.collect()
      bench.now = bench.now + .milliseconds(20)
    }
    #expect(!bench.toTrunkControl.isEmpty)
  }

  @Test func `statistics of a leg report loss, bursts, level and score`() throws {
    var bench = try Bench()
    bench.connect()
    try lossy(&bench)
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.lost == 8)
    #expect(abs(stream.burstDensity - 4.0 / 6) < 1e-6 && stream.burstMilliseconds == 120)
    #expect(stream.burstRatio > 1.1 && stream.gapDensity == 0)
    let level = try #require(stream.speechLevel)
    #expect(level > -35 && level < -15)
    #expect(try #require(stream.noiseLevel) < level - 15)
    let score = try #require(stream.meanOpinionScore)
    #expect(score > 3 && score < 4.4)
    #expect(stream.playout.concealedMilliseconds >= 140)
  }

  @Test func `bursts cost more than the same loss spread out`() throws {
    func score(_ lost: (Int) -> Bool) throws -> Double {
      var bench = try Bench()
      bench.connect()
      for frame in 0..<600 {
        if lost(frame) {
          bench.trunkSequence &+= 1
          bench.trunkTimestamp &+= 160
        } else {
          bench.trunkSays(speech[frame % speech.count])
        }
        bench.tick()
      }
      return try #require(bench.session.statistics().fromTrunk.meanOpinionScore)
    }
    let spread = try score { $0 % 20 == 10 }
    let bursts = try score { $0 % 100 >= 50 && $0 % 100 < 55 }
    #expect(bursts < spread - 0.05, "\(bursts) \(spread)")
  }

  @Test func `a relayed call has levels and bursts as well`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    try lossy(&bench)
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.burstDensity > 0.6)
    #expect(try #require(stream.speechLevel) > -40)
  }

  @Test(arguments: [1, 4, 16])
  func `levels between the laws are kept within a tenth of a decibel`(divisor: Int16) throws {
    var bench = try Bench(app: .pcmu, trunk: .pcma)
    bench.connect()
    let words = speech.prefix(500).map { $0.map { $0 / divisor } }
    try bench.run(frames: words.count, trunk: { words[$0] }, app: { words[$0] })
    try bench.run(frames: 5, trunk: { _ in quiet }, app: { _ in quiet })
    for (law, heard) in [(G711.Law.a, bench.heardByApp), (.mu, bench.heardByTrunk)] {
      let decibels = 20 * log10(level(heard) / level(said(words, law)))
      #expect(abs(decibels) < 0.1, "\(law): \(decibels)")
    }
  }

  /// The words after the sender's own law, and the pause after them.
  private func said(_ words: [[Int16]], _ law: G711.Law) -> [Int16] {
    (words + Array(repeating: quiet, count: 5)).flatMap { frame in
      var octets = [UInt8](repeating: 0, count: 160)
      var coded = octets.mutableSpan
      _ = G711.encode(frame.span, law: law, into: &coded)
      var samples = frame
      var target = samples.mutableSpan
      _ = G711.decode(octets.span, law: law, into: &target)
      return samples
    }
  }
}
