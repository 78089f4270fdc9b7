import Bytes
import RTP

/// What became of an inserted packet.
public enum Insertion: Sendable, Equatable {
  case stored
  /// The stream's numbers, timestamps or source changed: the buffer began anew with this packet.
  case resynchronised
  /// Not stored, and counted.
  case late, duplicate, refused, outOfRange
}

/// One packet handed out by `fetch`: its payload is readable by `payload(of:)` until the next `insert`.
public struct FetchedPacket: Sendable {
  let packet: StoredPacket
  /// RTP clock units.
  public var duration: Int { Int(packet.duration) }
}

/// The next piece of the timeline, in RTP clock units.
public enum Fetch: Sendable {
  case packet(FetchedPacket)
  /// This many units are lost and the packet after them carries their copy.
  case repair(Int, from: FetchedPacket)
  /// This many units are lost for good.
  case lost(Int)
  /// The talker paused (DTX) and it is not yet time to go on: fill with comfort noise.
  case pause
  /// Nothing is there: the network is late, or the talker silent.
  case empty
}

/// Packets in, in any order; a timeline out, in order, each packet at most once (RFC 3550 streams, any codec, 10…60 ms per packet).
///
/// `insert` stores and measures. `fetch` is called as often as a tick needs audio, whatever the packets' length, and `adjustment` once per tick
/// tells whether to play faster or slower. The consumer's tick is the clock. Audio that is missing when needed is waited for as long as nothing
/// newer is there: the delay then grows by what was made up meanwhile, and shrinks again when the policy finds it too long.
///
/// 45 KB, allocated at set-up; `insert`, `fetch` and `adjustment` allocate nothing. One thread at a time. Memory and delay are bounded by
/// `Limits`; bytes from the network cannot make it trap.
public struct PlayoutBuffer: ~Copyable {
  public let clockRateHz: UInt32
  public var policy: DelayPolicy
  public private(set) var statistics = JitterStatistics()

  private var store = PacketStore()
  private var delay: ArrivalDelay
  private let unitsPerMillisecond: Int64
  private let carriesRepair: Bool

  private var source: SSRC?
  /// Highest number stored, on the extended line, and the packet time it came with.
  private var highest: Int64 = 0
  private var lastTimestamp: Int64 = 0
  private var lastArrival: Int64 = 0
  /// The next number to hand out and where its audio should begin.
  private var next: Int64 = 0
  private var position: Int64 = 0
  private var started = false
  private var packetDuration: Int64
  /// Which of the last 64 handed-out places had their packet: tells duplicates from late ones.
  private var played: UInt64 = 0
  /// Units made up while waiting, since the last real audio.
  private var waited: Int64 = 0
  private var lastPacketAt = Instant.zero
  private var candidate: (source: SSRC, sequence: SequenceNumber)?

  /// - Parameters:
  ///   - clockRateHz: RTP clock: 8000 for G.711, 48000 for Opus.
  ///   - carriesRepair: packets may carry a copy of the one before (Opus FEC).
  public init(clockRateHz: UInt32, carriesRepair: Bool, policy: DelayPolicy = DelayPolicy()) {
    let rate = max(1000, clockRateHz)
    self.clockRateHz = rate
    self.carriesRepair = carriesRepair
    self.policy = policy
    unitsPerMillisecond = Int64(rate / 1000)
    packetDuration = 20 * Int64(rate / 1000)
    delay = ArrivalDelay(clockRateHz: rate, memoryPackets: policy.memoryPackets, quantile: policy.quantile)
  }

  // MARK: Insert

  /// Stores one packet.
  /// - Parameters:
  ///   - duration: of its audio in RTP clock units; 0 for a packet of another kind in the same sequence (telephone-event), whose place is kept.
  ///   - carriesRepair: it holds a copy of the packet before.
  // HOT
  public mutating func insert(
    _ header: RTPHeader, payload: Span<UInt8>, duration: Int, carriesRepair: Bool = false, at now: Instant
  ) -> Insertion {
    statistics.inserted &+= 1
    let arrival = units(now)
    guard let source, let sequence = place(header, source: source) else {
      return resynchronise(header, payload, duration, carriesRepair, now, arrival)
    }
    if started, sequence < next { return tooLate(header, sequence, arrival) }
    guard store.packet(sequence) == nil else {
      statistics.duplicate &+= 1
      return .duplicate
    }
    let timestamp = lastTimestamp &+ Int64(header.timestamp.distance(from: RTPTimestamp(raw: UInt32(truncatingIfNeeded: lastTimestamp))))
    let step = timestamp &- lastTimestamp
    let limit = Int64(Limits.timestampStepMilliseconds) &* unitsPerMillisecond
    if step.magnitude > limit, (step &- (arrival &- lastArrival)).magnitude > limit, duration > 0 {
      return begin(header, payload, duration, carriesRepair, now, arrival)
    }
    makeRoom(for: sequence)
    var packet = StoredPacket()
    packet.sequence = sequence
    packet.timestamp = timestamp
    packet.transit = arrival &- timestamp
    packet.duration = Int32(clamping: max(0, duration))
    packet.carriesRepair = carriesRepair
    packet.isPlaceholder = duration <= 0
    guard store.put(packet, payload: payload) else {
      statistics.refused &+= 1
      return .refused
    }
    if sequence > highest { highest = sequence }
    if !started, sequence < next { (next, position) = (sequence, timestamp) }
    if duration > 0 {
      delay.arrived(transit: packet.transit)
      packetDuration = Int64(packet.duration)
      (lastTimestamp, lastArrival, lastPacketAt) = (timestamp, arrival, now)
    }
    return .stored
  }

