import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP

@testable import TrunklineClientMachines

private func tone(_ band: AudioBand, _ amplitude: Int16 = 8_000) -> [Int16] {
  (0..<band.samplesPerTick).map { $0 / 8 % 2 == 0 ? amplitude : -amplitude }
}

@Suite struct AudioActivationTests {
  @Test func `audio runs from the first activation to the end, and the connect is returned once`() {
    var activation = AudioActivation()
    activation.close()
    #expect(!activation.isActive && !activation.isConnected)
    holds(!activation.activate(isConnected: false) && activation.isActive && !activation.isConnected)
    holds(activation.activate(isConnected: true) && !activation.activate(isConnected: true) && activation.isConnected)
    holds(!activation.activate(isConnected: false) && !activation.isConnected && activation.activate(isConnected: true))
    for _ in 0..<2 { activation.close() }
    #expect(!activation.isActive)
  }
}

@Suite struct CapturedAudioTests {
  private func captured(_ codec: AudioEncoding, band: AudioBand = .wideband) throws -> CapturedAudio {
    var captured = CapturedAudio(band: band)
    holds(captured.use(codec, isNew: true, try agreed(codec).opus))
    return captured
  }
  /// The payload of 20 ms, and the units that have none.
  private func code(_ captured: inout CapturedAudio, _ samples: [Int16]) -> (payload: [UInt8], skipped: Int) {
    var payload: [UInt8] = []
    let skipped = captured.code(samples.span) { payload = Array($0) }
    return (payload, skipped)
  }

  @Test func `without an encoder a frame is skipped, and its level is measured`() {
    var captured = CapturedAudio(band: .wideband)
    let before = captured.level
    captured.mute(true)
    captured.mute(false)
    captured.reported(lossFraction: 0.1, roundTripMilliseconds: 20, at: seconds(1))
    let (payload, skipped) = code(&captured, tone(.wideband))
    let after = captured.level
    #expect(payload.isEmpty && skipped == 160 && before == -127 && after > -30)
  }

  @Test func `a frame is coded in the codec's band`() throws {
    var captured = try captured(.pcmu)
    let (payload, skipped) = code(&captured, tone(.wideband))
    #expect(payload.count == 160 && skipped == 0 && Set(payload).count > 1)
    var decoder = try AudioDecoder(encoding: .pcmu)
    var samples = [Int16](repeating: 0, count: 160)
    var room = samples.mutableSpan
    _ = decoder.decode(payload.span, as: nil, into: &room)
    #expect((samples.max() ?? 0) > 4_000)
  }

  @Test func `muted, silence is coded, and the level stays that of the room`() throws {
    var captured = try captured(.pcmu)
    for _ in 0..<2 { captured.mute(true) }
    let (payload, _) = code(&captured, tone(.wideband))
    let level = captured.level
    #expect(payload.count == 160 && Set(payload).count == 1 && level > -30)
    captured.mute(false)
    let (loud, _) = code(&captured, tone(.wideband))
    #expect(Set(loud).count > 1)
  }

  @Test(arguments: ["speech", "mute", "codec", ""])
  func `packets of a pause are sent again, until speech, a mute or another codec`(end: String) throws {
    var captured = try captured(.opus)
    var seen: Set<[UInt8]> = []
    var random = SplitMix64(seed: 3)
    /// Whether a frame of noise, which differs from all others, gets the payload of an earlier one.
    func repeats(_ captured: inout CapturedAudio) -> Bool {
      let noise = (0..<AudioBand.wideband.samplesPerTick).map { _ in Int16(truncatingIfNeeded: Int64(random.next() % 9) - 4) }
      return !seen.insert(code(&captured, noise).payload).inserted
    }
    for _ in 0..<100 { _ = repeats(&captured) }
    let inPause = (0..<5).map { _ in repeats(&captured) }
    #expect(inPause == [true, true, true, true, true])
    switch end {
    case "speech": for _ in 0..<5 { _ = code(&captured, tone(.wideband)) }
    case "mute": for on in [true, false] { captured.mute(on) }
    case "codec": holds(captured.use(.opus, isNew: true, try agreed(.opus).opus))
    default: captured.mute(false)
    }
    let after = repeats(&captured)
    #expect(after == end.isEmpty)
  }

  @Test func `another codec begins a new encoder, the same one stays, and a narrower request is followed`() throws {
    var captured = try captured(.opus)
    var asked = try agreed(.opus).opus
    holds(captured.use(.opus, isNew: false, asked), "repeated")
    asked.maxPlaybackRateHz = 8_000
    holds(captured.use(.opus, isNew: false, asked))
    let (narrow, skipped) = code(&captured, tone(.wideband))
    #expect(!narrow.isEmpty && skipped == 0)
    holds(captured.use(.pcma, isNew: true, try agreed(.pcma).opus))
    let (coded, _) = code(&captured, tone(.wideband))
    #expect(coded.count == 160)
  }
}

