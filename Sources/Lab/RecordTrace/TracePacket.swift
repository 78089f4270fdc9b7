import TrunklineBytes

/// A packet of `record-trace`: the size of G.711 in RTP, and instead of speech its number, the number of all packets, and its
/// send time.
struct TracePacket: Equatable {
  /// Limit: an hour of 10 ms packets.
  static let most = 360_000
  /// No machine runs for thirty years, so no difference of two times overflows.
  private static let latest: Int64 = 1_000_000_000_000_000_000
  private static let mark: [UInt8] = Array("TLTR".utf8)
  private static let headerLength = 12

  var number: Int
  var count: Int
  var packetMilliseconds: Int
  /// Send time by the sender's monotonic clock, in nanoseconds.
  var sent: Int64

  /// RTP with 8 octets of audio a millisecond.
  var datagram: [UInt8] {
    var out: [UInt8] = [0x80, 0]
    func add(_ value: UInt64, _ octets: Int) {
      for shift in (0..<octets).reversed() { out.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * shift))) }
    }
    add(UInt64(truncatingIfNeeded: number), 2)
    add(UInt64(truncatingIfNeeded: number * packetMilliseconds * 8), 4)
    out += Self.mark
    out += Self.mark
    add(UInt64(truncatingIfNeeded: number), 4)
    add(UInt64(truncatingIfNeeded: count), 4)
    add(UInt64(truncatingIfNeeded: packetMilliseconds), 1)
    add(UInt64(bitPattern: sent), 8)
    out += [UInt8](repeating: 0xff, count: max(0, Self.headerLength + 8 * packetMilliseconds - out.count))
    return out
  }

  init(number: Int, count: Int, packetMilliseconds: Int, sent: Int64) {
    (self.number, self.count, self.packetMilliseconds, self.sent) = (number, count, packetMilliseconds, sent)
  }

  /// Nil for any other datagram.
  init?(_ datagram: some RandomAccessCollection<UInt8>) {
    let octets = Array(datagram.prefix(33))
    guard octets.count == 33, Array(octets[8..<12]) == Self.mark, Array(octets[12..<16]) == Self.mark else { return nil }
    func value(_ range: Range<Int>) -> UInt64 { octets[range].reduce(0) { $0 << 8 | UInt64($1) } }
    number = Int(value(16..<20))
    count = Int(value(20..<24))
    packetMilliseconds = Int(octets[24])
    sent = Int64(bitPattern: value(25..<33))
    guard [10, 20, 30, 40, 60].contains(packetMilliseconds), 1...Self.most ~= count else { return nil }
    guard number < count, 0...Self.latest ~= sent else { return nil }
  }
}
