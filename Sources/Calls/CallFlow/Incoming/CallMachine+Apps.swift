import AppSessions
import CallModel
import PhoneNumbers
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Events of the app side: devices that connect and disconnect, their requests and notifications.
extension CallMachine {
  mutating func handle(_ event: SessionEvent, _ step: inout Step) {
    switch event {
    case .granted(let key, let session, let grant): granted(grant, key, session, &step)
    case .connected(let key, let session, let info, let resumed): connected(key, session, info, resumed: resumed, &step)
    case .disconnected(let key, let session): disconnected(key, session, &step)
    case .ended(let key, let session): sessionEnded(key, session, &step)
    case .stateChanged(let key, let state): stateChanged(key, state, &step)
    case .upgraded(let key, _, let info): upgraded(key, info, &step)
    case .httpLogin(let id, let key): step.app(.httpAnswer(id, devices.isRevoked(key) ? .err(.deviceRevoked()) : .ok))
    case .httpReject(let id, let key, let reject, let call): httpReject(id, key, reject, call, &step)
    case .callLost(let key, _, let call): callLost(call, key, &step)
    case .offerAcked(let key, let session, let call): change(call, &step) { call, _ in call.offerAcked(key, on: session) }
    case .overAcked(let key, _, let call):
      calls[call]?.terminals[key]?.isAcked = true
      tombstones.update(call, key) { $0.isAcked = true }
    case .request(let key, let session, let token, let message, let call): request(key, session, token, message, call, &step)
    case .notification(let key, _, let message, let call): notice(key, message, call, &step)
    }
  }

  // MARK: requests

  private mutating func request(
    _ key: DeviceKey, _ session: SessionID, _ token: RequestToken, _ message: ClientMessage, _ call: CallID?, _ step: inout Step
  ) {
    let isRefused = isTurnedAway(key, in: call, message)
    // the answer of a request that only reads is not kept
    if case .userGet = message {
      return step.app(
        .notify(key, isRefused ? .err(.deviceRevoked()) : .ok(Success(user: information(of: key.user))), re: token.request))
    }
    if isRefused { return step.answer(token, .err(.deviceRevoked())) }
    switch message {
    case .devicePut(let put):
      guard let device = presence(key) else { return step.refuse(token, .server, "no session") }
      return self.put(put, by: device, token, &step)
    case .deviceDel: return delete(key, token, &step)
    case .callStart(let start):
      return self.start(start, key, token, call, again: .app(.request(key, session, token, message, call: call)), &step)
    default: break
    }
    guard let id = call else { return step.refuse(token, .badRequest, "call is missing") }
    guard let live = calls[id], live.isLive, live.users.concerns(key.user), live.terminals[key] == nil,
      live.index(of: key) != nil
    else {
      if case .callEnd = message { return step.answer(token, .ok) }
      if askTombstone(id, for: .request(key, token, message), &step) { return }
      return refuseGone(id, key, token, message, remote: nil, &step)
    }
    if live.isTest, !Self.isOfTest(message) { return step.answer(token, .err(Self.notInTest)) }
    if case .callTransfer(let transfer) = message { return step.answer(token, self.transfer(id, transfer, key, &step)) }
    if case .callGroup(let group) = message { return step.answer(token, self.group(id, group, key, &step)) }
    var accepted: RequestAnswer?
    change(id, &step) { call, step in
      switch message {
      case .callPrepare(let prepare): accepted = call.prepare(prepare, from: key, on: session, &step)
      case .callAnswer(let answer):
        // the answer is sent before the messages that the open gate causes
        step.answer(token, call.answer(answer, from: key, on: session, &step))
        call.answerAccepted(&step)
      case .callReject(let reject): accepted = call.reject(reject, from: key, &step)
      case .callEnd(let end):
        step.answer(token, .ok)
        call.endByApp(end, from: key, &step)
      case .mediaRestart(let restart): accepted = call.restart(restart, from: key, on: session, &step)
      case .callHold(let hold):
        let answer = call.winner == key ? call.hold(hold, from: key, &step) : .err(Failure(.badState))
        step.answer(token, answer)
        if case .ok = answer { step.send(.callHeld(CallHeld(by: .local, on: hold.on)), to: key, call: id) }
      case .callMute(let mute): accepted = call.winner == key ? call.mute(mute, &step) : .err(Failure(.badState))
      case .callTranslate(let translate):
        accepted = call.winner == key ? call.translate(translate, &step) : .err(Failure(.badState))
      case .callDTMF(let digits): accepted = call.winner == key ? call.sendDigits(digits, &step) : .err(Failure(.badState))
      default: accepted = .err(Failure(.unsupported))
      }
    }
    if let accepted { step.answer(token, accepted) }
  }

