import TrunklineBytes

/// How many packets of one peer a session handles: `Limits.packetsPerTick` in 20 ms and what was saved up, at most
/// `Limits.packetBurst`, so that a peer that floods costs the thread's other calls no more than the reading of its packets.
///
/// Call it only after the source or the tag was checked: forged packets must not use up the peer's budget.
struct PacketBudget {
  private var left = Limits.packetBurst
  private var refilled = Instant.zero

  /// False: the packet is to be dropped and counted. HOT
  @inline(__always) mutating func consume(at now: Instant) -> Bool {
    if now - refilled >= Frame.duration { refill(at: now) }
    guard left > 0 else { return false }
    left &-= 1
    return true
  }

  private mutating func refill(at now: Instant) {
    let ticks = min((now - refilled).nanoseconds / Frame.duration.nanoseconds, Int64(Limits.packetBurst))
    left = min(Limits.packetBurst, left &+ Int(ticks) &* Limits.packetsPerTick)
    refilled = now
  }
}
