import TrunklineBytes

/// Why bytes are not an RTP packet. Counted by the receiver, never fatal.
public enum RTPParseError: Error, Sendable, Equatable {
  /// Shorter than the header it announces (fixed part, CSRC list or extension).
  case truncated
  case badVersion
  /// The padding count is 0 or larger than the rest after the header.
  case badPadding
  /// Larger than `Limits.datagramLength`.
  case tooLong
}

/// The header of one RTP packet (RFC 3550 §5.1) as values, with the offsets of its parts in the datagram. Copies nothing,
/// allocates nothing.
@frozen public struct RTPHeader: Sendable, Equatable {
  public var marker: Bool
  /// 0…127.
  public var payloadType: UInt8
  public var sequence: SequenceNumber
  public var timestamp: RTPTimestamp
  public var ssrc: SSRC
  /// 0…15; the list starts at offset 12.
  public var csrcCount: Int
  /// Offset of the extension's body and its length in octets, both 0 without one.
  public var extensionOffset: Int
  public var extensionLength: Int
  /// The "defined by profile" field; meaningless without an extension.
  public var extensionProfile: UInt16
  /// Octets before the payload: where decryption starts.
  public var length: Int
  /// Octets of payload without padding.
  public var payloadLength: Int
  /// Octets of padding at the end, its count included.
  public var paddingLength: Int

  /// A header to write, without CSRC, extension or padding.
  @inlinable public init(
    payloadType: UInt8, marker: Bool, sequence: SequenceNumber, timestamp: RTPTimestamp, ssrc: SSRC, payloadLength: Int = 0
  ) {
    (self.marker, self.payloadType, self.sequence) = (marker, payloadType & 0x7f, sequence)
    (self.timestamp, self.ssrc, self.payloadLength) = (timestamp, ssrc, payloadLength)
    (csrcCount, extensionOffset, extensionLength, extensionProfile) = (0, 0, 0, 0)
    (length, paddingLength) = (Limits.fixedHeaderLength, 0)
  }

  /// Reads a whole packet in the clear. Every announced length is checked against the datagram.
  // HOT
  @inlinable public init(parsing packet: Span<UInt8>) throws(RTPParseError) {
    try self.init(parsingProtected: packet)
    guard paddingLength != 0 else { return }
    // The count is in the packet's last octet; §5.1: it counts itself.
    let padding = Int(packet[packet.count &- 1])
    guard padding > 0, padding <= payloadLength else { throw .badPadding }
    paddingLength = padding
    payloadLength &-= padding
  }

  /// Reads only the part that SRTP leaves in the clear, like `init(parsing:)`, but `payloadLength` extends to the datagram's
  /// end (ciphertext and tag), and `paddingLength` is 1 when the P bit is set, since the real count is encrypted. Parse again
  /// after unprotecting.
  // HOT
  @inlinable public init(parsingProtected packet: Span<UInt8>) throws(RTPParseError) {
    let count = packet.count
    guard count >= Limits.fixedHeaderLength else { throw .truncated }
    guard count <= Limits.datagramLength else { throw .tooLong }
    let bytes = packet.bytes
    let first = bytes.unsafeLoad(as: UInt8.self)
    let second = bytes.unsafeLoad(fromByteOffset: 1, as: UInt8.self)
    guard first >> 6 == 2 else { throw .badVersion }
    marker = second & 0x80 != 0
    payloadType = second & 0x7f
    sequence = SequenceNumber(raw: UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 2, as: UInt16.self)))
    timestamp = RTPTimestamp(raw: UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    ssrc = SSRC(raw: UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt32.self)))
    csrcCount = Int(first & 0x0f)
    var end = Limits.fixedHeaderLength &+ 4 &* csrcCount
    (extensionOffset, extensionLength, extensionProfile) = (0, 0, 0)
    if first & 0x10 != 0 {
      guard end &+ 4 <= count else { throw .truncated }
      extensionProfile = UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: end, as: UInt16.self))
      extensionLength = 4 &* Int(UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: end &+ 2, as: UInt16.self)))
      extensionOffset = end &+ 4
      end = extensionOffset &+ extensionLength
    }
    guard end <= count else { throw .truncated }
    length = end
    payloadLength = count &- end
    paddingLength = first & 0x20 != 0 ? 1 : 0
  }

  /// The payload of the packet this header was parsed from.
  @_lifetime(copy packet)
  @inlinable public func payload(of packet: Span<UInt8>) -> Span<UInt8> {
    packet.extracting(length..<(length &+ payloadLength))
  }

  /// One contributing source; nil beyond the count.
  public func contributingSource(_ index: Int, of packet: Span<UInt8>) -> SSRC? {
    guard index >= 0, index < csrcCount, Limits.fixedHeaderLength &+ 4 &* csrcCount <= packet.count else { return nil }
    return SSRC(raw: packet.bytes.bigEndian32(at: Limits.fixedHeaderLength &+ 4 &* index))
  }

  /// Writes the twelve octets of a plain header (no CSRC, extension or padding) and returns 12, or nil if they do not fit.
  // HOT
  @inlinable public func write(into packet: inout MutableSpan<UInt8>) -> Int? {
    guard packet.count >= Limits.fixedHeaderLength else { return nil }
    var bytes = packet.mutableBytes
    bytes.storeBytes(of: 0x80, toByteOffset: 0, as: UInt8.self)
    bytes.storeBytes(of: (marker ? 0x80 : 0) | (payloadType & 0x7f), toByteOffset: 1, as: UInt8.self)
    bytes.storeBytes(of: sequence.raw.bigEndian, toByteOffset: 2, as: UInt16.self)
    bytes.storeBytes(of: timestamp.raw.bigEndian, toByteOffset: 4, as: UInt32.self)
    bytes.storeBytes(of: ssrc.raw.bigEndian, toByteOffset: 8, as: UInt32.self)
    return Limits.fixedHeaderLength
  }
}

extension RawSpan {
  func bigEndian16(at offset: Int) -> UInt16 { UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self)) }
  func bigEndian32(at offset: Int) -> UInt32 { UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)) }
  func bigEndian64(at offset: Int) -> UInt64 { UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
}
