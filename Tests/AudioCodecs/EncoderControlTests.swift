import AudioCodecs
import Bytes
import Testing

@Suite struct EncoderControlTests {
  private func after(_ reports: [Double], every seconds: Int = 5, roundTrip: (Int) -> Double? = { _ in nil }) -> EncoderControl {
    var control = EncoderControl(bitrate: 24_000)
    for (index, loss) in reports.enumerated() {
      control.reported(
        lossFraction: loss, roundTripMilliseconds: roundTrip(index),
        at: Instant(nanoseconds: Int64(index * seconds) * 1_000_000_000))
    }
    return control
  }

  @Test func `repair is on until half a minute of reports was clean, and comes back with the first lossy one`() {
    #expect(after([0, 0, 0, 0, 0, 0]).repairs)
    #expect(!after([0, 0, 0, 0, 0, 0, 0]).repairs)
    #expect(after([0, 0, 0, 0, 0, 0, 0, 0.02]).repairs)
    #expect(!after([0, 0, 0, 0, 0, 0, 0, 0.006]).repairs, "between the two thresholds nothing changes")
    #expect(after([0, 0, 0, 0.006, 0, 0, 0]).repairs, "a little loss starts the half minute anew")
  }

  @Test func `the expected loss rises at once and falls slowly, in steps`() {
    #expect(after([0.12]).expectedLossPercent == 15)
    let falling = (1...12).map { after([0.12] + Array(repeating: 0, count: $0)).expectedLossPercent }
    #expect(zip(falling, falling.dropFirst()).allSatisfy { $0 >= $1 })
    #expect(falling.first == 10 && falling.last == 5)
    #expect(Set(falling) == [10, 5], "two changes only: \(falling)")
    #expect(after([0.9]).expectedLossPercent == 30)
  }

  @Test func `the bitrate falls under lasting heavy loss and returns when it is over`() {
    #expect(after([0.2]).bitrate == 24_000)
    #expect(after([0.2, 0.2]).bitrate == 20_000)
    #expect(after(Array(repeating: 0.3, count: 40)).bitrate == 12_000)
    #expect(after([0.2, 0.2, 0, 0]).bitrate == 20_000)
    #expect(after([0.2, 0.2, 0, 0, 0]).bitrate == 24_000)
    #expect(after([0.06, 0.06, 0.06]).bitrate == 24_000, "random loss is no congestion")
    #expect(after([0, 0.06, 0.06], roundTrip: { $0 == 0 ? 50 : 300 }).bitrate == 20_000, "loss with a longer queue is")
  }

  @Test(arguments: [-1, .nan, .infinity]) func `nonsense changes nothing`(loss: Double) {
    #expect(after([loss]) == EncoderControl(bitrate: 24_000))
  }

  @Test func `packets carry repair as the reports ask for it`() throws {
    var encoder = try AudioEncoder(encoding: .opus)
    func carried(_ encoder: inout AudioEncoder, from start: Int) throws -> Int {
      var count = 0
      for frame in start..<start + 30 {
        var packet = [UInt8](repeating: 0, count: 400)
        var span = packet.mutableSpan
        let length = try encoder.encode(voice(160, from: frame * 160).span, into: &span)
        packet.removeLast(packet.count - length)
        if OpusPacket.carriesRepair(packet.span) { count += 1 }
      }
      return count
    }
    #expect(try carried(&encoder, from: 0) > 10)
    for second in stride(from: 0, through: 30, by: 5) {
      encoder.reported(lossFraction: 0, roundTripMilliseconds: nil, at: Instant(nanoseconds: Int64(second) * 1_000_000_000))
    }
    _ = try carried(&encoder, from: 30)
    #expect(try carried(&encoder, from: 60) == 0)
    encoder.reported(lossFraction: 0.1, roundTripMilliseconds: nil, at: Instant(nanoseconds: 40_000_000_000))
    let again = try carried(&encoder, from: 90)
    #expect(again > 10, "\(again) \(encoder.control)")
  }

  @Test func `the ceiling changes what the encoder does, and never raises it above what is configured`() throws {
    func packets(complexity: Int, ceiling: Int?) throws -> [[UInt8]] {
      var encoder = try AudioEncoder(encoding: .opus, complexity: complexity)
      if let ceiling { encoder.limitComplexity(to: ceiling) }
      return try (0..<20).map { frame in
        var packet = [UInt8](repeating: 0, count: 400)
        var span = packet.mutableSpan
        let length = try encoder.encode(voice(160, from: frame * 160).span, into: &span)
        return Array(packet[..<length])
      }
    }
    #expect(try packets(complexity: 8, ceiling: 1) == packets(complexity: 1, ceiling: nil))
    #expect(try packets(complexity: 1, ceiling: 10) == packets(complexity: 1, ceiling: nil))
    #expect(try packets(complexity: 8, ceiling: nil) != packets(complexity: 1, ceiling: nil))
  }
}
