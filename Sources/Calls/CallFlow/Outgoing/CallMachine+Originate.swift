import AppSessions
import CallModel
import Devices
import PhoneNumbers
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// Calls that a program makes for a user (`Input.originate`): the user's devices ring first, as for a call from the number,
/// and the INVITE follows when one of them has answered and has media; or the INVITE is sent first
/// (`Call+NumberFirst.swift`). The rules of `call.start` hold.
extension CallMachine {
  mutating func originate(_ wanted: OriginateRequest, _ question: QuestionID, _ step: inout Step) {
    let called = Handle(k: Self.isNumber(wanted.to) ? .phone : .generic, h: wanted.to)
    let id = CallID(random: random)
    func refuse(_ code: ErrorCode, reason: Refusal.Reason, trunk: String = "", detail text: String?) {
      step.output.actions.append(
        .refused(Refusal(reason, .outgoing, trunk: trunk, detail: text, caller: .init(number: wanted.to, call: "\(id)"))))
      step.answer(question, .refused(Failure(code, msg: text)))
    }
    if isDraining { return refuse(.overload, reason: .draining, detail: "the gateway accepts no new calls") }
    if calls.count >= configuration.bounds.calls {
      return refuse(.overload, reason: .overload, detail: "the gateway has as many calls as it may")
    }
    if calls.count(of: wanted.user) >= configuration.bounds.callsPerUser {
      return refuse(.tooMany, reason: .userLimit, detail: "calls_per_user")
    }
    if mustAsk(questions(of: wanted.user, calling: called), before: .originate(wanted, question), &step) { return }
    guard routing.user(wanted.user) != nil else { return refuse(.notFound, reason: .notFound, detail: "no such user") }
    let to: Routing.Destination
    do throws(NumberRefusal) {
      guard let found = try routing.destination(called, by: wanted.user) else {
        return refuse(.notFound, reason: .notFound, detail: "to is neither a number nor a user")
      }
      to = found
    } catch {
      return refuse(.notFound, reason: .notFound, detail: "to: \(error)")
    }
    if wanted.first == .number, to.isEmergency {
      return refuse(.emergency, reason: .emergency, detail: "emergency numbers can only be dialled by a device")
    }
    guard let own = callerNumber(of: wanted.user, wanted: wanted.from, account: nil, calling: to) else {
      return refuse(.callerNumber, reason: .callerNumber, detail: wanted.from == nil ? Self.noCaller : Self.otherCaller)
    }
    let (rule, allowed): (Routing.OutboundRule, AllowedNumber)
    switch outboundRule(to, user: wanted.user, step.now) {
    case .rule(let found, let number): (rule, allowed) = (found, number)
    case .refused(let code, let reason, let text): return refuse(code, reason: reason, detail: text)
    }
    let candidates: [Routing.Trunk]
    switch trunks(of: rule, isEmergency: to.isEmergency, step.now) {
    case .trunks(let found): candidates = found
    case .refused(let reason):
      return refuse(
        .overload, reason: reason, trunk: rule.choices.first?.trunk ?? "",
        detail: "no trunk accepts a call now: \(reason.rawValue)")
    }
    if let unknown = Self.unknown(wanted.parameters, to: candidates), !to.isEmergency {
      return refuse(.badRequest, reason: .forbidden, detail: Self.unlisted(unknown))
    }
    let call = makeOriginated(id, wanted, own: own, number: allowed, over: candidates, step.now)
    guard configuration.isClustered || isReachable(call, step.now) else {
      return refuse(.badState, reason: .notFound, detail: unreachedEnding(call, step.now).detail ?? "no device connected")
    }
    guard consumeQuota(of: wanted.user, step.now) || to.isEmergency else {
      return refuse(.tooMany, reason: .userRate, detail: "calls_per_hour")
    }
    if configuration.isClustered { return claim(call, question, &step) }
    reserve(call, question, &step)
  }

  /// True also for a number that cannot be called, so that the refusal states why; other texts may be a user's id.
  private static func isNumber(_ text: String) -> Bool {
    do throws(NumberRefusal) {
      _ = try DialledNumber(text, in: nil)
      return true
    } catch {
      return !error.isOtherText
    }
  }

