import TrunklineBytes
import TrunklineRTP

/// The result of an insertion.
public enum Insertion: Sendable, Equatable {
  case stored
  /// The stream's numbers, timestamps or source changed: the buffer restarted with this packet.
  case resynchronised
  /// Not stored, and counted.
  case late, duplicate, refused, outOfRange
}

/// One packet returned by `fetch`.
public struct FetchedPacket {
  /// Readable until the next `insert`. A pointer, because a span of the buffer could not be held while the owner runs its
  /// decoder.
  public let payload: UnsafeBufferPointer<UInt8>
  /// RTP clock units.
  public let duration: Int
  /// As passed to `insert`.
  public let format: UInt8
}

/// The next piece of the timeline, in RTP clock units.
public enum Fetch {
  case packet(FetchedPacket)
  /// This many units are lost and the packet after them carries their copy.
  case repair(Int, from: FetchedPacket)
  /// This many units are lost for good.
  case lost(Int)
  /// The talker paused (DTX) and play-out does not continue yet: fill with comfort noise.
  case pause
  /// No packet is due: the network is late, or the talker silent.
  case empty
}

/// Accepts packets in any order and returns a timeline in order, each packet at most once (RFC 3550 streams, any codec, 10…60 ms
/// per packet).
///
/// `insert` stores and measures. `fetch` is called as often as a tick needs audio, whatever the packets' length. `decide`, once
/// per tick, returns whether to play faster or slower. The consumer's tick is the clock. Missing audio is waited for until a
/// newer packet arrives: the delay grows by the audio made up meanwhile, and shrinks again when the policy finds it too long.
///
/// 45 KB, allocated at set-up; `insert`, `fetch` and `decide` allocate nothing. One thread at a time. Memory and delay are
/// bounded by `Limits`; bytes from the network cannot make it trap.
public struct PlayoutBuffer: ~Copyable {
  public let clockRateHz: UInt32
  let thresholds: DelayPolicy.Thresholds
  /// Counts so far; the owner of the decoder counts the audio here.
  public var statistics: PlayoutStatistics

  /// Set by the owner before it fetches: the talker pauses as far as the owner knows.
  public var isPause = false
  /// As of the last `decide`: how long the tightest packet has until it is needed.
  var slack = Int64.min / 2
  /// The greatest common divisor of packet and tick, and the tick it was computed for; −1 after the packets' length changed.
  private var grain: Int64 = 1
  var grainTick = -1
  var store: PacketStore
  var delay: ArrivalDelay
  let unitsPerMillisecond: Int64
  private let unitsPerNanosecond: Int64
  let carriesRepair: Bool
  let bridgesLosses: Bool

  var source: SSRC?
  /// Selects the source that is played.
  var active = ActiveSource()
  /// Learns the sender's timestamp clock.
  var clock = SenderClock()
  /// The highest number stored, on the extended line; then the newest audio packet's timestamp.
  var highest: Int64 = 0
  var lastTimestamp: Int64 = 0
  /// The same timestamp as the sender wrote it.
  var lastStamp = RTPTimestamp(raw: 0)
  var lastArrival: Int64 = 0
  /// The next number to return, and the timestamp where its audio should begin.
  var next: Int64 = 0
  var position: Int64 = 0
  var started = false
  var packetDuration: Int64
  /// Which of the last 64 numbers had their packet: distinguishes duplicates from late packets.
  var played: UInt64 = 0
  /// Units made up while waiting, since the last received audio.
  var waited: Int64 = 0
  /// The highest number when a packet last came too late.
  var lateAt = Int64.min / 2
  /// Up to this number the network counts as lossy.
  var lossyThrough = Int64.min / 2
  /// The number of a packet that came long after its predecessor although no number is missing: the network held it back, or the
  /// sender's clock stood still through a pause. The next packet decides: after a stall it arrives at once.
  var overdue: Int64?
  var stoodStill = false
  /// A number of the present source far from its line.
  var candidate: SequenceNumber?

