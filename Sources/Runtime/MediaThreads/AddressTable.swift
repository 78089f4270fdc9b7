import TrunklineBytes

/// The leg that a datagram's source belongs to: a flat table with open addressing, no allocation after it is made. Keyed by the
/// receiving socket and the remote address. Removal shifts followers back, so there are no tombstones.
struct AddressTable: ~Copyable {
  struct Owner: Equatable {
    var session: Int32
    var leg: Int32
  }
  private struct Slot {
    var address = SocketAddress(.any, 0)
    var route: Int32 = -1
    var session: Int32 = -1
    var leg: Int32 = -1
  }
  private let mask: Int
  private let limit: Int
  private(set) var count = 0
  // `mask` + 1 initialised slots, at most half of them used; freed in deinit.
  private let slots: UnsafeMutablePointer<Slot>

  /// Room for `limit` addresses.
  init(limit: Int) {
    var size = 16
    while size < limit * 2 { size *= 2 }
    (mask, self.limit) = (size - 1, limit)
    slots = .allocate(capacity: size)
    slots.initialize(repeating: Slot(), count: size)
  }
  deinit { slots.deallocate() }

  /// HOT
  @inline(__always) func find(_ address: SocketAddress, _ route: Int32) -> Owner? {
    var index = hash(address, route)
    while slots[index].session >= 0 {
      if slots[index].address == address, slots[index].route == route {
        return Owner(session: slots[index].session, leg: slots[index].leg)
      }
      index = (index &+ 1) & mask
    }
    return nil
  }

  /// Binds the address to a leg, whichever had it before. False when the table is full.
  mutating func bind(_ address: SocketAddress, _ route: Int32, to owner: Owner) -> Bool {
    var index = hash(address, route)
    while slots[index].session >= 0 {
      if slots[index].address == address, slots[index].route == route {
        slots[index].session = owner.session
        slots[index].leg = owner.leg
        return true
      }
      index = (index &+ 1) & mask
    }
    guard count < limit else { return false }
    slots[index] = Slot(address: address, route: route, session: owner.session, leg: owner.leg)
    count += 1
    return true
  }

  /// Removes an address, if it still belongs to the session.
  mutating func remove(_ address: SocketAddress, _ route: Int32, of session: Int32) {
    var index = hash(address, route)
    while slots[index].session >= 0 {
      if slots[index].address == address, slots[index].route == route {
        if slots[index].session == session { close(index) }
        return
      }
      index = (index &+ 1) & mask
    }
  }

  private mutating func close(_ start: Int) {
    var (gap, index) = (start, (start &+ 1) & mask)
    while slots[index].session >= 0 {
      let home = hash(slots[index].address, slots[index].route)
      // The follower may move into the gap unless its home is after the gap.
      if (index &- home) & mask >= (index &- gap) & mask {
        slots[gap] = slots[index]
        gap = index
      }
      index = (index &+ 1) & mask
    }
    slots[gap] = Slot()
    count -= 1
  }

  @inline(__always) private func hash(_ address: SocketAddress, _ route: Int32) -> Int {
    var value = address.ip.low ^ address.ip.high &* 0x9e37_79b9_7f4a_7c15
    value ^= UInt64(address.port) << 40 ^ UInt64(UInt32(bitPattern: route)) << 20
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return Int(truncatingIfNeeded: value ^ value >> 31) & mask
  }
}
