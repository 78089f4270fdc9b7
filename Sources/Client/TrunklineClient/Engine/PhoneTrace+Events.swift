import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklinePhoneLog

/// The events by name: those of the call system as in docs/design/apple-stand-in.md, others by their own.
extension PhoneTrace.State {
  typealias Line = PhoneTrace.Line

  mutating func line(of input: PhoneMachine.Input, _ groups: Int) -> Line? {
    switch input {
    // from the call system
    case .pushed(_, let mustReport):
      pushes += 1
      return Line(.system, "deliver", [("id", "\(pushes)"), ("mustReport", "\(mustReport)")])
    case .reported(let call, let refusal): return Line(.system, "reported", Self.call(call) + [("error", refusal.text)])
    case .perform(let id, let request, let timeout):
      let time = timeout.map { [("timeout", LogLine.text(.zero + $0))] } ?? []
      return Line(.system, "perform", [("action", "\(id.raw)")] + request.fields + time)
    case .timedOut(let id, let request): return Line(.system, "timedOut", [("action", "\(id.raw)")] + request.fields)
    case .requestRefused(let request):
      // the note, if there was one, has already reported it with the code
      return answered(request).map { Line(.system, "requested", [("id", "\($0)"), ("error", "unknown")]) }
    case .audioActivated: return Line(.system, "didActivate")
    case .audioDeactivated: return Line(.system, "didDeactivate")
    case .audioChanged(let isReset): return Line(.system, isReset ? "mediaReset" : "audioChanged")
    case .reset: return Line(.system, "didReset")
    // from the device
    case .audioRuns(let audio):
      return Line(.app, "audioRuns", [("capture", "\(audio.capture)"), ("playout", "\(audio.playout)")])
    case .audioFailed(let request): return Line(.app, "audioFailed", [("do", "\(request)")])
    case .pathChanged: return Line(.network, "changed")
    case .foreground(let isOn): return Line(.user, "foreground", [("on", "\(isOn)")])
    case .microphone(let permission): return Line(.user, "microphone", [("says", "\(permission)")])
    // from the app
    case .start: return Line(.app, "provider", [("groups", "\(groups)")])
    case .token: return Line(.app, "token")
    case .tokenFailed: return Line(.app, "tokenFailed")
    case .pushToken(let token): return Line(.app, "pushToken", [("is", token == nil ? "none" : "there")])
    case .preferences: return Line(.app, "preferences")
    case .dial(let call, let callee, _): return Line(.app, "dial", Self.call(call) + mask(callee))
    case .act(let call, let action): return Line(.app, "wish", Self.call(call) + [("do", Self.name(action))])
    case .logOut: return Line(.app, "logOut")
    // a trace must not contain names and numbers
    case .followDirectory, .read: return nil
    case .testCall(let call): return Line(.app, "testCall", Self.call(call))
    // from the gateway and media
    case .socket(let event): return Line(.network, "socket", Self.fields(of: event))
    case .further(let number, let event):
      return Line(.network, "socket", Self.fields(of: event) + [("further", "\(number)")])
    case .media(let call, let report): return Line(.network, "media", Self.call(call) + [("is", Self.name(report))])
    case .statistics(let call, _): return Line(.network, "statistics", Self.call(call))
    case .timer: return nil
    }
  }

