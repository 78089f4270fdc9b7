/// What is known of a stored packet. Times are in RTP clock units on the stream's extended timeline.
@usableFromInline struct StoredPacket {
  /// Extended sequence number, −1 for a free slot.
  @usableFromInline var sequence: Int64
  @usableFromInline var timestamp: Int64
  /// Arrival minus timestamp: the packet's delay plus a constant.
  @usableFromInline var transit: Int64
  @usableFromInline var duration: Int32
  /// At most `Limits.largeLength`.
  @usableFromInline var length: UInt16 = 0
  /// Where its octets are: a room, and from `Limits.packets` on a large one; with `placeholderRoom` set if it is not audio.
  @usableFromInline var room: UInt8 = 0
  @usableFromInline var carriesRepair: Bool
  /// Not audio (telephone-event, comfort noise): only its place in the sequence counts.
  var isPlaceholder: Bool { duration <= 0 }
  /// Set in `room` of a placeholder, so that one comparison tells the usual packet: audio, in a small room.
  static let placeholderRoom: UInt8 = 0x80

  @inlinable init(
    sequence: Int64 = -1, timestamp: Int64 = 0, transit: Int64 = 0, duration: Int32 = 0, carriesRepair: Bool = false
  ) {
    (self.sequence, self.timestamp, self.transit) = (sequence, timestamp, transit)
    (self.duration, self.carriesRepair) = (duration, carriesRepair)
  }
}

/// Store: a ring of `Limits.packets` slots found by extended sequence number, and as many rooms for payloads, allocated at set-up
/// (3 KB + 16 KB + 18 KB for large payloads). The first free room is taken, so that of a usual call only the first few are ever
/// touched and cost memory. Two numbers never share a slot as long as all lie within `Limits.packets` of each other, which the buffer
/// above keeps true.
@usableFromInline struct PacketStore: ~Copyable {
  @usableFromInline let slots: UnsafeMutablePointer<StoredPacket>
  @usableFromInline let octets: UnsafeMutablePointer<UInt8>
  private static let largeOffset = Limits.packets * Limits.slotLength
  private static let octetCount = largeOffset + Limits.largePackets * Limits.largeLength
  @usableFromInline var freeRooms = UInt64.max
  private var largeInUse: UInt32 = 0
  /// Slots in use: each has a room.
  var count: Int { Limits.packets &- freeRooms.nonzeroBitCount &+ largeInUse.nonzeroBitCount }
  var isEmpty: Bool { freeRooms == .max && largeInUse == 0 }

  init() {
    slots = .allocate(capacity: Limits.packets)
    slots.initialize(repeating: StoredPacket(), count: Limits.packets)
    octets = .allocate(capacity: Self.octetCount)
  }

  @inlinable deinit {
    slots.deallocate()
    octets.deallocate()
  }

  @inlinable @inline(__always) func index(_ sequence: Int64) -> Int { Int(truncatingIfNeeded: sequence) & (Limits.packets &- 1) }

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
    let slot = slots + index(packet.sequence)
    guard slot.pointee.sequence < 0, freeRooms != 0 else { return false }
    putNext(packet, payload)
    if packet.isPlaceholder { slot.pointee.room |= StoredPacket.placeholderRoom }
    return true
  }

  /// Stores a packet whose number is beyond all stored, but not by the length of the ring, and whose payload fits into
  /// `Limits.slotLength`: its slot is free, and so is a room. The copy comes last, so that nothing has to be kept across it.
  // HOT
  @inlinable @inline(__always) mutating func putNext(_ packet: StoredPacket, _ payload: Span<UInt8>) {
    // Within the slab even if none were free.
    let room = (freeRooms | 1 << UInt64(Limits.packets &- 1)).trailingZeroBitCount
    freeRooms &= freeRooms &- 1
    var packet = packet
    packet.length = UInt16(truncatingIfNeeded: payload.count)
    packet.room = UInt8(truncatingIfNeeded: room)
    slots[index(packet.sequence)] = packet
    let target = UnsafeMutableRawPointer(octets + (room &* Limits.slotLength))
    payload.withUnsafeBufferPointer { source in
      guard let base = source.baseAddress else { return }
      guard source.count == Limits.usualLength else { return target.copyMemory(from: base, byteCount: source.count) }
      // In halves, each copied in place: a call for one length takes as long, but for the call.
      target.copyMemory(from: base, byteCount: Limits.usualLength / 2)
      (target + Limits.usualLength / 2).copyMemory(from: base + Limits.usualLength / 2, byteCount: Limits.usualLength / 2)
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
    if packet.isPlaceholder { slots[position].room |= StoredPacket.placeholderRoom }
    let target = octets + (Self.largeOffset &+ free &* Limits.largeLength)
    payload.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { target.update(from: base, count: source.count) }
    }
    return true
  }

  @inline(__always) private func offset(_ packet: StoredPacket) -> Int {
    let room = Int(packet.room & ~StoredPacket.placeholderRoom)
    return room < Limits.packets
      ? room &* Limits.slotLength : Self.largeOffset &+ (room &- Limits.packets) &* Limits.largeLength
  }

  /// The next packet in the usual case: audio that follows, in a small room; taken out. Its octets stay readable until the next
  /// `put`.
  // HOT
  @inlinable @inline(__always) mutating func take(_ sequence: Int64, at timestamp: Int64) -> FetchedPacket? {
    let slot = slots + index(sequence)
    guard _fastPath(slot.pointee.sequence == sequence), _fastPath(slot.pointee.timestamp == timestamp) else { return nil }
    let room = slot.pointee.room
    guard _fastPath(room < UInt8(Limits.packets)) else { return nil }
    freeRooms |= 1 &<< UInt64(room)
    slot.pointee.sequence = -1
    return FetchedPacket(
      start: UnsafePointer(octets + Int(room) &* Limits.slotLength), length: slot.pointee.length,
      units: UInt32(bitPattern: slot.pointee.duration))
  }

  /// Frees a slot. Its octets stay readable until the next `put`.
  // HOT
  @inline(__always) mutating func remove(_ sequence: Int64) {
    let position = index(sequence)
    guard slots[position].sequence == sequence else { return }
    let room = slots[position].room & ~StoredPacket.placeholderRoom
    if room < UInt8(Limits.packets) {
      freeRooms |= 1 &<< UInt64(room)
    } else {
      largeInUse &= ~(1 &<< UInt32(room &- UInt8(Limits.packets)))
    }
    slots[position].sequence = -1
  }

  mutating func removeAll() {
    for position in 0..<Limits.packets { slots[position].sequence = -1 }
    (freeRooms, largeInUse) = (.max, 0)
  }

  /// The payload of a packet that is stored, or was removed since the last `put`; `length` octets.
  @inline(__always) mutating func payload(_ packet: StoredPacket) -> UnsafePointer<UInt8> {
    // Invariant: offset and length come from a StoredPacket this store filled, so the range lies in the slab.
    UnsafePointer(octets + offset(packet))
  }

  /// The lowest stored number above `sequence` and up to `last`.
  // HOT
  mutating func first(after sequence: Int64, through last: Int64) -> StoredPacket? {
    guard !isEmpty, last > sequence else { return nil }
    for candidate in (sequence &+ 1)...last {
      if let packet = packet(candidate) { return packet }
    }
    return nil
  }
}
