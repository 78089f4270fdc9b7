import Testing
import TrunklineBytes
import TrunklineRTP

@Suite struct ReceptionTests {
  func packet(_ sequence: Int, ssrc: UInt32 = 1, timestamp: Int? = nil) -> RTPHeader {
    RTPHeader(
      payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: sequence)),
      timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: timestamp ?? sequence * 160)), ssrc: SSRC(raw: ssrc))
  }
  // `#expect` cannot hold a mutating call.
  func expect(_ verdict: ReceptionVerdict, _ wanted: ReceptionVerdict, at location: SourceLocation = #_sourceLocation) {
    #expect(verdict == wanted, sourceLocation: location)
  }
  func expect(_ verdict: ReceptionVerdict, not unwanted: ReceptionVerdict, at location: SourceLocation = #_sourceLocation) {
    #expect(verdict != unwanted, sourceLocation: location)
  }
  func time(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

  @Test func `a source is valid from its second packet in order`() {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    let none = statistics.report(at: .zero)
    #expect(none == nil)
    expect(statistics.receive(packet(10), at: time(0)), .probation)
    expect(statistics.receive(packet(12), at: time(20)), .probation)
    expect(statistics.receive(packet(13), at: time(40)), .accepted)
    #expect(statistics.lost == 0)
  }

  @Test func `losses, the fraction since the last report and wraps are counted`() throws {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    for step in 0..<200 where step % 10 != 5 { _ = statistics.receive(packet(65_500 + step), at: time(step * 20)) }
    #expect(statistics.lost == 20)
    let firstBlock = statistics.report(at: time(4000))
    let first = try #require(firstBlock)
    #expect(first.cumulativeLost == 20 && first.fractionLost == 25)
    #expect(first.highestSequence == 65_500 + 199)
    #expect(first.jitter == 0)
    for step in 200..<300 { _ = statistics.receive(packet(65_500 + step), at: time(step * 20)) }
    let secondBlock = statistics.report(at: time(6000))
    let second = try #require(secondBlock)
    #expect(second.cumulativeLost == 20 && second.fractionLost == 0)
  }

  @Test func `a late packet is no loss and duplicates make the count negative`() throws {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    for sequence in [1, 2, 3, 5, 4, 6] { expect(statistics.receive(packet(sequence), at: time(sequence * 20)), not: .outOfRange) }
    #expect(statistics.lost == 0 && statistics.reordered == 1)
    for _ in 0..<3 { _ = statistics.receive(packet(6), at: time(120)) }
    let blockcumulativeLost = statistics.report(at: time(200))
    #expect(blockcumulativeLost?.cumulativeLost == -3)
    #expect(statistics.lost == 0)
  }

  @Test func `one wild number is ignored and two in a row restart the count`() {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    for sequence in 0..<10 { _ = statistics.receive(packet(sequence), at: time(sequence * 20)) }
    expect(statistics.receive(packet(30_000), at: time(200)), .outOfRange)
    expect(statistics.receive(packet(10), at: time(220)), .accepted)
    expect(statistics.receive(packet(30_000), at: time(240)), .outOfRange)
    expect(statistics.receive(packet(30_001), at: time(260)), .restarted)
    expect(statistics.receive(packet(30_002), at: time(280)), .accepted)
    #expect(statistics.lost == 0 && statistics.restarts == 1)
  }

  @Test func `a new source starts anew and keeps the losses of the old one`() throws {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    for sequence in [1, 2, 5, 6] { _ = statistics.receive(packet(sequence), at: time(sequence * 20)) }
    expect(statistics.receive(packet(900, ssrc: 2), at: time(140)), .restarted)
    expect(statistics.receive(packet(901, ssrc: 2), at: time(160)), .accepted)
    #expect(statistics.lost == 2 && statistics.source?.raw == 2)
    let blockcumulativeLost = statistics.report(at: time(200))
    #expect(blockcumulativeLost?.cumulativeLost == 0)
  }

  @Test func `jitter follows RFC 3550's recursion`() {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    var expected = 0.0
    for step in 0..<400 {
      let late = step % 2 == 0 ? 0 : 5
      _ = statistics.receive(packet(step), at: time(step * 20 + late))
      if step > 0 { expected += (40 - expected) / 16 }
    }
    #expect(abs(Double(statistics.jitter) - expected) <= 1)
    #expect(abs(statistics.jitterMilliseconds - 5) < 0.2)
    // A digit's held timestamp is not jitter.
    let before = statistics.jitter
    for step in 400..<420 { _ = statistics.receive(packet(step, timestamp: 64_000), at: time(step * 20), measuresJitter: false) }
    #expect(statistics.jitter == before)
  }

  @Test func `a report tells the delay since the last sender report`() throws {
    var statistics = ReceiverStatistics(clockRateHz: 8000)
    _ = statistics.receive(packet(1), at: time(0))
    statistics.senderReportReceived(NTPTimestamp(raw: 0x1111_2222_3333_4444), from: SSRC(raw: 99), at: time(100))
    let blocklastSenderReport = statistics.report(at: time(200))
    #expect(blocklastSenderReport?.lastSenderReport == 0)
    statistics.senderReportReceived(NTPTimestamp(raw: 0x1111_2222_3333_4444), from: SSRC(raw: 1), at: time(500))
    let reportBlock = statistics.report(at: time(1000))
    let report = try #require(reportBlock)
    #expect(report.lastSenderReport == 0x2222_3333 && report.delaySinceLastSenderReport == 32_768)
  }

  @Test func `any order of numbers, sources and times is counted without a trap`() {
    var random = SplitMix64(seed: 5)
    var statistics = ReceiverStatistics(clockRateHz: 48_000)
    for _ in 0..<50_000 {
      let header = packet(
        Int(random.next() % 70_000), ssrc: UInt32(random.next() % 50 == 0 ? 2 : 1),
        timestamp: Int(truncatingIfNeeded: random.next()))
      _ = statistics.receive(header, at: Instant(nanoseconds: Int64(truncatingIfNeeded: random.next())))
      if random.next() % 64 == 0 { _ = statistics.report(at: Instant(nanoseconds: Int64(truncatingIfNeeded: random.next()))) }
    }
    #expect(statistics.received == 50_000)
  }
}
