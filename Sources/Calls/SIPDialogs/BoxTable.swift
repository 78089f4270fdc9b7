/// Large values by key, which change in place: the index of a value is looked up, and the value is behind a reference. A `Dictionary`
/// of such values allocates a frame for each change.
///
///     table.insert(leg, for: id)
///     table[id]?.value.phase = .confirmed         // in place; nothing, if there is no such value
struct BoxTable<Key: Hashable & Sendable, Value: Sendable> {
  private var slotOf: [Key: Int] = [:]
  /// The first is empty: the slot of keys without a value.
  private var slots: [Box<Value>?] = [nil]
  private var free: [Int] = []

  var count: Int { slotOf.count }
  var isEmpty: Bool { slotOf.isEmpty }

  /// A value in place. Only `insert` and `remove` change which keys have one.
  subscript(key: Key) -> Box<Value>? {
    get { slotOf[key].flatMap { slots[$0] } }
    // Inlined: a call of it would allocate its frame.
    @inline(__always) _modify { yield &slots[slotOf[key] ?? 0] }
  }

  mutating func insert(_ value: Value, for key: Key) {
    let slot = slotOf[key] ?? free.popLast() ?? slots.count
    if slot == slots.count { slots.append(nil) }
    slots[slot] = Box(value)
    slotOf[key] = slot
  }

  mutating func remove(_ key: Key) -> Value? {
    guard let slot = slotOf.removeValue(forKey: key) else { return nil }
    free.append(slot)
    defer { slots[slot] = nil }
    return slots[slot]?.value
  }

  /// In any order.
  func compactMap<Result>(_ transform: (Key, Value) -> Result?) -> [Result] {
    slotOf.compactMap { key, slot in slots[slot].flatMap { transform(key, $0.value) } }
  }
}
