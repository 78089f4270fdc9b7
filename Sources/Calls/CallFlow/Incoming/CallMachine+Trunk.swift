import CallModel
import Devices
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

/// Events of the trunk side, and the admission of incoming calls.
extension CallMachine {
  mutating func handle(_ event: UserAgent.Event, _ step: inout Step) {
    switch event {
    case .inviteReceived(let leg, let invite): invited(leg, invite, &step)
    case .referReceived(let leg, let referral): referred(leg, referral, &step)
    case .targetFailed(_, let flow, _, let retryAfter):
      trunkHealth.serverFailed(flow.remote, retryAfter: retryAfter, at: step.now)
    case .challengeRefused: break  // logged by control
    case .requestAnswered(let id, let outcome): handle(TrunkMachine.Input.requestAnswered(id, outcome), &step)
    case .refused(let reason, let invite?, let trunk):
      var refusal = Refusal(
        .signalling, .incoming, trunk: trunk, detail: reason.rawValue, caller: .init(number: invite.number, call: invite.callID))
      refusal.isRoutine = invite.isFirstChallenge
      step.output.actions.append(.refused(refusal))
    case .refused: break
    default: if let leg = event.leg { handle(event, of: leg, &step) }
    }
  }

  /// The effect on the call follows as an event of the leg.
  mutating func unanswered(_ request: UnansweredRequest, _ step: inout Step) {
    guard request.opensDialog else {
      trunkHealth.requestUnanswered(request.trunk, method: request.method.name, request.failure, at: step.now)
      return step.output.actions.append(.requestUnanswered(calls.id(of: request.leg), request))
    }
    calls.change(request.leg) { $0.failedLocally(request.failure) }
  }

  private mutating func handle(_ event: UserAgent.Event, of leg: LegID, _ step: inout Step) {
    switch event {
    case .progress(_, let code, _): if code >= 180 { judgeTrunk(of: leg, byFault: false, &step) }
    case .answered: judgeTrunk(of: leg, byFault: false, &step)
    case .failed(_, let code, _, let byTransport):
      if tryNextTrunk(leg, code: code, byTransport: byTransport, failure: event, &step) { return }
    case .reinviteReceived where calls.id(of: leg).map({ calls[$0] == nil }) ?? true: step.sip(.refuseReinvite(leg, code: 481))
    case .cancelled(_, let cause):
      if cancelledWhileLocating(leg, cause, &step) || cancelledWhileAsking(leg, cause, &step) { return }
    default: break
    }
    change(calls.id(of: leg), &step) { $0.handle(event, of: leg, &$1) }
    if case .legClosed = event { calls.detach(leg) }
  }

  /// An INVITE becomes a call, which gets a record in any case, or a counted refusal.
  private mutating func invited(_ leg: LegID, _ received: InboundInvite, _ step: inout Step) {
    guard let trunk = routing.trunk(received.trunk) else {
      return refuse(leg, received, .unknownTrunk, code: 403, &step)
    }
    let invite = received.normalised(by: trunk.numbers)
    if let replaced = invite.replaces { return replace(replaced, with: leg, invite, over: trunk, &step) }
    if isDraining { return refuse(leg, invite, .draining, code: 503, &step) }
    if mustAsk(questions(of: invite), before: .sip(.inviteReceived(leg, received)), &step) { return }
    if invite.diversions > Limits.diversions { return refuse(leg, invite, .diversions, code: 482, &step) }
    if calls.count >= configuration.bounds.calls { return refuse(leg, invite, .overload, code: 503, &step) }
    if let reason = trunkCapacity.consume(trunk, at: step.now) { return refuse(leg, invite, reason, code: 503, &step) }
    let route = routing.route(called: invite.to.number, trunk: trunk.name)
    if let route, route.isUsers, calls.count(of: route.user) >= configuration.bounds.callsPerUser {
      return refuse(leg, invite, .userLimit, code: 503, &step)
    }
    var call = makeIncoming(leg, invite, over: trunk, by: route, &step)
    guard let route else {
      if isUnanswered(questions(of: invite)) {
        return reject(call, .overload, by: .gateway, detail: "no answer of users[].webhook", &step)
      }
      if mayBeElsewhere(invite) {
        // the edge tries the next node, which may know the number
        if invite.isFromEdge { return refuse(leg, invite, .unlocated, code: 503, &step) }
        return reject(call, .overload, by: .gateway, detail: "what tokens grant at other nodes is not known", &step)
      }
      return reject(call, .notFound, by: .gateway, q850: 1, &step)
    }
    if route.hook == nil, let scope = blocking(call, user: route.user, account: call.users.accounts[route.user]) {
      return reject(call, .blocked, by: .gateway, detail: scope, &step)
    }
    var toward = invite.source.remote.ip
    var offer: SessionDescription?
    if let sdp = invite.sdp {
      do {
        let read = try SessionDescription.read(sdp)
        let media = try probe(read, over: trunk, from: invite.source)
        offer = read
        // 0.0.0.0: the caller holds us already, and its signalling states its address
        if !media.isUnspecified, !leg.isDirect { toward = media }
      } catch {
        return reject(call, .codec, by: .trunk, sip: error.sipStatus, detail: String(describing: error), &step)
      }
    } else if trunk.srtp == .required, !trunk.maySendKeys(over: invite.source) {
      return reject(call, .codec, by: .trunk, sip: 488, detail: String(describing: NegotiationError.keysNeedTLS), &step)
    }
    call.receive(Call.Intake(invite: invite, offer: offer))
    if let target = route.stream { return reserve(call, for: target, toward: toward, &step) }
    if let hook = route.hook { return ask(call, about: invite, at: hook, toward: toward, diversions: route.diversions, &step) }
    if configuration.isClustered { return locate(call, user: route.user, toward: toward, &step) }
    guard isReachable(call, step.now) || call.diversions.rules.rules[.unreached] != nil else {
      return rejectUnreached(call, &step)
    }
    pending.waitForMedia(call.id, then: .incoming(call))
    step.output.actions.append(
      .reserveMedia(
        MediaRequest(call.id, session: call.session, user: route.user, toward: toward, asked: call.intake?.invite.source)))
  }

