import CallModel
import PhoneNumbers
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

/// A leg to a number, as far as it is known before its media is reserved.
struct DiversionPlan {
  let target: DiversionTarget
  /// Never empty; the first has room.
  let trunks: [Routing.Trunk]
  let session: MediaSessionID
}

/// Diversions of calls that no device answers, made only by a rule of the user or the route, and under the user's outbound rules.
extension CallMachine {
  func diversions(of user: String) -> Diversions { routing.user(user)?.diversions ?? Diversions() }

  /// Carries a planned diversion out, or ends the call as it would have ended without the rule.
  mutating func divert(_ id: CallID, _ planned: PlannedDiversion, _ step: inout Step) {
    guard let call = calls[id], call.isLive, call.diversions.planned != nil else { return }
    switch planned.rule.target {
    case .code(let code):
      change(id, &step) { call, step in
        call.diversions.refuse(planned.trigger, code: code)
        call.end(planned.ending, refusing: code, &step)
      }
    case .recording(let file):
      guard call.reservation != nil else { return abandon(id, planned, because: "no media", &step) }
      change(id, &step) { $0.divert(to: file, planned, &$1) }
    case .user(let next): divert(id, planned, to: next, &step)
    case .number(let text, let showsCaller): divert(id, planned, toNumber: text, showsCaller: showsCaller, &step)
    }
  }

  /// The rule cannot be applied: ends the call, with 482 if it would loop.
  private mutating func abandon(
    _ id: CallID, _ planned: PlannedDiversion, because why: String, isLoop: Bool = false, _ step: inout Step
  ) {
    var ending = planned.ending
    ending.detail = "diversion: " + why
    change(id, &step) { call, step in
      call.mark(.divertedFailed, detail: why, &step)
      if isLoop { call.end(ending, refusing: 482, &step) } else { call.end(ending, &step) }
    }
  }

  private mutating func divert(_ id: CallID, _ planned: PlannedDiversion, to next: String, _ step: inout Step) {
    guard let call = calls[id] else { return }
    if call.users.concerns(next) || call.parties.peer?.user == next {
      return abandon(id, planned, because: "\(next) had it before", isLoop: true, &step)
    }
    if call.diversions.isTooMany { return abandon(id, planned, because: "too many diversions", isLoop: true, &step) }
    guard routing.user(next) != nil else { return abandon(id, planned, because: "no user \(next)", &step) }
    guard calls.count(of: next) < configuration.bounds.callsPerUser else {
      return abandon(id, planned, because: "\(next) has too many calls", &step)
    }
    guard call.reservation != nil else { return abandon(id, planned, because: "no media", &step) }
    let rules = diversions(of: next)
    let account = routing.account(of: next, called: call.parties.calledNumber, route: nil)
    if blocking(call, user: next, account: account) != nil {
      return abandon(id, planned, because: "\(next) blocks the caller", &step)
    }
    calls.add(next, to: id)
    change(id, &step) { call, step in
      call.users.belongs(to: account, of: next)
      call.divert(to: next, rules, planned, &step)
    }
    if configuration.isClustered { return locate(id, then: .diverted, &step) }
    ring(id, &step)
  }

  private mutating func divert(
    _ id: CallID, _ planned: PlannedDiversion, toNumber text: String, showsCaller: Bool, _ step: inout Step
  ) {
    guard let call = calls[id], call.reservation != nil else { return abandon(id, planned, because: "no media", &step) }
    let number: DialledNumber
    do {
      number = try routing.dialled(text, by: call.users.owner)
    } catch {
      return abandon(id, planned, because: "\(error)", &step)
    }
    if routing.isOwn(number.text) { return abandon(id, planned, because: "a number of this gateway", isLoop: true, &step) }
    if call.diversions.isTooMany || !call.transfers.hasForwards {
      return abandon(id, planned, because: "too many diversions", isLoop: true, &step)
    }
    if number.kind == .emergency { return abandon(id, planned, because: "an emergency number", &step) }
    let (rule, allowed): (Routing.OutboundRule, AllowedNumber)
    switch outboundRule(number, user: call.users.owner, step.now) {
    case .rule(let found, let number): (rule, allowed) = (found, number)
    case .refused(_, let reason, _): return abandon(id, planned, because: reason.rawValue, &step)
    }
    let candidates: [Routing.Trunk]
    switch trunks(of: rule, step.now) {
    case .trunks(let found): candidates = found
    case .refused(let reason): return abandon(id, planned, because: reason.rawValue, &step)
    }
    guard consumeQuota(of: call.users.owner, step.now) else {
      return abandon(id, planned, because: Refusal.Reason.userRate.rawValue, &step)
    }
    let own =
      routing.callerNumber(of: call.users.owner, wanted: call.parties.calledNumber) ?? routing.user(call.users.owner)?.numbers
      .first
      ?? call.parties.calledNumber
    let session = MediaSessionID(raw: makeNumber())
    let target = DiversionTarget(number: allowed, ownNumber: own, showsCaller: showsCaller, planned: planned)
    begin(DiversionPlan(target: target, trunks: candidates, session: session), for: id, &step)
  }

  mutating func begin(_ plan: DiversionPlan, for id: CallID, _ step: inout Step) {
    guard needsSlot(plan.trunks[0]) else { return reserve(plan, for: id, &step) }
    requestSlot(.diversion(plan), over: plan.trunks[0], of: id, &step)
  }

  mutating func reserve(_ plan: DiversionPlan, for id: CallID, _ step: inout Step) {
    guard let call = calls[id], call.diversions.planned != nil else { return }
    pending.waitForMedia(id, then: .diversion(plan))
    // on the call's media thread, which is that of the first user whose devices rang
    let owner = call.users.former.first ?? call.users.ringing.first ?? call.users.owner
    step.output.actions.append(
      .reserveMedia(MediaRequest(id, session: plan.session, user: owner, toward: plan.trunks[0].peer?.flow.remote.ip)))
  }

  mutating func diversionReserved(_ id: CallID, _ plan: DiversionPlan, _ reservation: MediaReservation, _ step: inout Step) {
    guard let call = calls[id], call.isLive, call.diversions.planned != nil else {
      return step.media(.close(reservation.session))
    }
    var leg = TrunkLeg(
      .outbound(makeNumber()), .diversion(plan.target), over: plan.trunks[0], session: plan.session,
      alternatives: Array(plan.trunks.dropFirst()))
    leg.prepareOffer(at: reservation.trunkAddress, random)
    leg.holdSlot(needsSlot(leg.trunk))
    calls.attach(plan.session, to: id)
    claim(leg.id, leg.trunk, for: id, at: step.now)
    change(id, &step) { $0.divert(by: leg, to: plan.target, &$1) }
  }

  mutating func diversionImpossible(_ id: CallID, _ plan: DiversionPlan, because why: String, _ step: inout Step) {
    if calls[id]?.isLive == true { abandon(id, plan.target.planned, because: why, &step) }
  }

  mutating func diversionClosed(_ id: CallID, _ statistics: MediaStatistics, _ step: inout Step) {
    change(id, &step) { call, step in
      call.legs[1].received(statistics)
      if call.isLive { call.end(.server, by: .gateway, detail: "media of the diversion ended", &step) }
    }
  }
}
