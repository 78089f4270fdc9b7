/// Whether a direction's packets are forwarded as they arrive, or go through the receiver and the encoder.
///
/// Relaying begins at once only if the receiver is empty; otherwise the tick begins it in a pause, because it discards the audio
/// in the jitter buffer.
///
/// | state | input | next |
/// |---|---|---|
/// | any | `stop` | coding; the queue as it was |
/// | coding | `packetQueued`: the receiver may hold audio | coding, primed |
/// | relaying | `packetQueued` | the same: no receiver |
/// | any | `queueDropped`: the receiver is empty | not primed |
/// | any | `begin` | relaying, not primed |
struct RelaySwitch {
  private(set) var isOn = false
  /// The receiver holds packets, or may.
  private(set) var isPrimed = false

  @inline(__always) mutating func packetQueued() { isPrimed = true }
  mutating func queueDropped() { isPrimed = false }
  mutating func stop() { isOn = false }
  mutating func begin() { (isOn, isPrimed) = (true, false) }
}
