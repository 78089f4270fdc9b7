import TrunklineRTP

/// The policy's input when a tick's audio is ready. All in RTP clock units; transits as in `ArrivalDelay`.
public struct PlayoutStatus: Sendable, Equatable {
  /// The tick's time on the arrival clock.
  public var now: Int64
  /// The timestamp of the next packet to be fetched.
  public var nextTimestamp: Int64
  /// Decoded units that remain after this tick.
  public var pending: Int64
  /// The greatest common divisor of a packet's and a tick's length: the step of the offsets between packets and ticks.
  public var grain: Int64
  /// The transit that is worth waiting for, and the largest one of late packets.
  public var wanted: Int64
  public var slowest: Int64
}

/// What to do to the tick's audio.
public enum Adjustment: Sendable, Equatable {
  case none
  /// Play faster: up to this many units can be removed without making a packet late.
  case shrink(Int)
  /// Play slower: this many units are needed before the next packets can be waited for.
  case grow(Int)
}

/// The policy's output at a tick.
public struct DelayDecision: Sendable, Equatable {
  public var adjustment: Adjustment
  /// How much later (negative: earlier) than a whole period the next ticks should come, in RTP clock units; 0 if the tightest
  /// packet is needed about when the wanted share of packets has arrived.
  public var tickShift: Int64
  /// How long the tightest packet has until it is needed.
  public var slack: Int64
}

/// Decide: a pure function from status to operation, so that a replay or a unit test can run it.
///
/// A packet is in time if it has arrived when the tick that needs its first unit comes. So the delay that matters is not a
/// sample's but a packet's at that tick: it should be `wanted`. Units decoded ahead on which no packet's timeliness depends are
/// pure delay, and are removed.
///
/// With `r` units decoded ahead, packet `j` begins at `nextTimestamp + j · length` and is needed by tick `⌊(r + j · length) /
/// tick⌋ + 1` from now. Over all `j` the tightest of them leaves `⌊r / grain⌋ · grain + grain` until its packet is needed.
/// Stretching changes that by multiples of `grain`; the rest is the ticks' phase.
public struct DelayPolicy: Sendable {
  /// The cost of missing audio, by G.113.
  public var codec = CodecImpairment.g711
  /// Mouth to ear without the buffer; an estimate until `PlayoutBuffer.setPath`.
  public var pathMilliseconds = DelayPolicy.path(roundTrips: nil, nil)
  /// The cost of a millisecond in R beside G.107's Id, which is 0 below 100 ms; people who talk at once notice it.
  public var delayPrice: Float = 0.005
  /// Packets after which an observation counts 1/e: about 30 s.
  public var memoryPackets: Float = 1500
  /// After audio was shortened, up to this much may be missing: later ticks correct it.
  public var shrinkMarginMilliseconds: Int64 = 2
  /// Slack from which ticks come earlier.
  public var shiftMarginMilliseconds: Int64 = 2
  /// A shortfall up to this is left to the ticks, which come later step by step, and to late packets that are played whole:
  /// repeated pitch periods are more audible.
  public var shiftableMilliseconds: Int64 = 60
  /// Delay beyond the wanted from which a loss is used to shorten it, and late packets are given up at once.
  public var excessToleranceMilliseconds: Int64 = 10
  /// The same if packets recently came too late: the missing packet may only have been overtaken.
  public var overtakenExcessToleranceMilliseconds: Int64 = 25
  /// Both while the talker pauses: a gap there is not missed.
  public var pauseExcessToleranceMilliseconds: Int64 = 2
  public var overtakenPauseExcessToleranceMilliseconds: Int64 = 10
  /// Delay beyond the wanted while packets are lost, so that a loss in a pause can shorten it; ticks restore it inaudibly.
  public var reserveMilliseconds: Int64 = 2

  public init() {}

  /// Mouth to ear without the buffer, in milliseconds: one packet on each side, Opus's look-ahead, and half the round trip of
  /// each leg. An unmeasured round trip counts as 60 ms; the path beyond the far ends is unknown.
  public static func path(roundTrips first: Double?, _ second: Double?) -> Double {
    func oneWay(_ roundTrip: Double?) -> Double { min(max(0, roundTrip ?? 60), Limits.pathMilliseconds) / 2 }
    return 2 * 20 + 6.5 + oneWay(first) + oneWay(second)
  }

  /// The thresholds above in RTP clock units.
  struct Thresholds {
    let shrinkMargin: Int64
    let shiftMargin: Int64
    let shiftable: Int64
    let excessTolerance: Int64
    let overtakenExcessTolerance: Int64
    let pauseExcessTolerance: Int64
    let overtakenPauseExcessTolerance: Int64
    let reserve: Int64

    init(_ policy: DelayPolicy, unitsPerMillisecond: Int64) {
      func units(_ milliseconds: Int64) -> Int64 { max(0, min(milliseconds, 1000)) * unitsPerMillisecond }
      (shrinkMargin, shiftMargin) = (units(policy.shrinkMarginMilliseconds), units(policy.shiftMarginMilliseconds))
      (shiftable, excessTolerance) = (units(policy.shiftableMilliseconds), units(policy.excessToleranceMilliseconds))
      overtakenExcessTolerance = units(policy.overtakenExcessToleranceMilliseconds)
      pauseExcessTolerance = units(policy.pauseExcessToleranceMilliseconds)
      overtakenPauseExcessTolerance = units(policy.overtakenPauseExcessToleranceMilliseconds)
      reserve = units(policy.reserveMilliseconds)
    }

    /// Delay beyond the wanted from which a lost packet is skipped.
    func excessTolerance(isPause: Bool, overtakes: Bool) -> Int64 {
      isPause
        ? (overtakes ? overtakenPauseExcessTolerance : pauseExcessTolerance)
        : (overtakes ? overtakenExcessTolerance : excessTolerance)
    }
  }

  // HOT
  @inline(__always) static func decide(_ status: PlayoutStatus, _ thresholds: Thresholds) -> DelayDecision {
    var (ahead, rest) = (Int64(0), status.pending)
    if rest >= status.grain {
      ahead = rest / status.grain &* status.grain
      rest &-= ahead
    }
    let slack = status.now &+ ahead &+ status.grain &- status.nextTimestamp
    let shortfall = status.wanted &- slack
    if shortfall > 0 {
      let isLarge = shortfall > thresholds.shiftable
      return DelayDecision(
        adjustment: isLarge ? .grow(Int(truncatingIfNeeded: shortfall)) : .none, tickShift: shortfall, slack: slack)
    }
    let excess = slack &- max(status.wanted, status.slowest)
    var surplus = rest
    if excess &+ thresholds.shrinkMargin >= status.grain {
      surplus &+= (excess &+ thresholds.shrinkMargin) / status.grain &* status.grain
    } else if excess < -thresholds.shrinkMargin {
      surplus = 0
    }
    return DelayDecision(
      adjustment: surplus > 0 ? .shrink(Int(truncatingIfNeeded: surplus)) : .none,
      tickShift: excess >= thresholds.shiftMargin ? 0 &- excess : 0, slack: slack)
  }
}
