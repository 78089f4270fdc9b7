import TrunklineBytes
import TrunklinePhoneLog

/// Checks the system's actions: their order, their time limits, and their causes.
extension TraceCheck {
  mutating func perform(_ line: LogLine) {
    guard let id = number(line, "action"), let name = line["do"], let call = call(line),
      let request = SystemMachine.Request(name, call, isOn: line["on"] == "true")
    else { return }
    if let open = machine.pending {
      found(.r7, .system, "\(request.name) is asked for while the \(open.request.name) before it is not completed")
      if let trace = actions.first(where: { $0.value == open.id })?.key { overlapping[trace] = open }
      machine.pending = nil
    }
    if !hasBegun {
      found(.r12, .system, "\(request.name) is asked for before providerDidBegin")
      hasBegun = true
      firstUse = nil
    } else if machine.nextAction == 0 || actions.isEmpty {
      confirm(.r12)
    }
    guard explain(request) else {
      foreign.insert(id)
      return
    }
    let time = timeout(line, request)
    machine.queue = [request]
    machine.hasBegun = true
    var out: [SystemMachine.Action] = []
    machine.perform(now, &out)
    machine.hasBegun = false
    absorb(out)
    machine.pending?.until = now + time + Self.slack
    actions[id] = machine.pending?.id
    ringing[call] = request.isAnswer ? nil : ringing[call]
    if case .hold(_, true) = request { madeRoomAt = now }
    if case .end = request { madeRoomAt = now }
  }

  /// R6: compares the action's timeout with that of the rule.
  private mutating func timeout(_ line: LogLine, _ request: SystemMachine.Request) -> Duration {
    let rule: Duration =
      switch request {
      case .answer: rules.answerTime
      case .start: rules.startTime
      default: rules.actionTime
      }
    guard let seconds = line["timeout"].flatMap({ Double($0) }), (0...86_400).contains(seconds) else { return rule }
    let time = Duration.milliseconds(Int64(seconds * 1_000))
    if (time - rule).magnitude > Self.slack {
      found(
        .r6, .system,
        "\(request.name) has \(LogLine.text(.zero + time)) s, and the rule says \(LogLine.text(.zero + rule)) s")
    } else {
      confirm(.r6)
    }
    verdict.measure(.r6, "time of \(request.name)", time)
    return time
  }

  mutating func timedOut(_ line: LogLine) {
    guard let id = number(line, "action"), foreign.remove(id) == nil else { return }
    guard let action = actions[id], let pending = machine.pending, pending.id == action else {
      return isPartial ? () : found(.r6, .system, "action \(id) is timed out, and it was not open")
    }
    if now + Self.slack < pending.until - Self.slack {
      let left = LogLine.text(.zero + (pending.until - Self.slack - now))
      found(.r6, .system, "the \(pending.request.name) is timed out \(left) s before its time")
    } else {
      confirm(.r6)
    }
    var out: [SystemMachine.Action] = []
    machine.timedOut(pending, now, &out)
    absorb(out.filter { if case .timedOut = $0 { false } else { true } })
  }

  // MARK: causes

  /// False: the machine does not explain the request.
  private mutating func explain(_ request: SystemMachine.Request) -> Bool {
    if let index = owed.firstIndex(where: { $0.request.isSame(request) }) {
      let one = owed.remove(at: index)
      if let before = owed.prefix(index).first(where: { $0.group == one.group }) {
        found(one.rule, .system, "\(request.name) comes before the \(before.request.name) that was asked for first")
      }
      if one.rule == .r16 { rang(request.call) }
      // an action that waited for the previous one is in order
      if one.rule != .r7 || lastCompletion.map({ one.position.line < $0.position.line }) == true { confirm(one.rule) }
      return true
    }
    guard let call = machine.calls[request.call] else { return explainGone(request) }
    switch request {
    case .answer: explainAnswer(request.call, call)
    case .end: explainEnd(request.call, call)
    case .hold(_, let isOn): explainHold(isOn)
    case .mute(_, let isOn): explainMute(request.call, call, isOn)
    case .start: unasked(.r7, "a start without a request")
    case .digits, .group, .translate: unasked(.r7, "\(request.name) without a request")
    }
    return true
  }

