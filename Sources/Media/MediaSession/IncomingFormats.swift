import TrunklineAudioCodecs
import TrunklineRTP

/// The meaning of each payload type number of a leg's incoming packets: one octet a number, so that a packet's look-up is one
/// load. 160 octets.
struct IncomingFormats {
  enum Meaning: Equatable {
    case unknown
    case comfortNoise
    /// telephone-event on this clock.
    case event(clockRateHz: UInt32)
    case audio(AudioEncoding)
  }

  private static let noise: UInt8 = 1
  private static let firstEvent: UInt8 = 2
  private static let firstAudio: UInt8 = 16
  /// The meanings of the numbers below 64, and of the others.
  private var lower = SIMD64<UInt8>.zero
  private var upper = SIMD64<UInt8>.zero
  /// Clocks of telephone-event formats; formats with further clocks are ignored.
  private var clocks = SIMD4<UInt32>.zero
  private var clockCount = 0

  /// The first format of a number counts. Comfort noise also has its static number (RFC 3551 §6), unless another format uses
  /// that.
  init(_ formats: [NumberedFormat] = []) {
    for numbered in formats + [NumberedFormat(ComfortNoise.payloadType, .comfortNoise)] {
      if self.code(numbered.payloadType) == 0 { set(code(of: numbered.format), for: numbered.payloadType) }
    }
  }

  @inline(__always) private func code(_ payloadType: UInt8) -> UInt8 {
    payloadType & 0x40 == 0 ? lower[Int(payloadType & 0x3f)] : upper[Int(payloadType & 0x3f)]
  }

  private mutating func set(_ code: UInt8, for payloadType: UInt8) {
    if payloadType & 0x40 == 0 { lower[Int(payloadType & 0x3f)] = code } else { upper[Int(payloadType & 0x3f)] = code }
  }

  private mutating func code(of format: PayloadFormat) -> UInt8 {
    switch format {
    case .comfortNoise: return Self.noise
    case .audio(let encoding): return Self.firstAudio + encoding.rawValue
    case .telephoneEvent(let clock):
      if let known = (0..<clockCount).first(where: { clocks[$0] == clock }) { return Self.firstEvent + UInt8(known) }
      guard clockCount < clocks.scalarCount, clock > 0 else { return 0 }
      clocks[clockCount] = clock
      clockCount += 1
      return Self.firstEvent + UInt8(clockCount - 1)
    }
  }

  // HOT
  @inline(__always) subscript(payloadType: UInt8) -> Meaning {
    let code = code(payloadType)
    if code >= Self.firstAudio, let encoding = AudioEncoding(rawValue: code &- Self.firstAudio) { return .audio(encoding) }
    if code >= Self.firstEvent { return .event(clockRateHz: clocks[Int(code &- Self.firstEvent) & 3]) }
    return code == Self.noise ? .comfortNoise : .unknown
  }

  func contains(_ encoding: AudioEncoding) -> Bool {
    let code = Self.firstAudio + encoding.rawValue
    return any(lower .== code) || any(upper .== code)
  }
}
