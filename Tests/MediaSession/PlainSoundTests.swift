import Foundation
import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// A stream that arrived whole and in time is heard as a plain decoder decodes it, sample for sample, except for stretches that
/// the statistics count: the content of the audio is not judged.
@Suite struct PlainSoundTests {
  /// One bare decoder, without concealment or anything else of the receive path.
  private struct PlainDecoder: ~Copyable {
    let encoding: Encoding
    private var opus: OpusDecoder?
    private var g722: G722Decoder

    init(_ encoding: Encoding, _ band: AudioBand) throws {
      self.encoding = encoding
      opus = encoding == .opus ? try OpusDecoder(sampleRateHz: band.sampleRateHz) : nil
      g722 = G722Decoder(sampleRateHz: band.sampleRateHz)
    }

    mutating func decode(_ payload: [UInt8]) throws -> [Int16] {
      var samples = [Int16](repeating: 0, count: 1_920)
      var span = samples.mutableSpan
      let count =
        switch encoding {
        case .opus: try opus?.decode(payload.span, into: &span) ?? 0
        case .g722: g722.decode(payload.span, into: &span)
        case .pcmu: G711.decode(payload.span, law: .mu, into: &span)
        case .pcma: G711.decode(payload.span, law: .a, into: &span)
        case .l16: L16.decode(payload.span, into: &span)
        }
      return Array(samples[..<count])
    }
  }

  /// Plays `payloads`, each as long as it states and queued 5 ms before the tick in which it begins, and compares what is heard
  /// with the plain decoder.
  private func check(_ payloads: [[UInt8]], _ encoding: Encoding, _ what: Comment) throws {
    for band in AudioBand.allCases where band <= encoding.band { try check(payloads, encoding, band, "\(what) \(band)") }
  }

