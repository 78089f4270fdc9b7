import AppSessions
import CallModel
import PhoneNumbers
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Events of the app side: devices that connect and disconnect, their requests and notifications.
extension CallMachine {
  mutating func handle(_ event: SessionEvent, _ step: inout Step) {
    switch event {
    case .granted(let key, let session, let grant): granted(grant, to: key, on: session, &step)
    case .connected(let key, let session, let info, let resumed): connected(key, on: session, info, resumed: resumed, &step)
    case .disconnected(let key, let session): disconnected(key, session, &step)
    case .ended(let key, let session): sessionEnded(key, session, &step)
    case .stateChanged(let key, let state): stateChanged(key, state, &step)
    case .upgraded(let key, _, let info): upgraded(key, info, &step)
    case .httpLogin(let id, let key): step.app(.httpAnswer(id, devices.isRevoked(key) ? .err(.deviceRevoked()) : .ok))
    case .httpReject(let id, let key, let reject, let call): httpReject(id, by: key, reject, of: call, &step)
    case .callLost(let key, _, let call): callLost(call, key, &step)
    case .offerAcked(let key, let session, let call): change(call, &step) { call, _ in call.offerAcked(key, on: session) }
    case .overAcked(let key, _, let call):
      calls.change(call) { $0.terminals.acked(key) }
      tombstones.update(call, key) { $0.acked() }
    case .request(let key, let session, let token, let message, let call):
      request(from: key, on: session, token, message, of: call, &step)
    case .notification(let key, _, let message, let call): notice(from: key, message, of: call, &step)
    }
  }

  // MARK: requests

  private mutating func request(
    from key: DeviceKey, on session: SessionID, _ token: RequestToken, _ message: ClientMessage, of call: CallID?,
    _ step: inout Step
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
      guard let device = presences[key] else { return step.refuse(token, .server, "no session") }
      return self.put(put, by: device, token, &step)
    case .deviceDel: return delete(key, token, &step)
    case .callStart(let start):
      guard let call else { return step.refuse(token, .badRequest, "call is missing") }
      let request = StartRequest(start, of: call, from: key, token)
      return self.start(request, again: .app(.request(key, session, token, message, call: call)), &step)
    default: break
    }
    guard let id = call else { return step.refuse(token, .badRequest, "call is missing") }
    guard let live = calls[id], live.isLive, live.users.concerns(key.user), live.terminals[key] == nil,
      live.index(of: key) != nil
    else {
      if case .callEnd = message { return step.answer(token, .ok) }
      if askTombstone(id, for: .request(key, token, message), &step) { return }
      return refuseGone(id, for: key, token, message, remote: nil, &step)
    }
    if live.isTest, !Self.isOfTest(message) { return step.answer(token, .err(Self.notInTest)) }
    if case .callTransfer(let transfer) = message { return step.answer(token, self.transfer(id, transfer, by: key, &step)) }
    if case .callGroup(let group) = message { return step.answer(token, self.group(id, group, by: key, &step)) }
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
    _ id: CallID, for key: DeviceKey, _ token: RequestToken, _ message: ClientMessage, remote: RemoteTombstone?,
    _ step: inout Step
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

  private mutating func notice(from key: DeviceKey, _ message: ClientMessage, of id: CallID?, _ step: inout Step) {
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
      default: break
      }
    }
  }

  /// `call.transfer`: to a number that the user may dial, or together with another of the user's calls.
  mutating func transfer(_ id: CallID, _ transfer: CallTransfer, by key: DeviceKey, _ step: inout Step) -> RequestAnswer {
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
        guard keeps(number.text, on: call.trunk, by: allowance, of: key.user) else {
          return .err(Failure(.forbidden, msg: Self.otherNumber))
        }
        let own = routing.trunk(call.trunk.name)
        target = (own?.peer?.domain ?? own?.settings?.domain).map { .number(allowed, domain: $0) }
      }
    }
    if let refusal = call.refusal(of: target) { return .err(refusal) }
    guard let target else { return .err(Failure(.badRequest)) }
    if transfer.withCall == nil, !consumeQuota(of: key.user, step.now) {
      return .err(Failure(.tooMany, msg: "calls_per_hour"))
    }
    change(id, &step) { $0.askTransfer(target, &$1) }
    return .ok
  }

  private func information(of id: String) -> UserInformation {
    let user = routing.user(id)
    return UserInformation(numbers: user?.numbers ?? [], name: user?.name)
  }
}
