import CallModel
public import Trunking
public import TrunklineBytes

/// The trunks as operators see them.
extension CallMachine {
  /// Troubles of the trunks that this node handles in a cluster.
  public var trunkTroubles: [String: TrunkStatus.Trouble] { trunkHealth.troubles }

  /// The configured trunks in their order, then removed ones that still have calls. O(trunks).
  public func trunkStatuses(at now: Instant) -> [TrunkStatus] {
    routing.trunks.map { status(of: $0, at: now) } + goneTrunks.map { gone($0) }
  }

  /// One of them; nil: there is none of this name.
  public func trunkStatus(_ name: String, at now: Instant) -> TrunkStatus? {
    if let trunk = routing.trunk(name) { return status(of: trunk, at: now) }
    return trunkCapacity.calls(of: name) == 0 ? nil : gone(name)
  }

  /// At most `most` of them, from the trunk at `index` on.
  public func trunkPage(from index: Int, most: Int, at now: Instant) -> TrunkPage {
    let configured = routing.trunks
    if index < configured.count {
      let end = min(configured.count, max(0, index) + max(1, most))
      let page = configured[max(0, index)..<end].map { status(of: $0, at: now) }
      return TrunkPage(trunks: page, next: end < configured.count || !goneTrunks.isEmpty ? end : nil)
    }
    let names = goneTrunks.dropFirst(index - configured.count)
    let page = names.prefix(max(1, most))
    return TrunkPage(trunks: page.map { gone($0) }, next: page.count < names.count ? index + page.count : nil)
  }

  /// An operator enables or disables a trunk.
  mutating func setTrunk(_ name: String, isDisabled: Bool, _ step: inout Step) {
    if !isDisabled { trunkCapacity.enable(name) } else if routing.trunk(name) != nil { trunkCapacity.disable(name) }
    reportTrunk(name, &step)
  }

  /// Names of trunks that have a call.
  public var trunksWithCalls: Set<String> { trunkCapacity.names }

  /// At most a few: only an operator removes a trunk from the configuration.
  private var goneTrunks: [String] { trunkCapacity.names.filter { routing.trunk($0) == nil }.sorted() }

  private func status(of trunk: Routing.Trunk, at now: Instant) -> TrunkStatus {
    var status = trunkHealth.status(trunk.name, at: now, wallOffset: wallOffset)
    status.callsLimit = trunk.maximumCalls
    return counted(status)
  }

  private func gone(_ name: String) -> TrunkStatus {
    var gone = TrunkStatus(trunk: name)
    gone.mark(.removed)
    return counted(gone)
  }

  private func counted(_ status: TrunkStatus) -> TrunkStatus {
    var status = status
    status.calls = trunkCapacity.calls(of: status.trunk)
    if trunkCapacity.isDisabled(status.trunk) { status.mark(.disabled) }
    return status
  }
}

/// A part of the trunks' statuses.
public struct TrunkPage: Sendable {
  public var trunks: [TrunkStatus]
  /// Where the next page begins; nil: this was the last.
  public var next: Int?
}
