import AppProtocol
import Bytes
import MediaSession
import SDP
import SIPDialogs
import Trunking

/// A leg to a number, as far as it is known before its media is reserved.
struct SecondLegPlan {
  let wish: DiversionWish
  let number: String
  let showsCaller: Bool
  let ownNumber: String
  /// Never empty; the first has room.
  let trunks: [Routing.Trunk]
  let session: MediaSessionID
}

/// Diversions: where a call goes that nobody takes, made only by a rule of its user or route, and under the user's outbound rules.
extension CallMachine {
  func diversions(of user: String) -> Diversions { routing.user(user)?.diversions ?? Diversions() }

  /// Carries a wish out, or ends the call as it would have ended without the rule.
  mutating func divert(_ id: CallID, _ wish: DiversionWish, _ turn: inout Turn) {
    calls[id]?.value.wish?.isUnderWay = true
    guard let call = calls[id]?.value else { return }
    switch wish.rule.target {
    case .code(let code):
      change(id, &turn) { call, turn in
        var diversion = CallRecord.Diversion(wish.trigger)
        diversion.code = code
        call.diversionsMade.append(diversion)
        call.end(wish.ending, refusing: code, &turn)
      }
    case .recording(let file):
      guard call.reservation != nil else { return giveUp(id, wish, "no media", &turn) }
      change(id, &turn) { $0.divert(to: file, wish, &$1) }
    case .user(let next): divert(id, wish, to: next, &turn)
    case .number(let text, let showsCaller): divert(id, wish, toNumber: text, showsCaller: showsCaller, &turn)
    }
  }

  /// The rule cannot be followed: the call ends, with 482 where it would go in circles (design.md, Limits and safety).
  private mutating func giveUp(_ id: CallID, _ wish: DiversionWish, _ why: String, isLoop: Bool = false, _ turn: inout Turn) {
    var ending = wish.ending
    ending.detail = "diversion: " + why
    change(id, &turn) { call, turn in
      call.reach(.divertedFailed, detail: why, &turn)
      if isLoop { call.end(ending, refusing: 482, &turn) } else { call.end(ending, &turn) }
    }
  }

  private mutating func divert(_ id: CallID, _ wish: DiversionWish, to next: String, _ turn: inout Turn) {
    guard let call = calls[id]?.value else { return }
    if call.concerns(next) { return giveUp(id, wish, "\(next) had it before", isLoop: true, &turn) }
    if call.isDivertedTooOften { return giveUp(id, wish, "too many diversions", isLoop: true, &turn) }
    guard routing.user(next) != nil else { return giveUp(id, wish, "no user \(next)", &turn) }
    guard callsOfUser[next]?.count ?? 0 < configuration.bounds.callsPerUser else {
      return giveUp(id, wish, "\(next) has too many calls", &turn)
    }
    guard call.reservation != nil else { return giveUp(id, wish, "no media", &turn) }
    let rules = diversions(of: next)
    let account = routing.account(of: next, called: call.calledNumber, route: nil)
    callsOfUser[next, default: []].append(id)
    change(id, &turn) { call, turn in
      call.belongs(to: account, of: next)
      call.divert(to: next, rules, wish, &turn)
    }
    ring(id, &turn)
  }

  private mutating func divert(_ id: CallID, _ wish: DiversionWish, toNumber text: String, showsCaller: Bool, _ turn: inout Turn)
  {
    guard let call = calls[id]?.value, call.reservation != nil else { return giveUp(id, wish, "no media", &turn) }
    guard let number = Routing.dialled(text) else { return giveUp(id, wish, "not a number", &turn) }
    if routing.isOwn(number) { return giveUp(id, wish, "a number of this gateway", isLoop: true, &turn) }
    if call.isDivertedTooOften || call.maxForwards <= 1 { return giveUp(id, wish, "too many diversions", isLoop: true, &turn) }
    if routing.isEmergency(number) { return giveUp(id, wish, "an emergency number", &turn) }
    let rule: Routing.OutboundRule
    switch outboundRule(number, user: call.user, turn.now) {
    case .rule(let found): rule = found
    case .refused(_, let reason, _): return giveUp(id, wish, reason.rawValue, &turn)
    }
    let candidates: [Routing.Trunk]
    switch trunks(of: rule, turn.now) {
    case .trunks(let found): candidates = found
    case .refused(let reason): return giveUp(id, wish, reason.rawValue, &turn)
    }
    guard quota.take(call.user, most: routing.user(call.user)?.allowance.callsPerHour, at: turn.now) else {
      return giveUp(id, wish, Refusal.Reason.userRate.rawValue, &turn)
    }
    let own =
      routing.callerNumber(of: call.user, wanted: call.calledNumber) ?? routing.user(call.user)?.numbers.first
      ?? call.calledNumber
    let session = MediaSessionID(raw: takeNumber())
    pending[id] = .second(
      SecondLegPlan(wish: wish, number: number, showsCaller: showsCaller, ownNumber: own, trunks: candidates, session: session))
    // on the media thread of the call, which is that of the user whom it rang for first
    let owner = call.formerUsers.first ?? call.targets.first ?? call.user
    turn.output.actions.append(
      .reserveMedia(MediaRequest(id, session: session, user: owner, toward: candidates[0].peer?.flow.remote.ip)))
  }

