/// How like audio is to itself a period away: the highest correlation over all periods of 2.5…15 ms, by the multiply-add instruction of
/// `SampleSums`. About 7,000 instructions each.
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
  func within(upTo longest: Int) -> Float {
    // Of all but the last `lag` samples and of all but the first: from one lag to the next each loses a sample.
    var first = SampleSums.energy(now, count &- Self.shortest &+ 1)
    var second = SampleSums.energy(now + (Self.shortest &- 1), count &- Self.shortest &+ 1)
    var best = SIMD4<Float>.zero
    var lag = Self.shortest
    while lag <= longest {
      var (products, firsts, seconds) = (SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero)
      for lane in 0..<4 {
        let lag = lag &+ lane
        first &-= Self.square(now[count &- lag])
        second &-= Self.square(now[lag &- 1])
        firsts[lane] = Float(first)
        seconds[lane] = Float(second)
        // What is beyond the end is 0.
        products[lane] = Self.product(now, now + lag, count &- lag)
      }
      best = Self.higher(best, products, firsts * seconds, upTo: longest &- lag)
      lag &+= 4
    }
    return min(1, best.max().squareRoot())
  }

  /// How well the first `count` samples, a multiple of sixteen, go on from those 20…`longest` samples before: the highest correlation,
  /// 0…1.
  func back(_ count: Int, upTo longest: Int) -> Float {
    let own = Float(SampleSums.energy(now, count))
    // From one lag to the next it gains a sample before it and loses its last.
    var energy = SampleSums.energy(now - (Self.shortest &- 1), count)
    var best = SIMD4<Float>.zero
    var lag = Self.shortest
    while lag <= longest {
      var (products, energies) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
      for lane in 0..<4 {
        let lag = lag &+ lane
        energy &+= Self.square(now[0 &- lag]) &- Self.square(now[count &- lag])
        energies[lane] = Float(energy)
        products[lane] = Self.product(now, now - lag, count)
      }
      best = Self.higher(best, products, energies * own, upTo: longest &- lag)
      lag &+= 4
    }
    return min(1, best.max().squareRoot())
  }

  @inline(__always) private static func square(_ sample: Int16) -> Int64 { Int64(Int32(sample) &* Int32(sample)) }

  /// The highest square of a correlation so far, in each lane; of lanes after the last lag nothing.
  @inline(__always) private static func higher(
    _ best: SIMD4<Float>, _ products: SIMD4<Float>, _ energies: SIMD4<Float>, upTo last: Int
  ) -> SIMD4<Float> {
    let ratios = products * products / energies
    let lanes = SIMD4<Int32>(0, 1, 2, 3) .<= SIMD4<Int32>(repeating: Int32(truncatingIfNeeded: last))
    // Where a product is above 0 both energies are as well.
    return best.replacing(with: ratios, where: (ratios .> best) .& (products .> SIMD4<Float>.zero) .& lanes)
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
