import SpeechScore
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// The demo call's speech as 8 kHz samples, in ticks of 160, or of 320 at 16 kHz.
public enum Speech {
  public static func samples() -> [Int16] {
    let octets = DemoSpeech.telephone
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return samples
  }

  /// At 16 kHz straight lines between samples leave images above 4 kHz: the upper band is busy.
  public static func ticks(_ band: AudioBand = .narrowband) -> [[Int16]] {
    var (all, tick) = (samples(), band.samplesPerTick)
    if band == .wideband { all = zip(all, all.dropFirst()).flatMap { [$0, Int16((Int($0) + Int($1)) / 2)] } }
    return stride(from: 0, to: all.count - tick + 1, by: tick).map { Array(all[$0..<$0 + tick]) }
  }

  /// The speech again and again as packets of one codec, `count` of them.
  public static func packets(
    _ encoding: AudioEncoding, _ band: AudioBand = .narrowband, count: Int, expectedLossPercent: Int = 10
  ) throws -> [[UInt8]] {
    let ticks = ticks(band)
    let bitrate = band == .wideband ? EncoderControl.repairBitrate : EncoderControl.plainBitrate
    let control = EncoderControl(bitrate: bitrate, repairBitrate: bitrate, expectedLossPercent: expectedLossPercent)
    var encoder = try AudioEncoder(encoding: encoding, band: band, control: control)
    return try (0..<count).map { index in
      var payload = [UInt8](repeating: 0, count: 1275)
      var span = payload.mutableSpan
      let tick = ticks[index % ticks.count]
      let length = try encoder.encode(tick.span, into: &span)
      return Array(payload[..<length])
    }
  }

  /// Faint noise (about −72 dB of full scale) as µ-law, packets of 20 ms: a quiet line.
  public static func noise(count: Int) throws -> [[UInt8]] {
    var random = SplitMix64(seed: 77)
    return (0..<count).map { _ in
      let samples = (0..<160).map { _ in Int16(random.next() % 17) - 8 }
      var octets = [UInt8](repeating: 0, count: 160)
      var span = octets.mutableSpan
      _ = G711.encode(samples.span, law: .mu, into: &span)
      return octets
    }
  }
}
