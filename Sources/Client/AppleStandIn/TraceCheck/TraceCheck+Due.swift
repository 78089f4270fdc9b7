import TrunklineBytes
import TrunklinePhoneLog

/// Outputs that the machine expects, and those that are missing.
extension TraceCheck {
  mutating func give(_ input: SystemMachine.Input, owing rule: (SystemMachine.Request) -> Rule = { _ in .r7 }) {
    var out: [SystemMachine.Action] = []
    machine.handle(input, at: now, into: &out)
    absorb(out, owing: rule)
  }

  mutating func absorb(_ out: [SystemMachine.Action], owing rule: (SystemMachine.Request) -> Rule = { _ in .r7 }) {
    if machine.beginsAt != nil {
      machine.beginsAt = nil
      if !hasBegun, firstUse == nil { firstUse = Since(time: now, position: position) }
    }
    group += 1
    for request in machine.queue {
      owed.append(Owed(request: request, rule: rule(request), due: now + Self.patience, position: position, group: group))
    }
    machine.queue = []
    for action in out { absorb(action) }
    noteEnds()
    if machine.activatesAt == nil {
      activation = nil
    } else if activation == nil {
      activation = Since(time: now, position: position)
    }
  }

  private mutating func absorb(_ action: SystemMachine.Action) {
    switch action {
    case .violation(let rule, let text):
      found(rule, .app, text)
      if rule == .r1 { unpunished = Since(time: now, position: position) }
    case .reported(let call, let code): expect(.reported(call), code: code?.rawValue, by: .r4, within: nil, text: "")
    case .requested(let id, let code):
      expect(
        .requested(id.raw), code: code?.rawValue, by: .r7, within: Self.patience, text: "the request was not answered within 5 s")
    case .didDeactivate:
      expect(
        .didDeactivate, by: .r8, within: Self.patience,
        text: "the last call with audio is over, and didDeactivate did not come within 5 s")
    case .startCall:
      if isExact {
        expect(.startCall, by: .r17, within: Self.patience, text: "Recents was tapped, and the app was not notified within 5 s")
      }
    case .route(let route, _):
      let text =
        routeRule == .r20 ? "setCategory in a call did not switch the speaker off" : "the route was changed without a new rate"
      expect(.route(route.rawValue), by: routeRule, within: Self.slack, text: text)
    case .capture:
      if isExact { expect(.capture, by: .r23, within: Self.patience, text: "what is captured without permission is not silent") }
    case .microphonePrompt:
      if isExact { expect(.microphonePrompt, by: .r23, within: Self.patience, text: "no prompt for the microphone") }
    case .socketsDie:
      if isExact {
        expect(
          .socketsDie, by: .r27, within: Self.patience, text: "sockets lived longer than 30 s in the background without a call")
      }
    case .unlockedOnce:
      if isExact {
        expect(.unlockedOnce, by: .r29, within: Self.patience, text: "the keychain stayed closed after the first unlock")
      }
    case .timedOut(let id, let request):
      // the app is not at fault for its completion then
      if let trace = actions.first(where: { $0.value == id })?.key { foreign.insert(trace) }
      found(.r6, .system, "the time of the \(request.name) action was over, and it was not timed out")
    // shown by the trace, or requested by `perform` here
    case .launch, .kill, .deliver, .didBegin, .perform, .didActivate, .reset, .mediaReset, .extensionPushed: break
    }
  }

  mutating func expect(_ output: Output, code: Int? = nil, by rule: Rule, within time: Duration?, text: String) {
    awaited.append(
      Awaited(output: output, code: code, rule: rule, due: time.map { now + $0 }, position: position, text: text))
  }

  /// Removes and returns the awaited output, once it was observed.
  mutating func came(_ output: Output) -> Awaited? {
    awaited.firstIndex { $0.output == output }.map { awaited.remove(at: $0) }
  }

  /// Removes ended calls from the machine; known facts about them stay here.
  private mutating func noteEnds() {
    for (id, call) in machine.calls where call.phase == .ended {
      machine.calls[id] = nil
      if endedByApp[id] == nil { endedByApp[id] = isAppsLine }
      ringing[id] = nil
      connectedAt[id] = nil
    }
  }

