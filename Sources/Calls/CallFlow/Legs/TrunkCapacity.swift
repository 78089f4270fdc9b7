import CallModel
import TrunklineBytes

/// Which trunks accept a further call here: their calls on this node, their calls of this second, and what an operator disabled.
/// The maximum over all nodes is counted by the cluster (`CallMachine+Slots.swift`).
///
/// | input | effect |
/// |---|---|
/// | `consume` | nil: the call is counted in the trunk's rate; or why the trunk accepts none: disabled, full, too fast |
/// | `begin`, `end` | one leg more, or less; an `end` without a leg changes nothing |
/// | `disable`, `enable` | until it is enabled again, or leaves the configuration |
/// | `configure` | rates as configured from now on; removed trunks are enabled and have no rate. Their calls count until they end |
/// | `share` | the rates are divided among this number of nodes from now on |
struct TrunkCapacity {
  private var calls: [String: Int] = [:]
  /// Of trunks with a rate that had a call.
  private var rates: [String: TokenBucket] = [:]
  private var disabled: Set<String> = []
  /// That accept calls, this one included.
  private var nodes = 1

  /// Trunks that have a call.
  var names: Set<String> { Set(calls.keys) }
  func calls(of trunk: String) -> Int { calls[trunk] ?? 0 }
  func isDisabled(_ trunk: String) -> Bool { disabled.contains(trunk) }

  /// - Parameter isEmergency: no limit of ours applies.
  mutating func consume(_ trunk: Routing.Trunk, isEmergency: Bool = false, at now: Instant) -> Refusal.Reason? {
    if isDisabled(trunk.name) { return .trunkDisabled }
    if isEmergency { return nil }
    if let most = trunk.maximumCalls, calls(of: trunk.name) >= most { return .trunkLimit }
    guard let rate = trunk.callsPerSecond else { return nil }
    let full = TokenBucket(perSecond: part(of: rate), at: now)
    return rates[trunk.name, default: full].consume(at: now) ? nil : .trunkRate
  }

  mutating func begin(_ trunk: String) { calls[trunk, default: 0] += 1 }

  mutating func end(_ trunk: String) {
    let left = calls(of: trunk) - 1
    calls[trunk] = left > 0 ? left : nil
  }

  mutating func disable(_ trunk: String) { disabled.insert(trunk) }
  mutating func enable(_ trunk: String) { disabled.remove(trunk) }

  mutating func configure(_ trunks: [Routing.Trunk]) {
    setRates(trunks)
    let names = Set(trunks.map(\.name))
    rates = rates.filter { names.contains($0.key) }
    disabled.formIntersection(names)
  }

  mutating func share(among nodes: Int, _ trunks: [Routing.Trunk]) {
    guard nodes != self.nodes else { return }
    self.nodes = nodes
    setRates(trunks)
  }

  /// This node's part of a rate: one at least.
  private func part(of rate: Int) -> Int { max(1, rate / max(1, nodes)) }

  private mutating func setRates(_ trunks: [Routing.Trunk]) {
    for trunk in trunks {
      guard let part = trunk.callsPerSecond.map(part) else { continue }
      rates[trunk.name]?.setRate(part)
    }
  }
}
