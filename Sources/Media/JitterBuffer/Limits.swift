/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// Packets kept at a time, a power of two up to 64: 1.28 s at 20 ms. The oldest are dropped beyond it.
  public static let packets = 64
  /// Octets of a slot for each octet of a clock unit: 20 ms of G.711 or any 20 ms Opus packet of speech fits.
  public static let slotLength = 256
  /// Octets of a clock unit that slots grow for.
  static let unitOctets = 4
  /// Larger payloads, up to a datagram, kept at a time: 0.6 s of 60 ms G.711.
  public static let largePackets = 12
  public static let largeLength = 1504
  /// A sequence number further back than this is another stream, not reordering.
  static let misorder = 100
  /// Nor is a packet that late: what a network can hold back.
  static let lateMilliseconds = 10_000
  /// Milliseconds queued beyond what the delay policy wants, from which audio is dropped instead of played faster: after a stall.
  static let excessMilliseconds = 400
  /// A timestamp step of more than this that time does not explain is a new timeline.
  static let timestampStepMilliseconds = 1000
  /// A packet this late is part of a stall, which no delay can cover.
  static let stallMilliseconds = 400
  /// Later than its timestamp says by this, a packet of the next number ends a stall, or a pause without a clock. As long as a peer is
  /// heard to be there without a packet (`MediaSession`).
  static let standstillMilliseconds = 200
  /// Packets until the histogram alone tells the spread, and the most that is believed before.
  static let startPackets = 100
  static let startMilliseconds = 80
  /// Packets for which a loss that a copy repairs keeps the delay that its repair needs.
  static let repairHoldPackets = 250
  /// Two losses of audio that is made up better when the next packet is there, so many packets apart or less, are worth a packet of
  /// delay; and so many packets without any end that.
  static let bridgedPackets = 100
  static let bridgeHoldPackets = 500
  /// Packets for which a network that overtakes is believed to continue doing so.
  static let overtakenPackets: Int64 = 200
  /// Packets for which a network that loses some is believed to continue doing so.
  static let lossyPackets: Int64 = 200
  /// Made up to join the ends where a lost packet is left out to shorten the delay.
  static let joinMilliseconds = 5
  /// The consumer's period.
  static let tickMilliseconds = 20
  /// The longest path that is believed: a forged round trip is worth no more.
  static let pathMilliseconds = 2_000.0
  /// The delay policy never asks for more than this.
  static let delayMilliseconds = 500
}
