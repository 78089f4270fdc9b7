import TrunklineBytes

extension PlayoutBuffer {
  /// Returns the next piece of audio. Call until the tick is full; at `.empty` and `.pause` make up audio and report it by
  /// `madeUp`.
  // HOT
  public mutating func fetch(at now: Instant) -> Fetch {
    if isExcessive { dropExcess() }
    while true {
      guard let packet = store.packet(next) else {
        guard !store.isEmpty else { return .empty }
        if let piece = fetchAcrossGap(at: now) { return piece }
        continue
      }
      let (timestamp, duration) = (packet.pointee.timestamp, Int64(packet.pointee.duration))
      if duration <= 0 {
        store.remove(packet)
        advance(played: true)
        continue
      }
      // A timestamp ahead of the line without a missing number: the talker paused. Continue when the wanted delay is reached.
      let isAfterPause = timestamp &- position >= unitsPerMillisecond
      if isAfterPause, started, !isDue(timestamp, at: now) { return .pause }
      if waited > 0, !isAfterPause { delay.waitedFor(transit: packet.pointee.transit) }
      store.remove(packet)
      advance(played: true)
      position = timestamp &+ duration
      started = true
      waited = 0
      statistics.fetched &+= 1
      return .packet(handedOut(packet))
    }
  }

  private func handedOut(_ packet: UnsafePointer<StoredPacket>) -> FetchedPacket {
    FetchedPacket(
      payload: store.payload(packet), duration: Int(packet.pointee.duration), format: packet.pointee.format)
  }

  /// The packet whose audio follows the next `units` made-up units, after `.lost` or at `.empty`; nil while it has not arrived.
  public mutating func packet(behind units: Int) -> FetchedPacket? {
    guard let after = store.first(after: next &- 1, through: highest), !after.pointee.isPlaceholder,
      after.pointee.timestamp == position &+ waited &+ Int64(units)
    else { return nil }
    return handedOut(after)
  }

  /// Reports units made up at `.empty` or `.pause`.
  public mutating func madeUp(_ units: Int) {
    waited &+= Int64(max(0, units))
    statistics.waits &+= 1
  }

  mutating func advance(played wasPlayed: Bool) {
    next &+= 1
    played = played << 1 | (wasPlayed ? 1 : 0)
  }

  /// The packet of the next number is missing and a later one is stored. Decides on one missing packet at a time; nil if it
  /// needed no audio.
  @inline(never) private mutating func fetchAcrossGap(at now: Instant) -> Fetch? {
    guard let found = store.first(after: next, through: highest) else { return .empty }
    let after = found.pointee
    let missing = after.sequence &- next
    let gap = after.isPlaceholder ? 0 : after.timestamp &- position
    guard started, gap > 0, gap <= Int64(Limits.timestampStepMilliseconds) &* unitsPerMillisecond else {
      skip(missing, to: after.isPlaceholder ? position : after.timestamp)
      waited = 0
      return nil
    }
    let length = gap / missing
    let end = position &+ length
    if missing == 1, carriesRepair, after.carriesRepair {
      delay.repairable(transit: after.transit &+ Int64(after.duration))
      // Audio made up while waiting replaces it, unless more delay is wanted.
      let isCovered = waited >= length && isDue(after.timestamp, at: now)
      skip(1, to: end)
      waited = 0
      return isCovered ? nil : .repair(Int(min(length, Int64(after.duration))), from: handedOut(found))
    }
    if waited >= length {
      if missing == 1, bridgesLosses {
        delay.bridgeable(transit: after.transit, duration: Int64(after.duration))
        // Make the lost audio up again, joined to the packet at hand: the delay grows by it, so that the successor of the
        // next loss is at hand then.
        if slack < delay.bridging {
          skip(1, to: end)
          waited = 0
          return .lost(Int(length))
        }
      }
      skip(1, to: end)
      waited &-= length
      return nil
    }
    let uncovered = length &- waited
    if waited == 0 { lossyThrough = highest &+ Limits.lossyPackets }
    let overtakes = highest &- lateAt <= Limits.overtakenPackets
    let excess = slack &- max(delay.wanted, delay.slowest)
    let kept = min(uncovered, Int64(Limits.joinMilliseconds) &* unitsPerMillisecond)
    // The next loss should be bridged as well: its successor must still be in time afterwards, if it comes as fast as most.
    let bridges = !bridgesLosses || slack &- (uncovered &- kept) >= delay.bridging
    if excess >= thresholds.excessTolerance(isPause: isPause, overtakes: overtakes), bridges {
      // A loss is the best moment to shorten the delay: no received audio is dropped. A little is made up to join the ends.
      slack &-= uncovered &- kept
      statistics.leftOut &+= 1
      skip(1, to: end)
      waited = 0
      return .lost(Int(kept))
    }
    // Making up a tick's audio without giving up the packet costs nothing: if it was only overtaken, it is still played.
    if waited == 0, length >= Int64(Limits.tickMilliseconds) &* unitsPerMillisecond { return .empty }
    if missing == 1, bridgesLosses { delay.bridgeable(transit: after.transit, duration: Int64(after.duration)) }
    skip(1, to: end)
    waited = 0
    return .lost(Int(uncovered))
  }

  private mutating func skip(_ count: Int64, to timestamp: Int64) {
    for _ in 0..<count { advance(played: false) }
    position = timestamp
    statistics.missing &+= UInt64(count)
  }

  /// Whether a packet of this timestamp, played now, would have the wanted delay.
  private mutating func isDue(_ timestamp: Int64, at now: Instant) -> Bool {
    units(now) &- timestamp >= delay.wanted &- thresholds.shrinkMargin
  }

  /// More is queued than the wanted delay and `Limits.excessMilliseconds`: after a stall.
  private var isExcessive: Bool {
    lastTimestamp &- position > wantedQueue &+ Int64(Limits.excessMilliseconds) &* unitsPerMillisecond
  }
  private var wantedQueue: Int64 { delay.wanted &- delay.recentMinimum &+ packetDuration }

  /// Drops at once what is queued beyond the wanted delay: it is stale.
  @inline(never) private mutating func dropExcess() {
    let wanted = wantedQueue
    while store.count > 1, lastTimestamp &- position > wanted {
      if let packet = store.packet(next) {
        statistics.overflowed &+= 1
        position = packet.pointee.timestamp &+ Int64(packet.pointee.duration)
        store.remove(packet)
      }
      advance(played: false)
      if next > highest { break }
    }
    waited = 0
  }
}
