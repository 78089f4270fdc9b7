import AudioCodecs
import Bytes
import DemoSpeech
import RTP

/// The demo call's speech as 8 kHz samples, in ticks of 160.
public enum Speech {
  public static func samples() -> [Int16] {
    let octets = DemoSpeech.telephone
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return samples
  }

  public static func ticks() -> [[Int16]] {
    let all = samples()
    return stride(from: 0, to: all.count - 159, by: 160).map { Array(all[$0..<$0 + 160]) }
  }

  /// The speech again and again as packets of one codec, `count` of them.
  public static func packets(_ encoding: AudioEncoding, count: Int, expectedLossPercent: Int = 10) throws -> [[UInt8]] {
    let ticks = ticks()
    let control = EncoderControl(bitrate: 24_000, repairBitrate: 24_000, expectedLossPercent: expectedLossPercent)
    var encoder = try AudioEncoder(encoding: encoding, control: control)
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