  mutating func lines(of action: PhoneMachine.Action) -> [Line] {
    switch action {
    // to the call system
    case .report(let call, let caller, let isVideo):
      return [Line(.app, "report", Self.call(call) + mask(caller) + (isVideo ? [("video", "true")] : []))]
    case .updated(let call, let caller, _): return [Line(.app, "update", Self.call(call) + mask(caller))]
    case .reportEnded(let call, let reason): return [Line(.app, "ended", Self.call(call) + [("reason", "\(reason)")])]
    case .reportConnecting(let call): return [Line(.app, "connecting", Self.call(call))]
    case .reportConnected(let call, _): return [Line(.app, "connected", Self.call(call))]
    case .request(let request): return [asks(request)]
    case .complete(let id, let isDone): return [Line(.app, isDone ? "fulfill" : "fail", [("action", "\(id.raw)")])]
    // to the device; the category is set before the action is fulfilled
    case .audio(let request):
      let line = Line(.app, "audio", [("do", "\(request)")])
      return request == .configure ? [Line(.app, "setCategory"), line] : [line]
    // to the gateway, media and the app
    case .socket(let action): return [Line(.app, "socket", [("do", Self.name(action))])]
    case .further(let number, let action):
      return [Line(.app, "socket", [("do", Self.name(action)), ("further", "\(number)")])]
    case .post(_, let call, _, _): return [Line(.app, "post", Self.call(call))]
    case .media(let call, let request): return [Line(.app, "media", Self.call(call) + [("do", Self.name(request))])]
    case .mix(let others): return [Line(.app, "mix", others.flatMap { Self.call($0) })]
    case .listen(let call): return [Line(.app, "listen", call.map { Self.call($0) } ?? [])]
    case .relays: return []
    case .needsToken: return [Line(.app, "needsToken")]
    case .tokenStale: return [Line(.app, "tokenStale")]
    case .state(let state): return [Line(.app, "state", [("is", Self.name(state))])]
    case .changed(let info): return [Line(.app, "changed", Self.call(info.id) + [("is", Self.name(info.state))])]
    case .presentInApp(let call): return [Line(.app, "presentInApp", Self.call(call))]
    case .registered(let refusal): return [Line(.app, "registered", [("error", refusal.map { $0.rawValue } ?? "none")])]
    case .digit(let call, _): return [Line(.app, "digit", Self.call(call))]
    case .transferred(let call, _): return [Line(.app, "transferred", Self.call(call))]
    case .loggedOut: return [Line(.app, "loggedOut")]
    case .tested(let call, _): return [Line(.app, "tested", Self.call(call))]
    case .directory, .read, .historyChanged: return []
    }
  }

  mutating func line(of note: CallSystemNote) -> Line? {
    switch note {
    case .began: return Line(.system, "didBegin")
    case .requested(let request, let error):
      return answered(request).map { Line(.system, "requested", [("id", "\($0)"), ("error", error.map { "\($0)" } ?? "none")]) }
    case .interrupted(let isOn): return Line(.system, "interrupted", [("on", "\(isOn)")])
    case .route(let route, let rate):
      return Line(.system, "route", [("to", route.isEmpty ? "none" : route), ("rate", "\(rate)")])
    }
  }

  /// One action each, numbered, so that the system's answer can be matched.
  private mutating func asks(_ request: SystemRequest) -> Line {
    requests += 1
    if asked.count >= PhoneTrace.limit { asked = [:] }
    asked[request, default: []].append(requests)
    return Line(
      .app, "request",
      [
        ("id", "\(requests)"), ("actions", request.name), ("calls", "\(request.call)"),
        ("on", request.isOn.map { "\($0)" } ?? "none"),
      ])
  }
  private mutating func answered(_ request: SystemRequest) -> Int? {
    guard let number = asked[request]?.first else { return nil }
    asked[request]?.removeFirst()
    if asked[request]?.isEmpty == true { asked[request] = nil }
    return number
  }

  private static func call(_ id: Identifier) -> [LogLine.Field] { [("call", "\(id)")] }

  private static func fields(of event: ClientSession.Input) -> [LogLine.Field] {
    switch event {
    case .socketClosed(let code): [("is", "closed"), ("code", "\(code)")]
    case .socketOpened: [("is", "opened")]
    case .frame: [("is", "frame")]
    case .start, .timer, .networkChanged, .checkLiveness, .hurry, .finish: [("is", name(event))]
    }
  }

  private static func name(_ action: ClientSession.Action) -> String {
    switch action {
    case .connect: "connect"
    case .connectAlternate: "connectAlternate"
    case .write: "write"
    case .close: "close"
    case .event: "event"
    }
  }

  /// The name of a case, without its associated values.
  private static func name(_ value: Any) -> String { String(String(describing: value).prefix { $0.isLetter }) }
}

extension ReportRefusal {
  /// CallKit's code.
  fileprivate var text: String {
    switch self {
    case .exists: "2"
    case .doNotDisturb: "3"
    case .blocked: "4"
    case .other(let code): "\(code)"
    }
  }
}
extension ReportRefusal? {
  fileprivate var text: String { self?.text ?? "none" }
}

extension SystemRequest {
  fileprivate var name: String {
    switch self {
    case .start: "start"
    case .answer: "answer"
    case .end: "end"
    case .hold: "hold"
    case .mute: "mute"
    case .digits: "digits"
    case .group: "group"
    }
  }
  fileprivate var isOn: Bool? {
    switch self {
    case .hold(_, let isOn), .mute(_, let isOn): isOn
    case .start, .answer, .end, .digits, .group: nil
    }
  }
  fileprivate var fields: [LogLine.Field] {
    [("do", name), ("call", "\(call)")] + (isOn.map { [("on", "\($0)")] } ?? [])
  }
}