  /// The call is over for this device, or was never its own: `call.end` and its own `call.reject` are safe to repeat, every other
  /// request is refused with the reason.
  func refuseGone(
    _ id: CallID, _ key: DeviceKey, _ token: RequestToken, _ message: ClientMessage, remote: RemoteTombstone?, _ step: inout Step
  ) {
    // the device itself ended it, by HTTP or on another socket
    let terminal = calls[id]?.terminals[key] ?? tombstones[id]?.terminals[key]
    if case .callReject = message, terminal?.isByDevice == true { return step.answer(token, .ok) }
    var reason: EndReason?
    if let call = calls[id], call.users.concerns(key.user) {
      reason =
        call.terminals[key]?.over.reason
        ?? (call.isDiverted(for: key.user)
          ? .diverted : call.ringsDevices && call.winner != nil ? .answeredElsewhere : nil)
    } else if let tombstone = tombstones[id], tombstone.users.contains(key.user) {
      reason = tombstone.terminals[key]?.over.reason ?? (tombstone.direction == .incoming ? tombstone.over.reason : nil)
    } else if let remote, remote.users.contains(key.user) {
      reason = remote.over.reason
    }
    if case .callAnswer = message {
      if reason == .answeredElsewhere { return step.refuse(token, .answeredElsewhere, reason: reason) }
      // it may have crossed the refusal of its description, which is the reason that the app needs
      if reason == .codec { return step.refuse(token, .codec, reason: reason) }
    }
    step.refuse(token, .gone, reason: reason)
  }

  private mutating func notice(_ key: DeviceKey, _ message: ClientMessage, _ id: CallID?, _ step: inout Step) {
    guard let id, !isTurnedAway(key, in: id), calls[id]?.users.concerns(key.user) == true, calls[id]?.terminals[key] == nil else {
      return
    }
    change(id, &step) { call, step in
      guard call.isLive else { return }
      switch message {
      case .callRinging(let ringing): call.deviceRinging(key, ringing, &step)
      case .callUnavailable(let unavailable): call.deviceUnavailable(key, unavailable.why, &step)
      case .mediaReady(let ready): call.mediaReady(ready, from: key, &step)
      case .mediaFail(let failure): call.mediaFailed(failure, from: key, &step)
      case .mediaActive(let active): call.mediaActive(active, from: key, &step)
      case .stats(let stats): call.statsReceived(stats, from: key)
      default: break  // candidates are never resolved or probed
      }
    }
  }

  /// `call.transfer`: to a number that the user may dial, or together with another of the user's calls.
  mutating func transfer(_ id: CallID, _ transfer: CallTransfer, _ key: DeviceKey, _ step: inout Step) -> RequestAnswer {
    guard let call = calls[id], call.winner == key else { return .err(Failure(.badState)) }
    var target: AskedTransfer?
    if let with = transfer.withCall {
      guard let second = calls[with], with != id, second.users.owner == key.user, second.isLive, second.state == .connected,
        second.trunk.name == call.trunk.name
      else { return .err(Failure(.badState, msg: "withCall is not a connected call on this trunk")) }
      target = .call(second.trunkLeg.id)
    } else if let handle = transfer.target, handle.k == .phone {
      let number: DialledNumber
      do {
        number = try routing.dialled(handle.h, by: key.user)
      } catch {
        return .err(Failure(.badRequest, msg: "\(error)"))
      }
      if number.kind == .emergency { return .err(Failure(.emergency)) }
      switch outboundRule(number, user: key.user, step.now) {
      case .refused(let code, _, let text): return .err(Failure(code, msg: text))
      case .rule(_, let allowed):
        let allowance = routing.user(key.user)?.allowance ?? UserAllowance()
        guard keeps(number.text, call.trunk, allowance, of: key.user) else {
          return .err(Failure(.forbidden, msg: Self.otherNumber))
        }
        let own = routing.trunk(call.trunk.name)
        target = (own?.peer?.domain ?? own?.settings?.domain).map { .number(allowed, domain: $0) }
      }
    }
    if let refusal = call.refusal(of: target) { return .err(refusal) }
    guard let target else { return .err(Failure(.badRequest)) }
    if transfer.withCall == nil, !quota.consume(key.user, most: routing.user(key.user)?.allowance.callsPerHour, at: step.now) {
      return .err(Failure(.tooMany, msg: "calls_per_hour"))
    }
    change(id, &step) { $0.askTransfer(target, &$1) }
    return .ok
  }

  private func information(of id: String) -> UserInformation {
    let user = routing.user(id)
    return UserInformation(numbers: user?.numbers ?? [], name: user?.name)
  }

  // MARK: call.start

