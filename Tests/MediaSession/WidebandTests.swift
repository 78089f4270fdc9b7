import Foundation
import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// A call whose both sides carry 16 kHz is wideband from decoder to encoder; one narrow side makes it narrow, and a change in between
/// is no click.
@Suite struct WidebandTests {
  /// A frame of a tone in `band`, continuous from frame to frame.
  private static func sound(_ frame: Int, _ hertz: [Double], _ band: AudioBand, amplitude: Double = 5_000) -> [Int16] {
    (0..<band.samplesPerTick).map { k in
      let time = Double(frame * band.samplesPerTick + k) / Double(band.sampleRateHz)
      return Int16(hertz.reduce(0) { $0 + amplitude * sin(2 * .pi * $1 * time) } / Double(hertz.count))
    }
  }

  /// The amplitude of one frequency.
  private static func amplitude(_ samples: some Collection<Int16>, _ hertz: Double, _ band: AudioBand) -> Double {
    var (re, im) = (0.0, 0.0)
    for (index, sample) in samples.enumerated() {
      let turn = 2 * .pi * hertz * Double(index) / Double(band.sampleRateHz)
      re += Double(sample) * cos(turn)
      im += Double(sample) * sin(turn)
    }
    return 2 * (re * re + im * im).squareRoot() / Double(max(1, samples.count))
  }

  private static func decibels(_ a: Double, over b: Double) -> Double { 20 * log10(max(a, 1e-3) / b) }

  @Test(arguments: [AudioEncoding.g722, .opus])
  func `what lies between 4 and 7 kHz arrives both ways`(_ trunk: AudioEncoding) throws {
    // Packets of 40 ms to the trunk, so that Opus is not relayed towards it.
    var bench = try Bench(trunk: trunk, packetTime: trunk == .opus ? 40 : 20, band: .wideband)
    bench.connect()
    let voice: [Double] = [500, 1_500, 4_600, 5_500]
    try bench.run(
      frames: 150, trunk: { Self.sound($0, voice, .wideband) }, app: { Self.sound($0, voice, .wideband) })
    for (name, heard) in [("app", bench.heardByApp), ("trunk", bench.heardByTrunk)] {
      #expect(heard.count > 120 * 320, "\(name)")
      let levels = voice.map { Self.amplitude(heard.suffix(16_000), $0, .wideband) }
      for (part, low, high) in [("below 4 kHz", levels[0], levels[1]), ("above 4 kHz", levels[2], levels[3])] {
        let level = Self.decibels((low * low / 2 + high * high / 2).squareRoot(), over: 1_250)
        #expect(abs(level) < 1, "\(name) hears what is \(part) with \(level) dB")
      }
    }
    #expect(bench.session.statistics().band == .wideband)
  }

  @Test(arguments: [AudioEncoding.pcmu, .pcma, .l16])
  func `nothing above 4 kHz comes to be in a narrow call`(_ trunk: AudioEncoding) throws {
    var bench = try Bench(trunk: trunk, band: .wideband)
    bench.connect()
    try bench.run(
      frames: 150, trunk: { Self.sound($0, [500, 1_500, 3_000], .narrowband) },
      app: { Self.sound($0, [500, 1_500, 5_500], .wideband) })
    #expect(bench.session.statistics().band == .narrowband)
    for hertz in [4_500.0, 5_000, 5_500, 6_500] {
      let level = Self.decibels(Self.amplitude(bench.heardByApp.suffix(16_000), hertz, .wideband), over: 1_667)
      #expect(level < -45, "\(hertz) Hz with \(level) dB")
    }
    // 5.5 kHz folded over would be 2.5.
    let folded = Self.decibels(Self.amplitude(bench.heardByTrunk.suffix(8_000), 2_500, .narrowband), over: 1_667)
    #expect(folded < -40 && Self.amplitude(bench.heardByTrunk.suffix(8_000), 1_500, .narrowband) > 1_300, "\(folded)")
  }

  @Test func `an app that plays 8 kHz makes the call narrow`() throws {
    var preferences = OpusPreferences()
    preferences.maximumPlaybackRateHz = 8_000
    var bench = try Bench(trunk: .g722, preferences: preferences, band: .wideband)
    bench.connect()
    try bench.run(frames: 100, trunk: { Self.sound($0, [1_000, 5_500], .wideband) })
    #expect(bench.session.statistics().band == .narrowband)
    #expect(Self.amplitude(bench.heardByApp.suffix(16_000), 5_500, .wideband) < 30)
    #expect(Self.amplitude(bench.heardByApp.suffix(16_000), 1_000, .wideband) > 2_000)
  }

