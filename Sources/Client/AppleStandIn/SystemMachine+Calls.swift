import TrunklineBytes

/// Calls and actions.
extension SystemMachine {
  private func isLive(_ id: CallID) -> Bool { calls[id].map { $0.phase != .ended } ?? false }

  // MARK: reports of the app

  mutating func report(_ id: CallID, _ caller: Caller, _ now: Instant, _ out: inout [Action]) {
    // a report that is refused counts, too (R4)
    for push in deliveries.keys { deliveries[push]?.isReported = true }
    let error: ReportError? =
      isLive(id)
      ? .alreadyExists
      : rules.doesNotDisturb
        ? .filteredByDoNotDisturb
        : rules.blocked.contains(caller.handle)
          ? .filteredByBlockList : nil
    if error == nil {
      callCount += 1
      calls[id] = Call(isOutgoing: false, caller: caller, phase: .ringing, order: callCount, ringsUntil: now + rules.ringTime)
      begin(now)
    }
    out.append(.reported(id, error))
    guard error == nil, !rules.hasVoIPBackgroundMode else { return }
    out.append(.violation(.r21, "the app has no background mode voip: its calls are reset"))
    reset(&out)
  }

  /// R22: the report is accepted, but a locked screen may not show the call.
  mutating func reportOffQueue(_ id: CallID, _ caller: Caller, _ now: Instant, _ out: inout [Action]) {
    out.append(.violation(.r22, "\(id) is reported off the delegate's thread"))
    let isNew = !isLive(id)
    report(id, caller, now, &out)
    if isNew, isLocked, rules.hidesReportsOffQueue { calls[id]?.isShown = false }
  }

  /// The daemon of calls, or of audio, crashed.
  mutating func systemReset(_ cause: ResetCause, _ out: inout [Action]) {
    if cause == .mediaServices { out.append(.mediaReset) }
    reset(&out)
  }

  private mutating func reset(_ out: inout [Action]) {
    for id in calls.keys where isLive(id) {
      calls[id]?.phase = .ended
      calls[id]?.ringsUntil = nil
    }
    if let pending { closed.insert(pending.id) }
    queue = []
    pending = nil
    hasBegun = false
    beginsAt = nil
    isAudioActive = false
    activatesAt = nil
    hasAppActivated = false
    if isRunning { out.append(.reset) }
  }

  mutating func reportEnded(_ id: CallID, _ reason: EndedReason, _ now: Instant, _ out: inout [Action]) {
    guard isLive(id) else { return out.append(.violation(.r10, "the end of \(id) is reported, which is not a live call")) }
    end(id, reason, now, &out)
    if rules.repeatsEnds { enqueue([.end(id)], now, &out) }
  }

  mutating func connected(_ id: CallID, _ now: Instant, _ out: inout [Action]) {
    guard calls[id]?.phase == .connecting else { return }
    calls[id]?.phase = .active
    unmute(id, now, &out)
    burst(id, now, &out)
  }

  /// R24: mutes and unmutes, or the other way round, so that the state is unchanged afterwards.
  mutating func burst(_ id: CallID, _ now: Instant, _ out: inout [Action]) {
    guard rules.muteBursts > 0, let call = calls[id] else { return }
    let pair = [Request.mute(id, !call.isMuted), .mute(id, call.isMuted)]
    enqueue((0..<rules.muteBursts).flatMap { _ in pair }, now, &out)
  }

  private mutating func unmute(_ id: CallID, _ now: Instant, _ out: inout [Action]) {
    guard rules.unmutesOnConnect, calls[id]?.isMuted == true else { return }
    enqueue([.mute(id, false)], now, &out)
  }

  private mutating func end(_ id: CallID, _ reason: EndedReason?, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.phase = .ended
    calls[id]?.ended = reason
    calls[id]?.ringsUntil = nil
    settleAudio(&out)
  }

  // MARK: requests of the app and the user

  mutating func request(_ transaction: TransactionID, _ requests: [Request], _ now: Instant, _ out: inout [Action]) {
    out.append(.requested(transaction, refusal(of: requests)))
    guard refusal(of: requests) == nil else { return }
    for case .start(let id, let caller) in requests {
      callCount += 1
      calls[id] = Call(isOutgoing: true, caller: caller, phase: .dialling, order: callCount)
    }
    enqueue(requests, now, &out)
  }

  private func refusal(of requests: [Request]) -> RequestError? {
    if requests.isEmpty { return .empty }
    for request in requests {
      if case .start(let id, _) = request {
        if calls[id] != nil { return .alreadyExists }
        let groups = configuredGroups ?? rules.maximumCallGroups
        if groupCount >= groups { return .maximumCallGroupsReached }
      } else if !isLive(request.call) {
        return .unknownCall
      } else if case .answer(let id) = request, calls[id]?.phase != .ringing {
        return .invalidAction
      }
    }
    return nil
  }

  /// Merged calls count as one.
  private var groupCount: Int {
    let live = calls.values.filter { $0.phase != .ended }
    return live.count { $0.group == nil } + Set(live.compactMap(\.group)).count
  }

  /// A call joins the other's group; nil: it leaves its own group.
  private mutating func group(_ call: CallID, with other: CallID?) {
    guard let other, let number = calls[other]?.group ?? calls[other]?.order else {
      calls[call]?.group = nil
      return
    }
    for member in [call, other] { calls[member]?.group = number }
  }

