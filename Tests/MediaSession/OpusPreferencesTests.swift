import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

/// What an app may ask of the Opus that it gets (RFC 7587 §6.1), however odd, and reports that lie.
@Suite struct OpusPreferencesTests {
  /// Bytes of payload in a second of speech.
  private func bytes(_ preferences: OpusPreferences, loss: Double? = nil) throws -> Double {
    var encoder = try AudioEncoder(encoding: .opus, control: preferences.control(.narrowband))
    if let loss { encoder.reported(lossFraction: loss, roundTripMilliseconds: nil, at: .zero) }
    var total = 0
    for frame in speech.prefix(300) {
      var packet = [UInt8](repeating: 0, count: 1_275)
      var span = packet.mutableSpan
      total += try encoder.encode(frame.span, into: &span)
    }
    return Double(total) / 6
  }

  @Test func `no app gets more than it wants, with copies or without`() throws {
    #expect(try bytes(OpusPreferences()) < 3_300)
    #expect(try bytes(OpusPreferences(), loss: 0.05) > 3_300)
    for bitrate in [6_000, 12_000, 28_000] {
      for loss in [nil, 0.05, 1] {
        let bytes = try bytes(OpusPreferences(maximumBitrate: bitrate), loss: loss)
        #expect(bytes < Double(max(bitrate, 8_000)) / 8 * 1.15, "\(bitrate) \(String(describing: loss)): \(bytes)")
      }
    }
    for bitrate in [-1, 0, 1, .max] {
      let control = OpusPreferences(maximumBitrate: bitrate).control(.narrowband)
      #expect((6_000...24_000).contains(control.bitrate))
    }
  }

  @Test func `an app without use for FEC never gets it`() {
    var control = OpusPreferences(acceptsRepair: false).control(.narrowband)
    for second in 0..<20 { control.reported(lossFraction: 0.2, roundTripMilliseconds: nil, at: .zero + .seconds(second)) }
    #expect(!control.repairs)
  }

  @Test func `a session begins without copies`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 200, trunk: { speech[$0] })
    #expect(bench.toApp.allSatisfy { !OpusPacket.carriesRepair($0.payload.span) })
  }

  /// Speech, then two seconds of silence, then speech: as an app hears it that asks for this.
  private func received(_ preferences: OpusPreferences) throws -> [Bench.Packet] {
    var bench = try Bench(preferences: preferences)
    bench.connect()
    try bench.run(frames: 400, trunk: { (150..<250).contains($0) ? quiet : speech[$0 % speech.count] })
    #expect(bench.toApp.isContinuous)
    // lost nothing of the speech
    #expect(level(bench.heardByApp) > 0.8 * level(speech.prefix(400).joined()) * 0.75)
    return bench.toApp
  }

  @Test func `whatever an app answers, it hears the speech`() throws {
    for preferences in [
      OpusPreferences(), OpusPreferences(acceptsPauses: true), OpusPreferences(acceptsRepair: false),
      OpusPreferences(maximumBitrate: 6_000),
      OpusPreferences(isConstantRate: true), OpusPreferences(acceptsPauses: true, maximumBitrate: 6_000, isConstantRate: true),
    ] {
      let packets = try received(preferences)
      #expect(preferences.acceptsPauses ? packets.count < 380 : packets.count > 390, "\(preferences): \(packets.count)")
      let bytes = packets.reduce(0) { $0 + $1.payload.count }
      // 8 s; RFC 7587's 6000 is below what libopus makes of 20 ms of speech
      if preferences.maximumBitrate != nil { #expect(bytes < 8 * 8_000 / 8 * 115 / 100, "\(preferences): \(bytes)") }
    }
  }

  @Test func `cbr=1 makes all packets one length, in pauses too, with copies or without`() throws {
    let packets = try received(OpusPreferences(isConstantRate: true))
    #expect(Set(packets.map(\.payload.count)).count == 1, "\(Set(packets.map(\.payload.count)))")
    #expect(try Set(received(OpusPreferences()).map(\.payload.count)).count > 10)
    var encoder = try AudioEncoder(encoding: .opus, control: OpusPreferences().control(.narrowband), isConstantRate: true)
    encoder.reported(lossFraction: 0.05, roundTripMilliseconds: nil, at: .zero)
    var lengths: Set<Int> = []
    for frame in speech.prefix(200) {
      var packet = [UInt8](repeating: 0, count: 1_275)
      var span = packet.mutableSpan
      lengths.insert(try encoder.encode(frame.span, into: &span))
    }
    #expect(lengths.count == 1, "\(lengths)")
  }

  /// Receiver reports as the app's SRTCP: a fraction lost, and times that no clock has.
  @Test func `reports that lie move no call: 100 % for ever, 0 for ever, time going back`() throws {
    for lie in 0..<4 {
      var bench = try Bench()
      bench.connect()
      var random = SplitMix64(seed: UInt64(lie))
      for step in 0..<40 {
        try bench.run(frames: 20, trunk: { speech[(step * 20 + $0) % speech.count] })
        let fractions: [UInt8] = [255, 0, UInt8(step % 2 * 255), 13]
        let lost: Int32 = lie == 3 ? .min : Int32(truncatingIfNeeded: random.next())
        let senderReport: UInt32 = lie == 3 ? UInt32(truncatingIfNeeded: random.next()) : UInt32(1_000_000 - step)
        let delay: UInt32 = lie == 3 ? .max : UInt32(step)
        let block = ReportBlock(
          source: SSRC(raw: 0xabcd_0001), fractionLost: fractions[lie], cumulativeLost: lost,
          highestSequence: UInt32(1_000_000 - step * 1_000), jitter: .max, lastSenderReport: senderReport,
          delaySinceLastSenderReport: delay)
        try bench.appReports(block)
      }
      #expect(bench.toApp.isContinuous && bench.toApp.count > 780, "\(bench.toApp.count)")
      #expect(level(bench.heardByApp) > 0.6 * level(speech.prefix(800).joined()))
      let late = bench.toApp.suffix(100)
      let octets: Int = late.reduce(0) { $0 + $1.payload.count }
      let limit: Int = 2 * 40_000 / 8 * 115 / 100
      #expect(octets < limit)
      let repairs = late.contains { OpusPacket.carriesRepair($0.payload.span) }
      #expect(repairs == (lie != 1), "\(lie)")
    }
  }
}