  /// - Parameters:
  ///   - clockRateHz: RTP clock: 8000 for G.711, 48000 for Opus.
  ///   - carriesRepair: packets may carry a copy of the previous one (Opus FEC).
  ///   - bridgesLosses: a loss is concealed better when the next packet is at hand, which is worth some delay (G.711).
  ///   - octetsPerUnit: of the payloads: slots grow with it, so that as many packets of any codec fit.
  ///   - statistics: the counts to continue from.
  public init(
    clockRateHz: UInt32, carriesRepair: Bool, bridgesLosses: Bool = false, octetsPerUnit: Int = 1,
    policy: DelayPolicy = DelayPolicy(), statistics: PlayoutStatistics = PlayoutStatistics()
  ) {
    self.statistics = statistics
    store = PacketStore(slotLength: Limits.slotLength * min(max(1, octetsPerUnit), Limits.unitOctets))
    let rate = max(1000, min(clockRateHz, 1_000_000))
    unitsPerNanosecond = Int64(
      truncatingIfNeeded: (1_000_000_000 as UInt64).dividingFullWidth((UInt64(rate), 999_999_999)).quotient)
    self.clockRateHz = rate
    (self.carriesRepair, self.bridgesLosses) = (carriesRepair, bridgesLosses)
    unitsPerMillisecond = Int64(rate / 1000)
    thresholds = DelayPolicy.Thresholds(policy, unitsPerMillisecond: Int64(rate / 1000))
    packetDuration = 20 * Int64(rate / 1000)
    delay = ArrivalDelay(clockRateHz: rate, policy: policy)
  }

  // MARK: Delay

  /// Sets the delay of the rest of the path: mouth to ear without this buffer, 0 to 2 s. The cost of delay depends on it.
  public mutating func setPath(milliseconds: Double) { delay.histogram.setPath(milliseconds: milliseconds) }

  /// To be called once a tick, when its audio is decoded.
  /// - Parameters:
  ///   - pending: decoded units that will remain after this tick.
  ///   - tick: units of one tick.
  // HOT
  public mutating func decide(at now: Instant, pending: Int, tick: Int) -> DelayDecision {
    guard started, tick >= 0 else { return DelayDecision(adjustment: .none, tickShift: 0, slack: 0) }
    if grainTick != tick { updateGrain(tick) }
    let status = PlayoutStatus(
      now: units(now), nextTimestamp: position, pending: Int64(pending), grain: grain, wanted: delay.wanted &+ reserve,
      slowest: max(delay.slowest, delay.bridging))
    let decision = DelayPolicy.decide(status, thresholds)
    slack = decision.slack
    switch decision.adjustment {
    case .none: break
    case .shrink: statistics.shrinks &+= 1
    case .grow: statistics.grows &+= 1
    }
    return decision
  }

  /// Wanted beyond the need of packets, while the network loses some.
  private var reserve: Int64 { highest <= lossyThrough ? thresholds.reserve : 0 }

  private mutating func updateGrain(_ tick: Int) {
    var (common, other) = (packetDuration, Int64(tick))
    while other > 0 { (common, other) = (other, common % other) }
    grain = max(1, common)
    grainTick = tick
  }

  /// How long audio of `nextTimestamp − pending` has waited beyond the fastest packet's delay, in milliseconds: the delay that
  /// listeners notice.
  public func playoutDelayMilliseconds(at now: Instant, pending: Int) -> Double {
    guard started else { return 0 }
    return Double(units(now) &- position &+ Int64(pending) &- delay.recentMinimum) / Double(unitsPerMillisecond)
  }

  /// True while it is unknown whether the sender's clock stood still, and so how long the delay is.
  public var isDelayUnconfirmed: Bool { overdue != nil }

  /// True once, after the second packet after a pause through which the sender's clock stood still: audio made up in that pause
  /// was not a loss.
  @inline(__always) public mutating func consumeStandstill() -> Bool {
    guard stoodStill else { return false }
    stoodStill = false
    return true
  }

  /// The RTP timestamp of the next piece.
  public var nextTimestamp: RTPTimestamp { RTPTimestamp(raw: UInt32(truncatingIfNeeded: position)) }
  /// The packet of the next number is stored: `fetch` will not give it up.
  public var nextIsReady: Bool {
    mutating get { store.packet(next).map { !$0.pointee.isPlaceholder } ?? false }
  }
  /// Packets stored.
  public var depth: Int { store.count }

  /// Signalling announced that the source may change: another source is accepted at once.
  public mutating func releaseSource(at now: Instant) { active.release(at: now) }

  /// Drops stream and measurements, for another peer.
  public mutating func reset() {
    store.removeAll()
    delay.removeAll()
    source = nil
    candidate = nil
    active = ActiveSource()
    clock = SenderClock()
    started = false
    grainTick = -1
    waited = 0
    slack = .min / 2
    overdue = nil
    stoodStill = false
  }

  /// Converts to the RTP clock, by a multiplication with the rate per nanosecond in 2⁻⁶⁴.
  func units(_ instant: Instant) -> Int64 {
    instant.nanoseconds.multipliedFullWidth(by: unitsPerNanosecond).high
  }
}
