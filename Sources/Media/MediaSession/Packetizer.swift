/// Gathers encoded G.711 octets into packets of the trunk's packet time: 80 to 480 octets from ticks of 160.
struct Packetizer: ~Copyable {
  /// A packet that is a frame short, and the frame.
  private static let capacity = Limits.packetTimeMilliseconds.upperBound * 8 + Frame.samples
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

/// Gathers frames into what one Opus packet holds: 10, 20, 40 or 60 ms. 30 ms and 50 ms are no Opus frames (RFC 6716 §2.1.4).
/// Takes memory with the first `setPacketTime`.
struct GatheredSamples: ~Copyable {
  private static let capacity = 4 * Frame.samples
  private(set) var count = 0
  private(set) var packetSamples = Frame.samples
  // `capacity` initialised samples of which `count` are waiting; freed in deinit.
  private var memory: UnsafeMutablePointer<Int16>?

  init() {}
  deinit { memory?.deallocate() }

  /// What waits; `count` samples, nil before the first `setPacketTime`.
  var samples: UnsafePointer<Int16>? { memory.map { UnsafePointer($0) } }

  /// The longest packet that is no longer than asked for. Allocates the first time.
  mutating func setPacketTime(milliseconds: Int) {
    if memory == nil {
      let samples = UnsafeMutablePointer<Int16>.allocate(capacity: Self.capacity)
      samples.initialize(repeating: 0, count: Self.capacity)
      memory = samples
    }
    let legal = [60, 40, 20].first { $0 <= milliseconds } ?? 10
    packetSamples = legal * Frame.samples / Frame.milliseconds
  }

  mutating func append(_ frame: UnsafePointer<Int16>) {
    guard let memory, count + Frame.samples <= Self.capacity else { return }
    (memory + count).update(from: frame, count: Frame.samples)
    count += Frame.samples
  }

  mutating func remove(_ length: Int) {
    let length = min(count, length)
    count -= length
    if count > 0, let memory { memory.update(from: memory + length, count: count) }
  }

  /// Drops what waits and returns how much it was.
  mutating func clear() -> Int {
    defer { count = 0 }
    return count
  }
}
