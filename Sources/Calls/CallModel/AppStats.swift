public import TrunklineAppProtocol

/// The statistics that the device of a call reports in its `stats` messages. They are the device's own statement: people may read
/// them, and nothing else depends on them.
public struct AppStats: Sendable, Codable, Equatable {
  public struct Worst: Sendable, Codable, Equatable {
    public var rttMs: Double?
    public var jitterMs: Double?
    public var loss: Double?
    public var mos: Double?
  }
  /// Messages with at least one plausible field.
  public private(set) var reports: Int
  /// The newest.
  public private(set) var last: StreamStats
  /// The highest of each; of `mos` the lowest.
  public private(set) var worst: Worst

  /// `former` with another message added; unchanged if no field of the message is plausible. Nil if there is neither.
  package init?(_ former: AppStats?, _ message: StreamStats) {
    let stats = message.plausible
    guard stats != StreamStats() else {
      guard let former else { return nil }
      self = former
      return
    }
    func worse(_ old: Double?, _ new: Double?, _ choose: (Double, Double) -> Double) -> Double? {
      guard let old, let new else { return old ?? new }
      return choose(old, new)
    }
    let old = former?.worst ?? Worst()
    reports = (former?.reports ?? 0) + 1
    last = stats
    worst = Worst(
      rttMs: worse(old.rttMs, stats.rttMs, max), jitterMs: worse(old.jitterMs, stats.jitterMs, max),
      loss: worse(old.loss, stats.loss, max), mos: worse(old.mos, stats.mos, min))
  }
}

extension StreamStats {
  /// Without the fields that are out of range.
  fileprivate var plausible: StreamStats {
    func within<Value: Comparable>(_ value: Value?, _ range: ClosedRange<Value>) -> Value? {
      value.flatMap { range.contains($0) ? $0 : nil }
    }
    let codec = codec.flatMap { name in
      Limits.codecCharacters.contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7e).contains($0) } ? name : nil
    }
    return StreamStats(
      rttMs: within(rttMs, Limits.statsMilliseconds), jitterMs: within(jitterMs, Limits.statsMilliseconds),
      loss: within(loss, 0...1), bytes: within(bytes, Limits.statsBytes), plc: within(plc, Limits.concealedMilliseconds),
      codec: codec, mos: within(mos, Limits.opinionScore))
  }
}