  private func check(_ payloads: [[UInt8]], _ encoding: Encoding, _ band: AudioBand, _ what: Comment) throws {
    var receiver = try AudioReceiver(encoding: encoding, band: band)
    var plain = try PlainDecoder(encoding, band)
    let decoder = try AudioDecoder(encoding: encoding)
    let units = Int(encoding.clockRateHz) / 50
    var (next, timestamp, said, heard): (Int, Int, [Int16], [Int16]) = (0, 0, [], [])
    var tick = 0
    while next < payloads.count || heard.count + band.samplesPerTick <= said.count {
      let now = Instant.zero + .milliseconds(tick * 20 + 8)
      while next < payloads.count {
        let payload = payloads[next]
        let arrival = Instant.zero + .milliseconds(timestamp / units * 20 + 3)
        guard arrival <= now else { break }
        let header = RTPHeader(
          payloadType: 96, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: next)),
          timestamp: RTPTimestamp(raw: UInt32(timestamp)), ssrc: SSRC(raw: 1))
        let insertion = receiver.insert(header, payload: payload.span, at: arrival)
        #expect(insertion == .stored, what)
        let duration = decoder.duration(payload.span)
        timestamp += try #require(duration)
        said += try plain.decode(payload)
        next += 1
      }
      var samples = [Int16](repeating: 0, count: band.samplesPerTick)
      var span = samples.mutableSpan
      _ = receiver.pull(into: &span, at: now)
      heard += samples
      tick += 1
    }
    let counts = receiver.statistics
    let isWhole = counts.concealedSamples + counts.repairedSamples + counts.noiseSamples + counts.damaged == 0
    #expect(isWhole && counts.removedSamplesForAcceleration + counts.insertedSamplesForDeceleration == 0, "\(what) \(counts)")
    // No `==` of the arrays in the expectation: it would print both.
    let difference = zip(heard, said).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    #expect(difference == nil && level(said) > 50, what)
  }

  private static func encode(_ samples: [Int16], _ encoding: Encoding) throws -> [[UInt8]] {
    var encoder = try AudioEncoder(encoding: encoding)
    return try stride(from: 0, to: samples.count - 159, by: 160).map { start in
      var payload = [UInt8](repeating: 0, count: 1_275)
      var span = payload.mutableSpan
      let tick = Array(samples[start..<start + 160])
      payload.removeLast(1_275 - (try encoder.encode(tick.span, into: &span)))
      return payload
    }
  }

  @Test(arguments: Encoding.allCases)
  func `speech that came whole and in time is heard sample for sample`(_ encoding: Encoding) throws {
    for octets in [DemoSpeech.telephone, DemoSpeech.app] {
      var samples = [Int16](repeating: 0, count: octets.count)
      var span = samples.mutableSpan
      _ = G711.decode(octets.span, law: .mu, into: &span)
      try check(Self.encode(samples, encoding), encoding, "\(encoding)")
    }
  }

  /// Sound that begins suddenly and at full strength.
  @Test(arguments: Encoding.allCases, Sound.allCases)
  func `music, claps and noise that came whole and in time are heard sample for sample`(
    _ encoding: Encoding, _ sound: Sound
  ) throws {
    try check(Self.encode(sound.samples, encoding), encoding, "\(encoding) \(sound)")
  }

  enum Sound: CaseIterable {
    case chords, drums, claps, whiteNoise, modem, square, clicks, constant

    /// Four seconds, with silence between the sounds.
    var samples: [Int16] {
      var random = SplitMix64(seed: 9)
      return (0..<32_000).map { index in
        let (beat, at) = (index / 4_000, Double(index % 4_000) / 8_000)
        let noise = Double(Int64(bitPattern: random.next()) >> 33) / Double(1 << 30)
        let isOn = beat % 2 == 1
        let value: Double =
          switch self {
          case .chords: isOn ? [262, 330, 392, 523].reduce(0) { $0 + 0.2 * sin(2 * .pi * $1 * at) } : 0
          case .drums: exp(-30 * at) * (0.6 * sin(2 * .pi * 80 * at) + 0.35 * noise)
          case .claps: at < 0.03 && isOn ? 0.9 * noise : 0
          case .whiteNoise: isOn ? 0.3 * noise : 0
          case .modem: isOn ? 0.45 * sin(2 * .pi * (index / 27 % 3 == 0 ? 1_200 : 2_200) * at) : 0
          case .square: isOn ? (at * 440).truncatingRemainder(dividingBy: 1) < 0.5 ? 0.99 : -0.99 : 0
          case .clicks: index % 997 == 0 ? 0.95 : 0.01 * noise
          case .constant: isOn ? 0.5 : 0.002 * noise
          }
        return Int16(max(-32_768, min(32_767, value * 32_767)))
      }
    }
  }

  /// Tests/Vectors/encoders/make.py, Tests/Vectors/voices/README.md.
  @Test(arguments: [
    "encoders/ffmpegCELT", "encoders/ffmpegStereo", "encoders/libopusAudio", "encoders/libopusHybrid40", "encoders/ffmpegG722",
    "voices/ruPCMU", "voices/ruG722", "voices/ruOpus",
  ])
  func `recorded voices and other encoders' speech are heard sample for sample`(_ name: String) throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Vectors/\(name).packets")
    let octets = [UInt8](try Data(contentsOf: file))
    let encodings: [String: Encoding] = ["opus": .opus, "g722": .g722, "pcmu": .pcmu]
    let encoding = try #require(encodings[String(decoding: octets.prefix(4), as: UTF8.self)])
    var (offset, payloads): (Int, [[UInt8]]) = (5, [])
    while offset < octets.count {
      let end = offset + 2 + Int(octets[offset]) << 8 + Int(octets[offset + 1])
      payloads.append(Array(octets[offset + 2..<end]))
      offset = end
    }
    #expect(payloads.count > 140)
    try check(payloads, encoding, "\(name)")
  }

  /// An app that changes from 20 to 60 ms, from SILK to CELT, from one channel to two or from one bitrate to another; a trunk
  /// whose packets have other lengths. No packet is refused because it differs from those before.
  @Test func `a stream whose packets change their form is heard sample for sample`() throws {
    let contents: [UInt8] = [0x08, 0x78, 0xf8, 0x0c, 0xfc, 0x18, 0x10, 0x48, 0x58]
    var random = SplitMix64(seed: 3)
    let opus = (0..<300).map { number in
      [contents[number / 7 % contents.count]] + (0..<40).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }
    try check(opus, .opus, "opus")
    for encoding in [Encoding.pcmu, .pcma, .g722, .l16] {
      let lengths = [160, 240, 160, 80, 320, 100, 161]
      let octets = (0..<300).map { number in
        (0..<lengths[number / 5 % lengths.count] * encoding.row.octetsPerUnit).map { _ in UInt8(truncatingIfNeeded: random.next())
        }
      }
      try check(octets, encoding, "\(encoding)")
    }
  }
}
