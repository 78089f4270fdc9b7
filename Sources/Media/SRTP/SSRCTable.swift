/// An element of an `SSRCTable`, for one SSRC.
protocol SSRCElement {
  /// An unused element.
  init()
  var ssrc: UInt32 { get }
  var isUsed: Bool { get }
}

/// Elements by SSRC: open addressing in its own slab, which begins with four slots and doubles. Allocates in `init` and when
/// `insert` finds it full; a pointer is valid until the next `insert` or `remove`.
///
/// Up to three elements are in order of insertion: the usual one is found first. With more, the index is the product with an odd
/// number made from the golden ratio and `seed` (Fibonacci hashing). Elements come from authentic packets only, but an app
/// chooses its SSRCs: without knowing the seed it cannot make them collide, and look-ups happen before the tag is verified.
struct SSRCTable<Element: SSRCElement>: ~Copyable {
  /// `mask` + 1 initialised elements of a trivial type, one of them unused at least; freed in deinit.
  private var slots: UnsafeMutablePointer<Element>
  private var mask = 3
  /// 0 while there are four slots.
  private var multiplier: UInt64 = 0
  private var shift: UInt64 = 62
  private(set) var count = 0
  private let limit: Int

  private let seed: UInt64

  /// Capacity `limit`. `seed`: any number that the peer who chooses the SSRCs does not know, or 0 if we choose them.
  init(limit: Int, seed: UInt64 = 0) {
    (self.limit, self.seed) = (limit, seed)
    slots = .allocate(capacity: 4)
    slots.initialize(repeating: Element(), count: 4)
  }
  deinit { slots.deallocate() }

  var isFull: Bool { count >= limit }

  /// HOT
  @inline(__always) func find(_ ssrc: UInt32) -> UnsafeMutablePointer<Element>? {
    var index = home(ssrc)
    while slots[index].isUsed {
      if slots[index].ssrc == ssrc { return slots + index }
      index = (index &+ 1) & mask
    }
    return nil
  }

  /// Inserts an element whose SSRC is not in the table yet; nil if the table is full.
  mutating func insert(_ element: Element) -> UnsafeMutablePointer<Element>? {
    guard !isFull else { return nil }
    if count == (mask == 3 ? 3 : (mask + 1) / 2) { grow() }
    count += 1
    return put(element)
  }

  mutating func remove(_ ssrc: UInt32) {
    guard let found = find(ssrc) else { return }
    var gap = found - slots
    var index = (gap &+ 1) & mask
    while slots[index].isUsed {
      // The follower may move into the gap unless its home index is after the gap.
      if (index &- home(slots[index].ssrc)) & mask >= (index &- gap) & mask {
        slots[gap] = slots[index]
        gap = index
      }
      index = (index &+ 1) & mask
    }
    slots[gap] = Element()
    count -= 1
  }

  /// Visits all elements, in no order.
  func forEach(_ body: (Element) -> Void) {
    for index in 0...mask where slots[index].isUsed { body(slots[index]) }
  }

  @inline(__always) private func home(_ ssrc: UInt32) -> Int {
    Int(truncatingIfNeeded: (UInt64(ssrc) &* multiplier) &>> shift) & mask
  }

  private func put(_ element: Element) -> UnsafeMutablePointer<Element> {
    var index = home(element.ssrc)
    while slots[index].isUsed { index = (index &+ 1) & mask }
    slots[index] = element
    return slots + index
  }

  private mutating func grow() {
    let (old, size) = (slots, mask + 1)
    multiplier = (0x9e37_79b9_7f4a_7c15 ^ seed) | 1  // 2⁶⁴ divided by the golden ratio
    mask = 2 * size - 1
    shift = shift - 1
    slots = .allocate(capacity: 2 * size)
    slots.initialize(repeating: Element(), count: 2 * size)
    for index in 0..<size where old[index].isUsed { _ = put(old[index]) }
    old.deallocate()
  }
}
