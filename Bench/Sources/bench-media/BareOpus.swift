import BenchKit
import CTrunklineOpus
import TrunklineAudioCodecs
import TrunklineRTP

/// libopus alone: each 20 ms one frame is encoded and one packet decoded at the band's API rate, with the settings of our
/// session.
struct BareOpus {
  var fromTrunk: [[UInt8]]
  var fromApp: [[UInt8]]
  var complexity = 5
  /// Wideband, and G.722 from the trunk, or narrowband and PCMU.
  var band = AudioBand.narrowband

  var work: BenchWork {
    BenchWork("bare libopus") { loop in
      var telephone = try AudioDecoder(encoding: band == .wideband ? .g722 : .pcmu, band: band)
      let frames = fromTrunk.map { payload in
        var samples = [Int16](repeating: 0, count: band.samplesPerTick)
        var span = samples.mutableSpan
        _ = telephone.decode(payload.span, into: &span)
        return samples
      }
      // As in a session: no FEC until a receiver reports loss.
      let bitrate = band == .wideband ? EncoderControl.plainWideBitrate : EncoderControl.plainBitrate
      var encoder = try OpusEncoder(
        sampleRateHz: band.sampleRateHz, bitrate: bitrate, complexity: complexity, expectedLossPercent: 0)
      encoder.setRepair(false)
      var status: Int32 = 0
      guard let decoder = opus_decoder_create(Int32(band.sampleRateHz), 1, &status) else {
        throw BenchError(text: "libopus: \(status)")
      }
      defer { opus_decoder_destroy(decoder) }
      var packet = [UInt8](repeating: 0, count: 1275)
      var samples = [Int16](repeating: 0, count: 960)
      loop.run { number in
        let frame = frames[number % frames.count]
        var span = packet.mutableSpan
        let encoded = (try? encoder.encode(frame.span, into: &span)) ?? 0
        let payload = fromApp[number % fromApp.count]
        let decoded = opus_decode(decoder, payload, Int32(payload.count), &samples, 960, 0)
        return UInt64(encoded) &+ UInt64(clamping: decoded) &+ UInt64(bitPattern: Int64(samples[80]))
      }
    }
  }
}

/// Speech as an app sends it to a peer that did not ask for the telephone's band: 48 kHz, 32 kbit/s, SILK and CELT together.
enum HybridSpeech {
  static func packets(count: Int) throws -> [[UInt8]] {
    var status: Int32 = 0
    guard let encoder = opus_encoder_create(48_000, 1, OPUS_APPLICATION_VOIP, &status) else {
      throw BenchError(text: "libopus: \(status)")
    }
    defer { opus_encoder_destroy(encoder) }
    for (request, value) in [
      (OPUS_SET_BITRATE_REQUEST, 32_000), (OPUS_SET_BANDWIDTH_REQUEST, OPUS_BANDWIDTH_FULLBAND),
      (OPUS_SET_INBAND_FEC_REQUEST, 1), (OPUS_SET_PACKET_LOSS_PERC_REQUEST, 5), (OPUS_SET_SIGNAL_REQUEST, OPUS_SIGNAL_VOICE),
    ] {
      guard copus_encoder_set(encoder, request, value) == OPUS_OK else { throw BenchError(text: "libopus: \(request)") }
    }
    let ticks = Speech.ticks()
    var last: Int16 = 0
    let packets = (0..<count).map { number in
      // Straight lines between samples leave images above 4 kHz, which keep the upper band busy.
      var wide: [Int16] = []
      for sample in ticks[number % ticks.count] {
        for step in 1...6 { wide.append(Int16((Int(last) * (6 - step) + Int(sample) * step) / 6)) }
        last = sample
      }
      var packet = [UInt8](repeating: 0, count: 1275)
      let length = opus_encode(encoder, wide, Int32(wide.count), &packet, 1275)
      return Array(packet[..<max(0, Int(length))])
    }
    // Configurations 12…15 are hybrid (RFC 6716 §3.1).
    guard packets.count(where: { ($0.first.map { 12...15 ~= $0 >> 3 }) ?? false }) > count * 9 / 10 else {
      throw BenchError(text: "libopus does not send hybrid frames")
    }
    return packets
  }
}
