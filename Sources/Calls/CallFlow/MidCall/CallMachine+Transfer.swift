import CallModel
import PhoneNumbers
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Second legs, made only on behalf of a user and under that user's outbound rules.
extension CallMachine {
  /// A REFER of a trunk that may transfer: the user's app is to be connected to another number.
  mutating func referred(_ leg: LegID, _ referral: Referral, _ step: inout Step) {
    guard let (id, call) = transferable(leg), !slots.isWaiting(id) else { return step.sip(.refuseRefer(leg, code: 491)) }
    let isOwnURI = referral.isOpaque && call.trunk.isOwn(host: referral.target.host)
    if isOwnURI, referral.target.number.isEmpty { return referred(leg, toURIOf: referral, of: id, call, &step) }
    // as the trunk writes it, like the numbers of its INVITEs
    let written = call.trunk.numbers.received(referral.target.number)
    guard let number = try? routing.dialled(written, in: call.trunk.numbers.country) else {
      return step.sip(.refuseRefer(leg, code: 404))
    }
    // our own numbers, and more hops than a diversion may have, are loops
    if routing.isOwn(number.text) || !call.transfers.mayFollow {
      return step.sip(.refuseRefer(leg, code: 482))
    }
    if number.kind == .emergency || routing.isEmergency(number.text, of: call.users.owner) {
      return step.sip(.refuseRefer(leg, code: 403))
    }
    guard !isDraining, case .rule(let rule, let allowed) = outboundRule(number, user: call.users.owner, step.now),
      case .trunks(let all) = trunks(of: isOwnURI ? rule.only(call.trunk.name) : rule, step.now),
      consumeQuota(of: call.users.owner, step.now)
    else { return step.sip(.refuseRefer(leg, code: 603)) }
    guard all[0].peer != nil else { return step.sip(.refuseRefer(leg, code: 500)) }
    transfer(
      leg, to: TransferTarget(number: allowed, uri: isOwnURI ? referral.uri : nil, referral: referral), over: all, of: id, &step)
  }

  /// A Refer-To without a user leads back to the trunk, and only the trunk knows the target (Teams Direct Routing). There is no
  /// number to check against the user's prefixes: the user must be allowed to call any number over this trunk.
  private mutating func referred(
    _ leg: LegID, toURIOf referral: Referral, of id: CallID, _ call: Call, _ step: inout Step
  ) {
    if !call.transfers.mayFollow { return step.sip(.refuseRefer(leg, code: 482)) }
    let (owner, name) = (call.users.owner, call.trunk.name)
    let allowance = routing.user(owner)?.allowance ?? UserAllowance()
    let hasRoute = routing.outbound.contains { $0.choices.contains { $0.trunk == name } }
    guard !isDraining, allowance.prefixes == nil, hasRoute, hasRoom(owner, allowance),
      case .trunks(let candidates) = trunks(of: Routing.OutboundRule(prefix: "", trunk: name), step.now),
      consumeQuota(of: owner, step.now)
    else { return step.sip(.refuseRefer(leg, code: 603)) }
    guard candidates[0].peer != nil else { return step.sip(.refuseRefer(leg, code: 500)) }
    transfer(leg, to: TransferTarget(number: nil, uri: referral.uri, referral: referral), over: candidates, of: id, &step)
  }

  /// The call of this leg, if its far end can be transferred; nil otherwise.
  private func transferable(_ leg: LegID) -> (CallID, Call)? {
    guard let id = calls.id(of: leg), let call = calls[id], call.isLive, call.state == .connected,
      call.trunkLeg.phase == .confirmed, call.legs.second == nil, call.winner != nil, call.reservation != nil
    else { return nil }
    return (id, call)
  }

  mutating func transfer(
    _ leg: LegID, to target: TransferTarget, over candidates: [Routing.Trunk], of id: CallID, _ step: inout Step
  ) {
    guard needsSlot(candidates[0]) else { return follow(leg, to: target, over: candidates, &step) }
    requestSlot(.transfer(leg, target, candidates), over: candidates[0], of: id, &step)
  }

  mutating func follow(_ leg: LegID, to target: TransferTarget, over candidates: [Routing.Trunk], _ step: inout Step) {
    guard let (id, call) = transferable(leg), let reservation = call.reservation else {
      if let id = calls.id(of: leg), needsSlot(candidates[0]) {
        step.output.actions.append(.released(id, trunk: candidates[0].name))
      }
      return step.sip(.refuseRefer(leg, code: 491))
    }
    var next = TrunkLeg(
      .outbound(makeNumber()), .transfer(target), over: candidates[0], session: nil,
      alternatives: Array(candidates.dropFirst()))
    next.prepareOffer(at: reservation.trunkAddress, random)
    next.holdSlot(needsSlot(next.trunk))
    claim(next.id, next.trunk, for: id, at: step.now)
    change(id, &step) { $0.follow(next, &$1) }
  }

  /// INVITE with Replaces (RFC 3891): the same call, and the same app, on a new leg that is answered at once.
  mutating func replace(_ old: LegID, with leg: LegID, _ invite: InboundInvite, over trunk: Routing.Trunk, _ step: inout Step) {
    guard let id = calls.id(of: old), let call = calls[id], call.isLive, call.state == .connected, call.trunkLeg.id == old,
      call.trunk.name == trunk.name, call.transfers.mayBeReplaced, let sdp = invite.sdp, let reservation = call.reservation
    else { return refuse(leg, invite, .forbidden, code: 603, &step) }
    var trunk = call.trunk
    trunk.calledFrom = [invite.source.remote.ip]
    var next = TrunkLeg(leg, over: trunk, session: nil, phase: .answered)
    let mayProtect = trunk.srtp != .required || trunk.maySendKeys(over: invite.source)
    guard mayProtect, let offer = try? SessionDescription.read(sdp),
      (try? next.accept(offer, over: invite.source, at: reservation.trunkAddress, &step)) != nil, let answer = next.answer
    else {
      return refuse(leg, invite, .codec, code: 488, &step)
    }
    calls.attach(leg, to: id)
    trunkCapacity.begin(trunk.name)
    step.statistics.replaced += 1
    change(id, &step) {
      $0.transfers.follow(
        .init(by: .trunk, trunk: trunk.name, sipCallId: invite.callID, sip: 200), maxForwards: invite.maxForwards)
      next.receiveSlot(of: &$0.trunkLeg)
      $0.moved(to: next, &$1)
    }
    step.sip(.answer(leg, sdp: answer))
  }
}

extension Routing.OutboundRule {
  fileprivate func only(_ trunk: String) -> Self {
    var out = self
    out.choices.removeAll { $0.trunk != trunk }
    return out
  }
}

extension Routing.Trunk {
  /// Whether a host is the trunk's own: the one of its URI, a server's address, or one that its 3xx may name.
  fileprivate func isOwn(host: String) -> Bool {
    let host = host.lowercased()
    func name(_ domain: String) -> String { domain.split(separator: ":").first.map { $0.lowercased() } ?? "" }
    if [peer?.domain, settings?.domain].contains(where: { $0.map(name) == host }) { return true }
    if case .follow(let hosts) = rules.redirects, hosts.contains(host) { return true }
    let bare = host.filter { $0 != "[" && $0 != "]" }
    let servers = peer.map { [$0.target] + $0.further } ?? []
    return IPAddress(bare).map { address in
      calledFrom.contains(address) || servers.contains { $0.flow.remote.ip == address }
    } ?? false
  }
}
