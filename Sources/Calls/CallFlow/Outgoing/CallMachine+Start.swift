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

/// An app's `call.start`.
struct StartRequest {
  let start: CallStart
  let call: CallID
  let device: DeviceKey
  let token: RequestToken
  var user: String { device.user }
  /// For a refusal.
  var caller: Refusal.Caller { Refusal.Caller(device: device, number: start.to.h, call: "\(call)") }

  init(_ start: CallStart, of call: CallID, from device: DeviceKey, _ token: RequestToken) {
    self.start = start
    self.call = call
    self.device = device
    self.token = token
  }
}

/// Why a `call.start` is refused.
struct StartRefusal: Error {
  var code: ErrorCode
  /// Reported and counted. Nil: the request is malformed, and only the app is notified.
  var reason: Refusal.Reason?
  var trunk: String
  var detail: String?

  init(_ code: ErrorCode, reason: Refusal.Reason? = nil, trunk: String = "", detail: String? = nil) {
    self.code = code
    self.reason = reason
    self.trunk = trunk
    self.detail = detail
  }
}

/// A call that waits for the cluster or for media, with what its `call.start` needs afterwards.
struct StartingCall {
  var call: Call
  let offer: SessionDescription
  let device: DevicePresence
  let request: RequestToken
}

/// Outgoing calls of apps.
extension CallMachine {
  /// - Parameter input: the input that is handled again once the operator's server has identified caller and callee. What can be
  ///   refused without that answer is refused before.
  mutating func start(_ request: StartRequest, again input: Input, _ step: inout Step) {
    do throws(StartRefusal) {
      if try answersRepeat(request, &step) { return }
      let device = try admittedDevice(request)
      let account = request.start.acct ?? device.accounts.first ?? Self.defaultAccount
      guard device.accounts.contains(account) else { throw StartRefusal(.forbidden, reason: .forbidden, detail: "acct") }
      if request.start.to.k == .generic, request.start.to.h == TestCall.handle {
        return try startTest(request, of: device, account: account, &step)
      }
      switch mustAsk(questions(of: request.user, calling: request.start.to), of: request.user, before: input, &step) {
      case .no: break
      case .waits: return
      // an emergency call continues with what is known
      case .tooOften where isEmergency(request.start.to, by: request.user): break
      case .tooOften: return refuseTooOften(request.token, request.caller, &step)
      }
      let starting = try makeOutgoing(request, of: device, account: account, at: step.now)
      if configuration.isClustered { claim(starting, &step) } else { reserveMedia(starting, &step) }
    } catch {
      refuse(request.token, of: request.caller, error, &step)
    }
  }

  func refuse(_ token: RequestToken, of caller: Refusal.Caller, _ refusal: StartRefusal, _ step: inout Step) {
    step.refuse(token, refusal.code, refusal.detail)
    guard let reason = refusal.reason else { return }
    step.output.actions.append(
      .refused(Refusal(reason, .outgoing, trunk: refusal.trunk, detail: refusal.detail, caller: caller)))
  }

  /// The app may repeat a `call.start` whose answer it did not receive. False: the id is new.
  private func answersRepeat(_ request: StartRequest, _ step: inout Step) throws(StartRefusal) -> Bool {
    if let running = calls[request.call] {
      guard !running.ringsDevices, running.winner == request.device else { throw StartRefusal(.forbidden, reason: .forbidden) }
      if running.isLive, let leg = running.devices.first {
        step.answer(request.token, .ok(Success(sdp: leg.sdp, call: request.call, to: running.parties.to)))
      } else {
        step.refuse(request.token, .gone, reason: running.conclusion.end?.reason)
      }
      return true
    }
    // the cluster is queried for the first one, which is answered soon
    if pending.has(request.call) {
      throw StartRefusal(.overload, reason: .overload, detail: "the call is being started")
    }
    guard let tombstone = tombstones[request.call] else { return false }
    guard tombstone.owner == request.device else { throw StartRefusal(.forbidden, reason: .forbidden) }
    step.refuse(request.token, .gone, reason: tombstone.over.reason)
    return true
  }

