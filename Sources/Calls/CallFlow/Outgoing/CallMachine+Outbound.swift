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
        guard var trunk = routing.trunk(group[index].trunk) else { continue }
        guard let trunking, trunk.settings != nil else {
          if trunk.peer != nil { usable.append(trunk) }
          continue
        }
        guard trunking.isUsable(trunk.name, at: now),
          let peer = trunking.peer(trunk.name, at: now).flatMap({ trunk.callable($0) })
        else {
          continue
        }
        trunk.peer = peer
        if trunking.isRegistered(trunk.name) { usable.append(trunk) } else { unregistered.append(trunk) }
      }
    }
    let all = usable + unregistered
    var reason = Refusal.Reason.trunkDown
    for (index, trunk) in all.enumerated() {
      if let refusal = roomRefusal(trunk, isEmergency: isEmergency, now) {
        if index == 0 { reason = refusal }
        continue
      }
      return .trunks(Array(all[index...]))
    }
    return .refused(reason)
  }

  /// Why a trunk accepts no further call now; nil if it does, and then the call is counted in its rate.
  mutating func roomRefusal(_ trunk: Routing.Trunk, isEmergency: Bool = false, _ now: Instant) -> Refusal.Reason? {
    if disabledTrunks.contains(trunk.name) { return .trunkDisabled }
    if isEmergency { return nil }
    if let most = trunk.maximumCalls, callsOfTrunk[trunk.name, default: 0] >= most { return .trunkLimit }
    return consumeRate(trunk, now) ? nil : .trunkRate
  }

  /// Consumes one of the trunk's calls of this second; false: none is left.
  mutating func consumeRate(_ trunk: Routing.Trunk, _ now: Instant) -> Bool {
    guard let rate = trunk.callsPerSecond else { return true }
    if rates[trunk.name] == nil { rates[trunk.name] = TokenBucket(perSecond: share(rate), at: now) }
    return rates[trunk.name]?.consume(at: now) ?? true
  }

  /// An INVITE of ours failed: true if its call continues over another trunk of the leg's route.
  mutating func tryNextTrunk(
    _ id: LegID, _ code: Int, byTransport: Bool, _ failure: UserAgent.Event, _ step: inout Step
  ) -> Bool {
    guard let owner = legs[id], let call = calls[owner], call.isLive, let index = call.legs.firstIndex(where: { $0.id == id })
    else { return false }
    let leg = call.legs[index]
    let isFault = leg.isTrunkFault(code, byTransport: byTransport)
    judgeTrunk(of: id, byFault: isFault && !leg.hasLostAddress, &step)
    // 487 is the answer to our CANCEL
    if id.isOutbound, code != 487, !leg.hasLostAddress {
      if let failure = leg.localFailure {
        trunking?.requestUnanswered(leg.trunk.name, "INVITE", failure, at: step.now)
      } else {
        trunking?.callRefused(leg.trunk.name, code: code, at: step.now)
      }
    }
    let further = leg.hasLostAddress ? fromHere(leg, step.now) : leg.alternatives
    guard isFault, leg.mayTryAnother, retryNext(owner, id, further, failure, &step) else { return false }
    legs[id] = nil  // its `legClosed` is not the call's end
    return true
  }

  /// Trunks for a leg whose local address was lost before an answer, from our present address: its own trunk again if it did not
  /// ring, then the others.
  private func fromHere(_ leg: TrunkLeg, _ now: Instant) -> [Routing.Trunk] {
    ((leg.hasRung ? [] : [leg.trunk]) + leg.alternatives).compactMap { trunk in
      guard let trunking, trunk.settings != nil else { return trunk }
      var trunk = trunk
      trunk.peer = trunking.peer(trunk.name, at: now).flatMap { trunk.callable($0) }
      return trunk.peer == nil ? nil : trunk
    }
  }

  mutating func releaseTrunk(_ name: String) {
    callsOfTrunk[name, default: 0] -= 1
    if callsOfTrunk[name] == 0 { callsOfTrunk[name] = nil }
  }

  // MARK: the trunk machine

  /// Reports the outcome of an outbound leg to the trunk machine.
  mutating func judgeTrunk(of id: LegID, byFault: Bool, _ step: inout Step) {
    guard id.isOutbound, let owner = legs[id], let index = calls[owner]?.legs.firstIndex(where: { $0.id == id }),
      let name = calls[owner]?.legs[index].trunk.name
    else { return }
    calls[owner]?.legs[index].isTrunkOutcomeReported = true
    trunking?.callFinished(name, byFault: byFault, at: step.now, into: &trunkOutput)
    forwardTrunkOutput(&step)
  }

  mutating func configureTrunks(_ step: inout Step) {
    isTrunkingConfigured = true
    setRates()
    let names = Set(routing.trunks.map(\.name))
    rates = rates.filter { names.contains($0.key) }
    disabledTrunks.formIntersection(names)
    handle(
      TrunkMachine.Input.configure(
        routing.trunks.compactMap(\.settings),
        peerNames: Dictionary(routing.trunks.map { ($0.name, $0.peerNames) }) { first, _ in first }),
      &step)
  }

  mutating func handle(_ input: TrunkMachine.Input, _ step: inout Step) {
    trunking?.handle(input, at: step.now, into: &trunkOutput)
    forwardTrunkOutput(&step)
  }

  mutating func forwardTrunkOutput(_ step: inout Step) {
    for question in trunkOutput.questions { step.output.actions.append(.lookUp(question)) }
    for flow in trunkOutput.keepAlives { step.output.actions.append(.keepAlive(flow)) }
    for (id, request) in trunkOutput.requests { step.sip(.request(id, request)) }
    let news = trunkOutput.news
    for news in news { step.output.actions.append(.trunkNews(news)) }
    trunkOutput.removeAll()
    for news in news { reportTrunk(news.trunk, &step) }
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
