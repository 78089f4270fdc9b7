import TrunklineRTP

/// Converts samples of one band to the other, below 4 kHz: for audio that is only analysed, and for audio that was made at 8 kHz.
/// Not for the audio of a call.
public struct BandConverter: ~Copyable {
  private let filter = QuadratureMirror()

  public init() {}

  /// The number of samples into which `convert` converts `count` samples.
  public static func count(_ count: Int, from: AudioBand, to: AudioBand) -> Int {
    count &* to.sampleRateHz / from.sampleRateHz
  }

  /// Converts all of `samples`, an even number where they are wideband, and returns the new number of samples.
  /// - Parameter output: may be the same memory if the number of samples shrinks.
  @discardableResult
  public func convert(
    _ samples: UnsafePointer<Int16>, _ count: Int, from: AudioBand, to: AudioBand, into output: UnsafeMutablePointer<Int16>
  ) -> Int {
    switch (from, to) {
    case (.wideband, .narrowband):
      for index in 0..<(count / 2) {
        let low = filter.split(Int32(samples[2 &* index]), Int32(samples[2 &* index &+ 1])).low
        output[index] = Int16(clamping: low &* 2)
      }
    case (.narrowband, .wideband):
      for index in 0..<count {
        let (first, second) = filter.join(low: Int32(samples[index]) >> 1, high: 0)
        output[2 &* index] = Int16(truncatingIfNeeded: first)
        output[2 &* index &+ 1] = Int16(truncatingIfNeeded: second)
      }
    default: if output != samples { output.update(from: samples, count: count) }
    }
    return Self.count(count, from: from, to: to)
  }
}

/// Converts without delay, less cleanly than `BandConverter`: for the frames in which a call changes its band, where a delay
/// would click. Linear, with one past sample.
public struct BandInterpolator: Sendable {
  private var last: Int16?

  public init() {}

  /// As `BandConverter.convert`; the memories must differ.
  @discardableResult
  public mutating func convert(
    _ samples: UnsafePointer<Int16>, _ count: Int, from: AudioBand, to: AudioBand, into output: UnsafeMutablePointer<Int16>
  ) -> Int {
    guard count > 0 else { return 0 }
    var before = Int32(last ?? samples[0])
    switch (from, to) {
    case (.wideband, .narrowband):
      for index in 0..<(count / 2) {
        let (middle, next) = (Int32(samples[2 &* index]), Int32(samples[2 &* index &+ 1]))
        output[index] = Int16(truncatingIfNeeded: (before &+ 2 &* middle &+ next) / 4)
        before = next
      }
    case (.narrowband, .wideband):
      for index in 0..<count {
        let next = Int32(samples[index])
        output[2 &* index] = Int16(truncatingIfNeeded: (before &+ next) / 2)
        output[2 &* index &+ 1] = Int16(truncatingIfNeeded: next)
        before = next
      }
    default: output.update(from: samples, count: count)
    }
    last = samples[count - 1]
    return BandConverter.count(count, from: from, to: to)
  }
}
