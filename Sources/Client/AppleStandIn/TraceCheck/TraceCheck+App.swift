import TrunklineBytes
import TrunklinePhoneLog

/// Events of the app.
extension TraceCheck {
  mutating func app(_ line: LogLine) {
    isAppsLine = true
    defer { isAppsLine = false }
    switch line.event {
    case "launched": give(.launched)
    case "exited": processEnded()
    case "provider": configured(line)
    case "hasDelegate": hasDelegate = true
    case "pushHandled": pushHandled(line)
    case "report": report(line)
    case "ended": endReported(line)
    case "connecting": if let call = call(line) { give(.reportConnecting(call)) }
    case "connected": connected(line)
    case "request": request(line)
    case "fulfill", "fail": completed(line, line.event == "fulfill" ? .fulfilled : .failed)
    case "setActive": if line["on"] == "true" { give(.activatedAudioItself) }
    case "setCategory":
      routeRule = .r20
      give(.categorySet)
      routeRule = .r28
    case "speaker": give(.speaker(line["on"] == "true"))
    case "extensionPush": extensionPush(line)
    case "keychain": keychain(line)
    case "violation": violation(line)
    default: break  // audio devices, states, and events of later versions
    }
  }

  func call(_ line: LogLine) -> Identifier? { line["call"].flatMap { Identifier($0) } }
  func number(_ line: LogLine, _ key: String) -> Int? { line[key].flatMap { Int($0) } }

  private mutating func configured(_ line: LogLine) {
    providers += 1
    if providers == 1, isExact { confirm(.r30) }
    let groups = number(line, "groups") ?? rules.maximumCallGroups
    // 0: the trace does not state the kinds
    let kinds = line["handles"].map { text in
      Set(text.split(separator: ",").compactMap { SystemMachine.HandleKind(text: String($0)) })
    }
    let known = machine.handleKinds
    give(.configure(groups: groups, handleKinds: kinds ?? []))
    if kinds == nil { machine.handleKinds = known }
  }

  /// Only the app's process sees R22, R30, R31 and whether its provider was released.
  private mutating func violation(_ line: LogLine) {
    guard let rule = line["rule"].flatMap({ Rule(rawValue: $0) }) else { return }
    found(rule, .app, line["text"] ?? rule.title)
  }

  // MARK: reports

  private mutating func report(_ line: LogLine) {
    guard let call = call(line) else { return }
    if hasDelegate, isExact { confirm(.r31) }
    let caller = SystemMachine.Caller(line["handle"] ?? "", kind: line["kind"].flatMap { .init(text: $0) } ?? .phoneNumber)
    let isNew = machine.calls[call] == nil
    if isNew { reportsOfNow.accepted += 1 } else { reportsOfNow.refused += 1 }
    give(line["queue"] == "other" ? .reportOffQueue(call, caller) : .report(call, caller))
    guard isNew else { return }
    endedByApp[call] = nil
    filtered.remove(call)
    ringing[call] = now
  }

  private mutating func pushHandled(_ line: LogLine) {
    guard let id = number(line, "id") else { return }
    let push = SystemMachine.PushID(id)
    if let delivery = machine.deliveries[push], delivery.mustReport, delivery.isReported {
      if reportsOfNow.accepted > 0 {
        confirm(.r1)
      } else if reportsOfNow.refused > 0 {
        unconfirmedReport = Since(time: now, position: position)
      }
    }
    give(.pushHandled(push))
  }

  private mutating func endReported(_ line: LogLine) {
    guard let call = call(line) else { return }
    guard machine.calls[call] != nil || endedByApp[call] != nil || !isPartial else { return }
    // a report that Focus refused made no call; apps end it all the same
    if filtered.contains(call) { return }
    if machine.calls[call] != nil { confirm(.r10) }
    give(.reportEnded(call, reason(line["reason"])))
  }

  private func reason(_ text: String?) -> SystemMachine.EndedReason {
    switch text {
    case "remoteEnded": .remoteEnded
    case "unanswered": .unanswered
    case "answeredElsewhere": .answeredElsewhere
    case "declinedElsewhere": .declinedElsewhere
    default: .failed
    }
  }

