/// A stored packet's metadata. Times are in RTP clock units on the stream's extended timeline.
struct StoredPacket {
  /// Extended sequence number, −1 for a free slot.
  var sequence: Int64
  var timestamp: Int64
  /// Arrival minus timestamp: the packet's delay plus a constant.
  var transit: Int64
  var duration: Int32
  /// At most `Limits.largeLength`.
  var length: UInt16 = 0
  /// Index of the room that holds its octets; from `Limits.packets` on, of a large room.
  var room: UInt8 = 0
  /// The coding of the payload, a number that the caller of `insert` chooses, up to 127; the highest bit is `carriesRepair`.
  private var mark: UInt8
  var format: UInt8 { mark & 0x7f }
  var carriesRepair: Bool { mark & 0x80 != 0 }
  /// Not audio (telephone-event, comfort noise): it only holds a position in the sequence.
  var isPlaceholder: Bool { duration <= 0 }

  init(
    sequence: Int64 = -1, timestamp: Int64 = 0, transit: Int64 = 0, duration: Int32 = 0, carriesRepair: Bool = false,
    format: UInt8 = 0
  ) {
    (self.sequence, self.timestamp, self.transit) = (sequence, timestamp, transit)
    self.duration = duration
    mark = format & 0x7f | (carriesRepair ? 0x80 : 0)
  }
}

/// Store: a ring of `Limits.packets` slots, found by extended sequence number, and as many rooms for payloads, allocated at
/// set-up (3 KB + 16 KB, of G.711, + 18 KB for large payloads). A packet gets the first free room, so that a usual call touches,
/// and pays memory for, only the first few. Two numbers never share a slot as long as all lie within `Limits.packets` of each
/// other, which `PlayoutBuffer` guarantees.
struct PacketStore: ~Copyable {
  let slots: UnsafeMutablePointer<StoredPacket>
  let octets: UnsafeMutablePointer<UInt8>
  private let slotLength: Int
  private let largeOffset: Int
  var freeRooms = UInt64.max
  private var largeInUse: UInt32 = 0
  /// Slots in use.
  var count: Int { Limits.packets &- freeRooms.nonzeroBitCount &+ largeInUse.nonzeroBitCount }
  var isEmpty: Bool { freeRooms == .max && largeInUse == 0 }

  init(slotLength: Int = Limits.slotLength) {
    (self.slotLength, largeOffset) = (slotLength, Limits.packets * slotLength)
    slots = .allocate(capacity: Limits.packets)
    slots.initialize(repeating: StoredPacket(), count: Limits.packets)
    octets = .allocate(capacity: largeOffset + Limits.largePackets * Limits.largeLength)
  }

  deinit {
    slots.deallocate()
    octets.deallocate()
  }

  func index(_ sequence: Int64) -> Int { Int(truncatingIfNeeded: sequence) & (Limits.packets &- 1) }

  /// The packet of this number, if stored; valid until it is removed or another is stored.
  // HOT
  func packet(_ sequence: Int64) -> UnsafePointer<StoredPacket>? {
    let slot = slots + index(sequence)
    return slot.pointee.sequence == sequence ? UnsafePointer(slot) : nil
  }

  /// Copies a payload in. False if it is too large, no room for large ones is free, or its slot is in use.
  // HOT
  @inline(__always) mutating func put(_ packet: StoredPacket, payload: Span<UInt8>) -> Bool {
    guard payload.count <= slotLength else { return putLarge(packet, payload: payload) }
    // There are as many rooms as slots. `PlayoutBuffer` keeps numbers closer together than the ring is long; if it did not, no
    // stored packet may be lost.
    let slot = slots + index(packet.sequence)
    guard slot.pointee.sequence < 0, freeRooms != 0 else { return false }
    let room = freeRooms.trailingZeroBitCount
    freeRooms &= freeRooms &- 1
    slot.pointee = packet
    slot.pointee.length = UInt16(truncatingIfNeeded: payload.count)
    slot.pointee.room = UInt8(truncatingIfNeeded: room)
    copy(payload, to: room &* slotLength)
    return true
  }

  @inline(__always) private func copy(_ payload: Span<UInt8>, to offset: Int) {
    for index in payload.indices { octets[offset &+ index] = payload[index] }
  }

  @inline(never) private mutating func putLarge(_ packet: StoredPacket, payload: Span<UInt8>) -> Bool {
    let free = (~largeInUse).trailingZeroBitCount
    let position = index(packet.sequence)
    guard payload.count <= Limits.largeLength, free < Limits.largePackets, slots[position].sequence < 0 else { return false }
    largeInUse |= 1 << UInt32(free)
    slots[position] = packet
    slots[position].length = UInt16(truncatingIfNeeded: payload.count)
    slots[position].room = UInt8(truncatingIfNeeded: Limits.packets &+ free)
    copy(payload, to: largeOffset &+ free &* Limits.largeLength)
    return true
  }

  /// Frees the slot of a stored packet. Its octets stay readable until the next `put`.
  // HOT
  @inline(__always) mutating func remove(_ packet: UnsafePointer<StoredPacket>) {
    let room = packet.pointee.room
    if room < UInt8(Limits.packets) {
      freeRooms |= 1 &<< UInt64(room)
    } else {
      largeInUse &= ~(1 &<< UInt32(room &- UInt8(Limits.packets)))
    }
    UnsafeMutablePointer(mutating: packet).pointee.sequence = -1
  }

  mutating func removeAll() {
    for position in 0..<Limits.packets { slots[position].sequence = -1 }
    freeRooms = .max
    largeInUse = 0
  }

  /// The payload of a packet that is stored, or was removed since the last `put`.
  func payload(_ packet: UnsafePointer<StoredPacket>) -> UnsafeBufferPointer<UInt8> {
    // Invariant: room and length come from a packet that this store filled, so the range lies in the slab.
    let room = Int(packet.pointee.room)
    let offset =
      room < Limits.packets ? room &* slotLength : largeOffset &+ (room &- Limits.packets) &* Limits.largeLength
    return UnsafeBufferPointer(start: octets + offset, count: Int(packet.pointee.length))
  }

  /// The stored packet with the lowest number above `sequence` and up to `last`.
  func first(after sequence: Int64, through last: Int64) -> UnsafePointer<StoredPacket>? {
    guard !isEmpty, last > sequence else { return nil }
    for candidate in (sequence &+ 1)...last {
      if let packet = packet(candidate) { return packet }
    }
    return nil
  }
}