  mutating func refuse(_ leg: LegID, _ invite: InboundInvite, _ reason: Refusal.Reason, code: Int, _ step: inout Step) {
    let retry = code == 503 ? configuration.retryAfterSeconds : nil
    step.sip(.refuse(leg, code: code, reason: nil, cause: nil, retryAfter: retry))
    // a withheld number stays withheld
    let number = invite.isPrivate ? nil : (invite.assertedIdentity ?? invite.from).number
    step.output.actions.append(
      .refused(Refusal(reason, .incoming, trunk: invite.trunk, caller: .init(number: number, call: invite.callID))))
  }

  mutating func makeIncoming(
    _ leg: LegID, _ invite: InboundInvite, over trunk: Routing.Trunk, by route: Routing.InboundRoute?, _ step: inout Step
  ) -> Call {
    let caller = invite.assertedIdentity ?? invite.from
    var trunk = trunk
    trunk.calledFrom = [invite.source.remote.ip]
    let session = MediaSessionID(raw: makeNumber())
    let parties = Call.Parties(
      from: invite.isPrivate ? Handle.anonymous : Handle(number: caller.number, name: caller.displayName),
      to: Handle(number: route?.number ?? invite.to.number, name: nil),
      callerNumber: invite.isPrivate && !trunk.recordsPrivateNumbers ? Handle.anonymous.h : caller.number,
      calledNumber: route?.number ?? invite.to.number, isPrivate: invite.isPrivate, identities: invite.identities,
      parameters: CallParameters(usable: invite.parameters),
      divertedFrom: invite.divertedFrom.prefix(Limits.diversions).map { Handle(number: $0.number, name: $0.displayName) })
    var call = Call(
      id: CallID(random: random), direction: .incoming, session: session,
      users: Call.Users(route?.user ?? "", account: Self.defaultAccount, ofRoute: route?.account), parties: parties,
      trunkLeg: TrunkLeg(leg, over: trunk, session: session, phase: .invited), at: step.now)
    call.trunkLeg.received(invite)
    // earlier diversions count together with later transfers
    call.transfers = Transfers(maxForwards: invite.maxForwards, followed: invite.diversions)
    call.diversions = CallDiversions(stated: invite.diversions)
    if let route {
      call.diversions.adopt(diversions(of: route.user).orElse(route.diversions))
      let account = routing.account(of: route.user, called: route.number, route: route.account)
      if route.isUsers { call.users.belongs(to: account, of: route.user) }
    }
    introduce(&call, over: leg)
    call.mark(.start, detail: trunk.name, &step)
    return call
  }

  static var defaultAccount: String { "default" }

  /// Checks whether the offer can be answered at all, before anything is reserved; returns the address of its media.
  private func probe(_ offer: SessionDescription, over trunk: Routing.Trunk, from source: Flow) throws(NegotiationError)
    -> IPAddress
  {
    let negotiation = trunk.negotiation(local: SocketAddress(.any, 9), over: source, random: random)
    if trunk.srtp == .required, !trunk.maySendKeys(over: source) { throw .keysNeedTLS }
    return try negotiation.destination(of: offer)
  }

