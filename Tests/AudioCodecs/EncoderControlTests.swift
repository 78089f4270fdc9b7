import Testing
import TrunklineAudioCodecs
import TrunklineBytes

@Suite struct EncoderControlTests {
  private func after(_ reports: [Double], every seconds: Int = 5, roundTrip: (Int) -> Double? = { _ in nil }) -> EncoderControl {
    var control = EncoderControl()
    for (index, loss) in reports.enumerated() {
      control.reported(
        lossFraction: loss, roundTripMilliseconds: roundTrip(index),
        at: Instant(nanoseconds: Int64(index * seconds) * 1_000_000_000))
    }
    return control
  }

  @Test func `repair comes with the first report of 1 % and its bitrate, and goes after 10 s of clean ones`() {
    #expect(!after([]).repairs && after([]).bitrate == 24_000)
    #expect(!after([0, 0, 0.009]).repairs, "below 1 % nothing begins")
    #expect(after([0, 0.01]).repairs && after([0, 0.01]).bitrate == 40_000)
    #expect(after([0.01]).repairs, "also by the first of all reports")
    #expect(after([0.02, 0]).repairs && after([0.02, 0, 0], every: 4).repairs)
    #expect(!after([0.02, 0, 0]).repairs && after([0.02, 0, 0]).bitrate == 24_000)
    #expect(after([0.02, 0, 0.006, 0]).repairs, "a little loss starts the 10 s anew")
    #expect(after([0.02, 0, 0, 0.02]).repairs)
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
    let step = 40_000 / 6
    #expect(after([0.2]).bitrate == 40_000)
    #expect(after([0.2, 0.2]).bitrate == 40_000 - step)
    #expect(after(Array(repeating: 0.3, count: 40)).bitrate == 20_000, "below, libopus leaves the copies out")
    #expect(after(Array(repeating: 0.3, count: 40) + [0, 0, 0]).bitrate == 12_000)
    #expect(after([0.2, 0.2, 0.01, 0.01]).bitrate == 40_000 - step)
    #expect(after([0.2, 0.2, 0.01, 0.01, 0.01]).bitrate == 40_000)
    #expect(after([0.2, 0.2, 0, 0]).bitrate == 24_000 - 24_000 / 6, "without copies there is less to take off")
    #expect(after([0.06, 0.06, 0.06]).bitrate == 40_000, "random loss is no congestion")
    #expect(after([0, 0.06, 0.06], roundTrip: { $0 == 0 ? 50 : 300 }).bitrate == 40_000 - step, "loss with a longer queue is")
  }

  @Test func `a receiver's own limits hold with copies too`() {
    var control = EncoderControl(bitrate: 6_000, repairBitrate: 6_000)
    control.reported(lossFraction: 1, roundTripMilliseconds: nil, at: .zero)
    #expect(control.repairs && control.bitrate == 6_000)
    control = EncoderControl(mayRepair: false)
    control.reported(lossFraction: 0.5, roundTripMilliseconds: nil, at: .zero)
    #expect(!control.repairs && control.bitrate == 24_000)
  }

  @Test func `reports that lie move it within its bounds only`() {
    var random = SplitMix64(seed: 5)
    var control = EncoderControl()
    var now = Instant(nanoseconds: 100_000_000_000)
    for number in 0..<5_000 {
      // All lost, nothing lost for ever, or anything; clocks that jump, our own seconds back among them.
      let loss = number < 1_000 ? 1 : number < 2_000 ? 0 : Double(random.next() % 300) / 200
      let roundTrip = [nil, 0, -5, .infinity, .nan, 1e9, 20][Int(random.next() % 7)]
      control.reported(lossFraction: loss, roundTripMilliseconds: roundTrip, at: now)
      #expect((12_000...40_000).contains(control.bitrate))
      #expect((5...30).contains(control.expectedLossPercent))
      now = now + .milliseconds(number >= 2_000 ? Int64(random.next() % 10_000) - 4_000 : 20)
    }
    for second in 1...200 {
      control.reported(lossFraction: 0, roundTripMilliseconds: 20, at: now + .seconds(10_000 + second * 5))
    }
    #expect(control.bitrate == 24_000 && !control.repairs, "honest ones put it right")
  }

  @Test(arguments: [-1, .nan, .infinity]) func `nonsense changes nothing`(loss: Double) {
    #expect(after([loss]) == EncoderControl())
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
    #expect(try carried(&encoder, from: 0) == 0)
    encoder.reported(lossFraction: 0.02, roundTripMilliseconds: nil, at: .zero)
    _ = try carried(&encoder, from: 30)
    #expect(try carried(&encoder, from: 60) > 10)
    for second in stride(from: 5, through: 15, by: 5) {
      encoder.reported(lossFraction: 0, roundTripMilliseconds: nil, at: Instant(nanoseconds: Int64(second) * 1_000_000_000))
    }
    _ = try carried(&encoder, from: 90)
    #expect(try carried(&encoder, from: 120) == 0)
    encoder.reported(lossFraction: 0.1, roundTripMilliseconds: nil, at: Instant(nanoseconds: 40_000_000_000))
    let again = try carried(&encoder, from: 150)
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
