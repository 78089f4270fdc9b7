#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The level of 16-bit audio in dBov: 0 is a square wave at full scale, −127 silence (RFC 6464 §3 uses the negated number).
public struct LevelMeter: Sendable {
  /// Smoothed over about 100 ms: up at once, down by 1/5 per tick. Mean square, full scale = 1.
  public private(set) var power: Double = 0

  public init() {}

  /// Measures one tick's samples and returns that tick's own level.
  // HOT
  @discardableResult public mutating func measure(_ samples: Span<Int16>) -> Double {
    let now = Self.meanSquare(samples)
    power = now > power ? now : power + (now - power) / 5
    return Self.decibels(now)
  }

  /// The smoothed level in dBov.
  public var level: Double { Self.decibels(power) }

  /// Mean square with full scale = 1.
  public static func meanSquare(_ samples: Span<Int16>) -> Double {
    guard !samples.isEmpty else { return 0 }
    let sum = samples.withUnsafeBufferPointer { all in all.baseAddress.map { SampleSums.energy($0, all.count) } ?? 0 }
    return Double(sum) / Double(samples.count) / (32_768 * 32_768)
  }

  /// dBov of a mean square, −127 at least.
  public static func decibels(_ meanSquare: Double) -> Double { meanSquare > 2e-13 ? max(-127, 10 * log10(meanSquare)) : -127 }
}

/// Sums over samples, eight at a time. The vectors are arranged so that they become one multiply-add instruction for eight
/// samples (SSE2 pmaddwd, NEON smlal), which the compiler does not find in a loop with 64-bit sums.
///
/// Exact: every sum equals that of a sample-by-sample loop, except for a product of four samples of −32,768 with four such in a
/// row.
public enum SampleSums {
  /// The sum of squares.
  // HOT
  public static func energy(_ samples: UnsafePointer<Int16>, _ count: Int) -> Int64 {
    let raw = UnsafeRawPointer(samples)
    var (low, high) = (SIMD2<UInt64>.zero, SIMD2<UInt64>.zero)
    let whole = count & ~7
    var index = 0
    while index < whole {
      add(squares(raw.loadUnaligned(fromByteOffset: 2 &* index, as: SIMD8<Int16>.self)), low: &low, high: &high)
      index &+= 8
    }
    var sum = (low &+ high).wrappedSum()
    while index < count {
      let sample = Int32(samples[index])
      sum &+= UInt64(truncatingIfNeeded: sample &* sample)
      index &+= 1
    }
    return Int64(bitPattern: sum)
  }

  /// The sum of products, sample by sample.
  // HOT
  public static func product(_ left: UnsafePointer<Int16>, _ right: UnsafePointer<Int16>, count: Int) -> Int64 {
    let (rawLeft, rawRight) = (UnsafeRawPointer(left), UnsafeRawPointer(right))
    var (low, high) = (SIMD2<Int64>.zero, SIMD2<Int64>.zero)
    let whole = count & ~7
    var index = 0
    while index < whole {
      let x = rawLeft.loadUnaligned(fromByteOffset: 2 &* index, as: SIMD8<Int16>.self)
      let y = rawRight.loadUnaligned(fromByteOffset: 2 &* index, as: SIMD8<Int16>.self)
      let products =
        SIMD4<Int32>(truncatingIfNeeded: x.evenHalf) &* SIMD4<Int32>(truncatingIfNeeded: y.evenHalf)
        &+ SIMD4<Int32>(truncatingIfNeeded: x.oddHalf) &* SIMD4<Int32>(truncatingIfNeeded: y.oddHalf)
      low &+= SIMD2<Int64>(truncatingIfNeeded: products.lowHalf)
      high &+= SIMD2<Int64>(truncatingIfNeeded: products.highHalf)
      index &+= 8
    }
    var sum = (low &+ high).wrappedSum()
    while index < count {
      sum &+= Int64(Int32(left[index]) &* Int32(right[index]))
      index &+= 1
    }
    return sum
  }

  /// Sums of neighbouring squares: up to 2³¹, so unsigned.
  @inline(__always) private static func squares(_ x: SIMD8<Int16>) -> SIMD4<UInt32> {
    let (even, odd) = (SIMD4<Int32>(truncatingIfNeeded: x.evenHalf), SIMD4<Int32>(truncatingIfNeeded: x.oddHalf))
    return SIMD4<UInt32>(truncatingIfNeeded: even &* even &+ odd &* odd)
  }

  @inline(__always)
  private static func add(_ squares: SIMD4<UInt32>, low: inout SIMD2<UInt64>, high: inout SIMD2<UInt64>) {
    low &+= SIMD2<UInt64>(truncatingIfNeeded: squares.lowHalf)
    high &+= SIMD2<UInt64>(truncatingIfNeeded: squares.highHalf)
  }
}
