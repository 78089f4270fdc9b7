import TrunklineBytes
import TrunklinePhoneLog

/// Events of the system, except actions.
extension TraceCheck {
  mutating func system(_ line: LogLine) {
    if header?.writer == .sdk, line["queue"] == nil { confirm(.r18) }
    switch line.event {
    case "deliver": deliver(line)
    case "kill": killed()
    case "reported": reported(line)
    case "requested": requested(line)
    case "extensionPushed": extensionPushed(line)
    case "didBegin": didBegin()
    case "perform": perform(line)
    case "timedOut": timedOut(line)
    case "didActivate": didActivate()
    case "didDeactivate": didDeactivate()
    case "didReset": didReset()
    // the app's process is not notified of the cause
    case "interrupted": machine.isCellularCall = line["on"] == "true"
    case "startCall": startCall(line)
    case "route": routed(line)
    case "capture": if came(.capture) != nil, line["silent"] == "true" { confirm(.r23) }
    case "microphonePrompt": prompted()
    case "socketsDie": socketsDied()
    case "unlockedOnce": unlocked()
    case "violation": violation(line)
    default: break  // launch, crash, mediaReset, and events of later versions
    }
  }

  mutating func receivedElsewhere(_ line: LogLine) {
    if line.who == .system { found(.r18, .system, "\(line.event) came on another queue than the delegate's") }
  }

  /// The machine itself reports most violations.
  private mutating func violation(_ line: LogLine) {
    guard let rule = line["rule"].flatMap({ Rule(rawValue: $0) }) else { return }
    if rule == .r2 { return confirm(.r2) }
    let near = verdict.findings.last { $0.rule == rule }
    if let near, near.position.line + 10 > position.line { return }
    found(rule, .app, line["text"] ?? rule.title)
  }

  // MARK: pushes

  private mutating func deliver(_ line: LogLine) {
    guard let id = number(line, "id") else { return }
    let must = line["mustReport"] != "false"
    if deaths >= rules.killsBeforeSilence {
      found(.r2, .system, "a push is delivered after \(deaths) kills")
    }
    let isActive = machine.isForeground || !machine.calls.isEmpty
    if !must {
      if isActive {
        confirm(.r3)
      } else if !isPartial, rules.mustReport != .atRandom {
        found(.r3, .system, "a push need not be reported, though the app is in the background and has no call")
      }
    }
    reportsOfNow = (0, 0)
    machine.deliveries[.init(id)] = .init(mustReport: must, lookAt: now + rules.reportTime)
    if !machine.isForeground {
      var out: [SystemMachine.Action] = []
      machine.woken(&out)
    }
  }

  private mutating func killed() {
    let isOurs = unpunished != nil || unconfirmedReport != nil
    if !isOurs { found(.r1, .system, "the app is killed, though no push was left without a report") }
    processEnded(isKilled: true)
  }

  // MARK: answers

  private mutating func reported(_ line: LogLine) {
    guard let call = call(line), let asked = came(.reported(call)) else { return }
    let code = number(line, "error")
    switch (asked.code, code) {
    case (nil, nil):
      if !hasReported { judgeBackgroundMode() }
      hasReported = true
    case (2?, 2?): if unconfirmedReport == nil { confirm(.r4) }
    case (2?, nil): found(.r4, .system, "a UUID that is on the screen already is accepted a second time")
    case (nil, 2?):
      if !isPartial { found(.r4, .system, "a UUID is refused as existing (error 2), and no call has it") }
      refused(call)
    case (nil, 3?), (nil, 4?):
      confirm(.r5)
      filtered.insert(call)
      refused(call)
    default:
      found(
        .r5, .system,
        "a report is answered with \(code.map { "error \($0)" } ?? "no error"), and our rule answers "
          + (asked.code.map { "error \($0)" } ?? "none, 3 or 4"))
      if code != nil { refused(call) }
    }
  }

  /// The screen does not show the call.
  private mutating func refused(_ call: Identifier) {
    machine.calls[call] = nil
    ringing[call] = nil
  }

  private mutating func requested(_ line: LogLine) {
    guard let id = number(line, "id"), let asked = came(.requested(id)) else { return }
    // a refusal without its code counts as the expected one
    let code = line["error"] == "none" ? nil : number(line, "error") ?? asked.code ?? 0
    if asked.code == code {
      if code != nil { confirm(.r7) }
    } else if !isPartial {
      found(
        .r7, .system,
        "a request is \(code.map { "refused with error \($0)" } ?? "accepted"), and our rule "
          + (asked.code.map { "refuses it with error \($0)" } ?? "accepts it"))
    }
    guard code != nil, asked.code == nil else { return }
    // the requested actions will not follow
    let group = owed.first { $0.position == asked.position }?.group
    for one in owed where one.group == group {
      if case .start(let call, _) = one.request { machine.calls[call] = nil }
    }
    owed.removeAll { $0.group == group }
  }

