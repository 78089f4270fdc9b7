import Testing
import TrunklineBytes
import TrunklineRTP

@Suite struct LossPatternTests {
  /// The pattern of `count` packets from `first` on, of which `lost` did not come.
  private func pattern(_ count: Int, from first: UInt16 = 65_500, lost: Set<Int> = [], late: Set<Int> = []) -> LossPattern {
    var pattern = LossPattern()
    for index in 0..<count where !lost.contains(index) {
      let sequence = SequenceNumber(raw: first &+ UInt16(truncatingIfNeeded: index))
      pattern.received(sequence)
      if late.contains(index) { pattern.discarded(sequence) }
    }
    return pattern.settled
  }

  @Test func `without loss there is one gap and no burst`() {
    let clean = pattern(500)
    #expect(clean.expected == 500 && clean.lost == 0 && clean.burstCount == 0)
    #expect(clean.burstDensity == 0 && clean.gapDensity == 0 && clean.burstRatio == 1 && clean.gapPacketsMean == 500)
  }

  @Test func `single losses sixteen good packets apart belong to the gap`() {
    let sparse = pattern(500, lost: Set(stride(from: 20, to: 480, by: 17)))
    #expect(sparse.lost == 28 && sparse.burstCount == 0)
    #expect(sparse.gapDensity == 28.0 / 500 && sparse.burstDensity == 0)
    let dense = pattern(500, lost: Set(stride(from: 20, to: 480, by: 16)))
    #expect(dense.burstCount == 1)
    #expect(dense.burstPacketsMean == 28 * 16 + 1)
    #expect(abs(dense.burstDensity - 29.0 / 449) < 1e-9)
  }

  @Test func `a burst is counted from its first loss to its last`() {
    // Four of six lost, then far away a single one.
    let spread = pattern(400, lost: [100, 101, 103, 105, 300])
    #expect(spread.burstCount == 1)
    #expect(spread.burstPacketsMean == 6 && abs(spread.burstDensity - 4.0 / 6) < 1e-9)
    #expect(abs(spread.gapDensity - 1.0 / 394) < 1e-9)
    #expect(spread.gapPacketsMean == 197)
  }

  @Test func `discards weigh like losses`() {
    let late = pattern(400, lost: [100], late: [101, 102])
    #expect(late.lost == 1 && late.discards == 2 && late.burstCount == 1 && late.burstPacketsMean == 3)
    #expect(late.burstDensity == 1)
  }

  @Test func `reordering within the horizon is no loss, and duplicates change nothing`() {
    var pattern = LossPattern()
    for index in stride(from: 0, to: 400, by: 2) {
      pattern.received(SequenceNumber(raw: UInt16(index + 1)))
      pattern.received(SequenceNumber(raw: UInt16(index)))
      pattern.received(SequenceNumber(raw: UInt16(index)))
    }
    // The first number came after the second: it lies before the beginning.
    #expect(pattern.settled.expected == 399 && pattern.settled.lost == 0)
  }

  @Test func `a restart judges what was pending and counts on`() {
    var pattern = LossPattern()
    for index in 0..<50 where index != 20 { pattern.received(SequenceNumber(raw: UInt16(index))) }
    pattern.restart()
    for index in 0..<50 { pattern.received(SequenceNumber(raw: UInt16(40_000 + index))) }
    #expect(pattern.settled.expected == 100 && pattern.settled.lost == 1)
  }

  @Test func `the burst ratio is one for random loss and grows with runs`() {
    var random = SplitMix64(seed: 4)
    let scattered = pattern(20_000, lost: Set((0..<20_000).filter { _ in random.next() % 100 < 5 }))
    #expect(abs(scattered.burstRatio - 1) < 0.1, "\(scattered.burstRatio)")
    let runs = pattern(20_000, lost: Set(stride(from: 50, to: 19_000, by: 100).flatMap { $0..<($0 + 5) }))
    #expect(abs(runs.burstRatio - 5 * (1 - runs.lossFraction)) < 0.01)
    #expect(runs.burstDensity == 1 && runs.burstPacketsMean == 5)
  }

  @Test func `a jump as large as loss may be is counted, and no more work than that`() {
    var pattern = LossPattern()
    pattern.received(SequenceNumber(raw: 0))
    pattern.received(SequenceNumber(raw: 2_999))
    #expect(pattern.settled.expected == 3_000 && pattern.settled.lost == 2_998)
    pattern.received(SequenceNumber(raw: 2_999 + 20_000))
    #expect(pattern.settled.expected <= 6_000)
  }

  @Test func `metrics on the wire stand where RFC 3611 puts them`() throws {
    var metrics = VoIPMetrics()
    (metrics.lossRate, metrics.discardRate, metrics.burstDensity, metrics.gapDensity) = (0.05, 0.01, 0.5, 0.002)
    (metrics.burstMilliseconds, metrics.gapMilliseconds) = (120, 70_000)
    (metrics.roundTripMilliseconds, metrics.endSystemMilliseconds) = (150, 62.4)
    (metrics.signalLevel, metrics.noiseLevel) = (-19.6, -62)
    (metrics.rating, metrics.listeningScore, metrics.conversationScore) = (81.6, 4.14, 4.06)
    (metrics.bufferNominalMilliseconds, metrics.bufferMaximumMilliseconds) = (40, 60)
    metrics.bufferAbsoluteMaximumMilliseconds = 1_280
    var datagram = [UInt8](repeating: 0xee, count: 100)
    var span = datagram.mutableSpan
    var writer = RTCPWriter()
    let fits = writer.voipMetrics(metrics, from: SSRC(raw: 0x0102_0304), about: SSRC(raw: 0x0506_0708), into: &span)
    #expect(fits && writer.count == 44)
    #expect(
      Array(datagram[..<44]) == [
        0x80, 207, 0, 10, 1, 2, 3, 4, 7, 0, 0, 8, 5, 6, 7, 8, 12, 2, 128, 0, 0, 120, 0xff, 0xff, 0, 150, 0, 62, 0xec, 0xc2, 127,
        16, 82,
        127, 41, 41, 0xb0, 0, 0, 40, 0, 60, 5, 0,
      ])
    var reader = RTCPReader()
    datagram = [0x80, 201, 0, 1, 1, 2, 3, 4] + datagram[..<44]
    _ = try reader.next(in: datagram.span)
    #expect(try reader.next(in: datagram.span) == .other(type: 207))
    #expect(try reader.next(in: datagram.span) == nil)
  }

  @Test func `what is unknown is said to be`() {
    var datagram = [UInt8](repeating: 0, count: 44)
    var span = datagram.mutableSpan
    var writer = RTCPWriter()
    let fits = writer.voipMetrics(VoIPMetrics(), from: SSRC(raw: 1), about: SSRC(raw: 2), into: &span)
    #expect(fits)
    #expect(Array(datagram[28..<36]) == [127, 127, 127, 16, 127, 127, 127, 127])
    var small = [UInt8](repeating: 0, count: 43)
    var short = small.mutableSpan
    var other = RTCPWriter()
    let fitsShort = other.voipMetrics(VoIPMetrics(), from: SSRC(raw: 1), about: SSRC(raw: 2), into: &short)
    #expect(!fitsShort && other.count == 0)
  }
}
