import Bytes

/// Packets of a talker's pause, as the encoder made them, to be sent over and over in place of encoding it: a continuous stream whose
/// pauses cost nothing. In an order of chance, so that a little noise does not become a buzz.
///
/// Only packets of the codec's own silence are taken, without the voice flag and without a copy of the packet before, which would bring
/// the last word back where one of them is lost. 0.8 KB; no allocation after `init`.
public struct CodedSilence: ~Copyable {
  private static let packets = 8
  /// Octets: 20 ms of noise are 30 to 60.
  private static let longest = 96
  /// Packets sent until they are made anew: 10 s.
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

  /// There are as many as are needed to go on without the encoder.
  public var isComplete: Bool { count == Self.packets }

  /// Somebody talks: what was kept is another pause's.
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

  /// The next one, valid until `keep`; nil while there are too few, or they are too old.
  public mutating func next() -> UnsafeRawBufferPointer? {
    guard isComplete else { return nil }
    sent += 1
    guard sent <= Self.lifetime else {
      removeAll()
      return nil
    }
    // Any but the last.
    last = (last + 1 + Int(random.next() % UInt64(Self.packets - 1))) % Self.packets
    return UnsafeRawBufferPointer(start: octets + last * Self.longest, count: Int(lengths[last]))
  }
}
