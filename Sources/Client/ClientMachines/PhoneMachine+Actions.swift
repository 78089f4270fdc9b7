public import TrunklineAppProtocol
import TrunklineBytes

/// Actions of the user, by the app's buttons or the system's.
extension PhoneMachine {
  /// A request of the app. If there is a call system, the system performs it, and only then it is done.
  public enum CallAction: Sendable {
    case answer, end
    case hold(Bool)
    case mute(Bool)
    case digits(String)
    case transfer(to: Handle)
    case join(Identifier)
    /// Nil: leave the group.
    case group(Identifier?)
    /// The device starts or stops translating; the system is not involved.
    case translate(CallTranslate)
  }

  // MARK: the app's buttons: requests to the system, which performs them

  mutating func dial(_ id: Identifier, to: Handle, options: CallOptions, _ now: Instant, _ out: inout [Action]) {
    guard calls[id] == nil else { return }
    add(id, PhoneCall(to: to, options), &out)
    calls[id]?.uses(account: options.account)
    guard sessions.state != .loggedOut, !login.isLoggingOut else {
      calls[id]?.refused(.auth)
      calls[id]?.ends(because: .auth)
      return ended(id, .silent, now, &out)
    }
    guard microphone != .denied else {
      calls[id]?.hasNoMicrophone()
      calls[id]?.ends(because: .mediaFailed)
      return ended(id, .silent, now, &out)
    }
    // the system has its own limit; this one is for an app that shows its calls itself
    guard calls.lines <= configuration.maximumCalls else {
      calls[id]?.refused(.tooMany)
      calls[id]?.ends(because: .busy)
      return ended(id, .silent, now, &out)
    }
    holdOthers(than: id, &out)
    out.append(.request(.start(id, to)))
  }

  /// One call, or one group, is active at a time. If the user changes the call with the system's buttons, the system holds the
  /// other itself.
  mutating func holdOthers(than id: Identifier, _ out: inout [Action]) {
    let members = calls.members(of: id)
    for other in liveCalls where !members.contains(other) && calls[other]?.state == .connected {
      if let on = calls[other]?.hold.want(true) { out.append(.request(.hold(other, on))) }
    }
  }

  mutating func act(_ action: CallAction, _ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let call = calls[id], !call.isOver else { return }
    switch action {
    case .answer:
      guard !call.isOutgoing, call.answering.tappedAt == nil else { return }
      holdOthers(than: id, &out)
      out.append(.request(.answer(id)))
    case .end: if call.screen.state == .shown { out.append(.request(.end(id))) } else { forget(id, now, &out) }
    case .hold(let isOn):
      if !isOn { holdOthers(than: id, &out) }
      if let on = calls[id]?.hold.want(isOn) { out.append(.request(.hold(id, on))) }
    case .mute(let isOn): if let on = calls[id]?.mute.want(isOn) { out.append(.request(.mute(id, on))) }
    case .digits(let digits): out.append(.request(.digits(id, digits)))
    case .transfer(let target): ask(.callTransfer(CallTransfer(target: target)), call: id, now, &out)
    case .group(let other): changeGroup(id, with: other, &out)
    case .translate(let translate):
      if call.state == .connected { ask(.callTranslate(translate), call: id, now, &out) }
    case .join(let other): ask(.callTransfer(CallTransfer(withCall: other, mode: .attended)), call: id, now, &out)
    }
  }

  mutating func requestRefused(_ request: SystemRequest, _ now: Instant, _ out: inout [Action]) {
    let id = request.call
    switch request {
    case .start: ended(id, .failed, now, &out)
    // it is no longer on the system's screen
    case .end: forget(id, now, &out)
    case .hold: calls[id]?.hold.refused()
    case .mute: calls[id]?.mute.refused()
    case .answer, .digits, .group: break
    }
  }

  // MARK: actions of the system

  mutating func perform(
    _ action: SystemActionID, _ request: SystemRequest, timeout: Duration?, _ now: Instant, _ out: inout [Action]
  ) {
    let id = request.call
    // an end succeeds if the call has ended already; all other actions fail
    guard let call = calls[id], !call.isOver else {
      var isEnd = false
      if case .end = request { isEnd = true }
      return out.append(.complete(action, isEnd))
    }
    switch request {
    case .start: dial(id, for: action, now, &out)
    case .answer: answer(id, for: action, timeout: timeout, now, &out)
    case .end: end(id, for: action, now, &out)
    case .hold(_, let isOn): hold(id, isOn: isOn, for: action, now, &out)
    case .mute(_, let isOn):
      // at once here; the gateway receives the last of a burst
      let next = calls[id]?.mute.perform(isOn, at: now)
      out.append(.media(id, .mute(isOn)))
      out.append(.complete(action, true))
      if let next { out.append(.request(.mute(id, next))) }
      notifyChange(id, &out)
    case .group(_, let other): group(id, with: other, for: action, now, &out)
    case .digits(_, let digits):
      let isLegal = !digits.isEmpty && digits.utf8.allSatisfy { "0123456789ABCD*#".utf8.contains($0) }
      if isLegal { give(.digits(digits), to: id, now, &out) }
      out.append(.complete(action, isLegal && call.state == .connected))
    }
  }