  private mutating func extensionPushed(_ line: LogLine) {
    guard let id = number(line, "id"), let asked = came(.extensionPushed(id)) else { return }
    let code = number(line, "error")
    guard code != asked.code else { return confirm(.r15) }
    found(
      .r15, .system,
      "an extension's push is answered with \(code.map { "error \($0)" } ?? "no error"), and our rule says "
        + (asked.code.map { "error \($0)" } ?? "none"))
  }

  // MARK: the provider

  private mutating func didBegin() {
    if hasBegun, !isPartial { found(.r12, .system, "providerDidBegin comes a second time") }
    if let firstUse { verdict.measure(.r12, "providerDidBegin after the provider's first use", now - firstUse.time) }
    hasBegun = true
    firstUse = nil
  }

  private mutating func didReset() {
    if came(.didReset) != nil {
      found(.r21, .app, "the provider is reset after a report: Info.plist has no background mode voip (UIBackgroundModes)")
    }
    give(.systemReset(.callServices))
    awaited.removeAll { if case .reported = $0.output { false } else { true } }
    owed = []
    activation = nil
    hasBegun = false
    firstUse = nil
  }

  /// A report was accepted: without the background mode a reset must follow.
  private mutating func judgeBackgroundMode() {
    guard header?.hasVoIPBackgroundMode == false else { return }
    expect(
      .didReset, by: .r21, within: Self.patience,
      text: "the app has no background mode voip, and its report was accepted without a reset")
  }

  // MARK: audio

  private mutating func didActivate() {
    guard let since = activation else {
      if isAudioUnknown { return }
      return found(.r8, .system, "didActivate came, and no answer, start or unhold was fulfilled before it" + whyNot)
    }
    let what = isActivationOptional ? "didActivate after an unhold was fulfilled" : "didActivate after the action was fulfilled"
    verdict.measure(isActivationOptional ? .r9 : .r8, what, now - since.time)
    confirm(isActivationOptional ? .r9 : .r8)
    machine.activatesAt = nil
    activation = nil
    isAudioUnknown = false
    var out: [SystemMachine.Action] = []
    let isCellularCall = machine.isCellularCall
    machine.isCellularCall = false
    machine.activate(&out)
    machine.isCellularCall = isCellularCall
    absorb(out)
  }

  private var whyNot: String { machine.hasAppActivated ? ": the app has activated the session itself" : "" }

  private mutating func didDeactivate() {
    if came(.didDeactivate) != nil { return confirm(.r8) }
    guard machine.isAudioActive else {
      if isAudioUnknown { return isAudioUnknown = false }
      return found(.r8, .system, "didDeactivate came, and the session was not active")
    }
    machine.isAudioActive = false
    if !machine.isCellularCall { found(.r8, .system, "didDeactivate came, though a call has the audio") }
  }

  /// R28: 0 Hz for a moment, then the rate of the hardware. R20: where the speaker override went.
  private mutating func routed(_ line: LogLine) {
    let (to, rate) = (line["to"] ?? "", number(line, "rate") ?? 0)
    if came(.route(to)) != nil { confirm(.r20) }
    if let route = SystemMachine.Route(rawValue: to) { machine.route = route }
    if rate == 0 {
      if zeroRate == nil { zeroRate = Since(time: now, position: position) }
      return
    }
    if ![8_000, 16_000, 48_000].contains(rate) {
      found(.r28, .system, "a route has \(rate) Hz, which is not 48, 16 or 8 kHz")
    } else if let since = zeroRate {
      verdict.measure(.r28, "0 Hz between two routes", now - since.time)
      confirm(.r28)
    } else if isExact, rate != self.rate {
      found(.r28, .system, "the rate changes from \(self.rate) to \(rate) Hz without a moment of 0 Hz")
    }
    zeroRate = nil
    self.rate = rate
  }

  private mutating func prompted() {
    if machine.isLocked {
      found(.r23, .system, "the user is asked for the microphone on a locked screen")
    } else if came(.microphonePrompt) != nil {
      confirm(.r23)
    }
  }

  // MARK: the phone

  private mutating func startCall(_ line: LogLine) {
    _ = came(.startCall)
    let kind = line["kind"].flatMap { SystemMachine.HandleKind(text: $0) }
    if let kinds = machine.handleKinds, !kinds.isEmpty, let kind, !kinds.contains(kind) {
      found(.r17, .system, "Recents calls again with a handle of kind \(kind.text), which the provider does not support")
    } else {
      confirm(.r17)
    }
  }

  private mutating func socketsDied() {
    if came(.socketsDie) != nil { return confirm(.r27) }
    if machine.isForeground || !machine.calls.isEmpty {
      found(.r27, .system, "sockets died " + (machine.isForeground ? "in the foreground" : "while there is a call"))
    }
  }

  private mutating func unlocked() {
    if came(.unlockedOnce) != nil { return confirm(.r29) }
    if !machine.isUnlockedOnce {
      found(.r29, .system, "the keychain opened before the first unlock after a restart")
      machine.isUnlockedOnce = true
    }
  }
}
