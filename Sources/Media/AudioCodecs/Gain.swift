/// A volume change that neither clicks nor clips: the factor moves to its target over one tick, and a tick whose peak would leave
/// full scale gets just the factor that it bears. What was held back comes up again by 1 dB a tick. Mute is a target of 0.
public struct Gain: Sendable {
  /// In 1/4096; 4096 leaves the samples alone.
  public private(set) var current: Int32 = 4096
  public var target: Int32 = 4096
  /// The factor in 1/2²⁰ that the limiter left, while it holds something back.
  private var held: Int64?

  public init() {}
  public static let unity: Int32 = 4096
  private static let fullScale: Int64 = 32_767

  public var isMuted: Bool {
    get { target == 0 }
    set { target = newValue ? 0 : Self.unity }
  }

  /// Applies the gain in place.
  // HOT
  public mutating func apply(to samples: inout MutableSpan<Int16>) {
    guard current != Self.unity || target != Self.unity || held != nil else { return }
    guard !samples.isEmpty else { return }
    if held != nil || max(current, target) > Self.unity { return limit(&samples) }
    let count = Int32(clamping: samples.count)
    let step = (target &- current)
    for index in 0..<samples.count {
      let factor = current &+ Int32(clamping: Int64(step) * Int64(index &+ 1) / Int64(count))
      let scaled = (Int64(samples[index]) * Int64(factor)) >> 12
      samples[index] = Int16(clamping: scaled)
    }
    current = target
  }

  private mutating func limit(_ samples: inout MutableSpan<Int16>) {
    var peak: Int64 = 1
    for index in 0..<samples.count { peak = max(peak, abs(Int64(samples[index]))) }
    let most = (Self.fullScale << 20) / peak
    let wanted = Int64(max(0, target)) << 8
    let start = min(held ?? Int64(current) << 8, most)
    // Back up by 1/8, about 1 dB, once something was held back.
    let end = min(wanted, most, held == nil ? wanted : start &+ start / 8)
    let count = Int64(samples.count)
    for index in 0..<samples.count {
      let factor = start &+ (end &- start) &* Int64(index &+ 1) / count
      samples[index] = Int16(clamping: (Int64(samples[index]) &* factor &+ 1 << 19) >> 20)
    }
    held = end < wanted ? end : nil
    current = Int32(clamping: end >> 8)
  }
}
