public import Bytes
public import Trunking

/// The trunks as operators see them.
extension CallMachine {
  /// What is wrong with the trunks that are this node's task among several.
  public var trunkTroubles: [String: TrunkStatus.Trouble] { trunking?.troubles ?? [:] }

  /// The configured trunks in their order, then those that are gone and still have calls.
  public func trunkStatuses(at now: Instant) -> [TrunkStatus] {
    var all = routing.trunks.map { trunk in
      var status = trunking?.status(trunk.name, at: now, wallOffset: wallOffset) ?? TrunkStatus(trunk: trunk.name)
      status.callsLimit = trunk.maximumCalls
      return status
    }
    for name in callsOfTrunk.keys.sorted() where routing.trunk(name) == nil {
      var gone = TrunkStatus(trunk: name)
      gone.mark(.removed)
      all.append(gone)
    }
    for index in all.indices {
      all[index].calls = callsOfTrunk[all[index].trunk] ?? 0
      if disabledTrunks.contains(all[index].trunk) { all[index].mark(.disabled) }
    }
    return all
  }
}
