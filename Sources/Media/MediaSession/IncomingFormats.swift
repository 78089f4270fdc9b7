import AudioCodecs
import RTP

/// What each payload type number of a leg's incoming packets stands for: one octet a number, so that the look-up of a packet is one load. 144 octets.
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
  private var codes = InlineArray<128, UInt8>(repeating: 0)
  /// Of events; further clocks than there is room for are no format.
  private var clocks = InlineArray<4, UInt32>(repeating: 0)
  private var clockCount = 0

  /// The first format of a number counts. Comfort noise has its static number too (RFC 3551 §6), unless that is taken.
  init(_ formats: [NumberedFormat] = []) {
    for numbered in formats + [NumberedFormat(ComfortNoise.payloadType, .comfortNoise)] {
      let place = Int(numbered.payloadType & 0x7f)
      if codes[place] == 0 { codes[place] = code(of: numbered.format) }
    }
  }

  private mutating func code(of format: PayloadFormat) -> UInt8 {
    switch format {
    case .comfortNoise: return Self.noise
    case .audio(let encoding): return Self.firstAudio + encoding.rawValue
    case .telephoneEvent(let clock):
      if let known = (0..<clockCount).first(where: { clocks[$0] == clock }) { return Self.firstEvent + UInt8(known) }
      guard clockCount < clocks.count, clock > 0 else { return 0 }
      clocks[clockCount] = clock
      clockCount += 1
      return Self.firstEvent + UInt8(clockCount - 1)
    }
  }

  // HOT
  @inline(__always) subscript(payloadType: UInt8) -> Meaning {
    let code = codes[Int(payloadType & 0x7f)]
    if code >= Self.firstAudio, let encoding = AudioEncoding(rawValue: code &- Self.firstAudio) { return .audio(encoding) }
    if code >= Self.firstEvent { return .event(clockRateHz: clocks[Int(code &- Self.firstEvent) & 3]) }
    return code == Self.noise ? .comfortNoise : .unknown
  }

  func contains(_ encoding: AudioEncoding) -> Bool {
    codes.indices.contains { codes[$0] == Self.firstAudio + encoding.rawValue }
  }
}
