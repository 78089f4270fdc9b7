/// What of the sound a call carries: the rate of its samples between decoder and encoder.
///
/// A call is wideband if both of its sides can carry that; one narrow side makes it narrow, and nothing is resampled
/// (docs/design/codecs-and-concealment.md).
public enum AudioBand: UInt8, Sendable, CaseIterable, Comparable {
  /// 300 to 3400 Hz, as of the telephone: samples at 8 kHz.
  case narrowband
  /// 50 to 7000 Hz (G.722, Opus): samples at 16 kHz.
  case wideband

  public var sampleRateHz: Int { self == .wideband ? 16_000 : 8_000 }
  /// Of 20 ms.
  public var samplesPerTick: Int { self == .wideband ? 320 : 160 }

  public static func < (a: AudioBand, b: AudioBand) -> Bool { a.rawValue < b.rawValue }
}

extension AudioEncoding {
  /// The widest band of ours that it can carry.
  public var band: AudioBand { row.samplingRateHz >= 16_000 ? .wideband : .narrowband }
}
