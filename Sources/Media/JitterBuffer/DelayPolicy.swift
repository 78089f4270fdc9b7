/// What the policy knows when a tick's audio is ready. All in RTP clock units; transits as in `ArrivalDelay`.
public struct PlayoutStatus: Sendable, Equatable {
  /// The tick's time on the arrival clock.
  public var now: Int64
  /// Where the next packet to be fetched begins.
  public var nextTimestamp: Int64
  /// Decoded units that remain after this tick.
  public var pending: Int64
  /// The greatest common divisor of a packet's and a tick's length: the steps in which packets and ticks can lie to each other.
  public var grain: Int64
  /// Recent transits and the spread that is worth waiting for.
  public var fastest: Int64
  public var slowest: Int64
  public var spread: Int64
}

/// What to do to the tick's audio.
public enum Adjustment: Sendable, Equatable {
  case none
  /// Play faster: up to this many units can go without making a packet late.
  case shrink(Int)
  /// Play slower: this many units are wanted before the next packets can be waited for.
  case grow(Int)
}

/// What the policy says at a tick.
public struct DelayDecision: Sendable, Equatable {
  public var adjustment: Adjustment
  /// How much later (negative: earlier) than a whole period the next ticks had better come, in RTP clock units; 0 when the tightest
  /// packet is needed just when the wanted share of packets is there, or nearly so.
  public var tickShift: Int64
}

/// Decide: a pure function from status to operation, so that a replay or a unit test can ask the same questions.
///
/// A packet is in time if it has arrived when the tick that needs its first unit comes. So it is not a sample's delay that
/// matters but a packet's at that tick: it should be `fastest + spread`. Units decoded ahead that no packet's timeliness depends
/// on are pure delay, and go.
///
/// With `r` units decoded ahead, packet `j` begins at `nextTimestamp + j · length` and is needed by tick `⌊(r + j · length) /
/// tick⌋ + 1` from now. Over all `j` the tightest of them leaves `⌊r / grain⌋ · grain + grain` until its packet is needed.
/// Stretching moves that by whole grains; the rest is the ticks' phase.
public struct DelayPolicy: Sendable {
  /// What one percent of late packets is worth, in milliseconds of delay (decision 0060).
  public var lossCost: Float = 40
  /// Packets after which an observation counts 1/e: about 30 s.
  public var memoryPackets: Float = 1500
  /// So little may be missing after audio was shortened: later ticks make it good.
  public var shrinkMarginMilliseconds: Int64 = 2
  /// Slack from which ticks come earlier.
  public var shiftMarginMilliseconds: Int64 = 2
  /// A shortfall up to this is left to the ticks, which come later bit by bit.
  public var shiftableMilliseconds: Int64 = 10
  /// Delay beyond the wanted from which a loss is used to shorten it, and late packets are given up at once.
  public var patienceMilliseconds: Int64 = 10

  public init() {}

  // HOT
  public func decide(_ status: PlayoutStatus, unitsPerMillisecond: Int64) -> DelayDecision {
    let grain = max(1, status.grain)
    let ahead = status.pending / grain
    let rest = status.pending &- ahead &* grain
    let slack = status.now &+ (ahead &+ 1) &* grain &- status.nextTimestamp
    let wanted = status.fastest &+ status.spread
    guard slack >= wanted else {
      let shortfall = wanted &- slack
      let isLarge = shortfall > shiftableMilliseconds &* unitsPerMillisecond
      return DelayDecision(adjustment: isLarge ? .grow(Int(clamping: shortfall)) : .none, tickShift: shortfall)
    }
    let excess = slack &- max(wanted, status.slowest)
    let margin = shrinkMarginMilliseconds &* unitsPerMillisecond
    guard excess >= -margin else { return DelayDecision(adjustment: .none, tickShift: 0) }
    let surplus = rest &+ (excess &+ margin) / grain &* grain
    return DelayDecision(
      adjustment: surplus > 0 ? .shrink(Int(clamping: surplus)) : .none,
      tickShift: excess >= shiftMarginMilliseconds &* unitsPerMillisecond ? -excess : 0)
  }
}
