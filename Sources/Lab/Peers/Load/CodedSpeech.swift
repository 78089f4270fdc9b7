import SpeechScore
import TrunklineAudioCodecs
import TrunklineRTP

/// The two sentences, coded once in frames of 20 ms and replayed by every call.
struct CodedSpeech {
  let telephone: [Int16]
  let app: [Int16]
  /// G.711 µ-law of the telephone's sentence, or G.722 of it, whose upper band is silent.
  let telephoneFrames: [[UInt8]]
  /// Opus of the app's sentence, or G.711 µ-law if it is relayed.
  let appFrames: [[UInt8]]

  init(relayed: Bool = false, isWide: Bool = false) throws(OpusError) {
    let frames = DemoSpeech.telephone.count / 160
    telephone = Array(SpeechSource.telephone.prefix(frames * 160))
    telephoneFrames =
      isWide ? Self.g722(telephone) : (0..<frames).map { Array(DemoSpeech.telephone[$0 * 160..<($0 + 1) * 160]) }
    let speech = SpeechSource.app
    app = Array(speech.prefix(speech.count / 160 * 160))
    appFrames = relayed ? Self.pcmu(app) : try Self.opus(app, isWide ? .wideband : .narrowband)
  }

  private static func g722(_ samples: [Int16]) -> [[UInt8]] {
    var encoder = G722Encoder(sampleRateHz: 8_000)
    return stride(from: 0, to: samples.count, by: 160).map { start in
      let frame = Array(samples[start..<start + 160])
      var payload = [UInt8](repeating: 0, count: frame.count)
      var room = payload.mutableSpan
      _ = encoder.encode(frame.span, into: &room)
      return payload
    }
  }

  private static func pcmu(_ samples: [Int16]) -> [[UInt8]] {
    stride(from: 0, to: samples.count, by: 160).map { start in
      let frame = Array(samples[start..<start + 160])
      var payload = [UInt8](repeating: 0, count: frame.count)
      var room = payload.mutableSpan
      _ = G711.encode(frame.span, law: .mu, into: &room)
      return payload
    }
  }

  private static func opus(_ samples: [Int16], _ band: AudioBand) throws(OpusError) -> [[UInt8]] {
    var encoder = try OpusEncoder(sampleRateHz: band.sampleRateHz)
    var converter = BandInterpolator()
    var frames: [[UInt8]] = []
    var payload = [UInt8](repeating: 0, count: TrunklineAudioCodecs.Limits.opusFrameLength)
    for start in stride(from: 0, to: samples.count, by: 160) {
      let narrow = Array(samples[start..<start + 160])
      let frame = [Int16](unsafeUninitializedCapacity: 320) { out, count in
        guard let to = out.baseAddress else { return }
        narrow.withUnsafeBufferPointer { from in
          guard let from = from.baseAddress else { return }
          count = converter.convert(from, 160, from: .narrowband, to: band, into: to)
        }
      }
      var room = payload.mutableSpan
      let length = try encoder.encode(frame.span, into: &room)
      frames.append(Array(payload[..<length]))
    }
    return frames
  }
}