  mutating func tapped(_ tap: Tap, _ now: Instant, _ out: inout [Action]) {
    let talking = ordered { $0.phase == .active && !$0.isHeld }
    let requests: [Request] =
      switch tap {
      case .answer(let id): [.answer(id)]
      case .end(let id): [.end(id)]
      case .hold(let id, let isOn): [.hold(id, isOn)]
      case .mute(let id, let isOn): [.mute(id, isOn)]
      case .digits(let id, let digits): [.digits(id, digits)]
      case .holdAndAnswer(let id): talking.map { .hold($0, true) } + [.answer(id)]
      case .endAndAnswer(let id): talking.map { .end($0) } + [.answer(id)]
      case .headset: headset(talking)
      case .speaker: []
      }
    var ends: [Request] = []
    if case .answer(let id)? = requests.first(where: { if case .answer = $0 { true } else { false } }),
      rules.answerEndsOtherRinging
    {
      ends = ordered { $0.phase == .ringing }.filter { $0 != id }.map { .end($0) }  // R26
    }
    enqueue((requests + ends).filter { isLive($0.call) }, now, &out)
  }

  /// R25: the button answers the call that is shown, or ends the active one; a fault of iOS may add one action.
  private func headset(_ talking: [CallID]) -> [Request] {
    guard let ringing = ordered(where: { $0.phase == .ringing }).first else { return talking.first.map { [.end($0)] } ?? [] }
    let answer = talking.map { Request.hold($0, true) } + [.answer(ringing)]
    guard !talking.isEmpty else { return answer }
    return switch rules.headsetFault {
    case nil: answer
    case .endsAnswered?: answer + [.end(ringing)]
    case .unholdsBoth?: answer + talking.map { .hold($0, false) }
    }
  }

  /// The cellular call claims the audio; its end gives the audio back to no call (R9).
  mutating func cellular(_ isOn: Bool, _ now: Instant, _ out: inout [Action]) {
    isCellularCall = isOn
    guard isOn else { return }
    let talking = ordered { $0.phase == .active && !$0.isHeld }
    enqueue(talking.map { .hold($0, true) }, now, &out)
  }

  // MARK: actions, one after the other

  private mutating func begin(_ now: Instant) {
    if !hasBegun, beginsAt == nil { beginsAt = now + rules.beginTime }
  }

  mutating func enqueue(_ requests: [Request], _ now: Instant, _ out: inout [Action]) {
    // an empty list must not count as a use of the provider, which may not run
    guard !requests.isEmpty else { return }
    queue += requests
    begin(now)
    perform(now, &out)
  }

  mutating func perform(_ now: Instant, _ out: inout [Action]) {
    guard hasBegun, pending == nil, !queue.isEmpty else { return }
    let request = queue.removeFirst()
    nextAction += 1
    let time =
      switch request {
      case .answer: rules.answerTime
      case .start: rules.startTime
      default: rules.actionTime
      }
    let action = Pending(id: ActionID(nextAction), request: request, until: now + time)
    pending = action
    if case .answer(let id) = request {
      calls[id]?.phase = .answering
      calls[id]?.ringsUntil = nil
    }
    out.append(.perform(action.id, request))
  }

  mutating func complete(_ id: ActionID, _ completion: Completion, _ now: Instant, _ out: inout [Action]) {
    guard let action = pending, action.id == id else {
      let text =
        closed.contains(id) ? "action \(id.raw) is completed twice, or after its time: CallKit traps" : "no action \(id.raw)"
      return out.append(.violation(.r6, text))
    }
    pending = nil
    _ = closed.insert(id)
    switch (action.request, completion) {
    case (.answer(let call), .fulfilled) where calls[call]?.phase == .answering:
      calls[call]?.phase = .active
      activateSoon(now, &out)
      unmute(call, now, &out)
      burst(call, now, &out)
    case (.start(let call, _), .fulfilled) where calls[call]?.phase == .dialling:
      calls[call]?.phase = .connecting
      activateSoon(now, &out)
    case (.answer(let call), .failed), (.start(let call, _), .failed): if isLive(call) { end(call, .failed, now, &out) }
    case (.end(let call), _): if isLive(call) { end(call, nil, now, &out) }
    case (.hold(let call, let isOn), .fulfilled):
      calls[call]?.isHeld = isOn
      settleAudio(&out)
      if !isOn, rules.activatesAfterUnhold { activateSoon(now, &out) }
    case (.mute(let call, let isOn), .fulfilled): calls[call]?.isMuted = isOn
    case (.group(let call, let other), .fulfilled): group(call, with: other)
    case (.answer, .fulfilled), (.start, .fulfilled), (.hold, .failed), (.mute, .failed), (.digits, _), (.group, .failed),
      (.translate, _):
      break
    }
    perform(now, &out)
  }

  /// R6: reports the timeout to the app, and ends the call of an answer, a start or an end.
  mutating func timedOut(_ action: Pending, _ now: Instant, _ out: inout [Action]) {
    pending = nil
    _ = closed.insert(action.id)
    out.append(.timedOut(action.id, action.request))
    switch action.request {
    case .answer(let call), .start(let call, _), .end(let call): if isLive(call) { end(call, .failed, now, &out) }
    case .hold, .mute, .digits, .group, .translate: break
    }
    perform(now, &out)
  }
}
