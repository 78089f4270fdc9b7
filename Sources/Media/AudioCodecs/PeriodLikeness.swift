/// How like audio is to itself a period away: the highest correlation over all periods of 2.5…15 ms, by the multiply-add instruction of
/// `SampleSums`. About 130 instructions for each period looked at.
struct PeriodLikeness {
  /// Samples, all 0, that must follow the audio in memory.
  static let padding = 24
  /// No sample may be lower: the sum of two products must be below 2³¹.
  static let lowest: Int16 = -32_767
  private static let shortest = PitchConcealer.shortestPeriod
  private let now: UnsafePointer<Int16>
  private let count: Int

  /// - Parameter now: `count` samples, behind the `PitchConcealer.longestPeriod` before them, in front of `padding` zeros. They must stay
  ///   where they are as long as this is used.
  init(_ now: UnsafePointer<Int16>, _ count: Int) { (self.now, self.count) = (now, count) }

  /// Of a period 20…`longest` samples long within the samples: the highest correlation of one with the next, 0…1.
  /// - Parameter step: looks at every so many periods only: the highest is at least what is found.
  func within(upTo longest: Int, every step: Int) -> Float {
    var lag = Self.shortest
    var first = SampleSums.energy(now, count &- lag)
    var second = SampleSums.energy(now + lag, count &- lag)
    var best: Float = 0
    while true {
      // What is beyond the end is 0.
      best = Self.higher(best, Self.product(now, now + lag, count &- lag), Float(first) * Float(second))
      guard lag &+ step <= longest else { return min(1, best.squareRoot()) }
      for _ in 0..<step {
        first &-= Self.square(now[count &- 1 &- lag])
        second &-= Self.square(now[lag])
        lag &+= 1
      }
    }
  }

  /// How well the first `count` samples, a multiple of sixteen, go on from those 20…`longest` samples before: the highest correlation,
  /// 0…1, of every so many.
  func back(_ count: Int, upTo longest: Int, every step: Int) -> Float {
    var lag = Self.shortest
    let own = Float(SampleSums.energy(now, count))
    var before = SampleSums.energy(now - lag, count)
    var best: Float = 0
    while true {
      best = Self.higher(best, Self.product(now, now - lag, count), Float(before) * own)
      guard lag &+ step <= longest else { return min(1, best.squareRoot()) }
      for _ in 0..<step {
        lag &+= 1
        before &+= Self.square(now[0 &- lag]) &- Self.square(now[count &- lag])
      }
    }
  }

  @inline(__always) private static func square(_ sample: Int16) -> Int64 { Int64(Int32(sample) &* Int32(sample)) }

  /// The higher of two squares of correlations, the second of a product of samples and that of their energies.
  @inline(__always) private static func higher(_ best: Float, _ product: Float, _ energies: Float) -> Float {
    product > 0 && product * product > best * energies ? product * product / energies : best
  }

  /// The sum of products, sixteen at a time: up to fifteen more than asked for.
  @inline(__always) private static func product(_ a: UnsafePointer<Int16>, _ b: UnsafePointer<Int16>, _ count: Int) -> Float {
    let (left, right) = (UnsafeRawPointer(a), UnsafeRawPointer(b))
    var (sums, others) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
    var offset = 0
    while offset < 2 &* count {
      sums += SIMD4<Float>(pairs(left + offset, right + offset))
      others += SIMD4<Float>(pairs(left + (offset &+ 16), right + (offset &+ 16)))
      offset &+= 32
    }
    return (sums + others).sum()
  }

  /// Products of eight samples with eight others, added up by two: one instruction.
  @inline(__always) private static func pairs(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer) -> SIMD4<Int32> {
    let (x, y) = (left.loadUnaligned(as: SIMD8<Int16>.self), right.loadUnaligned(as: SIMD8<Int16>.self))
    return SIMD4<Int32>(truncatingIfNeeded: x.evenHalf) &* SIMD4<Int32>(truncatingIfNeeded: y.evenHalf)
      &+ SIMD4<Int32>(truncatingIfNeeded: x.oddHalf) &* SIMD4<Int32>(truncatingIfNeeded: y.oddHalf)
  }
}