  /// In the SDK's trace, which lacks the user's inputs, the user is assumed to be the cause.
  private mutating func unasked(_ rule: Rule, _ text: String) { if isExact { found(rule, .system, text) } }

  /// The action may have waited for the one that has just been completed: the user requested it before the call ended.
  private var isBehindAction: Bool { lastCompletion.map { now - $0.time < .milliseconds(500) } ?? false }

  private mutating func explainGone(_ request: SystemMachine.Request) -> Bool {
    let call = request.call
    if filtered.contains(call) {
      found(.r5, .system, "\(request.name) is asked of a call that was refused by Focus or the block list")
    } else if let isByApp = endedByApp[call] {
      if case .end = request {
        confirm(.r11)
      } else if !isBehindAction {
        found(
          .r10, .system, "\(request.name) is asked of a call that is over" + (isByApp ? ": the app has reported its end" : ""))
      }
    } else if !isPartial {
      found(.r7, .system, "\(request.name) is asked of a call that the app never named")
    }
    return false
  }

  private mutating func explainAnswer(_ id: Identifier, _ call: SystemMachine.Call) {
    guard call.phase == .ringing else {
      return found(.r7, .system, "answer is asked of a call that does not ring")
    }
    unasked(.r7, "an answer without a tap")
    let talking = machine.ordered { ($0.phase == .active || $0.phase == .connecting) && !$0.isHeld }
    let others = machine.ordered { $0.phase == .active || $0.phase == .connecting }
    if !talking.isEmpty {
      found(.r25, .system, "a second call is answered while the first one talks: it was neither held nor ended")
    } else if !others.isEmpty || madeRoomAt.map({ now - $0 < Self.patience }) == true {
      confirm(.r25)
    }
    let first = machine.ordered { $0.phase == .ringing }.first
    if first != id { found(.r26, .system, "the second of two ringing calls is answered, and the first one rings") }
    // answering it ends the others that ring (R26); the trace contains the answer itself
    var out: [SystemMachine.Action] = []
    machine.tapped(.answer(id), now, &out)
    machine.queue.removeAll { $0.isAnswer }
    absorb(out) { _ in .r26 }
  }

  private mutating func explainEnd(_ id: Identifier, _ call: SystemMachine.Call) {
    guard call.phase == .ringing, ringing[id] != nil else {
      if case .headset? = lastTap { return confirm(.r25) }
      return unasked(.r7, "an end without a request")
    }
    rang(id)
  }

  /// R16: how long the call rang, and whether the system ended it.
  private mutating func rang(_ id: Identifier) {
    guard let since = ringing[id] else { return }
    let time = now - since
    verdict.measure(.r16, "a call rang, then its end was asked for", time)
    if (time - rules.ringTime).magnitude <= Self.slack {
      confirm(.r16)
    } else if isExact {
      found(
        .r16, .system,
        "a call is ended after \(LogLine.text(.zero + time)) s of ringing; the rule says \(LogLine.text(.zero + rules.ringTime)) s"
      )
    }
  }

  private mutating func explainHold(_ isOn: Bool) {
    if case .headset? = lastTap, !isOn { return confirm(.r25) }
    unasked(.r9, isOn ? "a call is held, and no cellular call began" : "a call is unheld without a request")
  }

  private mutating func explainMute(_ id: Identifier, _ call: SystemMachine.Call, _ isOn: Bool) {
    func isRecent(_ time: Instant?) -> Bool { time.map { now - $0 <= Self.slack } ?? false }
    if isRecent(connectedAt[id]) { return confirm(call.isMuted && !isOn ? .r13 : .r24) }
    if isRecent(foregroundAt) { return confirm(.r24) }
    unasked(
      call.isMuted && !isOn ? .r13 : .r24, "a \(isOn ? "mute" : "unmute") without a request, not at connect nor in front")
  }
}

extension SystemMachine.Request {
  var isAnswer: Bool { if case .answer = self { true } else { false } }
}

extension Duration {
  fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}