  /// The device, if the gateway and the user have room for a call of it.
  private func admittedDevice(_ request: StartRequest) throws(StartRefusal) -> DevicePresence {
    guard let device = presences[request.device] else {
      throw StartRefusal(.server, reason: .forbidden, detail: "no session")
    }
    if isDraining { throw StartRefusal(.overload, reason: .draining) }
    if calls.count >= configuration.bounds.calls { throw StartRefusal(.overload, reason: .overload) }
    if calls.count(of: request.user) >= configuration.bounds.callsPerUser,
      !isEmergency(request.start.to, by: request.user)
    {
      throw StartRefusal(.tooMany, reason: .userLimit)
    }
    return device
  }

  /// The call of a request, once every check has passed; the user's quota is consumed last.
  private mutating func makeOutgoing(
    _ request: StartRequest, of device: DevicePresence, account: String, at now: Instant
  ) throws(StartRefusal) -> StartingCall {
    let start = request.start
    let to = try destination(of: request)
    let own = try callerNumber(of: request, account: account, calling: to)
    let enclosures = try enclosures(of: start, isEmergency: to.isEmergency)
    let (rule, allowed): (Routing.OutboundRule, AllowedNumber)
    switch outboundRule(to, user: request.user, now) {
    case .rule(let found, let number): (rule, allowed) = (found, number)
    case .refused(let code, let reason, let text): throw StartRefusal(code, reason: reason, detail: text)
    }
    let offer = try readOffer(of: start)
    let candidates = try candidates(for: start, by: rule, isEmergency: to.isEmergency, at: now)
    guard consumeQuota(of: request.user, now) || to.isEmergency else {
      throw StartRefusal(.tooMany, reason: .userRate, detail: "calls_per_hour")
    }
    let session = MediaSessionID(raw: makeNumber())
    var parties = Call.Parties(
      from: Handle(number: own, name: routing.displayName(of: request.user, wanted: start.from?.n)),
      to: Handle(k: start.to.k, h: to.isUser ? start.to.h : to.number, n: start.to.n), callerNumber: own,
      calledNumber: to.number, dialled: allowed, isPrivate: start.privacy ?? false, identities: enclosures.identities,
      parameters: start.parameters?.isEmpty == false ? start.parameters : nil)
    parties.locate(enclosures.location, lacksLocation: enclosures.lacksLocation)
    let trunk = candidates[0]
    let call = Call(
      id: request.call, direction: .outgoing, session: session, users: Call.Users(request.user, account: account),
      parties: parties,
      trunkLeg: TrunkLeg(nextLegID(over: trunk), over: trunk, session: session, alternatives: Array(candidates.dropFirst())),
      at: now)
    return StartingCall(call: call, offer: offer, device: device, request: request.token)
  }

  private func destination(of request: StartRequest) throws(StartRefusal) -> Routing.Destination {
    let found: Routing.Destination?
    do throws(NumberRefusal) {
      found = try routing.destination(request.start.to, by: request.user)
    } catch {
      throw StartRefusal(.notFound, reason: .notFound, detail: "to: \(error)")
    }
    guard let found else { throw StartRefusal(.notFound, reason: .notFound, detail: "to") }
    return found
  }

  // If the app's request is wrong in a part that an emergency call can do without, the part is left out and the call is not
  // refused.

  private func callerNumber(
    of request: StartRequest, account: String, calling to: Routing.Destination
  ) throws(StartRefusal) -> String {
    let wanted = request.start.from?.h
    if let own = callerNumber(of: request.user, wanted: wanted, account: account, calling: to) { return own }
    if to.isEmergency, let own = callerNumber(of: request.user, wanted: nil, account: account, calling: to) { return own }
    guard request.start.from == nil else {
      throw StartRefusal(.callerNumber, reason: .callerNumber, detail: Self.otherCaller)
    }
    throw StartRefusal(.forbidden, reason: .callerNumber, detail: Self.noCaller)
  }

