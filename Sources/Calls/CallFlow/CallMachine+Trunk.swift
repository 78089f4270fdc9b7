import AppProtocol
import Bytes
import Devices
import MediaSession
import SDP
import SIPDialogs
import Trunking

/// Events of the trunk side, and the admission of incoming calls.
extension CallMachine {
  mutating func handle(_ event: UserAgent.Event, _ turn: inout Turn) {
    switch event {
    case .inviteReceived(let leg, let invite): invited(leg, invite, &turn)
    case .referReceived(let leg, let referral): referred(leg, referral, &turn)
    case .targetFailed(_, let flow, _, let retryAfter): trunking?.serverFailed(flow.remote, retryAfter: retryAfter, at: turn.now)
    case .challengeRefused: break  // control's to log
    case .requestAnswered(let id, let outcome): handle(TrunkMachine.Input.requestAnswered(id, outcome), &turn)
    case .refused(let reason, let invite?, let trunk):
      var refusal = Refusal(
        .signalling, .incoming, trunk: trunk, detail: reason.rawValue, caller: .init(number: invite.number, call: invite.callID))
      refusal.isRoutine = invite.isFirstChallenge
      turn.output.actions.append(.refused(refusal))
    case .refused: break
    default: if let leg = event.leg { handle(event, of: leg, &turn) }
    }
  }

  /// What it means for the call follows as an event of the leg.
  mutating func unanswered(_ request: UnansweredRequest, _ turn: inout Turn) {
    guard request.opensDialog else {
      trunking?.requestUnanswered(request.trunk, request.method.name, request.failure, at: turn.now)
      return turn.output.actions.append(.requestUnanswered(legs[request.leg], request))
    }
    guard let owner = legs[request.leg], let place = calls[owner]?.legs.firstIndex(where: { $0.id == request.leg }) else {
      return
    }
    calls[owner]?.legs[place].localFailure = request.failure
  }

  private mutating func handle(_ event: UserAgent.Event, of leg: LegID, _ turn: inout Turn) {
    switch event {
    case .progress(_, let code, _): if code >= 180 { judgeTrunk(of: leg, byFault: false, &turn) }
    case .answered: judgeTrunk(of: leg, byFault: false, &turn)
    case .failed(_, let code, _, let byTransport): if tryNextTrunk(leg, code, byTransport: byTransport, event, &turn) { return }
    case .reinviteReceived where legs[leg].map({ calls[$0] == nil }) ?? true: turn.sip(.refuseReinvite(leg, code: 481))
    case .cancelled(_, let cause):
      if cancelledWhileLocating(leg, cause, &turn) || cancelledWhileAsking(leg, cause, &turn) { return }
    default: break
    }
    change(legs[leg], &turn) { $0.handle(event, of: leg, &$1) }
    if case .legClosed = event { legs[leg] = nil }
  }

  /// An INVITE becomes a call, with a record whatever comes, or a counted refusal.
  private mutating func invited(_ leg: LegID, _ received: InboundInvite, _ turn: inout Turn) {
    guard let trunk = routing.trunk(received.trunk) else {
      return refuse(leg, received, .unknownTrunk, code: 403, &turn)
    }
    let invite = received.normalised(by: trunk.numbers)
    if let replaced = invite.replaces { return replace(replaced, with: leg, invite, trunk, &turn) }
    if isDraining { return refuse(leg, invite, .draining, code: 503, &turn) }
    if mustAsk(questions(of: invite), before: .sip(.inviteReceived(leg, received)), &turn) { return }
    if invite.diversions > Limits.diversions { return refuse(leg, invite, .diversions, code: 482, &turn) }
    if calls.count >= configuration.bounds.calls { return refuse(leg, invite, .overload, code: 503, &turn) }
    if let reason = roomRefusal(trunk, turn.now) { return refuse(leg, invite, reason, code: 503, &turn) }
    let route = routing.route(called: invite.to.number, trunk: trunk.name)
    if let route, route.isUsers, callsOfUser[route.user]?.count ?? 0 >= configuration.bounds.callsPerUser {
      return refuse(leg, invite, .userLimit, code: 503, &turn)
    }
    var call = makeIncoming(leg, invite, trunk, route, &turn)
    guard let route else {
      if isUnanswered(questions(of: invite)) {
        return reject(call, .overload, by: .gateway, detail: "no answer of users[].webhook", &turn)
      }
      if mayBeElsewhere(invite) {
        return reject(call, .overload, by: .gateway, detail: "what tokens grant at other nodes is not known yet", &turn)
      }
      return reject(call, .notFound, by: .gateway, q850: 1, &turn)
    }
    if route.hook == nil, let scope = blocking(call, user: route.user, account: call.users.accounts[route.user]) {
      return reject(call, .blocked, by: .gateway, detail: scope, &turn)
    }
    var toward = invite.source.remote.ip
    var offer: SessionDescription?
    if let sdp = invite.sdp {
      do {
        let read = try SessionDescription.read(sdp)
        let media = try probe(read, trunk, invite.source)
        offer = read
        // 0.0.0.0 is a caller that holds us already: its signalling says where it is
        if !media.isUnspecified, !leg.isDirect { toward = media }
      } catch {
        return reject(call, .codec, by: .trunk, sip: error.sipStatus, detail: String(describing: error), &turn)
      }
    } else if trunk.srtp == .required, !trunk.mayTellKeys(over: invite.source) {
      return reject(call, .codec, by: .trunk, sip: 488, detail: String(describing: NegotiationError.keysNeedTLS), &turn)
    } else {
      call.trunkLeg.isLateOffer = true
    }
    call.intake = .init(invite: invite, offer: offer)
    if let target = route.stream { return reserve(call, for: target, toward: toward, &turn) }
    if let hook = route.hook { return ask(call, invite, hook, toward: toward, route.diversions, &turn) }
    if configuration.isClustered { return locate(call, user: route.user, toward: toward, &turn) }
    guard isReachable(call, turn.now) || call.diversions.rules.rules[.unreached] != nil else {
      return rejectUnreached(call, &turn)
    }
    pending[call.id] = .incoming(call)
    turn.output.actions.append(
      .reserveMedia(
        MediaRequest(call.id, session: call.session, user: route.user, toward: toward, asked: call.intake?.invite.source)))
  }

