public import TrunklineRTP

// The codecs without state: the rows with `isStateless`.

extension AudioEncoding {
  /// Packets of both may be decoded one after the other by one `AudioDecoder` of either: the two laws of G.711.
  public func sharesDecoder(with other: AudioEncoding) -> Bool { self == other || (isG711 && other.isG711) }
  private var isG711: Bool { self == .pcmu || self == .pcma }

  /// Decodes as many samples as fit, by a stateless codec, and returns their number; 0 for any other codec.
  // HOT
  public func decodeSamples(_ payload: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
    switch self {
    case .pcmu: G711.decode(payload, law: .mu, into: &samples)
    case .pcma: G711.decode(payload, law: .a, into: &samples)
    case .l16: L16.decode(payload, into: &samples)
    case .opus, .g722: 0
    }
  }

  /// Encodes as many samples as fit, by a stateless codec, and returns the number of octets; 0 for any other codec.
  // HOT
  public func encodeSamples(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) -> Int {
    switch self {
    case .pcmu: G711.encode(samples, law: .mu, into: &payload)
    case .pcma: G711.encode(samples, law: .a, into: &payload)
    case .l16: L16.encode(samples, into: &payload)
    case .opus, .g722: 0
    }
  }

  /// Whether a payload is more than silence: one sample above −40 dB of full scale, Opus more than a DTX frame.
  public func isAudible(_ payload: UnsafeRawBufferPointer) -> Bool {
    switch self {
    case .opus: payload.count > 10
    // The exponent bits: µ-law is sent inverted, A-law with every other bit inverted (G.711 tables 1 and 2).
    case .pcmu: payload.contains { ~$0 & 0x70 >= 0x20 }
    case .pcma: payload.contains { ($0 ^ 0x55) & 0x70 >= 0x20 }
    // The scale of its codes is in the decoder's state, so codes that vary count as audible.
    case .g722: payload.contains { $0 != payload[0] }
    // The high octets, of which 0 and −1 are less than 256.
    case .l16: stride(from: 0, to: payload.count, by: 2).contains { payload[$0] &+ 1 > 1 }
    }
  }
}
