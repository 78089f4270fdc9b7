import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Slots of a trunk's `max_calls` in a cluster: the first trunk of a call is counted with its `locate` or `claim`. A slot of a
/// further one (the next of a route, a diversion, a transfer) is requested by `Action.admit` before the leg is made. If the
/// shared store does not answer, the cluster machine answers by this node's share, within 100 ms.
///
/// | input | effect |
/// |---|---|
/// | `requestSlot` | the request waits; a call has one at a time, and a second replaces the first |
/// | `admitted` | it continues over this trunk, or the next one; without a request, or after the call: none |
struct SlotRequests {
  private var waiting: [CallID: CallMachine.SlotRequest] = [:]

  func isWaiting(_ id: CallID) -> Bool { waiting[id] != nil }
  mutating func wait(_ request: CallMachine.SlotRequest, of id: CallID) { waiting[id] = request }
  mutating func remove(_ id: CallID) -> CallMachine.SlotRequest? { waiting.removeValue(forKey: id) }
}

extension CallMachine {
  /// What continues once a slot is granted.
  enum SlotRequest {
    /// The leg failed with this event, and continues over `next`; without a slot, over one of `left`.
    case retry(LegID, failure: UserAgent.Event, next: Routing.Trunk, left: [Routing.Trunk])
    case diversion(DiversionPlan)
    case transfer(LegID, TransferTarget, [Routing.Trunk])
  }

  func needsSlot(_ trunk: Routing.Trunk) -> Bool { configuration.isClustered && trunk.maximumCalls != nil }

  mutating func requestSlot(_ request: SlotRequest, over trunk: Routing.Trunk, of id: CallID, _ step: inout Step) {
    slots.wait(request, of: id)
    step.output.actions.append(.admit(id, trunk: trunk.name, most: trunk.maximumCalls ?? .max))
  }

  mutating func admitted(_ id: CallID, to trunk: String, isAdmitted: Bool, _ step: inout Step) {
    guard let request = slots.remove(id) else { return }
    // the slots were released with the call
    guard calls[id]?.isLive == true else { return }
    switch request {
    case .retry(let leg, let failure, let next, let left):
      if isAdmitted { return retry(id, leg: leg, over: next, alternatives: left, &step) }
      if !retryNext(id, leg: leg, over: left, after: failure, &step) { change(id, &step) { $0.handle(failure, of: leg, &$1) } }
    case .diversion(let plan):
      if isAdmitted { return reserve(plan, for: id, &step) }
      guard let (next, left) = nextTrunk(of: plan.trunks.dropFirst(), step.now) else {
        return diversionImpossible(id, plan, because: Refusal.Reason.trunkLimit.rawValue, &step)
      }
      begin(DiversionPlan(target: plan.target, trunks: [next] + left, session: plan.session), for: id, &step)
    case .transfer(let leg, let target, let trunks):
      if isAdmitted { return follow(leg, to: target, over: trunks, &step) }
      guard let (next, left) = nextTrunk(of: trunks.dropFirst(), step.now), next.peer != nil else {
        return step.sip(.refuseRefer(leg, code: 603))
      }
      transfer(leg, to: target, over: [next] + left, of: id, &step)
    }
  }

  /// The first of these that accepts a call now, and those after it. The call is counted in its rate.
  mutating func nextTrunk(of trunks: some Sequence<Routing.Trunk>, _ now: Instant) -> (Routing.Trunk, [Routing.Trunk])? {
    var left = Array(trunks)
    while !left.isEmpty {
      let next = left.removeFirst()
      guard trunkHealth.isUsable(next.name, at: now), trunkCapacity.consume(next, at: now) == nil else { continue }
      return (next, left)
    }
    return nil
  }

  /// False: no trunk is left.
  mutating func retryNext(
    _ id: CallID, leg: LegID, over trunks: [Routing.Trunk], after failure: UserAgent.Event, _ step: inout Step
  ) -> Bool {
    guard let (next, left) = nextTrunk(of: trunks, step.now) else { return false }
    if needsSlot(next) {
      requestSlot(.retry(leg, failure: failure, next: next, left: left), over: next, of: id, &step)
    } else {
      retry(id, leg: leg, over: next, alternatives: left, &step)
    }
    return true
  }

  private mutating func retry(
    _ id: CallID, leg: LegID, over next: Routing.Trunk, alternatives left: [Routing.Trunk], _ step: inout Step
  ) {
    guard let index = calls[id]?.legs.index(of: leg) else { return }
    let number = LegID.outbound(makeNumber())
    claim(number, next, for: id, at: step.now)
    let holdsSlot = needsSlot(next)
    change(id, &step) {
      $0.retry(index, over: next, as: number, alternatives: left, &$1)
      $0.legs[index].holdSlot(holdsSlot)
    }
  }

  /// Releases the slot of a leg that ended while its call continues.
  mutating func releaseSlot(_ leg: TrunkLeg, of id: CallID, _ step: inout Step) {
    if leg.holdsSlot { step.output.actions.append(.released(id, trunk: leg.trunk.name)) }
  }
}
