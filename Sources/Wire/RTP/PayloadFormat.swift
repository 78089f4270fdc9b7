/// The format of a payload type in one direction of a stream, as far as this gateway can use it.
public enum PayloadFormat: Hashable, Sendable {
  case audio(AudioEncoding)
  /// RFC 4733. Durations use this clock: the audio's (§2.1) or, with many peers beside Opus, 8000.
  case telephoneEvent(clockRateHz: UInt32)
  /// RFC 3389 at 8000 Hz.
  case comfortNoise
}

/// A format under its payload type number. The two directions of a stream may have different numbers for one format (RFC 3264
/// §5.1, §6.1).
public struct NumberedFormat: Hashable, Sendable {
  /// 0…127.
  public var payloadType: UInt8
  public var format: PayloadFormat
  public init(_ payloadType: UInt8, _ format: PayloadFormat) { (self.payloadType, self.format) = (payloadType & 0x7f, format) }
}