  private mutating func makeOriginated(
    _ id: CallID, _ wanted: OriginateRequest, own: String, number: AllowedNumber, over candidates: [Routing.Trunk], _ now: Instant
  ) -> Call {
    let user = wanted.user
    let session = MediaSessionID(raw: makeNumber())
    // the devices show it as a call from the number
    let parties = Call.Parties(
      from: Handle(number: number.text, name: nil), to: Handle(number: own, name: nil), callerNumber: own,
      calledNumber: number.text, dialled: number,
      parameters: wanted.parameters?.isEmpty == false ? wanted.parameters : nil,
      origination: .init(displayName: routing.displayName(of: user, wanted: nil), first: wanted.first))
    let account = routing.account(of: user, called: own, route: nil)
    let leg = TrunkLeg(
      nextLegID(over: candidates[0]), over: candidates[0], session: session, alternatives: Array(candidates.dropFirst()))
    var call = Call(
      id: id, direction: .outgoing, session: session, users: Call.Users(user, account: account ?? Self.defaultAccount),
      parties: parties, trunkLeg: leg, at: now)
    call.users.belongs(to: account, of: user)
    return call
  }

  private mutating func claim(_ call: Call, _ question: QuestionID, _ step: inout Step) {
    let allowance = routing.user(call.users.owner)?.allowance
    pending.waitForClaim(call.id, then: .originated(call, question))
    step.output.actions.append(
      .claim(
        ClaimQuestion(
          call.id, device: DeviceKey(user: call.users.owner, device: ""), trunk: call.trunk.name,
          mostOfTrunk: call.trunk.maximumCalls, mostOfUser: configuration.bounds.callsPerUser, mostOutgoing: allowance?.calls,
          mostPerHour: allowance?.callsPerHour)))
  }

  mutating func claimed(_ call: Call, _ result: ClaimAnswer, _ question: QuestionID, _ step: inout Step) {
    var call = call
    switch result {
    case .granted:
      call.trunkLeg.holdSlot(needsSlot(call.trunk))
      reserve(call, question, &step)
    // ids are random, so this does not happen
    case .atOtherNode: step.answer(question, .refused(Failure(.overload, msg: "another node has this call")))
    case .refused(let reason):
      step.output.actions.append(.refused(Refusal(reason, .outgoing, trunk: call.trunk.name, caller: call.wantedByProgram)))
      step.answer(question, .refused(Failure(reason == .trunkLimit ? .overload : .tooMany, msg: reason.rawValue)))
    }
  }

  private mutating func reserve(_ call: Call, _ question: QuestionID, _ step: inout Step) {
    pending.waitForMedia(call.id, then: .originated(call, question))
    step.output.actions.append(
      .reserveMedia(
        MediaRequest(call.id, session: call.session, user: call.users.owner, toward: call.trunk.peer?.flow.remote.ip)))
  }

  /// Media is reserved: the call exists, and rings, or waits for its journal entry on disk.
  mutating func originated(_ call: Call, _ reservation: MediaReservation, _ question: QuestionID, _ step: inout Step) {
    var call = call
    call.mark(.start, detail: call.trunk.name, &step)
    admit(call, &step)
    change(call.id, &step) { $0.originate(reservation, &$1) }
    step.answer(question, .originated(call.id))
    if call.callsNumberFirst { return }
    if configuration.isClustered { return locate(call.id, then: .diverted, &step) }
    ring(call.id, &step)
  }

  mutating func originationRefused(
    _ call: Call, _ reason: Refusal.Reason, detail text: String, for question: QuestionID, _ step: inout Step
  ) {
    step.output.actions.append(
      .refused(Refusal(reason, .outgoing, trunk: call.trunk.name, detail: text, caller: call.wantedByProgram)))
    unclaim(call.id, &step)
    step.answer(question, .refused(Failure(.overload, msg: text)))
  }
}

extension Call {
  /// Data of a call that a program made.
  struct Origination {
    /// The name that the trunk gets beside the user's number.
    var displayName: String?
    var first: OriginateRequest.First
  }

  /// Its devices ring: it came from a trunk, or a program made it.
  var ringsDevices: Bool { direction == .incoming || parties.origination != nil }

  fileprivate var wantedByProgram: Refusal.Caller { Refusal.Caller(number: parties.calledNumber, call: "\(id)") }

  fileprivate mutating func originate(_ reservation: MediaReservation, _ step: inout Step) {
    reserve(reservation)
    trunkLeg.prepareOffer(at: reservation.trunkAddress, step.random)
    startJournal(&step)
  }
}