  /// The largest step between neighbouring samples over that of the tone.
  private static func roughness(_ samples: some Collection<Int16>, _ hertz: Double, _ amplitude: Double, _ band: AudioBand)
    -> Double
  {
    let smooth = amplitude * 2 * .pi * hertz / Double(band.sampleRateHz)
    return zip(samples, samples.dropFirst()).map { abs(Double($1) - Double($0)) }.max().map { $0 / smooth } ?? 0
  }

  @Test func `a re-INVITE to PCMU and back is heard without a click by the app`() throws {
    var bench = try Bench(trunk: .g722, band: .wideband)
    bench.connect()
    let tone = { (frame: Int) in Self.sound(frame, [300], .wideband) }
    try bench.run(frames: 60, trunk: tone, app: tone)
    let before = bench.heardByApp.count
    var other = bench.trunk
    (other.encoding, other.payloadType) = (.pcmu, 0)
    bench.command(.setTrunk(Bench.id, other))
    #expect(bench.session.band == .narrowband)
    var coder = try AudioEncoder(encoding: .pcmu)
    for frame in 60..<120 {
      var octets = [UInt8](repeating: 0, count: 160)
      var room = octets.mutableSpan
      _ = try coder.encode(Self.sound(frame, [300], .narrowband).span, into: &room)
      bench.trunkSends(octets, payloadType: 0)
      bench.trunkTimestamp &+= 160
      try bench.appSays(tone(frame))
      bench.tick()
    }
    bench.command(.setTrunk(Bench.id, bench.trunk))
    #expect(bench.session.band == .wideband)
    try bench.run(frames: 60, trunk: { tone($0 + 120) }, app: { tone($0 + 120) })
    let heard = bench.heardByApp.dropFirst(before - 640)
    #expect(heard.count > 110 * 320)
    let roughness = Self.roughness(heard, 300, 5_000, .wideband)
    #expect(roughness < 2.5, "\(roughness)")
  }

  @Test func `the app's stream goes over to another band without a click`() throws {
    for encoding in [AudioEncoding.opus, .g722] {
      var receiver = try AudioReceiver(encoding: encoding, band: .wideband)
      var encoder = try AudioEncoder(encoding: encoding, band: .wideband)
      var steps: [Double] = []
      for frame in 0..<200 {
        let now = Instant.zero + .milliseconds(20 * frame)
        if frame == 80 { try receiver.setBand(.narrowband) }
        if frame == 140 { try receiver.setBand(.wideband) }
        var payload = [UInt8](repeating: 0, count: 1_275)
        var room = payload.mutableSpan
        payload.removeLast(1_275 - (try encoder.encode(Self.sound(frame, [300], .wideband).span, into: &room)))
        let header = RTPHeader(
          payloadType: 96, marker: false, sequence: SequenceNumber(raw: UInt16(frame)),
          timestamp: RTPTimestamp(raw: UInt32(frame) * encoding.clockRateHz / 50), ssrc: SSRC(raw: 1))
        _ = receiver.insert(header, payload: payload.span, at: now + .milliseconds(3))
        var samples = [Int16](repeating: 0, count: receiver.band.samplesPerTick)
        var span = samples.mutableSpan
        let result = receiver.pull(into: &span, at: now + .milliseconds(8))
        guard frame > 20 else { continue }
        #expect(result == .played)
        steps.append(Self.roughness(samples, 300, 5_000, receiver.band))
        // G.722's filter bank delays wideband by 0.7 ms, which the blended frame shows.
        #expect(abs(Self.decibels(Self.amplitude(samples, 300, receiver.band), over: 5_000)) < 2.5, "\(encoding) \(frame)")
      }
      #expect(steps.max() ?? 9 < 2, "\(encoding) \(steps.max() ?? 9)")
      #expect(receiver.statistics.concealedSamples == 0)
    }
  }

  @Test func `a loss in wideband is made up with the voice's height and no click`() throws {
    var receiver = try AudioReceiver(encoding: .g722, band: .wideband)
    var encoder = try AudioEncoder(encoding: .g722, band: .wideband)
    var heard: [Int16] = []
    for frame in 0..<150 {
      let now = Instant.zero + .milliseconds(20 * frame)
      var payload = [UInt8](repeating: 0, count: 160)
      var room = payload.mutableSpan
      _ = try encoder.encode(Self.sound(frame, [200, 400, 4_800], .wideband).span, into: &room)
      let header = RTPHeader(
        payloadType: 9, marker: false, sequence: SequenceNumber(raw: UInt16(frame)),
        timestamp: RTPTimestamp(raw: UInt32(frame) * 160), ssrc: SSRC(raw: 1))
      if frame % 10 != 7 { _ = receiver.insert(header, payload: payload.span, at: now + .milliseconds(3)) }
      var samples = [Int16](repeating: 0, count: 320)
      var span = samples.mutableSpan
      _ = receiver.pull(into: &span, at: now + .milliseconds(8))
      heard += samples
    }
    #expect(receiver.statistics.concealedSamples >= 8 * 160)
    for hertz in [200.0, 400, 4_800] {
      let level = Self.decibels(Self.amplitude(heard.suffix(32_000), hertz, .wideband), over: 1_667)
      #expect(level > -2 && level < 1, "\(hertz) Hz with \(level) dB")
    }
  }

