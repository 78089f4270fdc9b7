/// The named limits of this module: every bound on a queue, table or message.
public enum Limits {
  /// Octets of an RTP fixed header (RFC 3550 §5.1).
  public static let fixedHeaderLength = 12
  /// CSRC count is four bits wide.
  public static let contributingSources = 15
  /// A larger datagram is refused unread: an Ethernet payload.
  public static let datagramLength = 1500
  /// Octets of a payload that fits into such a datagram with IPv6, UDP and RTP headers and the longest SRTP tag.
  static let payloadLength = datagramLength - 40 - 8 - fixedHeaderLength - 16
  /// Payload types of RFC 3551 §6 and those that descriptions assign. 35 to 95 are reserved, 64 to 95 are RTCP's (RFC 5761 §4).
  static let staticPayloadTypes: ClosedRange<UInt8> = 0...34
  static let dynamicPayloadTypes: ClosedRange<UInt8> = 96...127
  /// RTCP packets in one compound datagram.
  public static let packetsInCompound = 32
  /// Reception report blocks in one report: five bits.
  public static let reportBlocks = 31
  /// Octets of one SDES item or BYE reason.
  public static let descriptionLength = 255

  /// Telephone-events read from one packet; more are ignored.
  public static let eventsPerPacket = 16

  /// RFC 3550 A.1: a jump beyond this is a restart, not loss.
  static let dropout = 3000
  /// RFC 3550 A.1: further back than this is not reordering.
  static let misorder = 100
  /// RFC 3550 A.1: packets in order before a source counts.
  static let minimumSequential = 2
}
