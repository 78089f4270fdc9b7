import TrunklineRTP

/// Conceals lost G.711 audio: from the audio before it as ITU-T G.711 Appendix I does, and from both ends where the audio after
/// it has already arrived, cross-faded over the whole gap (docs/design/codecs-and-concealment.md). Received audio passes
/// unchanged and without delay.
///
/// Concealment that was not led into the audio after it is cross-faded into that audio, for a quarter period and half a
/// millisecond for each 10 ms lost: longer would hide real audio.
///
/// Own memory, 4.6 KB; per received tick a copy of 320 octets and 160 multiplications.
public struct PitchConcealer: ~Copyable {
  /// Samples in 1/8 ms.
  private let scale: Int
  /// 10 ms. A shorter piece after a gap shows no period.
  private let stage: Int
  private var forward: PitchExtrapolator
  private var backward: PitchExtrapolator
  /// The beginning of the audio that the last concealment was led into.
  private var lead: SIMD8<Int16>?
  /// Samples concealed since the last received one.
  public var concealed: Int { forward.made }

  public init(band: AudioBand = .narrowband) {
    scale = band.sampleRateHz / 8_000
    stage = 80 * scale
    forward = PitchExtrapolator(band: band)
    backward = PitchExtrapolator(band: band)
  }

  /// Clears the state, for another source.
  public mutating func reset() {
    forward.reset()
    lead = nil
  }

  /// Handles received audio. After a loss its beginning may be changed in place: cross-faded from the concealment.
  // HOT
  public mutating func received(_ samples: inout MutableSpan<Int16>, count: Int) {
    let count = min(count, samples.count)
    guard count > 0 else { return }
    if forward.made > 0 { rejoin(&samples, count) }
    forward.remember(samples.span, count)
  }

  private mutating func rejoin(_ samples: inout MutableSpan<Int16>, _ count: Int) {
    defer { lead = nil }
    if let lead, count >= lead.scalarCount, lead == Self.beginning(samples.span) { return }
    let stages = (min(forward.made, Limits.concealedMilliseconds * 4 * scale) + stage - 1) / stage
    let length = min(count, stage, forward.period / 4 + 4 * scale * stages)
    for index in 0..<length {
      let share = Float(index + 1) / Float(length + 1)
      samples[index] = Int16(clamping: Int(Float(samples[index]) * share + forward.next() * (1 - share)))
    }
  }

  /// Writes `count` concealed samples.
  public mutating func conceal(_ count: Int, into samples: inout MutableSpan<Int16>) {
    if forward.made == 0 { forward.begin() }
    lead = nil
    // The whole gap is concealed from the audio before it.
    for index in 0..<min(count, samples.count) { samples[index] = Int16(clamping: Int(forward.next())) }
    if forward.isRepetition { forward.keep(samples.span, min(count, samples.count)) }
  }

  /// Writes `count` concealed samples that lead into `next`, the audio received after them; only its beginning is used.
  public mutating func conceal(_ count: Int, into samples: inout MutableSpan<Int16>, before next: Span<Int16>) {
    let count = min(count, samples.count)
    conceal(count, into: &samples)
    guard next.count >= stage, !forward.isRepetition else { return }
    backward.rememberReversed(next.extracting(0..<min(next.count, 2 * stage)))
    backward.begin()
    for index in stride(from: count - 1, through: 0, by: -1) {
      let share = Float(index + 1) / Float(count + 1)
      samples[index] = Int16(clamping: Int(Float(samples[index]) * (1 - share) + backward.next() * share))
    }
    lead = Self.beginning(next)
  }

  private static func beginning(_ samples: Span<Int16>) -> SIMD8<Int16> {
    var beginning = SIMD8<Int16>.zero
    for index in beginning.indices { beginning[index] = samples[index] }
    return beginning
  }
}