  /// - Parameter input: the input that is handled again once the operator's server has identified caller and callee. What can be
  ///   refused without that answer is refused before.
  private mutating func start(
    _ start: CallStart, _ key: DeviceKey, _ token: RequestToken, _ id: CallID?, again input: Input, _ step: inout Step
  ) {
    guard let id else { return step.refuse(token, .badRequest, "call is missing") }
    let caller = Refusal.Caller(device: key, number: start.to.h, call: "\(id)")
    if let running = calls[id] {
      guard !running.ringsDevices, running.winner == key else {
        return refuse(token, caller, .forbidden, .forbidden, nil, &step)
      }
      guard running.isLive, let leg = running.devices.first else {
        return step.refuse(token, .gone, reason: running.bookkeeping.end?.reason)
      }
      return step.answer(token, .ok(Success(sdp: leg.sdp, call: id, to: running.parties.to)))
    }
    // a repeat, while the cluster is queried for the first one, which is answered soon
    if pending[id] != nil { return refuse(token, caller, .overload, .overload, "the call is being started", &step) }
    if let tombstone = tombstones[id] {
      guard tombstone.owner == key else { return refuse(token, caller, .forbidden, .forbidden, nil, &step) }
      return step.refuse(token, .gone, reason: tombstone.over.reason)
    }
    guard let device = presence(key) else { return refuse(token, caller, .server, .forbidden, "no session", &step) }
    if isDraining { return refuse(token, caller, .overload, .draining, nil, &step) }
    if calls.count >= configuration.bounds.calls { return refuse(token, caller, .overload, .overload, nil, &step) }
    let isEmergency = isEmergency(start.to, by: key.user)
    if callsOfUser[key.user]?.count ?? 0 >= configuration.bounds.callsPerUser, !isEmergency {
      return refuse(token, caller, .tooMany, .userLimit, nil, &step)
    }
    let account = start.acct ?? device.accounts.first ?? Self.defaultAccount
    guard device.accounts.contains(account) else { return refuse(token, caller, .forbidden, .forbidden, "acct", &step) }
    if start.to.k == .generic, start.to.h == TestCall.handle {
      return startTest(start, device, account: account, token, id, caller, &step)
    }
    switch mustAsk(questions(of: key.user, calling: start.to), of: key.user, before: input, &step) {
    case .no: break
    case .waits: return
    // an emergency call continues with what is known
    case .tooOften where isEmergency: break
    case .tooOften: return refuseTooOften(token, caller, &step)
    }
    let to: Routing.Destination
    do throws(NumberRefusal) {
      guard let found = try routing.destination(start.to, by: key.user) else {
        return refuse(token, caller, .notFound, .notFound, "to", &step)
      }
      to = found
    } catch {
      return refuse(token, caller, .notFound, .notFound, "to: \(error)", &step)
    }
    let number = to.number
    // If the app's request is wrong in a part that an emergency call can do without, the part is left out and the call is not
    // refused.
    var ownNumber = callerNumber(of: key.user, wanted: start.from?.h, account: account, calling: to)
    if ownNumber == nil, to.isEmergency { ownNumber = callerNumber(of: key.user, wanted: nil, account: account, calling: to) }
    guard let own = ownNumber else {
      guard start.from == nil else { return refuse(token, caller, .callerNumber, .callerNumber, Self.otherCaller, &step) }
      return refuse(token, caller, .forbidden, .callerNumber, Self.noCaller, &step)
    }
    var identities = start.identity ?? []
    if !Self.areIdentities(identities) {
      guard to.isEmergency else { return step.refuse(token, .badRequest, "identity") }
      identities = []
    }
    let isLocation = start.location.map(Self.isLocation) ?? true
    guard isLocation || to.isEmergency else { return step.refuse(token, .badRequest, "location") }
    let (rule, allowed): (Routing.OutboundRule, AllowedNumber)
    switch outboundRule(to, user: key.user, step.now) {
    case .rule(let found, let number): (rule, allowed) = (found, number)
    case .refused(let code, let reason, let text): return refuse(token, caller, code, reason, text, &step)
    }
    let offer: SessionDescription
    do {
      offer = try Self.readOffer(start.sdp)
    } catch {
      return refuse(token, caller, .codec, .codec, String(describing: error), &step)
    }
    let candidates: [Routing.Trunk]
    switch trunks(of: rule, isEmergency: to.isEmergency, step.now) {
    case .trunks(let found): candidates = found
    case .refused(let reason): return refuse(token, caller, .overload, reason, trunk: rule.choices.first?.trunk ?? "", nil, &step)
    }
    let trunk = candidates[0]
    if let unknown = Self.unknown(start.parameters, to: candidates), !to.isEmergency {
      return step.refuse(token, .badRequest, Self.unlisted(unknown))
    }
    guard quota.consume(key.user, most: routing.user(key.user)?.allowance.callsPerHour, at: step.now) || to.isEmergency
    else {
      return refuse(token, caller, .tooMany, .userRate, "calls_per_hour", &step)
    }
    let session = MediaSessionID(raw: makeNumber())
    var parties = Call.Parties(
      from: Handle(number: own, name: routing.displayName(of: key.user, wanted: start.from?.n)),
      to: Handle(k: start.to.k, h: to.isUser ? start.to.h : number, n: start.to.n), callerNumber: own, calledNumber: number)
    parties.dialled = allowed
    var call = Call(
      id: id, direction: .outgoing, session: session, users: Call.Users(key.user, account: account), parties: parties,
      trunkLeg: TrunkLeg(nextLegID(over: trunk), over: trunk, session: session), at: step.now)
    call.trunkLeg.alternatives = Array(candidates.dropFirst())
    (call.parties.isPrivate, call.parties.identities) = (start.privacy ?? false, identities.map { SignedIdentity($0) })
    if start.parameters?.isEmpty == false { call.parties.parameters = start.parameters }
    // only an emergency call carries the caller's location
    call.parties.location = to.isEmergency && isLocation ? start.location : nil
    call.parties.lacksLocation = !isLocation
    if configuration.isClustered { return claim(call, offer, device, token, &step) }
    pending[id] = .outgoing(call, offer: offer, device, token)
    step.output.actions.append(
      .reserveMedia(MediaRequest(id, session: call.session, user: key.user, toward: trunk.peer?.flow.remote.ip)))
  }

