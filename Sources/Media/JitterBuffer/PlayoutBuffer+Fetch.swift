import Bytes

extension PlayoutBuffer {
  /// The payload of a packet just fetched, valid until the next `insert`. A pointer, as a span of the buffer could not be held
  /// while the owner runs its decoder (6.3 takes the borrow for one of the whole owner).
  public func payload(of packet: FetchedPacket) -> UnsafeBufferPointer<UInt8> { store.payload(packet.packet) }

  /// The next piece of audio. Call until the tick is full; at `.empty` and `.pause` make up what is missing and tell by `madeUp`.
  // HOT
  public mutating func fetch(at now: Instant) -> Fetch {
    dropExcess()
    while store.count > 0 {
      guard let packet = store.packet(next) else {
        if let piece = fetchAcrossGap(at: now) { return piece }
        continue
      }
      if packet.isPlaceholder {
        store.remove(next)
        advance(played: true)
        continue
      }
      // A timestamp ahead of the line without a missing number: the talker paused. Go on when the wanted delay is reached.
      if started, packet.timestamp &- position >= unitsPerMillisecond, !isDue(packet.timestamp, at: now) { return .pause }
      return hand(packet)
    }
    return .empty
  }

  /// Units made up at `.empty` or `.pause`.
  public mutating func madeUp(_ units: Int) { waited &+= Int64(max(0, units)) }

  private mutating func hand(_ packet: StoredPacket) -> Fetch {
    store.remove(packet.sequence)
    advance(played: true)
    position = packet.timestamp &+ Int64(packet.duration)
    started = true
    waited = 0
    statistics.fetched &+= 1
    return .packet(FetchedPacket(packet: packet))
  }

  mutating func advance(played wasPlayed: Bool) {
    next &+= 1
    played = played << 1 | (wasPlayed ? 1 : 0)
  }

  /// The packet of the next number is missing and a later one is there. One missing packet is settled at a time; nil when that
  /// needed no audio.
  private mutating func fetchAcrossGap(at now: Instant) -> Fetch? {
    guard let after = store.first(after: next, through: highest) else { return .empty }
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
      // What was made up while waiting stands for it, unless more delay is wanted.
      let isCovered = waited >= length && isDue(after.timestamp, at: now)
      skip(1, to: end)
      waited = 0
      return isCovered ? nil : .repair(Int(min(length, Int64(after.duration))), from: FetchedPacket(packet: after))
    }
    if waited >= length {
      skip(1, to: end)
      waited &-= length
      return nil
    }
    let uncovered = length &- waited
    if excess >= policy.patienceMilliseconds &* unitsPerMillisecond {
      // A loss is the best place to shorten the delay: nothing that came has to go. A little is made up to join the ends.
      let kept = min(uncovered, Int64(Limits.joinMilliseconds) &* unitsPerMillisecond)
      excess = max(0, excess &- (uncovered &- kept))
      skip(1, to: end)
      waited = 0
      return .lost(Int(kept))
    }
    // Making a tick's audio up without giving up the packet costs nothing, and if it was only overtaken it is played after all.
    if waited == 0, length >= Int64(Limits.tickMilliseconds) &* unitsPerMillisecond { return .empty }
    skip(1, to: end)
    waited = 0
    return .lost(Int(uncovered))
  }

  private mutating func skip(_ count: Int64, to timestamp: Int64) {
    for _ in 0..<count { advance(played: false) }
    position = timestamp
    statistics.missing &+= UInt64(count)
  }

  /// Would a packet of this timestamp, played now, have the wanted delay?
  private func isDue(_ timestamp: Int64, at now: Instant) -> Bool {
    units(now) &- timestamp >= delay.recentMinimum &+ boundedSpread &- 2 &* unitsPerMillisecond
  }

  /// After a stall the stale part goes at once: what is queued beyond the wanted delay and `Limits.excessMilliseconds`.
  private mutating func dropExcess() {
    guard store.count > 8 else { return }
    let queued = lastTimestamp &- position
    let wanted = boundedSpread &+ packetDuration
    guard queued > wanted &+ Int64(Limits.excessMilliseconds) &* unitsPerMillisecond else { return }
    while store.count > 1, lastTimestamp &- position > wanted {
      if let packet = store.packet(next) {
        statistics.overflowed &+= 1
        position = packet.timestamp &+ Int64(packet.duration)
        store.remove(next)
      }
      advance(played: false)
      if next > highest { break }
    }
    waited = 0
  }
}
