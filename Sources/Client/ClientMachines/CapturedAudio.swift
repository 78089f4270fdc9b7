import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP

/// The audio of the microphone, until it is the payload of a packet. Pauses are not encoded, as in the gateway: packets of the
/// current pause are sent again. Opus only.
///
/// | state | input | → | gives |
/// |---|---|---|---|
/// | no encoder | `code` | same | nothing; 20 ms of a narrowband clock are skipped |
/// | any | `use` with another codec than before | an encoder of that codec, no packets of a pause | – |
/// | encoder | `use`, another band | the encoder continues in that band, no packets of a pause | – |
/// | encoder | `use`, the same | same | – |
/// | encoder | `code` of sound | same | its packet |
/// | encoder | `code` of a pause | packets of the pause are kept; after eight they are used | its packet, or a kept one |
/// | any | `mute`, a change | silence is coded in place of samples; no packets of a pause | – |
/// | any | `mute`, the same | same | – |
struct CapturedAudio: ~Copyable {
  private let band: AudioBand
  private var encoder: AudioEncoder?
  private var isMuted = false
  private var pause: CodedSilence?
  private var detector = SilenceDetector()
  private var peak = LevelPeak()
  /// Meter, before muting.
  private(set) var level = -127.0
  private let converter = BandConverter()
  // `Array.span` needs iOS 26; a ContiguousArray has it on every system.
  private var packet = ContiguousArray<UInt8>(repeating: 0, count: TrunklineAudioCodecs.Limits.opusFrameLength)
  /// 20 ms of a narrower band than the device's.
  private var narrowed = ContiguousArray<Int16>(repeating: 0, count: AudioBand.narrowband.samplesPerTick)
  /// The frame that a muted microphone sends.
  private let silentFrame = ContiguousArray<Int16>(repeating: 0, count: AudioBand.wideband.samplesPerTick)

  /// - Parameter band: of the samples that are given to `code`.
  init(band: AudioBand) { self.band = band }

  /// Codes in the band that the gateway requests, which knows the trunk.
  /// - Parameter isNew: the codec is another one.
  /// - Returns: false if the codec did not start.
  mutating func use(_ encoding: AudioEncoding, isNew: Bool, _ asked: OpusParameters) -> Bool {
    if isNew {
      encoder = nil
      pause = encoding == .opus ? CodedSilence() : nil
    }
    // As in the gateway: no copies until its reports show loss.
    var preferences = OpusPreferences(acceptsRepair: !asked.refusesInbandFEC, maximumBitrate: asked.maxAverageBitrate)
    preferences.maximumPlaybackRateHz = asked.maxPlaybackRateHz
    let band = min(self.band, encoding.band, encoding == .opus ? preferences.band : .wideband)
    guard let now = encoder?.band else {
      encoder = try? AudioEncoder(
        encoding: encoding, band: band, control: preferences.control(band), isConstantRate: asked.wantsConstantBitrate)
      return encoder != nil
    }
    guard now != band else { return true }
    // Packets kept for repetition are of the previous band.
    pause?.removeAll()
    do throws(OpusError) { try encoder?.setBand(band, control: preferences.control(band)) } catch { encoder = nil }
    return encoder != nil
  }

  mutating func mute(_ on: Bool) {
    // silence of the room differs from the silence of a muted microphone
    if isMuted != on { pause?.removeAll() }
    isMuted = on
  }

  /// The gateway's report about our stream: the encoder adapts to it.
  mutating func reported(lossFraction: Double, roundTripMilliseconds: Double?, at now: Instant) {
    encoder?.reported(lossFraction: lossFraction, roundTripMilliseconds: roundTripMilliseconds, at: now)
  }

  /// Codes 20 ms. HOT
  /// - Parameter body: gets the payload.
  /// - Returns: the units of the RTP clock that have no packet.
  mutating func code(_ samples: Span<Int16>, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
    level = peak.measure(samples)
    let target = encoder?.band ?? band
    if isMuted {
      let frame = silentFrame
      return encode(frame.span.extracting(first: target.samplesPerTick), body)
    }
    guard target < band else { return encode(samples, body) }
    var frame = narrowed
    narrowed = []  // otherwise the array is copied when it is written
    defer { narrowed = frame }
    var room = frame.mutableSpan
    converter.convert(samples, from: band, to: target, into: &room)
    return encode(frame.span, body)
  }

  private mutating func encode(_ samples: Span<Int16>, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
    let isPause = pause != nil && detector.isSilence(samples)
    if isPause, let kept = pause?.next() {
      body(kept)
      return 0
    }
    let isSilence = isPause || detector.isLingering
    if !isSilence { pause?.removeAll() }
    var coded = packet
    packet = []
    defer { packet = coded }
    var room = coded.mutableSpan
    let length = (try? encoder?.encode(samples, into: &room)) ?? 0
    guard length > 0 else { return encoder?.units(ofSamples: samples.count) ?? 160 }
    if isSilence { pause?.keep(coded.span.extracting(..<length)) }
    coded.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
    return 0
  }
}

extension BandConverter {
  /// - Parameter target: has room for all converted samples.
  func convert(_ samples: Span<Int16>, from: AudioBand, to: AudioBand, into target: inout MutableSpan<Int16>) {
    guard target.count >= BandConverter.count(samples.count, from: from, to: to) else { return }
    samples.withUnsafeBufferPointer { samples in
      target.withUnsafeMutableBufferPointer { target in
        guard let source = samples.baseAddress, let room = target.baseAddress else { return }
        convert(source, samples.count, from: from, to: to, into: room)
      }
    }
  }
}