  func refuse(
    _ token: RequestToken, _ caller: Refusal.Caller, _ code: ErrorCode, _ reason: Refusal.Reason, trunk: String = "",
    _ text: String?, _ step: inout Step
  ) {
    step.refuse(token, code, text)
    step.output.actions.append(.refused(Refusal(reason, .outgoing, trunk: trunk, detail: text, caller: caller)))
  }

  /// The refusal of a parameter that no trunk of the route accepts; users accept any.
  static func unlisted(_ name: String) -> String { "parameters: no trunk of this route lists \(name) in its parameters" }

  static func unknown(_ parameters: CallParameters?, to trunks: [Routing.Trunk]) -> String? {
    guard let parameters, !trunks.contains(where: { $0.name == Routing.directTrunk }) else { return nil }
    let known = Set(trunks.flatMap { $0.rules.parameters.map { $0.lowercased() } })
    return parameters.values.keys.sorted().first { !known.contains($0.lowercased()) }
  }

  private static func areIdentities(_ texts: [String]) -> Bool {
    texts.count <= TrunklineSIP.Limits.identities
      && texts.allSatisfy { $0.utf8.count <= TrunklineSIP.Limits.identityBytes && SignedIdentity($0).isWellFormed }
  }

  /// Whether it is XML by its first character, without control characters that text cannot contain. The callee interprets the
  /// content.
  private static func isLocation(_ text: String) -> Bool {
    text.utf8.count <= Limits.locationBytes && text.hasPrefix("<")
      && text.utf8.allSatisfy { $0 >= 32 && $0 != 127 || $0 == 9 || $0 == 10 || $0 == 13 }
  }

  /// Reads the app's offer and checks that it can be answered, before anything is reserved.
  static func readOffer(_ sdp: String) throws(NegotiationError) -> SessionDescription {
    let offer = try SessionDescription.read(sdp)
    guard let fingerprint = FingerprintAttribute(.sha256, [UInt8](repeating: 0, count: 32)) else { return offer }
    var negotiation = AppNegotiation(
      .gateway, endpoint: SecureEndpoint(ufrag: "probe", password: "probe", fingerprint: fingerprint, candidates: [], ssrc: 1),
      sessionID: 0)
    _ = try negotiation.answer(to: offer)
    return offer
  }

  /// Media was reserved for a `call.start`.
  mutating func started(
    _ call: Call, _ offer: SessionDescription, _ device: DevicePresence, _ request: RequestToken, _ reservation: MediaReservation,
    _ step: inout Step
  ) {
    var call = call
    let leftOut = call.parties.lacksLocation ? ", without its location, which is not PIDF-LO" : ""
    call.mark(.start, detail: call.trunk.name + leftOut, &step)
    let answer = call.start(offer, from: device, reservation, &step)
    step.answer(request, answer)
    guard case .ok = answer else {
      step.media(.close(reservation.session))
      unclaim(call.id, &step)
      return step.output.actions.append(
        .refused(Refusal(.codec, .outgoing, trunk: call.trunk.name, caller: call.wanted(by: device.key))))
    }
    admit(call, &step)
    change(call.id, &step) { _, _ in }
  }
}

extension Call {
  /// The caller of an outgoing call, for its refusal.
  func wanted(by device: DeviceKey) -> Refusal.Caller {
    Refusal.Caller(device: device, number: parties.calledNumber, call: "\(id)")
  }
}
