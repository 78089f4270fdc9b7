/// A machine's source of random numbers. Nothing below `Platform` draws from the system: the runtime passes
/// `RandomSource { SystemRandomNumberGenerator().next() }`, tests pass `.seeded(n)` and print the seed.
public struct RandomSource: Sendable {
  public let next: @Sendable () -> UInt64

  public init(_ next: @escaping @Sendable () -> UInt64) { self.next = next }

  /// `count` random bytes.
  public func bytes(_ count: Int) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(count)
    while out.count < count {
      var word = next()
      for _ in 0..<min(8, count - out.count) {
        out.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return out
  }

  /// A text of `count` characters from the 64-letter alphabet that is legal in ICE ufrag and pwd, SIP tags and branches
  /// (`A-Za-z0-9+/` without `+` and `/`, which `-` and `.` replace when `token` is true).
  public func text(_ count: Int, alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    -> String
  {
    let letters = alphabet.withUTF8Buffer { Array($0) }
    return String(decoding: bytes(count).map { letters[Int($0) % letters.count] }, as: UTF8.self)
  }
}

/// SplitMix64: for tests and simulations that print their seed; not for secrets.
public struct SplitMix64: RandomNumberGenerator, Sendable {
  public var state: UInt64
  public init(seed: UInt64) { state = seed }
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
