import TrunklineRTP

/// Gathers encoded octets into packets of the trunk's packet time, from ticks of 20 ms: for any codec whose octet count
/// determines the duration.
struct Packetizer: ~Copyable {
  private(set) var count = 0
  /// Octets of a packet, of a frame, and of one unit of the clock.
  private(set) var packetBytes = 0
  private(set) var frameBytes = 0
  private var unitBytes = 1
  private(set) var packetUnits: UInt32 = 0
  private var capacity = 0
  // `capacity` initialised octets of which `count` are waiting; nil before the first `setFormat`, freed in deinit.
  private var octets: UnsafeMutablePointer<UInt8>?

  init() {}
  deinit { octets?.deallocate() }

  /// Sets the packet time in milliseconds. Allocates for a codec of another size; drops gathered octets.
  mutating func setFormat(_ row: CodecRow, packetTime: Int) {
    packetBytes = row.octets(ofMilliseconds: packetTime)
    frameBytes = row.octets(ofMilliseconds: Frame.milliseconds)
    unitBytes = row.octetsPerUnit
    packetUnits = UInt32(truncatingIfNeeded: packetBytes / unitBytes)
    // Space for a packet that lacks a frame, and for the frame.
    let needed = row.octets(ofMilliseconds: Limits.packetTimeMilliseconds.upperBound + Frame.milliseconds)
    guard needed != capacity else { return }
    octets?.deallocate()
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: needed)
    memory.initialize(repeating: 0, count: needed)
    octets = memory
    capacity = needed
    count = 0
  }

  /// The memory for the next encoded frame, `frameBytes` long; nil if it is full because packets are not consumed.
  var room: UnsafeMutablePointer<UInt8>? {
    guard let octets, count + frameBytes <= capacity else { return nil }
    return octets + count
  }
  mutating func added(_ bytes: Int) { count = min(capacity, count + bytes) }

  /// Moves one packet's payload to `destination`; false if less than a packet is gathered.
  mutating func pop(into destination: UnsafeMutableRawPointer) -> Bool {
    guard let octets, packetBytes > 0, count >= packetBytes else { return false }
    destination.copyMemory(from: octets, byteCount: packetBytes)
    count -= packetBytes
    if count > 0 { octets.update(from: octets + packetBytes, count: count) }
    return true
  }

  /// Drops gathered octets and returns their duration in units of the clock.
  mutating func clear() -> Int {
    defer { count = 0 }
    return count / unitBytes
  }
}

/// Gathers the frames of one Opus packet: 10, 20, 40 or 60 ms, not 30 or 50 (RFC 6716 §2.1.4). Allocates with the first
/// `setPacketTime`.
struct GatheredSamples: ~Copyable {
  private static let capacity = 4 * Frame.capacity
  private(set) var count = 0
  /// Units of 10 ms in a packet.
  private(set) var packetFrames = 2
  // `capacity` initialised samples of which `count` are waiting; freed in deinit.
  private var memory: UnsafeMutablePointer<Int16>?

  init() {}
  deinit { memory?.deallocate() }

  /// The gathered samples, `count` of them; nil before the first `setPacketTime`.
  var samples: UnsafePointer<Int16>? { memory.map { UnsafePointer($0) } }

  /// `milliseconds` has to be one of the codec's frames. Allocates the first time.
  mutating func setPacketTime(milliseconds: Int) {
    if memory == nil {
      let samples = UnsafeMutablePointer<Int16>.allocate(capacity: Self.capacity)
      samples.initialize(repeating: 0, count: Self.capacity)
      memory = samples
    }
    packetFrames = milliseconds / 10
  }

  mutating func append(_ frame: UnsafePointer<Int16>, _ band: AudioBand) {
    guard let memory, count + band.samplesPerTick <= Self.capacity else { return }
    (memory + count).update(from: frame, count: band.samplesPerTick)
    count += band.samplesPerTick
  }

  mutating func remove(_ length: Int) {
    let length = min(count, length)
    count -= length
    if count > 0, let memory { memory.update(from: memory + length, count: count) }
  }

  /// Drops gathered samples and returns their number.
  mutating func clear() -> Int {
    defer { count = 0 }
    return count
  }
}
