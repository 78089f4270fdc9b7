import TrunklineBytes

/// Digits that a leg sends by INFO, one after the other, so that they stay in order.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | idle | `next`, with waiting digits | sending | the first of them |
/// | sending | `next` | sending | nil |
/// | any | `add` | same; beyond the limit they are dropped | – |
/// | sending | `sent`: accepted; refused | idle; idle, no digit waits | – |
struct InfoDigits {
  private var waiting: [(digit: Character, milliseconds: Int)] = []
  private var isSending = false

  mutating func add(_ digits: String, milliseconds: Int) {
    for digit in digits where waiting.count < Limits.pendingDigits { waiting.append((digit, milliseconds)) }
  }

  mutating func next() -> (digit: Character, milliseconds: Int)? {
    guard !isSending, !waiting.isEmpty else { return nil }
    isSending = true
    return waiting.removeFirst()
  }

  mutating func sent(isAccepted: Bool) {
    isSending = false
    if !isAccepted { waiting = [] }
  }
}
