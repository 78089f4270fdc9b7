import CallModel
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Which trunks an outgoing call may use, and when a trunk's failure leads to the next one.
extension CallMachine {
  enum TrunkOutcome {
    /// Never empty, each with its `peer`; the first has room.
    case trunks([Routing.Trunk])
    case refused(Refusal.Reason)
  }

  /// The trunks of a route in this call's order: by priority, by weight within one; those that are down are left out, those that
  /// should be registered and are not come last. The call is counted in the first one's rate.
  /// - Parameter isEmergency: no limit of ours applies; the carrier refuses what it has no room for.
  mutating func trunks(of rule: Routing.OutboundRule, isEmergency: Bool = false, _ now: Instant) -> TrunkOutcome {
    var usable: [Routing.Trunk] = []
    var unregistered: [Routing.Trunk] = []
    for priority in Set(rule.choices.map(\.priority)).sorted() {
      let group = rule.choices.filter { $0.priority == priority }
      for index in weightedOrder(group.map(\.weight), random) {
        guard let trunk = routing.trunk(group[index].trunk), let found = trunkHealth.candidate(trunk, at: now) else { continue }
        if found.isRegistered { usable.append(found.trunk) } else { unregistered.append(found.trunk) }
      }
    }
    let all = usable + unregistered
    var reason = Refusal.Reason.trunkDown
    for (index, trunk) in all.enumerated() {
      if let refusal = trunkCapacity.consume(trunk, isEmergency: isEmergency, at: now) {
        if index == 0 { reason = refusal }
        continue
      }
      return .trunks(Array(all[index...]))
    }
    return .refused(reason)
  }

  /// An INVITE of ours failed: true if its call continues over another trunk of the leg's route.
  mutating func tryNextTrunk(
    _ id: LegID, code: Int, byTransport: Bool, failure: UserAgent.Event, _ step: inout Step
  ) -> Bool {
    guard let owner = calls.id(of: id), let call = calls[owner], call.isLive, let index = call.legs.index(of: id)
    else { return false }
    let leg = call.legs[index]
    let isFault = leg.isTrunkFault(code, byTransport: byTransport)
    judgeTrunk(of: id, byFault: isFault && !leg.hasLostAddress, &step)
    // 487 is the answer to our CANCEL
    if id.isOutbound, code != 487, !leg.hasLostAddress {
      if let failure = leg.localFailure {
        trunkHealth.requestUnanswered(leg.trunk.name, method: "INVITE", failure, at: step.now)
      } else {
        trunkHealth.callRefused(leg.trunk.name, code: code, at: step.now)
      }
    }
    let further = leg.hasLostAddress ? fromHere(leg, step.now) : leg.alternatives
    guard isFault, leg.mayTryAnother, retryNext(owner, leg: id, over: further, after: failure, &step) else { return false }
    calls.detach(id)  // its `legClosed` is not the call's end
    return true
  }

  /// Trunks for a leg whose local address was lost before an answer, from our present address: its own trunk again if it did not
  /// ring, then the others.
  private func fromHere(_ leg: TrunkLeg, _ now: Instant) -> [Routing.Trunk] {
    ((leg.hasRung ? [] : [leg.trunk]) + leg.alternatives).compactMap { trunkHealth.located($0, at: now) }
  }

  // MARK: the trunk machine

  /// Reports the outcome of an outbound leg to the trunk machine.
  mutating func judgeTrunk(of id: LegID, byFault: Bool, _ step: inout Step) {
    guard id.isOutbound else { return }
    let reported = calls.change(id) { leg in
      leg.reportOutcome()
      return leg.trunk.name
    }
    guard let name = reported else { return }
    reportTrunks(trunkHealth.callFinished(name, byFault: byFault, &step), &step)
  }

  mutating func configureTrunks(_ step: inout Step) {
    trunkCapacity.configure(routing.trunks)
    reportTrunks(trunkHealth.configure(routing, &step), &step)
  }

  mutating func handle(_ input: TrunkMachine.Input, _ step: inout Step) {
    reportTrunks(trunkHealth.handle(input, &step), &step)
  }

  private mutating func reportTrunks(_ names: [String], _ step: inout Step) {
    for name in names { reportTrunk(name, &step) }
  }
}

extension InboundInvite {
  /// The numbers as the rest of the gateway writes them.
  func normalised(by rules: NumberRules) -> InboundInvite {
    var out = self
    out.to.number = rules.received(to.number)
    out.from.number = rules.received(from.number)
    if let asserted = assertedIdentity { out.assertedIdentity?.number = rules.received(asserted.number) }
    return out
  }
}
