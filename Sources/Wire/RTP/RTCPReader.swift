/// Why a datagram is not RTCP.
public enum RTCPParseError: Error, Sendable, Equatable {
  case truncated
  case badVersion
  /// The first packet is neither a report nor (RFC 5506 reduced size) feedback.
  case badFirstPacket
  case badPadding
  /// A count or length inside a packet exceeds the packet.
  case badLength
  /// More than `Limits.packetsInCompound`.
  case tooManyPackets
}

/// Walks a compound RTCP datagram (RFC 3550 §6.1, A.2) packet by packet, allocation-free:
///
///     var reader = RTCPReader()
///     while let packet = try reader.next(in: datagram) { … }
///
/// After a thrown error the rest of the datagram must be dropped; packets read before it are valid.
public struct RTCPReader: Sendable {
  private var offset = 0
  private var count = 0

  public init() {}

  /// The next packet, nil at the end.
  public mutating func next(in datagram: Span<UInt8>) throws(RTCPParseError) -> RTCPPacket? {
    guard offset < datagram.count || count == 0 else { return nil }
    guard datagram.count <= Limits.datagramLength, datagram.count &- offset >= 4 else { throw .truncated }
    guard count < Limits.packetsInCompound else { throw .tooManyPackets }
    let bytes = datagram.bytes
    let first = datagram[offset]
    let type = datagram[offset &+ 1]
    guard first >> 6 == 2 else { throw .badVersion }
    guard count > 0 || (type >= 200 && type <= 207) else { throw .badFirstPacket }
    let end = offset &+ 4 &+ 4 &* Int(bytes.bigEndian16(at: offset &+ 2))
    guard end <= datagram.count else { throw .truncated }
    var bodyEnd = end
    if first & 0x20 != 0 {
      // Only the last packet of a compound may be padded (§6.4.1).
      let padding = Int(datagram[end &- 1])
      guard end == datagram.count, padding > 0, padding % 4 == 0, padding <= end &- offset &- 4 else { throw .badPadding }
      bodyEnd = end &- padding
    }
    let body = (offset &+ 4)..<bodyEnd
    let packet = try Self.packet(type: type, itemCount: Int(first & 0x1f), body: body, in: datagram)
    offset = end
    count &+= 1
    return packet
  }

  private static func packet(type: UInt8, itemCount: Int, body: Range<Int>, in datagram: Span<UInt8>) throws(RTCPParseError)
    -> RTCPPacket
  {
    let bytes = datagram.bytes
    let start = body.lowerBound
    switch type {
    case 200:
      guard body.count >= 24 &+ itemCount &* ReportBlock.length else { throw .badLength }
      let info = SenderInfo(
        ntp: NTPTimestamp(raw: bytes.bigEndian64(at: start &+ 4)),
        timestamp: RTPTimestamp(raw: bytes.bigEndian32(at: start &+ 12)),
        packets: bytes.bigEndian32(at: start &+ 16), octets: bytes.bigEndian32(at: start &+ 20))
      let blocks = ReportBlocks(offset: start &+ 24, count: itemCount)
      return .senderReport(SSRC(raw: bytes.bigEndian32(at: start)), info, blocks)
    case 201:
      guard body.count >= 4 &+ itemCount &* ReportBlock.length else { throw .badLength }
      return .receiverReport(SSRC(raw: bytes.bigEndian32(at: start)), ReportBlocks(offset: start &+ 4, count: itemCount))
    case 202:
      return try description(chunks: itemCount, body: body, in: datagram)
    case 203:
      guard body.count >= 4 &* itemCount else { throw .badLength }
      return .goodbye(
        itemCount > 0 ? SSRC(raw: bytes.bigEndian32(at: start)) : nil, count: itemCount,
        reason: try goodbyeReason(from: start &+ 4 &* itemCount, to: body.upperBound, in: datagram))
    case 205, 206:
      guard body.count >= 8 else { throw .badLength }
      return .feedback(
        type: type, format: UInt8(truncatingIfNeeded: itemCount), sender: SSRC(raw: bytes.bigEndian32(at: start)),
        media: SSRC(raw: bytes.bigEndian32(at: start &+ 4)), information: (start &+ 8)..<body.upperBound)
    default:
      return .other(type: type)
    }
  }

  private static func goodbyeReason(from offset: Int, to end: Int, in datagram: Span<UInt8>) throws(RTCPParseError) -> Range<Int>?
  {
    guard offset < end else { return nil }
    let length = Int(datagram[offset])
    guard offset &+ 1 &+ length <= end else { throw .badLength }
    return (offset &+ 1)..<(offset &+ 1 &+ length)
  }

  /// The first chunk with a CNAME wins; further chunks are checked by the packet's own length only.
  private static func description(chunks: Int, body: Range<Int>, in datagram: Span<UInt8>) throws(RTCPParseError) -> RTCPPacket {
    guard chunks > 0 else { return .sourceDescription(nil, cname: nil) }
    guard body.count >= 4 else { throw .badLength }
    let source = SSRC(raw: datagram.bytes.bigEndian32(at: body.lowerBound))
    var position = body.lowerBound &+ 4
    while position < body.upperBound, datagram[position] != 0 {
      guard position &+ 2 <= body.upperBound else { throw .badLength }
      let start = position &+ 2
      let end = start &+ Int(datagram[position &+ 1])
      guard end <= body.upperBound else { throw .badLength }
      if datagram[position] == 1 { return .sourceDescription(source, cname: start..<end) }
      position = end
    }
    return .sourceDescription(source, cname: nil)
  }
}