  /// A call that ends as it begins: one final response, one record.
  private mutating func reject(
    _ call: Call, _ reason: EndReason, by side: CallSide, sip: Int? = nil, q850: Int? = nil, detail: String? = nil,
    _ step: inout Step
  ) {
    admit(call, &step)
    change(call.id, &step) { call, step in
      guard let sip, sip != reason.refusal()?.status else { return call.end(reason, by: side, q850: q850, detail: detail, &step) }
      call.trunkLeg.close(sip)
      step.sip(.refuse(call.trunkLeg.id, code: sip, reason: nil, cause: nil, retryAfter: nil))
      call.end(reason, by: side, sip: sip, detail: detail, &step)
    }
  }

  /// No device is connected or can be woken, or all that are connected accept no calls.
  mutating func rejectUnreached(_ call: Call, _ step: inout Step) {
    let ending = unreachedEnding(call, step.now)
    admit(call, &step)
    change(call.id, &step) { $0.endUnlessDiverted(.unreached, ending, &$1) }
  }

  func unreachedEnding(_ call: Call, _ now: Instant) -> Call.Ending {
    let connected = call.users.ringing.flatMap { presences[$0].filter { $0.isReachable(at: now) } }
    if connected.contains(where: { !devices.wantsCalls($0.key) }) {
      return .init(.dnd, by: .app, detail: "no device accepts calls")
    }
    let stranger = connected.first { $0.info.onlyCall == nil && !call.users.isFor($0.accounts, of: $0.key.user) }
    let account = stranger.map { "no device is logged in to account " + call.users.account(of: $0.key.user) }
    return .init(.unanswered, by: .app, q850: 20, detail: account ?? "no device connected")
  }

  /// Offers the call to its users' devices, or wakes them; if there are none, the call ends or is diverted by its rules.
  /// - Parameter reservation: for a call that has no media yet.
  mutating func ring(_ id: CallID, media reservation: MediaReservation? = nil, _ step: inout Step) {
    guard let call = calls[id] else { return }
    let present = call.users.ringing.flatMap { ringable($0, for: call) }
    let destinations = call.users.ringing.flatMap { wakeable($0, for: call) }
    let remoteDevices = ringableRemoteDevices(call)
    let unreached = isReachable(call, step.now) ? nil : unreachedEnding(call, step.now)
    change(id, &step) { call, step in
      if let reservation, let intake = call.intake {
        call.offer(to: present, waking: destinations, remoteDevices, reservation, intake, &step)
      } else {
        call.ring(present, waking: destinations, remoteDevices, &step)
      }
      if let unreached { call.endUnlessDiverted(.unreached, unreached, &step) }
    }
  }

  /// Devices that are offered a new call: logged in to its account, accepting calls, and without a session for one other call.
  func ringable(_ user: String, for call: Call) -> [DevicePresence] {
    presences[user].filter {
      $0.info.onlyCall == nil && devices.wantsCalls($0.key) && call.users.isFor($0.accounts, of: user)
    }
  }

  func wakeable(_ user: String, for call: Call) -> [PushDestination] {
    configuration.push == nil ? [] : devices.targets(of: user, account: call.users.accounts[user])
  }

  // MARK: reservation

  mutating func reserved(_ id: CallID, _ reservation: MediaReservation, _ step: inout Step) {
    switch pending.popReservation(id) {
    case .incoming(let call):
      admit(call, &step)
      ring(id, media: reservation, &step)
    case .stream(let call, let target):
      admit(call, &step)
      change(id, &step) { $0.offerStream(target, reservation, &$1) }
    case .asked:
      guard calls[id]?.isLive == true else { return step.media(.close(reservation.session)) }
      ring(id, media: reservation, &step)
    case .diversion(let plan): diversionReserved(id, plan, reservation, &step)
    case .originated(let call, let answer): originated(call, reservation, answer, &step)
    case .outgoing(let starting): started(starting, reservation, &step)
    case nil: step.media(.close(reservation.session))
    }
  }

  mutating func reservationRefused(_ id: CallID, _ reason: Refusal.Reason, detail text: String, _ step: inout Step) {
    switch pending.popReservation(id) {
    case .incoming(let call), .stream(let call, _):
      guard let intake = call.intake else { return }
      refuse(call.trunkLeg.id, intake.invite, reason, code: 503, &step)
      unclaim(id, &step)
    case .originated(let call, let answer): originationRefused(call, reason, detail: text, for: answer, &step)
    case .asked: change(id, &step) { $0.end(.overload, by: .gateway, detail: text, &$1) }
    case .diversion(let plan): diversionImpossible(id, plan, because: text, &step)
    case .outgoing(let starting):
      refuse(
        starting.request, of: starting.call.wanted(by: starting.request.device),
        StartRefusal(.overload, reason: reason, trunk: starting.call.trunk.name, detail: text), &step)
      unclaim(id, &step)
    case nil: break
    }
  }
}

extension CallParameters {
  /// The part of a trunk's header fields that an app gets: values with control characters are dropped, and then what does not
  /// fit, the last names first.
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
