import TrunklineAppProtocol
import TrunklineBytes

/// Actions of the user, by the app's buttons or the system's.
extension PhoneMachine {
  // MARK: the app's buttons: requests to the system, which performs them

  mutating func dial(_ id: Identifier, _ to: Handle, _ options: CallOptions, _ now: Instant, _ out: inout [Action]) {
    guard calls[id] == nil else { return }
    add(id, Entry(isOutgoing: true, peer: to, options: options, screen: .reporting), &out)
    calls[id]?.account = options.account
    guard state != .loggedOut, !isLoggingOut else {
      calls[id]?.refusal = .auth
      calls[id]?.reason = .auth
      return ended(id, .silent, now, &out)
    }
    guard microphone != .denied else {
      calls[id]?.lacksMicrophone = true
      calls[id]?.reason = .mediaFailed
      return ended(id, .silent, now, &out)
    }
    // the system has its own limit; this one is for an app that shows its calls itself
    guard lines <= configuration.maximumCalls else {
      calls[id]?.refusal = .tooMany
      calls[id]?.reason = .busy
      return ended(id, .silent, now, &out)
    }
    holdOthers(than: id, &out)
    out.append(.request(.start(id, to)))
  }

  /// One call, or one group, is active at a time. If the user changes the call with the system's buttons, the system holds the
  /// other itself.
  mutating func holdOthers(than id: Identifier, _ out: inout [Action]) {
    let members = groupMembers(of: id)
    for other in liveCalls where !members.contains(other) && calls[other]?.call?.state == .connected {
      if let on = calls[other]?.hold.want(true) { out.append(.request(.hold(other, on))) }
    }
  }

