/// Pages of one Ogg stream (RFC 3533 §6).
struct OggPages {
  private let serial: UInt32
  private var sequence: UInt32 = 0
  private var segments: [UInt8] = []
  private var body: [UInt8] = []
  private(set) var packets = 0

  init(serial: UInt32) { self.serial = serial }

  /// A packet for the next page; nothing if the page has no room for it. False: close the page first.
  mutating func add(_ packet: [UInt8]) -> Bool {
    let lacing = packet.count / 255 + 1
    guard segments.count + lacing <= 255 else { return false }
    segments += [UInt8](repeating: 255, count: lacing - 1) + [UInt8(packet.count % 255)]
    body += packet
    packets += 1
    return true
  }

  /// The page, with the granule position of its last packet.
  mutating func page(granule: UInt64, isFirst: Bool = false, isLast: Bool = false) -> [UInt8] {
    var out = Array("OggS".utf8) + [0, (isFirst ? 2 : 0) | (isLast ? 4 : 0)]
    out += Self.little(granule, 8) + Self.little(UInt64(serial), 4) + Self.little(UInt64(sequence), 4) + [0, 0, 0, 0]
    out.append(UInt8(segments.count))
    out += segments + body
    let sum = Self.checksum(out)
    for (index, octet) in Self.little(UInt64(sum), 4).enumerated() { out[22 + index] = octet }
    sequence &+= 1
    segments = []
    body = []
    packets = 0
    return out
  }

  static func little(_ value: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// CRC-32 with the polynomial 04c11db7, without inversion (RFC 3533 §6).
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    bytes.reduce(UInt32(0)) { ($0 << 8) ^ table[Int(UInt8(truncatingIfNeeded: $0 >> 24) ^ $1)] }
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index) << 24) { sum, _ in sum & 0x8000_0000 != 0 ? (sum << 1) ^ 0x04c1_1db7 : sum << 1 }
  }
}
