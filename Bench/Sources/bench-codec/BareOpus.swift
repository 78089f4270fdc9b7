import BenchKit
import CTrunklineOpus

/// libopus with the settings of `OpusEncoder`, called directly.
final class BareEncoder {
  private let state: OpaquePointer

  init(rate: Int, complexity: Int) throws {
    var error: Int32 = 0
    guard let state = opus_encoder_create(Int32(rate), 1, OPUS_APPLICATION_VOIP, &error), error == OPUS_OK else {
      throw BenchError(text: "opus_encoder_create: \(error)")
    }
    self.state = state
    let settings: [(Int32, Int32)] = [
      (OPUS_SET_BITRATE_REQUEST, 24_000), (OPUS_SET_COMPLEXITY_REQUEST, Int32(complexity)), (OPUS_SET_VBR_REQUEST, 1),
      (OPUS_SET_INBAND_FEC_REQUEST, 1), (OPUS_SET_PACKET_LOSS_PERC_REQUEST, 10), (OPUS_SET_DTX_REQUEST, 0),
      (OPUS_SET_SIGNAL_REQUEST, OPUS_SIGNAL_VOICE),
      (OPUS_SET_MAX_BANDWIDTH_REQUEST, rate > 8_000 ? OPUS_BANDWIDTH_WIDEBAND : OPUS_BANDWIDTH_NARROWBAND),
    ]
    for (request, value) in settings {
      guard copus_encoder_set(state, request, value) == OPUS_OK else { throw BenchError(text: "opus_encoder_ctl \(request)") }
    }
  }
  deinit { opus_encoder_destroy(state) }

  /// A frame as our encoder hands it to libopus: 0.25 dB louder, or as much as its peak bears.
  static func louder(_ frame: [Int16]) -> [Int16] {
    let peak = frame.reduce(Int32(1)) { max($0, abs(Int32($1))) }
    let factor = min(16_612, (32_767 << 14) / peak)
    return frame.map { Int16(truncatingIfNeeded: (Int32($0) &* factor &+ 8_192) >> 14) }
  }

  func encode(_ frame: [Int16], _ packet: inout [UInt8]) -> Int {
    Int(opus_encode(state, frame, Int32(frame.count), &packet, Int32(packet.count)))
  }
}

/// libopus at the 8 or 16 kHz API rate, called directly.
final class BareDecoder {
  private let state: OpaquePointer
  private let tick: Int32

  init(rate: Int = 8_000) throws {
    tick = Int32(rate / 50)
    var error: Int32 = 0
    guard let state = opus_decoder_create(Int32(rate), 1, &error), error == OPUS_OK else {
      throw BenchError(text: "opus_decoder_create: \(error)")
    }
    self.state = state
    // Ours makes up for 0.25 dB.
    guard copus_decoder_set(state, OPUS_SET_GAIN_REQUEST, 64) == OPUS_OK else { throw BenchError(text: "opus_decoder_ctl") }
  }
  deinit { opus_decoder_destroy(state) }

  func decode(_ packet: [UInt8], _ samples: inout [Int16]) -> Int {
    Int(opus_decode(state, packet, Int32(packet.count), &samples, Int32(samples.count), 0))
  }
  func conceal(_ samples: inout [Int16]) -> Int { Int(opus_decode(state, nil, 0, &samples, tick, 0)) }
}
