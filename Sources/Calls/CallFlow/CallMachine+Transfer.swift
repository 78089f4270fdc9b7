import AppProtocol
import Bytes
import PhoneNumbers
import SDP
import SIP
import SIPDialogs

/// Second legs, made only on behalf of a user and under that user's outbound rules.
extension CallMachine {
  /// A REFER of a trunk that may transfer: the user's app is to be connected to another number.
  mutating func referred(_ leg: LegID, _ referral: Referral, _ turn: inout Turn) {
    guard let (id, call) = transferable(leg), seatRequests[id] == nil else { return turn.sip(.refuseRefer(leg, code: 491)) }
    // as the trunk writes it, like the numbers of its INVITEs
    let written = call.trunk.numbers.received(referral.target.number)
    guard let number = try? routing.dialled(written, in: call.trunk.numbers.country) else {
      return turn.sip(.refuseRefer(leg, code: 404))
    }
    // our own numbers, and more hops than a diversion may take, are loops
    if routing.isOwn(number.text) || call.transfers.followed >= Limits.diversions || call.transfers.maxForwards <= 1 {
      return turn.sip(.refuseRefer(leg, code: 482))
    }
    if number.kind == .emergency || routing.isEmergency(number.text, of: call.users.owner) {
      return turn.sip(.refuseRefer(leg, code: 403))
    }
    guard !isDraining, case .rule(let rule, let allowed) = outboundRule(number, user: call.users.owner, turn.now),
      case .trunks(let candidates) = trunks(of: rule, turn.now),
      quota.take(call.users.owner, most: routing.user(call.users.owner)?.allowance.callsPerHour, at: turn.now)
    else { return turn.sip(.refuseRefer(leg, code: 603)) }
    guard candidates[0].peer != nil else { return turn.sip(.refuseRefer(leg, code: 500)) }
    transfer(leg, TransferTarget(number: allowed, referral: referral), candidates, of: id, &turn)
  }

  /// A call whose far end may be another's, by this leg.
  private func transferable(_ leg: LegID) -> (CallID, Call)? {
    guard let id = legs[leg], let call = calls[id], call.isLive, call.state == .connected, call.trunkLeg.phase == .confirmed,
      call.second == nil, call.winner != nil, call.appMedia.reservation != nil
    else { return nil }
    return (id, call)
  }

  mutating func transfer(
    _ leg: LegID, _ target: TransferTarget, _ candidates: [Routing.Trunk], of id: CallID, _ turn: inout Turn
  ) {
    guard needsSeat(candidates[0]) else { return follow(leg, target, candidates, &turn) }
    askSeat(.transfer(leg, target, candidates), over: candidates[0], of: id, &turn)
  }

  mutating func follow(_ leg: LegID, _ target: TransferTarget, _ candidates: [Routing.Trunk], _ turn: inout Turn) {
    guard let (id, call) = transferable(leg), let reservation = call.appMedia.reservation else {
      if let id = legs[leg], needsSeat(candidates[0]) {
        turn.output.actions.append(.released(id, trunk: candidates[0].name))
      }
      return turn.sip(.refuseRefer(leg, code: 491))
    }
    var next = TrunkLeg(.outbound(takeNumber()), .transfer(target), over: candidates[0], session: nil)
    (next.local, next.alternatives) = (reservation.trunkAddress, Array(candidates.dropFirst()))
    next.prepareOffer(random)
    next.holdsSeat = needsSeat(next.trunk)
    claim(next.id, next.trunk, for: id, at: turn.now)
    change(id, &turn) { $0.follow(next, &$1) }
  }

  /// INVITE with Replaces (RFC 3891): the same call, and the same app, on a new leg that is answered at once.
  mutating func replace(_ old: LegID, with leg: LegID, _ invite: InboundInvite, _ trunk: Routing.Trunk, _ turn: inout Turn) {
    guard let id = legs[old], let call = calls[id], call.isLive, call.state == .connected, call.trunkLeg.id == old,
      call.trunk.name == trunk.name, call.transfers.followed < Limits.diversions, let sdp = invite.sdp,
      let reservation = call.appMedia.reservation
    else { return refuse(leg, invite, .forbidden, code: 603, &turn) }
    var trunk = call.trunk
    trunk.calledFrom = [invite.source.remote.ip]
    var next = TrunkLeg(leg, over: trunk, session: nil, phase: .answered)
    let mayProtect = trunk.srtp != .required || trunk.mayTellKeys(over: invite.source)
    guard mayProtect, let offer = try? SessionDescription.read(sdp),
      (try? next.take(offer, over: invite.source, at: reservation.trunkAddress, &turn)) != nil, let answer = next.answer
    else {
      return refuse(leg, invite, .codec, code: 488, &turn)
    }
    legs[leg] = id
    callsOfTrunk[trunk.name, default: 0] += 1
    turn.statistics.replaced += 1
    change(id, &turn) {
      $0.transfers.maxForwards = min($0.transfers.maxForwards, invite.maxForwards)
      $0.transfers.followed += 1
      $0.transfers.begin(.init(by: .trunk, trunk: trunk.name, sipCallId: invite.callID, sip: 200))
      // in the place of the leg before
      next.holdsSeat = $0.trunkLeg.holdsSeat
      $0.trunkLeg.holdsSeat = false
      $0.moved(to: next, &$1)
    }
    turn.sip(.answer(leg, sdp: answer))
  }
}
