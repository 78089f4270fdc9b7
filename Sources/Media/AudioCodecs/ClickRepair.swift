/// Single wrong samples: a bit turned over in an octet of G.711 makes one sample up to 1000 times as large, and its neighbours show
/// what it was.
enum ClickRepair {
  /// Of the sample: how far it is from the line between its neighbours, at least.
  private static let deviation: Float = 0.5
  /// Times the third largest of the samples around, at least.
  private static let excess: Float = 2.5
  private static let around = 8

  /// Puts samples above `bound` that stand alone on the line between their neighbours and returns how many.
  /// - Parameter before: the sample before the first.
  static func repair(_ samples: UnsafeMutableBufferPointer<Int16>, before: Int16, above bound: Int32) -> Int {
    guard let base = samples.baseAddress else { return 0 }
    var repaired = 0
    for start in stride(from: 0, to: samples.count, by: 8) {
      if start &+ 8 <= samples.count, areBelow(bound, UnsafeRawPointer(base + start)) { continue }
      for index in start..<min(samples.count, start &+ 8) where abs(Int32(samples[index])) > bound {
        let own = Int32(samples[index])
        let left = Int32(index > 0 ? samples[index - 1] : before)
        let line = index + 1 < samples.count ? (left &+ Int32(samples[index + 1])) / 2 : left
        guard Float(abs(own &- line)) > deviation * Float(abs(own)), Float(abs(own)) > excess * Float(thirdAround(samples, index))
        else {
          continue
        }
        samples[index] = Int16(truncatingIfNeeded: line)
        repaired &+= 1
      }
    }
    return repaired
  }

  /// None of eight samples is above the bound.
  @inline(__always) private static func areBelow(_ bound: Int32, _ samples: UnsafeRawPointer) -> Bool {
    let highest = SIMD8(repeating: Int16(clamping: bound))
    let lowest = 0 &- highest
    let x = samples.loadUnaligned(as: SIMD8<Int16>.self)
    let beyond =
      (highest.replacing(with: x, where: x .> highest) ^ highest) | (lowest.replacing(with: x, where: x .< lowest) ^ lowest)
    let bits = unsafeBitCast(beyond, to: SIMD2<UInt64>.self)
    return bits[0] | bits[1] == 0
  }

  private static func thirdAround(_ samples: UnsafeMutableBufferPointer<Int16>, _ place: Int) -> Int32 {
    var (first, second, third): (Int32, Int32, Int32) = (0, 0, 0)
    for index in max(0, place - around)..<min(samples.count, place + around + 1) where index != place {
      let value = abs(Int32(samples[index]))
      if value > first {
        (first, second, third) = (value, first, second)
      } else if value > second {
        (second, third) = (value, second)
      } else {
        third = max(third, value)
      }
    }
    return third
  }
}