  mutating func refuse(_ leg: LegID, _ invite: InboundInvite, _ reason: Refusal.Reason, code: Int, _ turn: inout Turn) {
    let retry = code == 503 ? configuration.retryAfterSeconds : nil
    turn.sip(.refuse(leg, code: code, reason: nil, cause: nil, retryAfter: retry))
    // a withheld number stays withheld
    let number = invite.isPrivate ? nil : (invite.assertedIdentity ?? invite.from).number
    turn.output.actions.append(
      .refused(Refusal(reason, .incoming, trunk: invite.trunk, caller: .init(number: number, call: invite.callID))))
  }

  mutating func makeIncoming(
    _ leg: LegID, _ invite: InboundInvite, _ trunk: Routing.Trunk, _ route: Routing.InboundRoute?, _ turn: inout Turn
  ) -> Call {
    let caller = invite.assertedIdentity ?? invite.from
    var trunk = trunk
    trunk.calledFrom = [invite.source.remote.ip]
    let session = MediaSessionID(raw: takeNumber())
    let parties = Call.Parties(
      from: invite.isPrivate ? Call.anonymous : Handle(number: caller.number, name: caller.displayName),
      to: Handle(number: route?.number ?? invite.to.number, name: nil),
      callerNumber: invite.isPrivate && !trunk.recordsPrivateNumbers ? Call.anonymous.h : caller.number,
      calledNumber: route?.number ?? invite.to.number)
    var call = Call(
      id: CallID(random: random), direction: .incoming, session: session,
      users: Call.Users(route?.user ?? "", account: Self.defaultAccount), parties: parties,
      trunkLeg: TrunkLeg(leg, over: trunk, session: session, phase: .invited), at: turn.now)
    (call.trunkLeg.sipCallID, call.parties.isPrivate, call.parties.identities) = (
      invite.callID, invite.isPrivate, invite.identities
    )
    call.trunkLeg.isReliable = invite.isReliable
    // what was diverted before counts with the transfers to come
    (call.transfers.maxForwards, call.transfers.followed) = (invite.maxForwards, invite.diversions)
    call.diversions.before = invite.diversions
    if let route {
      call.diversions.rules = diversions(of: route.user).orElse(route.diversions)
      call.users.routeAccount = route.account
      let account = routing.account(of: route.user, called: route.number, route: route.account)
      if route.isUsers { call.users.belongs(to: account, of: route.user) }
    }
    call.parties.divertedFrom = invite.divertedFrom.prefix(Limits.diversions).map {
      Handle(number: $0.number, name: $0.displayName)
    }
    call.parties.parameters = CallParameters(usable: invite.parameters)
    introduce(&call, over: leg)
    call.mark(.start, detail: trunk.name, &turn)
    return call
  }

  static var defaultAccount: String { "default" }

  /// Whether the offer can be answered at all, before anything is reserved; where its media lives.
  private func probe(_ offer: SessionDescription, _ trunk: Routing.Trunk, _ source: Flow) throws(NegotiationError) -> IPAddress {
    let negotiation = trunk.negotiation(local: SocketAddress(.any, 9), over: source, random: random)
    if trunk.srtp == .required, !trunk.mayTellKeys(over: source) { throw .keysNeedTLS }
    return try negotiation.destination(of: offer)
  }

  /// A call that ends as it begins: one final response, one record.
  private mutating func reject(
    _ call: Call, _ reason: EndReason, by side: CallSide, sip: Int? = nil, q850: Int? = nil, detail: String? = nil,
    _ turn: inout Turn
  ) {
    admit(call, &turn)
    change(call.id, &turn) { call, turn in
      guard let sip, sip != reason.refusal()?.status else { return call.end(reason, by: side, q850: q850, detail: detail, &turn) }
      (call.trunkLeg.phase, call.trunkLeg.finalStatus) = (.over, sip)
      turn.sip(.refuse(call.trunkLeg.id, code: sip, reason: nil, cause: nil, retryAfter: nil))
      call.end(reason, by: side, sip: sip, detail: detail, &turn)
    }
  }