  /// The packet's extended number, nil if it is not of this stream's range.
  private func place(_ header: RTPHeader, source: SSRC) -> Int64? {
    guard header.ssrc == source else { return nil }
    let distance = header.sequence.distance(from: SequenceNumber(raw: UInt16(truncatingIfNeeded: highest)))
    guard distance < Limits.packets &* 4 else { return nil }
    if distance <= -Limits.misorder {
      // So far back it is a restart of the sender, unless number and timestamp agree that it is only very late.
      let units = Int64(header.timestamp.distance(from: RTPTimestamp(raw: UInt32(truncatingIfNeeded: lastTimestamp))))
      let expected = Int64(distance) &* packetDuration
      guard started, (units &- expected).magnitude < expected.magnitude / 4 else { return nil }
    }
    return highest &+ Int64(distance)
  }

  private mutating func tooLate(_ header: RTPHeader, _ sequence: Int64, _ arrival: Int64) -> Insertion {
    let behind = next &- 1 &- sequence
    if behind < 64, played >> UInt64(behind) & 1 == 1 {
      statistics.duplicate &+= 1
      return .duplicate
    }
    statistics.late &+= 1
    if behind < 64 { played |= 1 << UInt64(behind) }
    let timestamp = lastTimestamp &+ Int64(header.timestamp.distance(from: RTPTimestamp(raw: UInt32(truncatingIfNeeded: lastTimestamp))))
    delay.arrived(transit: arrival &- timestamp)
    return .late
  }

  /// A number far away or another source: believed when it is the first, when the stream was silent for 100 ms, or when its successor follows.
  private mutating func resynchronise(
    _ header: RTPHeader, _ payload: Span<UInt8>, _ duration: Int, _ carriesRepair: Bool, _ now: Instant, _ arrival: Int64
  ) -> Insertion {
    let confirmed = candidate.map { $0.source == header.ssrc && $0.sequence.next == header.sequence } ?? false
    guard source == nil || confirmed || now - lastPacketAt >= .milliseconds(100) else {
      candidate = (header.ssrc, header.sequence)
      statistics.outOfRange &+= 1
      return .outOfRange
    }
    guard duration > 0 else {
      statistics.outOfRange &+= 1
      return .outOfRange
    }
    return begin(header, payload, duration, carriesRepair, now, arrival)
  }

  private mutating func begin(
    _ header: RTPHeader, _ payload: Span<UInt8>, _ duration: Int, _ carriesRepair: Bool, _ now: Instant, _ arrival: Int64
  ) -> Insertion {
    let isFirst = source == nil
    if !isFirst { statistics.resynchronised &+= 1 }
    statistics.overflowed &+= UInt64(store.count)
    store.removeAll()
    candidate = nil
    source = header.ssrc
    // Room below for packets that overtook: numbers stay positive.
    highest = 65_536 &+ Int64(header.sequence.raw)
    var packet = StoredPacket()
    packet.sequence = highest
    packet.timestamp = Int64(header.timestamp.raw)
    packet.transit = arrival &- packet.timestamp
    packet.duration = Int32(clamping: duration)
    packet.carriesRepair = carriesRepair
    (next, position) = (highest, packet.timestamp)
    (lastTimestamp, lastArrival, lastPacketAt) = (packet.timestamp, arrival, now)
    started = false
    played = 0
    packetDuration = Int64(packet.duration)
    delay.timelineChanged()
    delay.arrived(transit: packet.transit)
    guard store.put(packet, payload: payload) else {
      statistics.refused &+= 1
      return .refused
    }
    return isFirst ? .stored : .resynchronised
  }

  /// All stored numbers lie within `Limits.packets`: the oldest go when a new one is too far ahead.
  private mutating func makeRoom(for sequence: Int64) {
    guard sequence &- next >= Int64(Limits.packets) else { return }
    let first = sequence &- Int64(Limits.packets) &+ 1
    while next < first {
      if let packet = store.packet(next) {
        statistics.overflowed &+= 1
        position = packet.timestamp &+ Int64(packet.duration)
        store.remove(next)
      }
      advance(played: false)
    }
    if let packet = store.first(after: next &- 1, through: highest) { position = packet.timestamp }
    waited = 0
  }

  // MARK: Fetch

  /// The payload of a packet just fetched, valid until the next `insert`. A pointer, as a span of the buffer could not be held while the owner
  /// runs its decoder (6.3 takes the borrow for one of the whole owner).
  public func payload(of packet: FetchedPacket) -> UnsafeBufferPointer<UInt8> { store.payload(packet.packet) }