  /// What a `call.start` encloses for the callee.
  private struct Enclosures {
    var identities: [SignedIdentity] = []
    var location: String?
    var lacksLocation = false
  }

  private func enclosures(of start: CallStart, isEmergency: Bool) throws(StartRefusal) -> Enclosures {
    var out = Enclosures()
    let identities = start.identity ?? []
    if Self.areIdentities(identities) {
      out.identities = identities.map { SignedIdentity($0) }
    } else if !isEmergency {
      throw StartRefusal(.badRequest, detail: "identity")
    }
    out.lacksLocation = start.location.map { !Self.isLocation($0) } ?? false
    guard isEmergency || !out.lacksLocation else { throw StartRefusal(.badRequest, detail: "location") }
    // only an emergency call carries the caller's location
    if isEmergency, !out.lacksLocation { out.location = start.location }
    return out
  }

  private mutating func candidates(
    for start: CallStart, by rule: Routing.OutboundRule, isEmergency: Bool, at now: Instant
  ) throws(StartRefusal) -> [Routing.Trunk] {
    let found: [Routing.Trunk]
    switch trunks(of: rule, isEmergency: isEmergency, now) {
    case .trunks(let usable): found = usable
    case .refused(let reason):
      throw StartRefusal(.overload, reason: reason, trunk: rule.choices.first?.trunk ?? "")
    }
    if let unknown = Self.unknown(start.parameters, to: found), !isEmergency {
      throw StartRefusal(.badRequest, detail: Self.unlisted(unknown))
    }
    return found
  }

  /// Asks for the media of a call, which `started` continues.
  mutating func reserveMedia(_ starting: StartingCall, _ step: inout Step) {
    let call = starting.call
    pending.waitForMedia(call.id, then: .outgoing(starting))
    step.output.actions.append(
      .reserveMedia(
        MediaRequest(
          call.id, session: call.session, user: starting.device.key.user, toward: call.trunk.peer?.flow.remote.ip)))
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

  func readOffer(of start: CallStart, trunk: String = "") throws(StartRefusal) -> SessionDescription {
    do throws(NegotiationError) {
      return try Self.readOffer(start.sdp)
    } catch {
      throw StartRefusal(.codec, reason: .codec, trunk: trunk, detail: String(describing: error))
    }
  }

  /// Reads the app's offer and checks that it can be answered, before anything is reserved.
  private static func readOffer(_ sdp: String) throws(NegotiationError) -> SessionDescription {
    let offer = try SessionDescription.read(sdp)
    guard let fingerprint = FingerprintAttribute(.sha256, [UInt8](repeating: 0, count: 32)) else { return offer }
    var negotiation = AppNegotiation(
      .gateway, endpoint: SecureEndpoint(ufrag: "probe", password: "probe", fingerprint: fingerprint, candidates: [], ssrc: 1),
      sessionID: 0)
    _ = try negotiation.answer(to: offer)
    return offer
  }

  /// Media was reserved for a `call.start`.
  mutating func started(_ starting: StartingCall, _ reservation: MediaReservation, _ step: inout Step) {
    var call = starting.call
    let leftOut = call.parties.lacksLocation ? ", without its location, which is not PIDF-LO" : ""
    call.mark(.start, detail: call.trunk.name + leftOut, &step)
    let answer = call.start(starting.offer, from: starting.device, reservation, &step)
    step.answer(starting.request, answer)
    guard case .ok = answer else {
      step.media(.close(reservation.session))
      unclaim(call.id, &step)
      return step.output.actions.append(
        .refused(Refusal(.codec, .outgoing, trunk: call.trunk.name, caller: call.wanted(by: starting.device.key))))
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
