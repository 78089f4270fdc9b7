/// Gathers encoded G.711 octets into packets of the trunk's packet time: 80 to 480 octets from ticks of 160.
struct Packetizer: ~Copyable {
  private static let capacity = 1_024
  private(set) var count = 0
  var packetBytes = Frame.samples
  // `capacity` initialised octets of which `count` are waiting; freed in deinit.
  private let octets: UnsafeMutablePointer<UInt8>

  init() {
    octets = .allocate(capacity: Self.capacity)
    octets.initialize(repeating: 0, count: Self.capacity)
  }
  deinit { octets.deallocate() }

  /// Where the next frame is encoded; at least 160 octets, nil when nobody takes packets.
  var room: UnsafeMutablePointer<UInt8>? { count + Frame.samples <= Self.capacity ? octets + count : nil }
  mutating func added(_ bytes: Int) { count = min(Self.capacity, count + bytes) }

  /// Moves one packet's payload to `destination`; false if there is less than a packet.
  mutating func take(into destination: UnsafeMutableRawPointer) -> Bool {
    guard count >= packetBytes else { return false }
    destination.copyMemory(from: octets, byteCount: packetBytes)
    count -= packetBytes
    if count > 0 { octets.update(from: octets + packetBytes, count: count) }
    return true
  }

  /// Drops what waits and returns how much it was.
  mutating func clear() -> Int {
    defer { count = 0 }
    return count
  }
}
