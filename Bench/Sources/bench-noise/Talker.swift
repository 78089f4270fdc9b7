import AudioCodecs
import BenchKit
import Bytes
import COpus
import DemoSpeech

/// A talker's encoder: ours, or libopus as an app runs it, in a mode of its own.
enum Talker: String, CaseIterable {
  case pcmu, pcma, g722, opus, opusWide, opusHybrid, opusCELT

  var encoding: AudioEncoding {
    switch self {
    case .pcmu: .pcmu
    case .pcma: .pcma
    case .g722: .g722
    default: .opus
    }
  }
  /// libopus's OPUS_SET_FORCE_MODE: 1000 SILK, 1001 hybrid, 1002 CELT.
  private var mode: (rate: Int, bitrate: Int32, forced: Int32)? {
    switch self {
    case .opusWide: (2, 20_000, 1000)
    case .opusHybrid: (6, 32_000, 1001)
    case .opusCELT: (6, 48_000, 1002)
    default: nil
    }
  }

  /// - Parameter setting: of libopus; ours has its own.
  func packets(_ speech: [Int16], _ setting: EncoderSetting = EncoderSetting()) throws -> [[UInt8]] {
    let ticks = stride(from: 0, to: speech.count - 159, by: 160)
    guard let mode else {
      var encoder = try AudioEncoder(encoding: encoding)
      return try ticks.map { start in
        var payload = [UInt8](repeating: 0, count: 1275)
        var room = payload.mutableSpan
        payload.removeLast(1275 - (try encoder.encode(speech.span.extracting(start..<start + 160), into: &room)))
        return payload
      }
    }
    var error: Int32 = 0
    guard let state = opus_encoder_create(Int32(8000 * mode.rate), 1, OPUS_APPLICATION_VOIP, &error), error == OPUS_OK else {
      throw BenchError(text: "opus_encoder_create: \(error)")
    }
    defer { opus_encoder_destroy(state) }
    let requests = [
      (OPUS_SET_BITRATE_REQUEST, mode.bitrate * setting.bitratePercent / 100), (11_002, mode.forced),
      (OPUS_SET_PACKET_LOSS_PERC_REQUEST, setting.expectedLoss), (OPUS_SET_COMPLEXITY_REQUEST, setting.complexity),
    ]
    for (request, value) in requests {
      guard copus_encoder_set(state, request, value) == OPUS_OK else { throw BenchError(text: "opus_encoder_ctl \(request)") }
    }
    return ticks.map { start in
      var frame: [Int16] = []
      for index in start..<start + 160 {
        let (a, b) = (Int(speech[max(0, index - 1)]), Int(speech[index]))
        for part in 1...mode.rate { frame.append(Int16(a + (b - a) * part / mode.rate)) }
      }
      var payload = [UInt8](repeating: 0, count: 1275)
      let count = opus_encode(state, frame, Int32(frame.count), &payload, 1275)
      return Array(payload.prefix(max(0, Int(count))))
    }
  }
}

/// How libopus is set, beside its mode.
struct EncoderSetting {
  var bitratePercent: Int32 = 100
  /// In percent. More of it makes CELT frames that stand alone.
  var expectedLoss: Int32 = 0
  var complexity: Int32 = 9

  /// `BITRATE,LOSS,COMPLEXITY`, all or the first of them.
  init(_ text: String = "") {
    let parts = text.split(separator: ",").compactMap { Int32($0) }
    if let first = parts.first { bitratePercent = first }
    if parts.count > 1 { expectedLoss = parts[1] }
    if parts.count > 2 { complexity = parts[2] }
  }
}

/// What is spoken: 8 kHz samples, about 8 s each.
enum Passage: String, CaseIterable {
  case telephone, app, quiet, paused, silent

  var samples: [Int16] {
    let octets = self == .app || self == .paused ? DemoSpeech.app : DemoSpeech.telephone
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    switch self {
    case .telephone, .app: return samples
    case .quiet: return samples.map { $0 / 12 }
    // Every other half second digital silence: the loudest sample of the source is 0.
    case .paused: return samples.indices.map { $0 / 4000 % 2 == 0 ? samples[$0] : 0 }
    // Speech at the beginning and the end only.
    case .silent: return samples.indices.map { $0 < 12_000 || $0 > 50_000 ? samples[$0] : 0 }
    }
  }
}
