/// What the policy knows when a tick's audio is ready. All in RTP clock units; transits as in `ArrivalDelay`.
public struct PlayoutStatus: Sendable, Equatable {
  /// The next tick's time on the arrival clock.
  public var nextTick: Int64
  /// Where the next packet to be fetched begins.
  public var nextTimestamp: Int64
  /// Decoded units that remain after this tick.
  public var pending: Int64
  /// Of the packets this stream sends.
  public var packetDuration: Int64
  public var tick: Int64
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
/// A packet is in time if it has arrived when the tick that needs its first unit comes. The delay worth having is therefore not that of a sample
/// but that of packets at ticks: the newest packet the next tick needs, fetched then, has `nextTick − timestamp` behind it, and that should be
/// `fastest + spread`. Units decoded beyond the tick that no packet's timeliness depends on are pure delay, and go.
public struct DelayPolicy: Sendable {
  /// Share of packets that shall be in time.
  public var quantile: Float = 0.97
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

  /// Units that could be taken out now while the newest packet the next tick needs still has `lag`; negative when it already has less.
  ///
  /// Packets begin at `nextTimestamp + j · packetDuration`; those up to `j = ⌊(nextTick − nextTimestamp − lag) / packetDuration⌋` have it. The
  /// next tick needs `tick − pending` units from them.
  static func surplus(_ status: PlayoutStatus, lag: Int64) -> Int64 {
    let length = max(1, status.packetDuration)
    let slack = status.nextTick &- status.nextTimestamp &- lag
    let packets = slack >= 0 ? slack / length : (slack &- length &+ 1) / length
    return (packets &+ 1) &* length &- status.tick &+ status.pending
  }
}
