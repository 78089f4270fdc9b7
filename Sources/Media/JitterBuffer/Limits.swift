/// The named limits of this module: every bound on a queue, table or message.
public enum Limits {
  /// Packets stored at a time, a power of two up to 64: 1.28 s at 20 ms. Beyond it the oldest are dropped.
  public static let packets = 64
  /// Octets of a slot for each octet of a clock unit: 20 ms of G.711 or any 20 ms Opus packet of speech fits.
  public static let slotLength = 256
  /// The largest octets per clock unit for which slots grow.
  static let unitOctets = 4
  /// Larger payloads, up to a datagram, stored at a time: 0.6 s of 60 ms G.711.
  public static let largePackets = 12
  public static let largeLength = 1504
  /// A sequence number further back than this is another stream, not reordering.
  static let misorder = 100
  /// Unless its packet is at most this late, as long as a network can hold packets back.
  static let lateMilliseconds = 10_000
  /// If more than this is queued beyond the wanted delay, audio is dropped instead of played faster: after a stall.
  static let excessMilliseconds = 400
  /// A timestamp step of more than this that time does not explain is a new timeline.
  static let timestampStepMilliseconds = 1000
  /// A packet this late is part of a stall, which no delay can cover.
  static let stallMilliseconds = 400
  /// A packet of the next number that is this much later than its timestamp ends a stall, or a pause without a clock.
  /// `MediaSession` considers a peer present for as long without a packet.
  static let standstillMilliseconds = 200
  /// Packets until the histogram alone determines the spread, and the largest spread accepted before.
  static let startPackets = 100
  static let startMilliseconds = 80
  /// Packets for which a loss that a copy repairs keeps the delay that its repair needs.
  static let repairHoldPackets = 250
  /// If a loss can be concealed better with the next packet at hand, two losses within `bridgedPackets` are worth a packet of
  /// delay; `bridgeHoldPackets` without a loss end that.
  static let bridgedPackets = 100
  static let bridgeHoldPackets = 500
  /// Packets for which a network that reordered packets is expected to reorder more.
  static let overtakenPackets: Int64 = 200
  /// Packets for which a network that lost packets is expected to lose more.
  static let lossyPackets: Int64 = 200
  /// Length of the join where a lost packet is skipped to shorten the delay.
  static let joinMilliseconds = 5
  /// The consumer's period.
  static let tickMilliseconds = 20
  /// The longest path accepted: bounds the effect of a forged round trip.
  static let pathMilliseconds = 2_000.0
  /// The largest delay that the policy requests.
  static let delayMilliseconds = 500
}
