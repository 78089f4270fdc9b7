/// One stream of 8 kHz samples to any codec of the catalog: what a sending leg owns. G.711 costs nothing until a switch to Opus
/// allocates its encoder, so switching is for set-up and re-INVITE, not per packet.
public struct AudioEncoder: ~Copyable {
  public let encoding: AudioEncoding
  private var opus: OpusEncoder?

  /// Throws only if libopus refuses its parameters.
  public init(encoding: AudioEncoding, bitrate: Int = 24_000, complexity: Int = 5, expectedLossPercent: Int = 5) throws(OpusError)
  {
    self.encoding = encoding
    opus = nil
    if encoding == .opus {
      opus = try OpusEncoder(bitrate: bitrate, complexity: complexity, expectedLossPercent: expectedLossPercent)
    }
  }

  /// Encodes one tick (160 samples; other legal frame lengths too) and returns the payload's length in octets.
  // HOT
  public mutating func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) throws(OpusError) -> Int {
    switch encoding {
    case .opus: try opus?.encode(samples, into: &payload) ?? 0
    case .pcmu: G711.encode(samples, law: .mu, into: &payload)
    case .pcma: G711.encode(samples, law: .a, into: &payload)
    }
  }

  /// RTP clock units of `samples` samples at 8 kHz.
  @inlinable public func units(ofSamples samples: Int) -> Int { encoding == .opus ? samples &* 6 : samples }

  /// From the receiver's reports; no effect on G.711.
  public mutating func setExpectedLoss(percent: Int) { opus?.setExpectedLoss(percent: percent) }

  public mutating func reset() { opus?.reset() }
}