  @Test func `digits, first words, hold audio and recordings are of the call's band`() throws {
    // The tone of a digit to a trunk without telephone-event, and one from it.
    var bench = try Bench(trunk: .g722, telephoneEvents: false, band: .wideband)
    bench.connect(keeps: true)
    try bench.run(frames: 40, trunk: { Self.sound($0, [300, 5_000], .wideband) })
    #expect(bench.toApp.isEmpty)
    bench.command(.playoutActive(Bench.id))
    try bench.run(frames: 60)
    let kept = bench.heardByApp.prefix(12_000)
    #expect(Self.amplitude(kept, 5_000, .wideband) > 1_500, "first words are kept in wideband")
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "5", durationMilliseconds: 400)))
    bench.heardByTrunk.removeAll()
    try bench.run(frames: 15)
    let digit = bench.heardByTrunk.dropFirst(640).prefix(3_200)
    #expect(Self.amplitude(digit, 770, .wideband) > 6_000 && Self.amplitude(digit, 1_336, .wideband) > 8_000)
    try bench.run(frames: 30, trunk: { $0 < 10 ? Self.sound($0, [852, 1_336], .wideband, amplitude: 12_000) : nil })
    let digits = bench.events.compactMap { event -> Character? in
      if case .digit(_, .trunkToApp, let digit, _) = event { digit } else { nil }
    }
    #expect(digits == ["8"])
  }

  @Test func `a hold clip sounds as high in either band`() throws {
    let clip = try #require(AudioClip(Recording((0..<8_000).map { Int16(6_000 * sin(2 * .pi * 500 * Double($0) / 8_000)) })))
    for (trunk, band) in [(AudioEncoding.g722, AudioBand.wideband), (.pcmu, .narrowband)] {
      var bench = try Bench(trunk: trunk, band: band) { $0.holdAudio = .clip(clip) }
      bench.connect()
      try bench.run(frames: 20, app: { Self.sound($0, [300], band) })
      bench.command(.hold(Bench.id, true))
      bench.heardByTrunk.removeAll()
      try bench.run(frames: 60)
      let heard = bench.heardByTrunk.suffix(band.sampleRateHz / 2)
      #expect(abs(Self.decibels(Self.amplitude(heard, 500, band), over: 6_000)) < 1, "\(trunk)")
    }
  }

  @Test func `a carrier that took G.722 and sends PCMU is counted, and heard once it sends what it took`() throws {
    var bench = try Bench(trunk: .g722, band: .wideband)
    bench.connect()
    for _ in 0..<50 {
      bench.trunkSends([UInt8](repeating: 0x55, count: 160), payloadType: 0)
      bench.trunkTimestamp &+= 160
      bench.tick()
    }
    #expect(bench.session.statistics().fromTrunk.dropped == 50)
    bench.heardByApp.removeAll()
    try bench.run(frames: 60, trunk: { Self.sound($0, [1_000, 5_000], .wideband) })
    #expect(Self.amplitude(bench.heardByApp.suffix(8_000), 5_000, .wideband) > 2_000)
  }

  @Test func `strange G.722 and Opus neither trap nor end the call`() throws {
    var random = SplitMix64(seed: 8)
    var bench = try Bench(trunk: .g722, band: .wideband)
    bench.connect()
    for frame in 0..<300 {
      let length = Int(random.next() % 700)
      bench.trunkSends((0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }, payloadType: 9)
      bench.trunkTimestamp &+= UInt32(length)
      // Bandwidth, frame length and channels change with each packet.
      let contents: [UInt8] = [0x08, 0x4c, 0x78, 0xf8, 0x0c, 0xfc, 0x18, 0x10, 0x48, 0x58, 0x60, 0x9c]
      let packet = [contents[frame % contents.count]] + (0..<40).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      try bench.appSends(packet, payloadType: 111)
      bench.appTimestamp &+= 960
      bench.tick()
    }
    let sent = (bench.toApp.count, bench.toTrunk.count)
    try bench.run(
      frames: 100, trunk: { Self.sound($0, [500, 5_000], .wideband) }, app: { Self.sound($0, [500, 5_000], .wideband) })
    #expect(bench.toApp.count - sent.0 > 90 && bench.toTrunk.count - sent.1 > 90)
    #expect(Self.amplitude(bench.heardByApp.suffix(8_000), 5_000, .wideband) > 2_000)
    #expect(Self.amplitude(bench.heardByTrunk.suffix(8_000), 5_000, .wideband) > 2_000)
  }
}