  // MARK: time

  /// Runs the machine's timers, then reports overdue outputs.
  mutating func advance(to time: Instant) {
    while let due = machine.nextTimeout, due <= time {
      now = max(now, due)
      var out: [SystemMachine.Action] = []
      machine.timeout(at: now, into: &out)
      absorb(out) { _ in .r16 }
    }
    now = max(now, time)
    settleOutputs()
    settleActions()
    let activationTime = max(Self.patience, (rules.activationTime ?? .zero) + Self.slack)
    if let since = activation, now > since.time + activationTime { settleActivation(since) }
    if let since = firstUse, now > since.time + Self.patience + Self.patience {
      firstUse = nil
      if !hasBegun {
        found(.r12, .system, "providerDidBegin did not come within 10 s of the provider's first use", at: since.position)
      }
    }
    if let since = unpunished, now > since.time + rules.reportTime + Self.slack {
      unpunished = nil
      found(.r1, .system, "the app lives on after a push that it did not report", at: since.position)
    }
    if let since = unconfirmedReport, now > since.time + rules.reportTime + Self.slack {
      unconfirmedReport = nil
      confirm(.r4)
    }
    if let since = zeroRate, now > since.time + Self.slack {
      zeroRate = nil
      found(.r28, .system, "the route stayed at 0 Hz for more than 1 s", at: since.position)
    }
  }

  private mutating func settleOutputs() {
    let late = awaited.filter { $0.due.map { $0 < now } == true }
    guard !late.isEmpty else { return }
    awaited.removeAll { $0.due.map { $0 < now } == true }
    for one in late { found(one.rule, .system, one.text, at: one.position) }
  }

  /// Only the next action can be late, and only while none is open.
  private mutating func settleActions() {
    guard !owed.isEmpty else { return }
    guard hasBegun, machine.pending == nil else {
      for index in owed.indices { owed[index].due = now + Self.patience }
      return
    }
    let late = owed.filter { $0.due < now }
    guard !late.isEmpty else { return }
    owed.removeAll { $0.due < now }
    for one in late {
      let text =
        switch one.rule {
        case .r16: "the call rang for \(LogLine.text(.zero + rules.ringTime)) s and was not ended"
        case .r26: "another ringing call was answered, and this one was not ended within 5 s"
        case .r9: "a cellular call began, and the call that talks was not held within 5 s"
        default: "the \(one.request.name) that was asked for was not performed within 5 s"
        }
      found(one.rule, .system, text, at: one.position)
    }
  }

  private mutating func settleActivation(_ since: Since) {
    machine.activatesAt = nil
    activation = nil
    guard !isActivationOptional else { return confirm(.r9) }
    if isAudioUnknown || machine.isCellularCall || rules.activationTime == nil { return }
    found(.r8, .system, "didActivate did not come in its time after the fulfilled action", at: since.position)
  }

  // MARK: processes

  /// The process was killed or restarted, or the trace continues with another process.
  /// - Parameter isEnd: the file has ended; the process may have continued.
  mutating func processEnded(isKilled: Bool = false, isEnd: Bool = false) {
    if unpunished != nil { deaths += 1 }
    // a killed process writes no further lines
    if let since = unconfirmedReport, isKilled || header?.writer == .sdk && !isEnd && since.position == position {
      found(
        .r4, .system, "the process ended after a push whose only report was refused as existing: it did not count",
        at: since.position)
    }
    unpunished = nil
    unconfirmedReport = nil
    reportsOfNow = (0, 0)
    hasReported = false
    hasBegun = false
    firstUse = nil
    owed = []
    awaited = []
    actions = [:]
    overlapping = [:]
    foreign = []
    activation = nil
    zeroRate = nil
    isAudioUnknown = false
    providers = 0
    hasDelegate = false
    lastTap = nil
    madeRoomAt = nil
    lastCompletion = nil
    machine.exited()
    noteEnds()
    ringing = [:]
    connectedAt = [:]
  }
}