  private mutating func dial(_ id: Identifier, for action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    // dialled already, or an incoming call
    guard calls[id]?.isOutgoing == true, calls[id]?.screen.dialled(action) == true else {
      return out.append(.complete(action, false))
    }
    calls[id]?.link.waits(from: now)
    configureAudio(id, &out)
    askAgainForToken(now, &out)
    connect(now, &out)
    dialWaiting(now, &out)
  }

  /// A call that started the app waits for the login: a push's session may not dial.
  mutating func dialWaiting(_ now: Instant, _ out: inout [Action]) {
    guard sessions.exists(SessionTable.own), sessions.wake(of: SessionTable.own) == nil else { return }
    for id in liveCalls where calls[id]?.waitsForLogin == true {
      let actions = calls[id]?.dial(id, audio: audio.parts(of: id))
      run(actions ?? [], id, now, &out)
    }
  }

  private mutating func answer(
    _ id: Identifier, for action: SystemActionID, timeout: Duration?, _ now: Instant, _ out: inout [Action]
  ) {
    guard calls[id]?.tap(action, timeout: timeout, at: now) == true else { return out.append(.complete(action, false)) }
    configureAudio(id, &out)
    if calls[id]?.hasMachine == true, calls[id]?.answering.hasOffer == false { answerWhenOffered(id, now, &out) }
    notifyChange(id, &out)
  }

  /// Sends the tap with its age, as soon as it can be sent.
  mutating func answerWhenOffered(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    if let tap = calls[id]?.answering.input(at: now) { give(tap, to: id, now, &out) }
  }

  mutating func answerTooLate(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.answering.settled()
    give(.hangUp(.mediaFailed), to: id, now, &out)
    ended(id, .failed, now, &out)
  }

  private mutating func end(_ id: Identifier, for action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    out.append(.complete(action, true))
    calls[id]?.screen.remove()
    guard let call = calls[id] else { return }
    if call.ringsHere {
      calls[id]?.ends(because: .localEnd)
      reject(id, because: CallReject(reason: .declined), push: call.push, now, &out)
      ended(id, .silent, now, &out)
    } else if !call.hasMachine {
      ended(id, .silent, now, &out)
    } else {
      give(.hangUp(), to: id, now, &out)
    }
  }

  private mutating func hold(_ id: Identifier, isOn: Bool, for action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.hold.begin(isOn)
    guard let question = ask(.callHold(CallHold(on: isOn)), call: id, now, &out) else {
      return finishHold(id, isOn: isOn, for: action, isDone: false, now, &out)
    }
    requests.add(question, .hold(id, isOn: isOn, action))
  }

  mutating func finishHold(
    _ id: Identifier, isOn: Bool, for action: SystemActionID, isDone: Bool, _ now: Instant, _ out: inout [Action]
  ) {
    let next = calls[id]?.hold.finish(isOn, isDone: isDone)
    out.append(.complete(action, isDone))
    if let next { out.append(.request(.hold(id, next))) }
    listen(now, &out)
    notifyChange(id, &out)
  }

  mutating func timedOut(_ action: SystemActionID, _ request: SystemRequest, _ now: Instant, _ out: inout [Action]) {
    let id = request.call
    for purpose in requests.timedOut(action) {
      // the request may succeed later: the gateway must not hold a call that the screen shows as active, and the group must not
      // contain a call that the screen does not show in it
      switch purpose {
      case .hold(_, let isOn, _):
        _ = calls[id]?.hold.finish(isOn, isDone: false)
        guard let call = calls[id], !call.isOver else { continue }
        ask(.callHold(CallHold(on: call.hold.isOn)), call: id, now, &out)
      case .group:
        if case .group(_, .some) = request, !calls.isGrouped(id) { ask(.callGroup(CallGroup()), call: id, now, &out) }
      case .message, .probe, .read: break
      }
    }
    // the system has ended the call by itself: no completion, no report
    guard calls[id]?.screen.timedOut(action) == true else { return }
    give(.hangUp(.mediaFailed), to: id, now, &out)
    ended(id, .failed, now, &out)
  }

  /// The system has dropped its calls and actions: no action is completed, all calls end.
  mutating func reset(_ now: Instant, _ out: inout [Action]) {
    audio.reset()
    requests.systemReset()
    for id in liveCalls {
      calls[id]?.screen.dropped()
      guard let call = calls[id], call.ringsHere else {
        forget(id, as: .unknown, now, &out)
        continue
      }
      // the user did not decline: other devices continue to ring
      calls[id]?.screen.remove()
      reject(id, because: CallReject(scope: .device, reason: .mediaFailed), push: call.push, now, &out)
      ended(id, .failed, now, &out)
    }
  }

  mutating func sendMute(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.mute.sent()
    guard calls[id]?.state == .connected else { return }
    if let isOn = calls[id]?.mute.isOn { give(.mute(isOn), to: id, now, &out) }
  }
}
