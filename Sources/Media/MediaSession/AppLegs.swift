/// The app legs of a session, by slot, and which of them has the call.
///
/// | operation | legs | winner |
/// |---|---|---|
/// | `insert`, a slot is free | the leg is in the first free slot; if no memory is left, it doubles | same |
/// | `insert`, all `Limits.appLegs` slots are used | same | same |
/// | `choose` an existing leg | same | that leg; returns whether it was another one before |
/// | `choose` an empty slot | same | same |
/// | `remove` the winner | its slot is free | none; returns true |
/// | `remove` another leg | its slot is free | same |
/// | `remove` an empty slot | same | same |
///
/// A leg uses 1.3 KB and most calls have one: the memory grows 1, 2, 4, 8, 16. Slots keep their numbers.
struct AppLegs: ~Copyable {
  // `capacity` slots, initialised where the bit in `used` is set; freed in deinit. They move only when a leg is added.
  private var storage: UnsafeMutablePointer<AppLeg>
  private var used: UInt32 = 0
  private var capacity: UInt32 = 1
  /// The slot of the leg that has the call, or −1.
  private(set) var winner = -1

  init() { storage = .allocate(capacity: 1) }

  deinit {
    for index in 0..<Int(capacity) where used & 1 << UInt32(index) != 0 { (storage + index).deinitialize(count: 1) }
    storage.deallocate()
  }

  /// The legs by slot; only those for which `has` is true may be accessed, and not after `insert` or `remove`. To mutate through
  /// it, copy it into a local first: an l-value path that begins at the session aborts the compiler's thread sanitizer pass
  /// (docs/design/tests-and-benches.md, Sanitizers).
  @inline(__always) var slots: UnsafeMutablePointer<AppLeg> { storage }

  @inline(__always) func has(_ index: Int) -> Bool {
    index >= 0 && index < Limits.appLegs && used & 1 << UInt32(truncatingIfNeeded: index) != 0
  }

  /// Then `slots[winner]` exists.
  @inline(__always) var hasWinner: Bool { winner >= 0 }

  /// The slot of a leg; nil for an unknown one.
  func index(of leg: AppLegID) -> Int? {
    for index in 0..<Limits.appLegs where has(index) && storage[index].id == leg { return index }
    return nil
  }

  mutating func insert(_ leg: consuming AppLeg) {
    guard let free = (0..<Limits.appLegs).first(where: { !has($0) }) else { return }
    if free >= capacity {
      let more = UnsafeMutablePointer<AppLeg>.allocate(capacity: 2 * Int(capacity))
      // All slots are used: the memory is full.
      more.moveInitialize(from: storage, count: Int(capacity))
      storage.deallocate()
      storage = more
      capacity = 2 * capacity
    }
    (storage + free).initialize(to: leg)
    used |= 1 << UInt32(free)
  }

  /// Returns whether another leg, or none, was the winner.
  @discardableResult mutating func choose(_ index: Int) -> Bool {
    guard has(index), winner != index else { return false }
    winner = index
    return true
  }

  /// Returns whether it was the winner.
  @discardableResult mutating func remove(_ index: Int) -> Bool {
    guard has(index) else { return false }
    (storage + index).deinitialize(count: 1)
    used &= ~(1 << UInt32(index))
    guard winner == index else { return false }
    winner = -1
    return true
  }
}