  private mutating func connected(_ line: LogLine) {
    guard let call = call(line) else { return }
    connectedAt[call] = now
    give(.reportConnected(call))
  }

  // MARK: requests and actions

  private mutating func request(_ line: LogLine) {
    guard let id = number(line, "id") else { return }
    let names = line["actions"].map { $0.split(separator: ",").map(String.init) } ?? []
    let calls = (line["calls"] ?? "").split(separator: ",").map { Identifier($0) }
    let states = (line["on"] ?? "").split(separator: ",").map { $0 == "true" }
    guard calls.count == names.count else { return }
    var requests: [SystemMachine.Request] = []
    for (index, name) in names.enumerated() {
      guard let call = calls[index] else { return }
      guard let request = SystemMachine.Request(name, call, isOn: index < states.count && states[index]) else { return }
      requests.append(request)
    }
    if isPartial, requests.contains(where: { isUnknown($0) }) { return }
    // the machine also refuses a UUID that was used before
    for case .start(let call, let callee) in requests where endedByApp[call] != nil {
      machine.calls[call] = .init(isOutgoing: true, caller: callee, phase: .ended)
    }
    give(.request(.init(id), requests))
  }

  /// True for a call that began before the trace.
  func isUnknown(_ request: SystemMachine.Request) -> Bool {
    if case .start = request { return false }
    return machine.calls[request.call] == nil && endedByApp[request.call] == nil
  }

  private mutating func completed(_ line: LogLine, _ completion: SystemMachine.Completion) {
    guard let id = number(line, "action") else { return }
    if foreign.remove(id) != nil { return isAudioUnknown = true }
    lastCompletion = Since(time: now, position: position)
    if let action = overlapping.removeValue(forKey: id) {
      let open = machine.pending
      machine.pending = action
      give(.complete(action.id, completion))
      machine.pending = open
      return
    }
    guard let action = actions[id] else {
      isAudioUnknown = true
      return isPartial ? () : found(.r6, .app, "action \(id) is completed, which the system did not ask for")
    }
    let request = machine.pending.flatMap { $0.id == action ? $0.request : nil }
    if case .hold(_, false)? = request { isActivationOptional = true }
    if let request, completion == .fulfilled { fulfilled(request) }
    give(.complete(action, completion))
    if activation == nil { isActivationOptional = false }
  }

  private mutating func fulfilled(_ request: SystemMachine.Request) {
    switch request {
    case .answer(let call): connectedAt[call] = now
    case .start, .end, .hold, .mute, .digits, .group, .translate: break
    }
  }

  // MARK: other events

  /// R15: which process may push, and the expected answer.
  private mutating func extensionPush(_ line: LogLine) {
    guard let id = number(line, "id") else { return }
    let error: SystemMachine.ExtensionError? =
      line["extension"] == "false" ? .invalidClientProcess : rules.hasFilteringEntitlement ? nil : .missingEntitlement
    expect(
      .extensionPushed(id), code: error?.rawValue, by: .r15, within: Self.patience,
      text: "the extension's push was not answered within 5 s")
  }

  /// R29: whether the SDK could read the keychain.
  private mutating func keychain(_ line: LogLine) {
    let isOpen = line["open"] == "true"
    if isOpen, !machine.isUnlockedOnce {
      found(.r29, .system, "the keychain is open before the first unlock after a restart")
    } else if !isOpen, machine.isForeground {
      found(.r29, .system, "the keychain is closed though the app is in front, so the phone is unlocked")
    } else if !isOpen {
      confirm(.r29)
    }
  }
}

extension SystemMachine.Request {
  /// By the log's names; the callee and the digits are not needed.
  init?(_ name: String, _ call: Identifier, isOn: Bool) {
    switch name {
    case "start": self = .start(call, .init(""))
    case "answer": self = .answer(call)
    case "end": self = .end(call)
    case "hold": self = .hold(call, isOn)
    case "mute": self = .mute(call, isOn)
    case "digits": self = .digits(call, "")
    case "group": self = .group(call, nil)
    case "translate": self = .translate(call, isOn, from: "", to: "")
    default: return nil
    }
  }

  /// True if the trace's action is this one.
  func isSame(_ other: Self) -> Bool { name == other.name && call == other.call && isOn == other.isOn }
}
