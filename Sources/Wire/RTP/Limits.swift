/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// Octets of an RTP fixed header (RFC 3550 §5.1).
  public static let fixedHeaderLength = 12
  /// CSRC count is four bits wide.
  public static let contributingSources = 15
  /// A larger datagram is refused unread: an Ethernet payload.
  public static let datagramLength = 1500
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
