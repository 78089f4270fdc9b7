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

/// One packet handed out by `fetch`.
public struct FetchedPacket {
  let start: UnsafePointer<UInt8>
  let length: Int32
  let units: Int32
  /// Readable until the next `insert`. A pointer, as a span of the buffer could not be held while the owner runs its decoder.
  public var payload: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: Int(length)) }
  /// RTP clock units.
  public var duration: Int { Int(units) }
}

/// The next piece of the timeline, in RTP clock units.
public enum Fetch {
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

/// Packets in, in any order; a timeline out, in order, each packet at most once (RFC 3550 streams, any codec, 10…60 ms per
/// packet).
///
/// `insert` stores and measures. `fetch` is called as often as a tick needs audio, whatever the packets' length, and `decide`
/// once per tick tells whether to play faster or slower. The consumer's tick is the clock. Audio that is missing when needed is
/// waited for as long as nothing newer is there: the delay then grows by what was made up meanwhile, and shrinks again when the
/// policy finds it too long.
///
/// 45 KB, allocated at set-up; `insert`, `fetch` and `decide` allocate nothing. One thread at a time. Memory and delay are
/// bounded by `Limits`; bytes from the network cannot make it trap.
public struct PlayoutBuffer: ~Copyable {
  public let clockRateHz: UInt32
  let thresholds: DelayPolicy.Thresholds
  public internal(set) var statistics = JitterStatistics()

  /// Told by the owner before it fetches: the talker pauses as far as it knows.
  public var isPause = false
  /// As of the last `decide`: how long the tightest packet has until it is needed.
  var slack = Int64.min / 2
  /// The greatest common divisor of packet and tick, and the tick it was computed for; −1 when the packets' length has changed.
  private var grain: Int64 = 1
  var grainTick = -1
  var store = PacketStore()
  var delay: ArrivalDelay
  let unitsPerMillisecond: Int64
  let unitsPerNanosecond: Int64
  let carriesRepair: Bool

  var source: SSRC?
  /// The source while there is one; without one no packet is usual, whatever stands here.
  var usualSource: UInt32 = 0
  /// Highest number stored, on the extended line, and the packet time it came with.
  var highest: Int64 = 0
  var lastTimestamp: Int64 = 0
  var lastArrival: Int64 = 0
  /// The next number to hand out and where its audio should begin.
  var next: Int64 = 0
  var position: Int64 = 0
  var started = false
  var packetDuration: Int64
  /// Which of the last 64 handed-out places had their packet: tells duplicates from late ones.
  var played: UInt64 = 0
  /// Units made up while waiting, since the last real audio.
  var waited: Int64 = 0
  /// The highest number when a packet last came too late.
  var lateAt = Int64.min / 2
  /// The same when one was last missing.
  var missingAt = Int64.min / 2
  var candidate: (source: SSRC, sequence: SequenceNumber)?

  /// - Parameters:
  ///   - clockRateHz: RTP clock: 8000 for G.711, 48000 for Opus.
  ///   - carriesRepair: packets may carry a copy of the one before (Opus FEC).
  public init(clockRateHz: UInt32, carriesRepair: Bool, policy: DelayPolicy = DelayPolicy()) {
    let rate = max(1000, min(clockRateHz, 1_000_000))
    unitsPerNanosecond = Int64(
      truncatingIfNeeded: (1_000_000_000 as UInt64).dividingFullWidth((UInt64(rate), 999_999_999)).quotient)
    self.clockRateHz = rate
    self.carriesRepair = carriesRepair
    unitsPerMillisecond = Int64(rate / 1000)
    thresholds = DelayPolicy.Thresholds(policy, unitsPerMillisecond: Int64(rate / 1000))
    packetDuration = 20 * Int64(rate / 1000)
    delay = ArrivalDelay(clockRateHz: rate, memoryPackets: policy.memoryPackets, lossCost: policy.lossCost)
  }

  // MARK: Delay

  /// Asked once a tick, when its audio is decoded.
  /// - Parameters:
  ///   - pending: decoded units that will remain after this tick.
  ///   - tick: units of one tick.
  // HOT
  public mutating func decide(at now: Instant, pending: Int, tick: Int) -> DelayDecision {
    guard started, grainTick == tick, let usual = DelayPolicy.usual(status(at: now, pending: pending), thresholds)
    else { return decideElsewhere(at: now, pending: pending, tick: tick) }
    slack = usual.slack
    guard usual.surplus > 0 else { return DelayDecision(adjustment: .none, tickShift: 0 &- usual.excess, slack: slack) }
    statistics.shrinks &+= 1
    return DelayDecision(
      adjustment: .shrink(Int(truncatingIfNeeded: usual.surplus)), tickShift: 0 &- usual.excess, slack: slack)
  }

  @inline(__always) private func status(at now: Instant, pending: Int) -> PlayoutStatus {
    let reserve = highest &- missingAt <= Limits.lossyPackets ? thresholds.reserve : 0
    return PlayoutStatus(
      now: units(now), nextTimestamp: position, pending: Int64(pending), grain: grain, wanted: delay.wanted &+ reserve,
      slowest: delay.slowest)
  }

  @inline(never) private mutating func decideElsewhere(at now: Instant, pending: Int, tick: Int) -> DelayDecision {
    guard started, tick >= 0 else { return DelayDecision(adjustment: .none, tickShift: 0, slack: 0) }
    if grainTick != tick { updateGrain(tick) }
    let decision = DelayPolicy.decide(status(at: now, pending: pending), thresholds)
    slack = decision.slack
    switch decision.adjustment {
    case .none: break
    case .shrink: statistics.shrinks &+= 1
    case .grow: statistics.grows &+= 1
    }
    return decision
  }

  private mutating func updateGrain(_ tick: Int) {
    var (common, other) = (packetDuration, Int64(tick))
    while other > 0 { (common, other) = (other, common % other) }
    grain = max(1, common)
    grainTick = tick
  }

  /// How long audio of `nextTimestamp − pending` has waited beyond the fastest packet's delay, in milliseconds; what listeners
  /// feel.
  public func playoutDelayMilliseconds(at now: Instant, pending: Int) -> Double {
    guard started else { return 0 }
    return Double(units(now) &- position &+ Int64(pending) &- delay.recentMinimum) / Double(unitsPerMillisecond)
  }

  /// The RTP timestamp where the next piece begins.
  public var nextTimestamp: RTPTimestamp { RTPTimestamp(raw: UInt32(truncatingIfNeeded: position)) }
  /// The packet of the next number is there: `fetch` will not have to give up on it.
  public var nextIsReady: Bool {
    mutating get { store.packet(next).map { !$0.isPlaceholder } ?? false }
  }
  /// Packets stored.
  public var depth: Int { store.count }

  /// Forgets stream and measurements, for another peer.
  public mutating func reset() {
    store.removeAll()
    delay.removeAll()
    source = nil
    candidate = nil
    started = false
    (waited, slack) = (0, .min / 2)
  }

  /// On the RTP clock, by a multiplication with the rate per nanosecond in 2⁻⁶⁴.
  @inline(__always) func units(_ instant: Instant) -> Int64 {
    instant.nanoseconds.multipliedFullWidth(by: unitsPerNanosecond).high
  }
}
