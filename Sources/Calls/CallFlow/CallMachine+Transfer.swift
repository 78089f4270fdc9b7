import AppProtocol
import Bytes
import SDP
import SIP
import SIPDialogs

/// Second legs, made only on behalf of a user and under that user's outbound rules.
extension CallMachine {
  /// A REFER of a trunk that may transfer: the user's app is to be connected to another number.
  mutating func referred(_ leg: LegID, _ referral: Referral, _ turn: inout Turn) {
    guard let id = legs[leg], let call = calls[id]?.value, call.isLive, call.state == .connected,
      call.trunkLeg.phase == .confirmed,
      call.transfer == nil, call.winner != nil
    else { return turn.sip(.refuseRefer(leg, code: 491)) }
    guard let number = Routing.dialled(referral.target.number) else { return turn.sip(.refuseRefer(leg, code: 404)) }
    // our own numbers, and more hops than a diversion may take, are loops
    if routing.isOwn(number) || call.transfers >= Limits.diversions || call.maxForwards <= 1 {
      return turn.sip(.refuseRefer(leg, code: 482))
    }
    if routing.isEmergency(number) { return turn.sip(.refuseRefer(leg, code: 403)) }
    guard !isDraining, case .rule(let rule) = outboundRule(number, user: call.user, turn.now),
      case .trunks(let candidates) = trunks(of: rule, turn.now),
      quota.take(call.user, most: routing.user(call.user)?.allowance.callsPerHour, at: turn.now)
    else { return turn.sip(.refuseRefer(leg, code: 603)) }
    let trunk = candidates[0]
    let next = LegID.outbound(takeNumber())
    legs[next] = id
    change(id, &turn) { $0.follow(referral, to: number, over: trunk, next, &$1) }
  }

  /// What the legs do that are not a call's present trunk leg: one that a transfer makes, or one that was replaced.
  mutating func handle(_ event: SIPDialogs.Event, ofOther leg: LegID, _ id: CallID, _ turn: inout Turn) {
    if case .legClosed = event { legs[leg] = nil }
    if calls[id]?.value.second?.leg == leg { return handle(event, ofSecond: leg, id, &turn) }
    guard calls[id]?.value.transfer?.leg == leg else {
      // an offer on a leg that is on its way out
      if case .reinviteReceived = event { turn.sip(.refuseReinvite(leg, code: 481)) }
      return
    }
    switch event {
    case .progress(_, let code, _): change(id, &turn) { $0.transferProgressed(code, &$1) }
    case .answered(_, let sdp): change(id, &turn) { $0.transferAnswered(sdp, &$1) }
    case .failed(_, let code, _, _): change(id, &turn) { $0.transferFailed(code, &$1) }
    case .legClosed: change(id, &turn) { $0.transferFailed(500, &$1) }
    case .reinviteReceived: turn.sip(.refuseReinvite(leg, code: 491))
    default: break
    }
  }

  /// INVITE with Replaces (RFC 3891): the same call, and the same app, on a new leg that is answered at once.
  mutating func replace(_ old: LegID, with leg: LegID, _ invite: InboundInvite, _ trunk: Routing.Trunk, _ turn: inout Turn) {
    guard let id = legs[old], let call = calls[id]?.value, call.isLive, call.state == .connected, call.trunkLeg.leg == old,
      call.trunk.name == trunk.name, call.transfers < Limits.diversions, let sdp = invite.sdp, let reservation = call.reservation
    else { return refuse(leg, invite, .forbidden, code: 603, &turn) }
    var negotiation = trunk.negotiation(local: reservation.trunkAddress, over: invite.source, random: random)
    let mayProtect = trunk.srtp != .required || trunk.mayTellKeys(over: invite.source)
    guard mayProtect, let (answer, media) = try? negotiation.answer(to: sdp) else {
      return refuse(leg, invite, .codec, code: 488, &turn)
    }
    legs[leg] = id
    turn.statistics.replaced += 1
    change(id, &turn) {
      $0.maxForwards = min($0.maxForwards, invite.maxForwards)
      $0.trunk.calledFrom = [invite.source.remote.ip]
      $0.moved(to: leg, negotiation, media, &$1)
    }
    turn.sip(.answer(leg, sdp: answer))
  }
}
