import TrunklineBytes

/// Keeps encoded packets of a talker's pause, to send them repeatedly in place of encoding more: a continuous stream whose pauses
/// cost nothing. The order is random, so that a little noise does not become a buzz.
///
/// Accepts only packets of the codec's own silence, without the voice flag and without a copy of the previous packet, which would
/// repeat the last word where a packet is lost. 0.8 KB; no allocation after `init`.
public struct CodedSilence: ~Copyable {
  private static let packets = 8
  /// Octets: 20 ms of noise are 30 to 60.
  private static let longest = 96
  /// Packets sent until new ones must be kept: 10 s.
  private static let lifetime = 500

  // `packets` slots of `longest` octets, initialised; freed in deinit.
  private let octets: UnsafeMutablePointer<UInt8>
  private var lengths = SIMD8<UInt8>.zero
  private var count = 0
  private var oldest = 0
  private var last = 0
  private var sent = 0
  private var random = SplitMix64(seed: 1)

  public init() {
    octets = .allocate(capacity: Self.packets * Self.longest)
    octets.initialize(repeating: 0, count: Self.packets * Self.longest)
  }
  deinit { octets.deallocate() }

  /// Whether enough packets are kept to continue without the encoder.
  public var isComplete: Bool { count == Self.packets }

  /// Drops the packets when the talker speaks: they belong to an earlier pause.
  public mutating func removeAll() { (count, oldest, sent) = (0, 0, 0) }

  /// Keeps a packet of the pause, in place of the oldest of eight.
  public mutating func keep(_ packet: Span<UInt8>) {
    guard packet.count <= Self.longest, OpusPacket.isSilence(packet) else { return }
    let slot = octets + oldest * Self.longest
    for index in 0..<packet.count { slot[index] = packet[index] }
    lengths[oldest] = UInt8(packet.count)
    oldest = (oldest + 1) % Self.packets
    count = min(Self.packets, count + 1)
  }

  /// The next packet, valid until `keep`; nil while there are too few, or they are too old.
  public mutating func next() -> UnsafeRawBufferPointer? {
    guard isComplete else { return nil }
    sent += 1
    guard sent <= Self.lifetime else {
      removeAll()
      return nil
    }
    // Any packet but the last one sent.
    last = (last + 1 + Int(random.next() % UInt64(Self.packets - 1))) % Self.packets
    return UnsafeRawBufferPointer(start: octets + last * Self.longest, count: Int(lengths[last]))
  }
}