  /// The next piece of audio. Call until the tick is full; at `.empty` and `.pause` make up what is missing and tell by `madeUp`.
  // HOT
  public mutating func fetch(at now: Instant) -> Fetch {
    dropExcess()
    while store.count > 0 {
      guard let packet = store.packet(next) else { return fetchAcrossGap(at: now) }
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

  private mutating func advance(played wasPlayed: Bool) {
    next &+= 1
    played = played << 1 | (wasPlayed ? 1 : 0)
  }

  /// The packet of the next number is missing and a later one is there.
  private mutating func fetchAcrossGap(at now: Instant) -> Fetch {
    guard let after = store.first(after: next, through: highest) else { return .empty }
    let missing = after.sequence &- next
    let gap = after.isPlaceholder ? 0 : after.timestamp &- position
    let longest = Int64(Limits.timestampStepMilliseconds) &* unitsPerMillisecond
    // What was made up while waiting stands for the lost audio; a repaired copy is played all the same when more delay is wanted.
    let isDue = isDue(after.timestamp, at: now)
    let uncovered = gap &- waited
    let repairs = carriesRepair && after.carriesRepair && !after.isPlaceholder
    if repairs { delay.repairable(transit: after.transit &+ Int64(after.duration), times: policy.repairWeight * Float(missing)) }
    if gap <= 0 || gap > longest || !started || (uncovered <= 0 && (isDue || !repairs)) {
      skip(missing)
      if !after.isPlaceholder { position = after.timestamp }
      waited = 0
      return fetch(at: now)
    }
    if repairs {
      let lost = uncovered &- Int64(after.duration)
      if missing > 1, lost > 0 {
        skip(missing &- 1)
        position = after.timestamp &- Int64(after.duration)
        waited = 0
        return .lost(Int(lost))
      }
      skip(missing)
      position = after.timestamp
      waited = 0
      return .repair(Int(min(gap, Int64(after.duration))), from: FetchedPacket(packet: after))
    }
    skip(missing)
    position = after.timestamp
    waited = 0
    return .lost(Int(uncovered))
  }

  private mutating func skip(_ count: Int64) {
    for _ in 0..<count { advance(played: false) }
    statistics.missing &+= UInt64(count)
  }

  /// Would a packet of this timestamp, played now, have the wanted delay?
  private func isDue(_ timestamp: Int64, at now: Instant) -> Bool {
    units(now) &- timestamp >= delay.recentMinimum &+ boundedSpread &- policy.growMarginMilliseconds &* unitsPerMillisecond
  }

  private var boundedSpread: Int64 { min(delay.spread, Int64(Limits.delayMilliseconds) &* unitsPerMillisecond) }

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

  // MARK: Delay

  /// Asked once a tick, when its audio is decoded.
  /// - Parameters:
  ///   - pending: decoded units that will remain after this tick.
  ///   - tick: units of one tick.
  // HOT
  public func adjustment(at now: Instant, pending: Int, tick: Int) -> Adjustment {
    guard started else { return .none }
    var (grain, other) = (packetDuration, Int64(tick))
    while other > 0 { (grain, other) = (other, grain % other) }
    let status = PlayoutStatus(
      now: units(now), nextTimestamp: position, pending: Int64(pending), grain: grain, fastest: delay.recentMinimum,
      slowest: delay.recentMaximum, spread: boundedSpread)
    return policy.adjustment(status, unitsPerMillisecond: unitsPerMillisecond)
  }

  /// How long audio of `nextTimestamp − pending` has waited beyond the fastest packet's delay, in milliseconds; what listeners feel.
  public func playoutDelayMilliseconds(at now: Instant, pending: Int) -> Double {
    guard started else { return 0 }
    return Double(units(now) &- position &+ Int64(pending) &- delay.recentMinimum) / Double(unitsPerMillisecond)
  }

  /// The delay the policy wants now, in milliseconds above the fastest packet.
  public var wantedDelayMilliseconds: Double { Double(boundedSpread) / Double(unitsPerMillisecond) }
  /// The RTP timestamp where the next piece begins.
  public var nextTimestamp: RTPTimestamp { RTPTimestamp(raw: UInt32(truncatingIfNeeded: position)) }
  /// The packet of the next number is there: `fetch` will not have to give up on it.
  public var nextIsReady: Bool { store.packet(next).map { !$0.isPlaceholder } ?? false }
  /// Packets stored.
  public var depth: Int { store.count }

  /// Forgets stream and measurements, for another peer.
  public mutating func reset() {
    store.removeAll()
    delay.removeAll()
    source = nil
    candidate = nil
    started = false
    waited = 0
  }

  @inline(__always) private func units(_ instant: Instant) -> Int64 {
    let seconds = instant.nanoseconds / 1_000_000_000
    let rest = instant.nanoseconds % 1_000_000_000
    return seconds &* Int64(clockRateHz) &+ rest &* Int64(clockRateHz) / 1_000_000_000
  }
}