  mutating func act(_ action: CallAction, _ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let entry = calls[id], !entry.isOver else { return }
    switch action {
    case .answer:
      guard !entry.isOutgoing, entry.tappedAt == nil else { return }
      holdOthers(than: id, &out)
      out.append(.request(.answer(id)))
    case .end: if entry.screen == .shown { out.append(.request(.end(id))) } else { forget(id, now, &out) }
    case .hold(let isOn):
      if !isOn { holdOthers(than: id, &out) }
      if let on = calls[id]?.hold.want(isOn) { out.append(.request(.hold(id, on))) }
    case .mute(let isOn): if let on = calls[id]?.mute.want(isOn) { out.append(.request(.mute(id, on))) }
    case .digits(let digits): out.append(.request(.digits(id, digits)))
    case .transfer(let target): ask(.callTransfer(CallTransfer(target: target)), call: id, now, &out)
    case .group(let other): changeGroup(id, other, &out)
    case .translate(let translate):
      if entry.call?.state == .connected { ask(.callTranslate(translate), call: id, now, &out) }
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
    _ action: SystemActionID, _ request: SystemRequest, _ timeout: Duration?, _ now: Instant, _ out: inout [Action]
  ) {
    let id = request.call
    // an end succeeds if the call has ended already; all other actions fail
    guard let entry = calls[id], !entry.isOver else {
      var isEnd = false
      if case .end = request { isEnd = true }
      return out.append(.complete(action, isEnd))
    }
    switch request {
    case .start: dial(id, action, now, &out)
    case .answer: answer(id, action, timeout, now, &out)
    case .end: end(id, action, now, &out)
    case .hold(_, let isOn): hold(id, isOn, action, now, &out)
    case .mute(_, let isOn):
      // at once here; the gateway receives the last of a burst
      calls[id]?.mute.begin(isOn)
      out.append(.media(id, .mute(isOn)))
      if entry.muteDue == nil { calls[id]?.muteDue = now + Limits.muteBurst }
      out.append(.complete(action, true))
      if let next = calls[id]?.mute.finish(isOn, isDone: true) { out.append(.request(.mute(id, next))) }
      notifyChange(id, &out)
    case .group(_, let other): group(id, other, action, now, &out)
    case .digits(_, let digits):
      let isLegal = !digits.isEmpty && digits.utf8.allSatisfy { "0123456789ABCD*#".utf8.contains($0) }
      if isLegal { give(.digits(digits), to: id, now, &out) }
      out.append(.complete(action, isLegal && entry.call?.state == .connected))
    }
  }

  private mutating func dial(_ id: Identifier, _ action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    // dialled already, or an incoming call
    guard let entry = calls[id], entry.isOutgoing, entry.screen == .reporting else { return out.append(.complete(action, false)) }
    calls[id]?.screen = .shown
    calls[id]?.open = action
    calls[id]?.watchdog = now + Limits.snapshotTime
    configureAudio(id, &out)
    askAgainForToken(now, &out)
    connect(now, &out)
    dialWaiting(now, &out)
  }

  /// A call that started the app waits for the login: a push's session may not dial.
  mutating func dialWaiting(_ now: Instant, _ out: inout [Action]) {
    guard session != nil, wake == nil else { return }
    for id in liveCalls {
      guard let entry = calls[id], entry.isOutgoing, entry.call == nil, entry.screen == .shown else { continue }
      var call = ClientCall(outgoing: id, to: entry.peer, entry.options, audio: audio(of: id))
      var actions: [ClientCall.Action] = []
      call.dial(into: &actions)
      calls[id]?.call = call
      run(actions, id, now, &out)
    }
  }

  private mutating func answer(
    _ id: Identifier, _ action: SystemActionID, _ timeout: Duration?, _ now: Instant, _ out: inout [Action]
  ) {
    guard calls[id]?.tappedAt == nil, calls[id]?.isOutgoing == false else { return out.append(.complete(action, false)) }
    calls[id]?.open = action
    calls[id]?.tappedAt = now
    if calls[id]?.watchdog != nil { calls[id]?.watchdog = now + Limits.snapshotTimeAfterTap }
    calls[id]?.answerBy = timeout.map { now + max(.zero, $0 - Limits.answerMargin) }
    configureAudio(id, &out)
    if calls[id]?.call != nil, calls[id]?.offer == nil { answerWhenOffered(id, now, &out) }
    notifyChange(id, &out)
  }

  /// Sends the tap with its age, as soon as it can be sent.
  mutating func answerWhenOffered(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let entry = calls[id], let tappedAt = entry.tappedAt else { return }
    let left = entry.answerBy.map { max(0, Int(($0 + Limits.answerMargin - now).milliseconds)) }
    give(.answer(ageMilliseconds: Int((now - tappedAt).milliseconds), timeoutMilliseconds: left), to: id, now, &out)
  }

  mutating func answerTooLate(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.answerBy = nil
    give(.hangUp(.mediaFailed), to: id, now, &out)
    ended(id, .failed, now, &out)
  }

  private mutating func end(_ id: Identifier, _ action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    out.append(.complete(action, true))
    calls[id]?.screen = .gone
    guard let entry = calls[id] else { return }
    if !entry.isOutgoing, entry.call == nil || entry.call?.state == .ringing {
      calls[id]?.reason = .localEnd
      reject(id, CallReject(reason: .declined), entry.push, now, &out)
      ended(id, .silent, now, &out)
    } else if entry.call == nil {
      ended(id, .silent, now, &out)
    } else {
      give(.hangUp(), to: id, now, &out)
    }
  }

  private mutating func hold(_ id: Identifier, _ isOn: Bool, _ action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.hold.begin(isOn)
    guard let question = ask(.callHold(CallHold(on: isOn)), call: id, now, &out) else {
      return finishHold(id, isOn, action, isDone: false, now, &out)
    }
    holds[question] = (id, action, isOn)
  }

  mutating func finishHold(
    _ id: Identifier, _ isOn: Bool, _ action: SystemActionID, isDone: Bool, _ now: Instant, _ out: inout [Action]
  ) {
    let next = calls[id]?.hold.finish(isOn, isDone: isDone)
    out.append(.complete(action, isDone))
    if let next { out.append(.request(.hold(id, next))) }
    listen(now, &out)
    notifyChange(id, &out)
  }

  mutating func timedOut(_ action: SystemActionID, _ request: SystemRequest, _ now: Instant, _ out: inout [Action]) {
    let id = request.call
    for (question, hold) in holds where hold.action == action {
      holds[question] = nil
      _ = calls[id]?.hold.finish(hold.isOn, isDone: false)
      // the request may succeed later: the gateway must not hold a call that the screen shows as active
      guard let entry = calls[id], !entry.isOver else { continue }
      ask(.callHold(CallHold(on: entry.hold.isOn)), call: id, now, &out)
    }
    // the request may succeed later: the group must not contain a call that the screen does not show in it
    if case .group(_, .some) = request, groups.values.contains(where: { $0.action == action }), calls[id]?.group == nil {
      ask(.callGroup(CallGroup()), call: id, now, &out)
    }
    dropGroupQuestions({ $1 == action }, completes: false, &out)
    guard calls[id]?.open == action else { return }
    // the system has ended the call by itself: no completion, no report
    calls[id]?.open = nil
    calls[id]?.screen = .gone
    give(.hangUp(.mediaFailed), to: id, now, &out)
    ended(id, .failed, now, &out)
  }

  /// The system has dropped its calls and actions: no action is completed, all calls end.
  mutating func reset(_ now: Instant, _ out: inout [Action]) {
    isActivated = false
    (holds, groups) = ([:], [:])
    for id in liveCalls {
      calls[id]?.open = nil
      guard let entry = calls[id], !entry.isOutgoing, entry.call == nil || entry.call?.state == .ringing else {
        forget(id, as: .unknown, now, &out)
        continue
      }
      // the user did not decline: other devices continue to ring
      calls[id]?.screen = .gone
      reject(id, CallReject(scope: .device, reason: .mediaFailed), entry.push, now, &out)
      ended(id, .failed, now, &out)
    }
  }

  mutating func sendMute(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.muteDue = nil
    guard calls[id]?.call?.state == .connected else { return }
    if let isOn = calls[id]?.mute.isOn { give(.mute(isOn), to: id, now, &out) }
  }
}
