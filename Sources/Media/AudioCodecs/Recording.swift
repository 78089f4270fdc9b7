import TrunklineRTP

/// Mono audio that is played to callers, in both bands: a recording below 16 kHz has nothing above 4 kHz in wideband either.
public struct Recording: Sendable, Equatable {
  private let narrow: [Int16]
  private let wide: [Int16]

  /// From samples at 8 kHz.
  public init(_ samples: [Int16]) {
    narrow = samples
    var wide = [Int16](repeating: 0, count: 2 * samples.count)
    samples.withUnsafeBufferPointer { source in
      wide.withUnsafeMutableBufferPointer { target in
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        BandConverter().convert(from, source.count, from: .narrowband, to: .wideband, into: to)
      }
    }
    self.wide = wide
  }

  /// - Parameters:
  ///   - narrow: at 8 kHz.
  ///   - wide: the same at 16 kHz.
  init(narrow: [Int16], wide: [Int16]) { (self.narrow, self.wide) = (narrow, wide) }

  public func samples(_ band: AudioBand) -> [Int16] { band == .wideband ? wide : narrow }
  public func count(_ band: AudioBand) -> Int { band == .wideband ? wide.count : narrow.count }
}
