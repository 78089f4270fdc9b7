import TrunklineBytes
import TrunklineMediaSession

/// A 20 ms tick of one direction of a session.
struct SessionTick: Equatable {
  let session: Int
  let direction: AudioDirection
}

/// The slots of a session's two ticks.
struct TickSlots: Equatable {
  var toApp: Int
  var toTrunk: Int

  subscript(direction: AudioDirection) -> Int {
    get { direction == .trunkToApp ? toApp : toTrunk }
    set { if direction == .trunkToApp { toApp = newValue } else { toTrunk = newValue } }
  }
}

/// When each session's 20 ms ticks are due: 20 slots of 1 ms, so that a thread's load is even. One thread.
struct TickWheel {
  private var slots: [[SessionTick]] = Array(repeating: [], count: Limits.tickSlots)
  /// Ticks moved to a slot that comes up before a period has nearly passed since their last run: they wait for the next round.
  private var moved: [(tick: SessionTick, slot: Int)] = []
  private var origin = Instant.zero
  /// Milliseconds since `origin` that have been run.
  private var position: Int64 = 0
  private var count = 0
  private static let step = Duration.milliseconds(1).nanoseconds

  /// Puts both ticks of a session into the emptiest slot, one after the other, until packets show a better phase.
  mutating func add(_ session: Int, at now: Instant) -> TickSlots {
    if count == 0 { (origin, position) = (now, 0) }
    let slot = slots.indices.min { slots[$0].count < slots[$1].count } ?? 0
    slots[slot] += AudioDirection.allCases.map { SessionTick(session: session, direction: $0) }
    count += AudioDirection.allCases.count
    return TickSlots(toApp: slot, toTrunk: slot)
  }

  mutating func remove(_ session: Int, from slots: TickSlots) {
    for direction in AudioDirection.allCases {
      remove(SessionTick(session: session, direction: direction), from: slots[direction])
    }
  }

  private mutating func remove(_ tick: SessionTick, from slot: Int) {
    if let index = slots[slot].firstIndex(of: tick) {
      slots[slot].remove(at: index)
    } else if let index = moved.firstIndex(where: { $0.tick == tick }) {
      moved.remove(at: index)
    } else {
      return
    }
    count -= 1
  }

  /// The millisecond of the 20 ms period at which a slot's ticks run.
  func phase(of slot: Int) -> Int { Int((origin.nanoseconds / Self.step + Int64(slot)) % Int64(Limits.tickSlots)) }

  /// Moves a tick to `phase`, or to the next slot after it that is not crowded, and returns the slot.
  mutating func move(_ tick: SessionTick, from slot: Int, toPhase phase: Int) -> Int {
    guard let index = slots[slot].firstIndex(of: tick) else { return slot }
    // A quarter more than the average; more would make later ticks of the slot late. One direction of a transcoded call uses a
    // sixteenth of a slot.
    let crowded = max(8, count * 5 / (4 * Limits.tickSlots) + 1)
    let home = phase - self.phase(of: 0) + Limits.tickSlots
    for later in 0..<Limits.tickSlots {
      let candidate = (home + later) % Limits.tickSlots
      if candidate == slot { return slot }
      guard slots[candidate].count + moved.count(where: { $0.slot == candidate }) < crowded else { continue }
      slots[slot].remove(at: index)
      // Its next tick comes up to half a period later or earlier than before; the new slot does not run it sooner than that.
      let half = Limits.tickSlots / 2
      let shift = (candidate - slot + half + Limits.tickSlots) % Limits.tickSlots - half
      if ahead(slot) + shift >= Limits.tickSlots {
        moved.append((tick, candidate))
      } else {
        slots[candidate].append(tick)
      }
      return candidate
    }
    return slot
  }

  /// Slots until `slot` runs.
  private func ahead(_ slot: Int) -> Int {
    (slot - Int(position % Int64(Limits.tickSlots)) + Limits.tickSlots) % Limits.tickSlots
  }

  private func isOccupied(_ position: Int64) -> Bool {
    let slot = Int(position % Int64(Limits.tickSlots))
    return !slots[slot].isEmpty || (!moved.isEmpty && moved.contains { $0.slot == slot })
  }

  /// The slot at `position` has run: ticks that were moved there run from the next round on.
  private mutating func pass() {
    let slot = Int(position % Int64(Limits.tickSlots))
    position += 1
    guard !moved.isEmpty else { return }
    for entry in moved where entry.slot == slot { slots[slot].append(entry.tick) }
    moved.removeAll { $0.slot == slot }
  }

  /// When the next occupied slot is due; nil without sessions.
  var nextDue: Instant? {
    guard count > 0 else { return nil }
    var ahead: Int64 = 0
    while !isOccupied(position + ahead) { ahead += 1 }
    return Instant(nanoseconds: origin.nanoseconds + (position + ahead) * Self.step)
  }

  /// The ticks of the next occupied slot, which then counts as run; none if only moved ticks wait there.
  mutating func popDue() -> [SessionTick] {
    guard count > 0 else { return [] }
    while !isOccupied(position) { pass() }
    let due = slots[Int(position % Int64(Limits.tickSlots))]
    pass()
    return due
  }

  /// Skips all ticks before `now`, and returns their number.
  mutating func skip(to now: Instant) -> Int {
    var left = 0
    let target = (now - origin).nanoseconds / Self.step
    while position < target {
      left += slots[Int(position % Int64(Limits.tickSlots))].count
      pass()
    }
    return left
  }
}
