import TrunklineRTP

/// Stretch: plays speech faster or slower without changing its pitch, by removing or repeating whole pitch periods with a
/// cross-fade (pitch-aware overlap-add, as in WSOLA and NetEQ), in place. Noise and silence have no pitch: any lag works there,
/// and the fade hides the cut.
///
/// Pure functions on the caller's memory. About 10 µs per call of 320 samples at 8 kHz; called on few ticks.
public enum TimeScale {
  /// 2.5 ms … 15 ms: 400 Hz … 66 Hz. In samples at 8 kHz, as all lengths of this type; wideband has twice as many.
  public static let shortestLag = 20
  public static let longestLag = 120
  /// The longest cut from silence, 10 ms: it never removes a whole packet.
  static let longestQuietLag = 80
  /// Below this mean square (−60 dBov) content does not matter.
  static let quiet = 1000

  /// Removes up to `limit` samples from `samples[0..<count]`, one pitch period or several, and returns how many; 0 if no cut is
  /// clean.
  /// - Parameter urgent: accept a slightly audible cut.
  // HOT
  public static func shrink(_ samples: UnsafeMutablePointer<Int16>, count: Int, limit: Int, band: AudioBand, urgent: Bool) -> Int
  {
    let scale = scale(band)
    let longest = min(longestLag * scale, limit, count / 2)
    guard longest >= shortestLag * scale, let match = bestLag(samples, count: count, longest: longest, scale) else { return 0 }
    guard match.isQuiet || match.likeness >= (urgent ? 0.5 : 0.85) else { return 0 }
    let lag = match.lag
    // x[0..<lag] fades into x[lag..<2·lag]; the rest moves down.
    for index in 0..<lag {
      let mixed = Int32(samples[index]) * Int32(lag - index) + Int32(samples[lag + index]) * Int32(index)
      samples[index] = Int16(truncatingIfNeeded: mixed / Int32(lag))
    }
    (samples + lag).update(from: samples + 2 * lag, count: count - 2 * lag)
    return lag
  }

  /// Repeats one pitch period in `samples[0..<count]`, whose memory holds `capacity` samples, and returns how many samples were
  /// added.
  // HOT
  public static func grow(_ samples: UnsafeMutablePointer<Int16>, count: Int, capacity: Int, band: AudioBand, urgent: Bool) -> Int
  {
    let scale = scale(band)
    let longest = min(longestLag * scale, count / 2, capacity - count)
    guard longest >= shortestLag * scale, let match = bestLag(samples, count: count, longest: longest, scale) else { return 0 }
    guard match.isQuiet || match.likeness >= (urgent ? 0.5 : 0.85) else { return 0 }
    let lag = match.lag
    // x[0..<lag], then x[lag..<2·lag] fading into x[0..<lag], then x[lag...] again.
    (samples + 2 * lag).update(from: samples + lag, count: count - lag)
    for index in 0..<lag {
      let mixed = Int32(samples[2 * lag + index]) * Int32(lag - index) + Int32(samples[index]) * Int32(index)
      samples[lag + index] = Int16(truncatingIfNeeded: mixed / Int32(lag))
    }
    return lag
  }

  private static func scale(_ band: AudioBand) -> Int { band.sampleRateHz / 8_000 }

  /// The lag at which the audio resembles itself most, by normalised correlation of `x[0..<n]` with `x[lag..<lag + n]`; tries
  /// every second lag (fourth in wideband), then those around the best.
  private static func bestLag(_ samples: UnsafeMutablePointer<Int16>, count: Int, longest: Int, _ scale: Int) -> (
    lag: Int, likeness: Float, isQuiet: Bool
  )? {
    let shortestLag = shortestLag * scale
    let window = min(longestLag * scale, count - longest)
    guard window >= shortestLag else { return nil }
    let energy = products(samples, samples, count: window).energy
    if energy <= Float(quiet * window) {
      let end = samples + (count - window)
      // Any lag will do, if the far end is quiet as well.
      if products(end, end, count: window).energy <= Float(quiet * window) {
        return (min(longest, longestQuietLag * scale), 1, true)
      }
    }
    var best = (lag: shortestLag, likeness: Float(-1))
    func consider(_ lag: Int) {
      let shifted = samples + lag
      let (dot, own) = products(samples, shifted, count: window)
      guard dot > 0 else { return }
      let likeness = dot / max(1, (energy * own).squareRoot())
      if likeness > best.likeness { best = (lag, likeness) }
    }
    for lag in stride(from: shortestLag, through: longest, by: 2 * scale) { consider(lag) }
    let coarse = best.lag
    for off in 1..<(2 * scale) {
      if coarse - off >= shortestLag { consider(coarse - off) }
      if coarse + off <= longest { consider(coarse + off) }
    }
    return best.likeness > 0 ? (best.lag, best.likeness, false) : nil
  }

  /// The sum of products of two stretches, and the sum of squares of the second; eight samples at a time, arranged so that they
  /// become multiply-add instructions.
  private static func products(_ a: UnsafePointer<Int16>, _ b: UnsafePointer<Int16>, count: Int) -> (dot: Float, energy: Float) {
    let (left, right) = (UnsafeRawPointer(a), UnsafeRawPointer(b))
    var (dots, squares) = (SIMD2<Int64>.zero, SIMD2<UInt64>.zero)
    var index = 0
    while index &+ 8 <= count {
      let x = left.loadUnaligned(fromByteOffset: 2 &* index, as: SIMD8<Int16>.self)
      let y = right.loadUnaligned(fromByteOffset: 2 &* index, as: SIMD8<Int16>.self)
      let (even, odd) = (SIMD4<Int32>(truncatingIfNeeded: y.evenHalf), SIMD4<Int32>(truncatingIfNeeded: y.oddHalf))
      let dot =
        SIMD4<Int32>(truncatingIfNeeded: x.evenHalf) &* even &+ SIMD4<Int32>(truncatingIfNeeded: x.oddHalf) &* odd
      let square = SIMD4<UInt32>(truncatingIfNeeded: even &* even &+ odd &* odd)
      dots &+= SIMD2<Int64>(truncatingIfNeeded: dot.lowHalf) &+ SIMD2<Int64>(truncatingIfNeeded: dot.highHalf)
      squares &+= SIMD2<UInt64>(truncatingIfNeeded: square.lowHalf) &+ SIMD2<UInt64>(truncatingIfNeeded: square.highHalf)
      index &+= 8
    }
    var (dot, energy) = (dots.wrappedSum(), squares.wrappedSum())
    while index < count {
      let (x, y) = (Int32(a[index]), Int32(b[index]))
      dot &+= Int64(x &* y)
      energy &+= UInt64(truncatingIfNeeded: y &* y)
      index &+= 1
    }
    return (Float(dot), Float(energy))
  }
}