  mutating func secondReserved(_ id: CallID, _ plan: SecondLegPlan, _ reservation: MediaReservation, _ turn: inout Turn) {
    guard let call = calls[id]?.value, call.isLive, call.wish != nil else { return turn.media(.close(reservation.session)) }
    let trunk = plan.trunks[0]
    let leg = LegID.outbound(takeNumber())
    (legs[leg], sessions[plan.session]) = (id, id)
    callsOfTrunk[trunk.name, default: 0] += 1
    trunking?.callStarted(trunk.name, at: turn.now)
    let second = SecondLeg(
      leg: leg, trunk: trunk, alternatives: Array(plan.trunks.dropFirst()), number: plan.number, ownNumber: plan.ownNumber,
      showsCaller: plan.showsCaller, session: plan.session, reservation: reservation, wish: plan.wish,
      sipCallID: CallID(random: random).description,
      negotiation: trunk.negotiation(local: reservation.trunkAddress, over: trunk.leastSecureFlow, random: random))
    change(id, &turn) { $0.divert(to: second, &$1) }
  }

  mutating func secondImpossible(_ id: CallID, _ plan: SecondLegPlan, _ why: String, _ turn: inout Turn) {
    guard calls[id]?.value.isLive == true else { return }
    giveUp(id, plan.wish, why, &turn)
  }

  // MARK: events

  mutating func handle(_ event: SIPDialogs.Event, ofSecond leg: LegID, _ id: CallID, _ turn: inout Turn) {
    switch event {
    case .progress(_, let code, let sdp):
      if code >= 180 { settleSecond(id, byFault: false, &turn) }
      change(id, &turn) { $0.secondProgressed(code, sdp, &$1) }
    case .answered(_, let sdp):
      settleSecond(id, byFault: false, &turn)
      change(id, &turn) { $0.secondAnswered(sdp, &$1) }
    case .failed(_, let code, _, let byTransport): secondFailed(id, leg, code, byTransport: byTransport, &turn)
    case .byeReceived(_, let reason): change(id, &turn) { $0.secondBye(reason, &$1) }
    case .reinviteReceived(_, let sdp): change(id, &turn) { $0.secondReinvited(sdp, &$1) }
    case .offerWanted: change(id, &turn) { $0.secondOfferWanted(&$1) }
    case .offerAnswered(_, let sdp): change(id, &turn) { $0.secondOfferAnswered(sdp, &$1) }
    case .pingAnswered(_, let alive): change(id, &turn) { $0.secondPingAnswered(alive: alive, &$1) }
    case .sessionLost: change(id, &turn) { $0.secondLost("session lost", saidBye: true, &$1) }
    case .digit(_, let digit, let milliseconds):
      change(id, &turn) { call, turn in
        guard let second = call.second else { return }
        call.passOn(digit, milliseconds, heardIn: second.session, byInfo: true, &turn)
      }
    case .referReceived: turn.sip(.refuseRefer(leg, code: 603))
    case .targetFailed(_, let flow, _, let retryAfter): trunking?.serverFailed(flow.remote, retryAfter: retryAfter, at: turn.now)
    case .legClosed: change(id, &turn) { call, turn in if call.isLive { call.secondLost("leg closed", saidBye: true, &turn) } }
    default: break
    }
  }

  private mutating func settleSecond(_ id: CallID, byFault: Bool, _ turn: inout Turn) {
    guard let second = calls[id]?.value.second, !second.isSettled else { return }
    calls[id]?.value.second?.isSettled = true
    trunking?.callSettled(second.trunk.name, byFault: byFault, at: turn.now, into: &trunkOutput)
    carryOut(&turn)
  }

  /// The next trunk of its route where the trunk was at fault, or the end.
  private mutating func secondFailed(_ id: CallID, _ leg: LegID, _ code: Int, byTransport: Bool, _ turn: inout Turn) {
    guard let call = calls[id]?.value, call.isLive, call.state == .diverting, let second = call.second else { return }
    let isFault = byTransport || [500, 502, 503, 504].contains(code) || (code == 408 && call.times[.divertedRinging] == nil)
    settleSecond(id, byFault: isFault, &turn)
    var left = second.alternatives
    while isFault, second.media == nil, !left.isEmpty {
      let next = left.removeFirst()
      guard trunking?.isUsable(next.name, at: turn.now) ?? true, roomRefusal(next, turn.now) == nil else { continue }
      let number = LegID.outbound(takeNumber())
      legs[leg] = nil  // its `legClosed` is not the call's end
      legs[number] = id
      releaseTrunk(second.trunk.name)
      callsOfTrunk[next.name, default: 0] += 1
      trunking?.callStarted(next.name, at: turn.now)
      return change(id, &turn) { $0.trySecond(next, leg: number, alternatives: left, &$1) }
    }
    change(id, &turn) { $0.secondRefused(code, &$1) }
  }

  mutating func secondClosed(_ id: CallID, _ statistics: MediaStatistics, _ turn: inout Turn) {
    change(id, &turn) { call, turn in
      call.second?.statistics = statistics
      if call.isLive { call.end(.server, by: .gateway, detail: "media of the diversion ended", &turn) }
    }
  }

  /// What a call that is over leaves of its second leg.
  mutating func forget(_ second: SecondLeg, at now: Instant) {
    sessions[second.session] = nil
    // never invited: no `legClosed` will come
    if second.phase == .idle { legs[second.leg] = nil }
    if !second.isSettled { trunking?.callUndecided(second.trunk.name, at: now) }
    releaseTrunk(second.trunk.name)
  }
}
