/// What is known of a stored packet. Times are in RTP clock units on the stream's extended timeline.
struct StoredPacket {
  /// Extended sequence number, −1 for a free slot.
  var sequence: Int64 = -1
  var timestamp: Int64 = 0
  /// Arrival minus timestamp: the packet's delay plus a constant.
  var transit: Int64 = 0
  var duration: Int32 = 0
  /// At most `Limits.largeLength`.
  var length: UInt16 = 0
  /// Where its octets are: a room, and from `Limits.packets` on a large one.
  var room: UInt8 = 0
  var carriesRepair = false
  /// Not audio (telephone-event, comfort noise): only its place in the sequence counts.
  var isPlaceholder: Bool { duration <= 0 }
}

/// Store: a ring of `Limits.packets` slots found by extended sequence number, and as many rooms for payloads, allocated at set-up
/// (3 KB + 16 KB + 18 KB for large payloads). The first free room is taken, so that of a usual call only the first few are ever
/// touched and cost memory. Two numbers never share a slot as long as all lie within `Limits.packets` of each other, which the buffer
/// above keeps true.
struct PacketStore: ~Copyable {
  private let slots: UnsafeMutablePointer<StoredPacket>
  private let octets: UnsafeMutablePointer<UInt8>
  private static let largeOffset = Limits.packets * Limits.slotLength
  private static let octetCount = largeOffset + Limits.largePackets * Limits.largeLength
  private var freeRooms = UInt64.max
  private var largeInUse: UInt32 = 0
  /// Slots in use.
  private(set) var count = 0

  init() {
    slots = .allocate(capacity: Limits.packets)
    slots.initialize(repeating: StoredPacket(), count: Limits.packets)
    octets = .allocate(capacity: Self.octetCount)
  }

  deinit {
    slots.deallocate()
    octets.deallocate()
  }

  @inline(__always) private func index(_ sequence: Int64) -> Int { Int(truncatingIfNeeded: sequence) & (Limits.packets &- 1) }

  /// The packet of this number, if stored. Mutating only so that the compiler passes the store by address instead of by a copy.
  // HOT
  @inline(__always) mutating func packet(_ sequence: Int64) -> StoredPacket? {
    let slot = slots + index(sequence)
    return slot.pointee.sequence == sequence ? slot.pointee : nil
  }

  // HOT
  @inline(__always) mutating func contains(_ sequence: Int64) -> Bool { slots[index(sequence)].sequence == sequence }

  /// Copies a payload in. False when it is too large or the pool of large ones is used up. The number's slot must be free.
  // HOT
  mutating func put(_ packet: StoredPacket, payload: Span<UInt8>) -> Bool {
    guard payload.count <= Limits.slotLength else { return putLarge(packet, payload: payload) }
    // There are as many rooms as slots. The buffer above keeps numbers closer together than the ring is long; if it did not, nothing
    // stored may be lost track of.
    guard slots[index(packet.sequence)].sequence < 0, freeRooms != 0 else { return false }
    putNext(packet, payload)
    return true
  }

  /// Stores a packet whose number is beyond all stored, but not by the length of the ring, and whose payload fits into
  /// `Limits.slotLength`: its slot is free, and so is a room. The copy comes last, so that nothing has to be kept across it.
  // HOT
  @inline(__always) mutating func putNext(_ packet: StoredPacket, _ payload: Span<UInt8>) {
    // Within the slab even if that were not so.
    let room = freeRooms.trailingZeroBitCount & (Limits.packets &- 1)
    freeRooms &= freeRooms &- 1
    var packet = packet
    packet.length = UInt16(truncatingIfNeeded: payload.count)
    packet.room = UInt8(truncatingIfNeeded: room)
    slots[index(packet.sequence)] = packet
    count &+= 1
    let target = octets + (room &* Limits.slotLength)
    payload.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { UnsafeMutableRawPointer(target).copyMemory(from: base, byteCount: source.count) }
    }
  }

  @inline(never) private mutating func putLarge(_ packet: StoredPacket, payload: Span<UInt8>) -> Bool {
    let free = (~largeInUse).trailingZeroBitCount
    let position = index(packet.sequence)
    guard payload.count <= Limits.largeLength, free < Limits.largePackets, slots[position].sequence < 0 else { return false }
    largeInUse |= 1 << UInt32(free)
    slots[position] = packet
    slots[position].length = UInt16(truncatingIfNeeded: payload.count)
    slots[position].room = UInt8(truncatingIfNeeded: Limits.packets &+ free)
    let target = octets + (Self.largeOffset &+ free &* Limits.largeLength)
    payload.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { target.update(from: base, count: source.count) }
    }
    count &+= 1
    return true
  }

  @inline(__always) private func offset(_ packet: StoredPacket) -> Int {
    let room = Int(packet.room)
    return room < Limits.packets
      ? room &* Limits.slotLength : Self.largeOffset &+ (room &- Limits.packets) &* Limits.largeLength
  }

  /// The next packet in the usual case: audio, in a small room; taken out. Its octets stay readable until the next `put`.
  // HOT
  @inline(__always) mutating func take(_ sequence: Int64, before limit: Int64) -> StoredPacket? {
    let slot = slots + index(sequence)
    guard slot.pointee.sequence == sequence else { return nil }
    let packet = slot.pointee
    guard packet.timestamp < limit else { return nil }
    guard packet.duration > 0 else { return nil }
    guard packet.room < UInt8(Limits.packets) else { return nil }
    freeRooms |= 1 &<< UInt64(packet.room)
    slot.pointee.sequence = -1
    count &-= 1
    return packet
  }

  /// Frees a slot. Its octets stay readable until the next `put`.
  // HOT
  @inline(__always) mutating func remove(_ sequence: Int64) {
    let position = index(sequence)
    guard slots[position].sequence == sequence else { return }
    let room = slots[position].room
    if room < UInt8(Limits.packets) {
      freeRooms |= 1 &<< UInt64(room)
    } else {
      largeInUse &= ~(1 &<< UInt32(room &- UInt8(Limits.packets)))
    }
    slots[position].sequence = -1
    count &-= 1
  }

  mutating func removeAll() {
    for position in 0..<Limits.packets { slots[position].sequence = -1 }
    (freeRooms, largeInUse) = (.max, 0)
    count = 0
  }

  /// The payload of a packet that is stored, or was removed since the last `put`; `length` octets.
  @inline(__always) mutating func payload(_ packet: StoredPacket) -> UnsafePointer<UInt8> {
    // Invariant: offset and length come from a StoredPacket this store filled, so the range lies in the slab.
    UnsafePointer(octets + offset(packet))
  }

  /// The lowest stored number above `sequence` and up to `last`.
  // HOT
  mutating func first(after sequence: Int64, through last: Int64) -> StoredPacket? {
    guard count > 0, last > sequence else { return nil }
    for candidate in (sequence &+ 1)...last {
      if let packet = packet(candidate) { return packet }
    }
    return nil
  }
}