  /// Nobody is there and nobody can be woken, or all that are do not want to be disturbed.
  mutating func rejectUnreached(_ call: Call, _ turn: inout Turn) {
    let ending = unreachedEnding(call, turn.now)
    admit(call, &turn)
    change(call.id, &turn) { $0.endUnlessDiverted(.unreached, ending, &$1) }
  }

  func unreachedEnding(_ call: Call, _ now: Instant) -> Call.Ending {
    let connected = call.users.ringing.flatMap { (presences[$0] ?? []).filter { $0.isReachable(at: now) } }
    if connected.contains(where: { !devices.wantsCalls($0.key) }) {
      return .init(.dnd, by: .app, detail: "no device accepts calls")
    }
    let stranger = connected.first { $0.info.onlyCall == nil && !call.users.isFor($0.accounts, of: $0.key.user) }
    let account = stranger.map { "no device is logged in to account " + call.users.account(of: $0.key.user) }
    return .init(.unanswered, by: .app, q850: 20, detail: account ?? "no device connected")
  }

  /// The devices of those whom a call is for, offered or woken; if there are none it is over, or goes where its rules say.
  /// - Parameter reservation: for a call that has no media yet.
  mutating func ring(_ id: CallID, media reservation: MediaReservation? = nil, _ turn: inout Turn) {
    guard let call = calls[id] else { return }
    let present = call.users.ringing.flatMap { ringable($0, for: call) }
    let destinations = call.users.ringing.flatMap { wakeable($0, for: call) }
    let remoteDevices = ringableRemoteDevices(call)
    let nobody = isReachable(call, turn.now) ? nil : unreachedEnding(call, turn.now)
    change(id, &turn) { call, turn in
      if let reservation, let intake = call.intake {
        call.offer(to: present, waking: destinations, remoteDevices, reservation, intake, &turn)
      } else {
        call.ring(present, waking: destinations, remoteDevices, &turn)
      }
      if let nobody { call.endUnlessDiverted(.unreached, nobody, &turn) }
    }
  }

  /// Devices that a new call is offered to: logged in to its account, not those whose user wants quiet, and no session for
  /// another call only.
  func ringable(_ user: String, for call: Call) -> [DevicePresence] {
    (presences[user] ?? []).filter {
      $0.info.onlyCall == nil && devices.wantsCalls($0.key) && call.users.isFor($0.accounts, of: user)
    }
  }

  func wakeable(_ user: String, for call: Call) -> [PushDestination] {
    configuration.push == nil ? [] : devices.targets(of: user, account: call.users.accounts[user])
  }

  // MARK: reservation

  mutating func reserved(_ id: CallID, _ reservation: MediaReservation, _ turn: inout Turn) {
    switch pending.removeValue(forKey: id) {
    case .incoming(let call):
      admit(call, &turn)
      ring(id, media: reservation, &turn)
    case .stream(let call, let target):
      admit(call, &turn)
      change(id, &turn) { $0.offerStream(target, reservation, &$1) }
    case .asked:
      guard calls[id]?.isLive == true else { return turn.media(.close(reservation.session)) }
      ring(id, media: reservation, &turn)
    case .diversion(let plan): diversionReserved(id, plan, reservation, &turn)
    case .locating, .claiming, .claimingOriginated: turn.media(.close(reservation.session))
    case .originated(let call, let answer): originated(call, reservation, answer, &turn)
    case .outgoing(let call, let offer, let device, let request):
      started(call, offer, device, request, reservation, &turn)
    case nil: turn.media(.close(reservation.session))
    }
  }

  mutating func reservationRefused(_ id: CallID, _ reason: Refusal.Reason, _ text: String, _ turn: inout Turn) {
    switch pending.removeValue(forKey: id) {
    case .incoming(let call), .stream(let call, _):
      guard let intake = call.intake else { return }
      refuse(call.trunkLeg.id, intake.invite, reason, code: 503, &turn)
      unclaim(id, &turn)
    case .locating, .claiming, .claimingOriginated: break
    case .originated(let call, let answer): originationRefused(call, reason, text, answer, &turn)
    case .asked: change(id, &turn) { $0.end(.overload, by: .gateway, detail: text, &$1) }
    case .diversion(let plan): diversionImpossible(id, plan, text, &turn)
    case .outgoing(let call, _, _, let request):
      refuse(request, call.wanted(by: request.device), .overload, reason, trunk: call.trunk.name, text, &turn)
      unclaim(id, &turn)
    case nil: break
    }
  }
}

extension CallParameters {
  /// As much of a trunk's header fields as an app is told: what has control characters goes, and what does not fit, the last names first.
  init?(usable values: [String: String]) {
    var kept: [String: String] = [:]
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      var more = kept
      more[name] = value
      if CallParameters(more) != nil { kept = more }
    }
    guard !kept.isEmpty else { return nil }
    self.init(kept)
  }
}
