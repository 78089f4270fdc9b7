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

  /// Takes one tick's samples and returns that tick's own level.
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
    var sum: Int64 = 0
    for index in 0..<samples.count {
      let sample = Int32(samples[index])
      sum &+= Int64(sample &* sample)
    }
    return Double(sum) / Double(samples.count) / (32_768 * 32_768)
  }

  /// dBov of a mean square, −127 at least.
  public static func decibels(_ meanSquare: Double) -> Double { meanSquare > 2e-13 ? max(-127, 10 * log10(meanSquare)) : -127 }

  /// Mean power over the parts of at least −50 dB below the loudest 20 ms, a plain form of ITU-T P.56's active level, in dBov.
  /// For tests and reports; −127 for silence.
  public static func activeLevel(_ samples: Span<Int16>) -> Double {
    var loudest = 0.0
    for start in stride(from: 0, to: samples.count - 159, by: 160) {
      loudest = max(loudest, meanSquare(samples.extracting(start..<start + 160)))
    }
    var sum = 0.0
    var frames = 0
    for start in stride(from: 0, to: samples.count - 159, by: 160) {
      let power = meanSquare(samples.extracting(start..<start + 160))
      if power > loudest * 1e-3 { (sum, frames) = (sum + power, frames + 1) }
    }
    return frames == 0 ? -127 : decibels(sum / Double(frames))
  }
}
