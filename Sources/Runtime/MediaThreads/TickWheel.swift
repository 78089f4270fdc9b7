import Bytes

/// When each session's 20 ms tick is due: 20 slots of 1 ms, so that a thread's load is even. One thread.
struct TickWheel {
  private var slots: [[Int]] = Array(repeating: [], count: Limits.tickSlots)
  private var origin = Instant.zero
  /// Milliseconds since `origin` that have been run.
  private var position: Int64 = 0
  private var count = 0
  private static let step = Duration.milliseconds(1).nanoseconds

  /// Puts a session into the emptiest slot and returns it.
  mutating func add(_ session: Int, at now: Instant) -> Int {
    if count == 0 { (origin, position) = (now, 0) }
    let slot = slots.indices.min { slots[$0].count < slots[$1].count } ?? 0
    slots[slot].append(session)
    count += 1
    return slot
  }

  mutating func remove(_ session: Int, from slot: Int) {
    guard let index = slots[slot].firstIndex(of: session) else { return }
    slots[slot].remove(at: index)
    count -= 1
  }

  /// The millisecond of the 20 ms period that a slot's ticks lie in.
  func phase(of slot: Int) -> Int { Int((origin.nanoseconds / Self.step + Int64(slot)) % Int64(Limits.tickSlots)) }

  /// Moves a session's tick to `phase`, or to the next slot after it that is not crowded, and returns the slot.
  mutating func move(_ session: Int, from slot: Int, toPhase phase: Int) -> Int {
    guard let index = slots[slot].firstIndex(of: session) else { return slot }
    let crowded = 2 * (count / Limits.tickSlots) + 2
    let home = phase - self.phase(of: 0) + Limits.tickSlots
    for later in 0..<Limits.tickSlots {
      let candidate = (home + later) % Limits.tickSlots
      if candidate == slot { return slot }
      guard slots[candidate].count < crowded else { continue }
      slots[slot].remove(at: index)
      slots[candidate].append(session)
      return candidate
    }
    return slot
  }

  /// When the next occupied slot is due; nil without sessions.
  var nextDue: Instant? {
    guard count > 0 else { return nil }
    var ahead: Int64 = 0
    while slots[Int((position + ahead) % Int64(Limits.tickSlots))].isEmpty { ahead += 1 }
    return Instant(nanoseconds: origin.nanoseconds + (position + ahead) * Self.step)
  }

  /// The sessions of the next occupied slot, which counts as run.
  mutating func take() -> [Int] {
    guard count > 0 else { return [] }
    while slots[Int(position % Int64(Limits.tickSlots))].isEmpty { position += 1 }
    defer { position += 1 }
    return slots[Int(position % Int64(Limits.tickSlots))]
  }

  /// Leaves out all ticks before `now`; how many there were.
  mutating func skip(to now: Instant) -> Int {
    var left = 0
    let target = (now - origin).nanoseconds / Self.step
    while position < target {
      left += slots[Int(position % Int64(Limits.tickSlots))].count
      position += 1
    }
    return left
  }
}