@Suite struct PlayedAudioTests {
  /// The loudest of 20 ms.
  private func peak(_ played: inout PlayedAudio, _ band: AudioBand, at time: Double) -> Int16 {
    var samples = [Int16](repeating: 0, count: band.samplesPerTick)
    var room = samples.mutableSpan
    played.play(into: &room, at: seconds(time))
    return samples.max() ?? 0
  }
  private func payload() throws -> [UInt8] {
    var encoder = try AudioEncoder(
      encoding: .pcmu, band: .narrowband, control: OpusPreferences().control(.narrowband), isConstantRate: false)
    var packet = [UInt8](repeating: 0, count: 160)
    var room = packet.mutableSpan
    #expect(try encoder.encode(tone(.narrowband).span, into: &room) == 160)
    return packet
  }

  @Test func `without a decoder nothing is played, and packets have no effect`() throws {
    var played = PlayedAudio(band: .wideband)
    let packet = try payload()
    played.insert(header(0, 1), payload: packet.span, at: seconds(1))
    played.skip(header(0, 2), at: seconds(1))
    played.setPath(milliseconds: 50)
    let (isReady, loudest) = (played.isReady, peak(&played, .wideband, at: 2))
    let (level, concealed) = (played.level, played.concealedMilliseconds)
    #expect(!isReady && loudest == 0 && level == -127 && concealed == 0)
  }

  @Test(arguments: AudioBand.allCases) func `packets are played in the device's band`(band: AudioBand) throws {
    var played = PlayedAudio(band: band)
    holds(played.use(.pcmu))
    let packet = try payload()
    var loudest: Int16 = 0
    for tick in 0..<20 {
      let now = 1 + Double(tick) * 0.02
      played.insert(header(0, UInt16(tick), at: UInt32(tick) * 160), payload: packet.span, at: seconds(now))
      loudest = max(loudest, peak(&played, band, at: now))
    }
    let (level, isReady) = (played.level, played.isReady)
    #expect(loudest > 4_000 && level > -30 && isReady)
  }

  @Test func `the same codec keeps its buffer; another one begins an empty one`() throws {
    let packet = try payload()
    for isChanged in [false, true] {
      var played = PlayedAudio(band: .narrowband)
      holds(played.use(.pcmu))
      for tick in 0..<10 {
        played.insert(header(0, UInt16(tick), at: UInt32(tick) * 160), payload: packet.span, at: seconds(1 + Double(tick) * 0.02))
        _ = peak(&played, .narrowband, at: 1 + Double(tick) * 0.02)
      }
      if isChanged { holds(played.use(.pcma)) }
      holds(played.use(.pcmu) == isChanged, "repeated")
      let loudest = peak(&played, .narrowband, at: 1.2)
      #expect((loudest == 0) == isChanged)
    }
  }
}

@Suite struct SilenceWatchTests {
  /// The phases that begin at these times.
  private func phases(_ watch: inout SilenceWatch, _ times: [Double]) -> [SilenceWatch.Phase?] {
    times.map { watch.due(at: seconds($0)) }
  }

  @Test func `a silent path is probed, then reported, each once`() {
    var watch = SilenceWatch()
    watch.connected(at: seconds(10))
    #expect(watch.deadline == seconds(11.5))
    holds(phases(&watch, [11.4, 11.5, 11.5, 13.9, 14, 14, 99]) == [nil, .probing, nil, nil, .reported, nil, nil])
    #expect(watch.deadline == nil)
  }

  @Test func `an interrupted stream is reported sooner than a pause`() {
    for (packets, end) in [(Limits.streamPackets, 12.5), (Limits.streamPackets - 1, 14)] {
      var watch = SilenceWatch()
      for _ in 0..<packets { _ = watch.received(at: seconds(10), isAudio: true) }
      holds(watch.due(at: seconds(11.5)) == .probing && watch.deadline == seconds(end))
    }
    var watch = SilenceWatch()
    for _ in 0..<20 { _ = watch.received(at: seconds(10), isAudio: true) }
    _ = watch.received(at: seconds(10.5), isAudio: false)
    holds(watch.due(at: seconds(12)) == .probing && watch.deadline == seconds(14.5), "reports came after the stream")
  }

  @Test func `a packet ends each phase and returns it, and the next silence begins then`() {
    var watch = SilenceWatch()
    holds(watch.received(at: seconds(1), isAudio: true) == .receiving)
    holds(watch.due(at: seconds(2.5)) == .probing && watch.received(at: seconds(3), isAudio: false) == .probing)
    holds(watch.received(at: seconds(3), isAudio: false) == .receiving && watch.deadline == seconds(4.5))
    holds(phases(&watch, [4.5, 7]) == [.probing, .reported] && watch.received(at: seconds(8), isAudio: false) == .reported)
    holds(watch.deadline == seconds(9.5))
  }
}
