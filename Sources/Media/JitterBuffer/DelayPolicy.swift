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
  /// Recent transits and the spread that covers the wanted share of packets.
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

/// Decide: pure functions from status to operation, so that a replay or a unit test can ask the same questions.
///
/// A packet is in time if it has arrived when the tick that needs its first unit comes. So it is not a sample's delay that
/// matters but a packet's at that tick: it should be `fastest + spread`. Units decoded ahead that no packet's timeliness depends
/// on are pure delay, and go.
public struct DelayPolicy: Sendable {
  /// Share of packets that shall be in time.
  public var quantile: Float = 0.98
  /// Packets after which an observation counts 1/e: about 30 s.
  public var memoryPackets: Float = 1500
  /// How much a repairable loss counts as a late packet: FEC is used from about 1 % loss.
  public var repairWeight: Float = 3
  /// Slack beyond the spread before audio is shortened, and below it before it is stretched.
  public var shrinkMarginMilliseconds: Int64 = 4
  public var growMarginMilliseconds: Int64 = 2

  public init() {}

  // HOT
  public func adjustment(_ status: PlayoutStatus, unitsPerMillisecond: Int64) -> Adjustment {
    let wanted = status.fastest &+ status.spread
    let relaxed = max(wanted, status.slowest) &+ shrinkMarginMilliseconds &* unitsPerMillisecond
    let surplus = Self.surplus(status, lag: relaxed)
    if surplus > 0 { return .shrink(Int(clamping: surplus)) }
    let tight = wanted &- growMarginMilliseconds &* unitsPerMillisecond
    let shortfall = Self.surplus(status, lag: tight)
    if shortfall < 0 { return .grow(Int(clamping: -shortfall)) }
    return .none
  }

  /// Units that could be taken out now while every packet to come still has `lag` at the tick that needs it; negative when some
  /// has less.
  ///
  /// With `r` units decoded ahead, packet `j` begins at `nextTimestamp + j · length` and is needed by tick `⌊(r + j · length) /
  /// tick⌋ + 1` from now. Over all `j` the tightest of them leaves `⌊r / grain⌋ · grain + grain` from now until its packet is
  /// needed, which must reach `nextTimestamp + lag`.
  static func surplus(_ status: PlayoutStatus, lag: Int64) -> Int64 {
    let grain = max(1, status.grain)
    let until = status.nextTimestamp &+ lag &- status.now
    let steps = until >= 0 ? (until &+ grain &- 1) / grain : until / grain
    return status.pending &- (steps &- 1) &* grain
  }
}
