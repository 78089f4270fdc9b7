import TrunklineBytes

/// Log lines of the events, by name.
extension LogLine {
  init(_ message: AppMessage, _ now: Instant) {
    func line(_ event: String, _ fields: [(key: String, value: String)] = []) -> LogLine { LogLine(now, .app, event, fields) }
    self =
      switch message {
      case .launched: line("launched")
      case .wantsPushes: line("wantsPushes")
      case .provider(let facts):
        line(
          "provider", [("groups", "\(facts.maximumCallGroups)"), ("handles", SystemMachine.HandleKind.text(facts.handleTypes))])
      case .hasDelegate: line("hasDelegate")
      case .invalidated: line("invalidated")
      case .pushHandled(let id): line("pushHandled", [("id", "\(id)")])
      case .pushCompleted(let id): line("pushCompleted", [("id", "\(id)")])
      case .report(let id, let caller, let isOn):
        line("report", Self.call(id) + Self.caller(caller) + (isOn ? [] : [("queue", "other")]))
      case .update(let id, let caller): line("update", Self.call(id) + Self.caller(caller))
      case .ended(let id, let reason, _): line("ended", Self.call(id) + [("reason", "\(reason)")])
      case .connecting(let id, _): line("connecting", Self.call(id))
      case .connected(let id, _): line("connected", Self.call(id))
      case .request(let id, let requests):
        line("request", [("id", "\(id)")] + SystemMachine.Request.fields(of: requests))
      case .complete(let id, let isDone, _): line(isDone ? "fulfill" : "fail", [("action", "\(id)")])
      case .activatedItself(let isOn): line("setActive", [("on", "\(isOn)")])
      case .categorySet: line("setCategory")
      case .speaker(let isOn): line("speaker", [("on", "\(isOn)")])
      case .extensionPush(let id, _, let isExtension): line("extensionPush", [("id", "\(id)"), ("extension", "\(isExtension)")])
      case .violation(let rule, let text): line("violation", [("rule", rule.rawValue), ("text", text)])
      }
  }

  init(_ action: SystemMachine.Action, _ now: Instant) {
    func line(_ event: String, _ fields: [(key: String, value: String)] = []) -> LogLine { LogLine(now, .system, event, fields) }
    func error(_ raw: Int?) -> [(key: String, value: String)] { [("error", raw.map { "\($0)" } ?? "none")] }
    self =
      switch action {
      case .launch: line("launch")
      case .kill(let rule): line("kill", [("rule", rule.rawValue)])
      case .deliver(let push, let must): line("deliver", [("id", "\(push.raw)"), ("mustReport", "\(must)")])
      case .reported(let id, let code): line("reported", Self.call(id) + error(code?.rawValue))
      case .requested(let id, let code): line("requested", [("id", "\(id.raw)")] + error(code?.rawValue))
      case .extensionPushed(let push, let code): line("extensionPushed", [("id", "\(push.raw)")] + error(code?.rawValue))
      case .didBegin: line("didBegin")
      case .perform(let id, let request): line("perform", [("action", "\(id.raw)")] + request.fields)
      case .timedOut(let id, let request): line("timedOut", [("action", "\(id.raw)")] + request.fields)
      case .didActivate: line("didActivate")
      case .didDeactivate: line("didDeactivate")
      case .reset: line("didReset")
      case .mediaReset: line("mediaReset")
      case .startCall(let caller): line("startCall", Self.caller(caller))
      case .route(let route, let rate): line("route", [("to", route.rawValue), ("rate", "\(rate)")])
      case .capture(let isSilent): line("capture", [("silent", "\(isSilent)")])
      case .microphonePrompt: line("microphonePrompt")
      case .socketsDie(let time): line("socketsDie", [("seconds", "\(time.milliseconds / 1_000)")])
      case .unlockedOnce: line("unlockedOnce")
      case .violation(let rule, let text): line("violation", [("rule", rule.rawValue), ("text", text)])
      }
  }

  /// Nil for inputs from the app, which have lines of their own.
  init?(_ input: SystemMachine.Input, _ now: Instant) {
    func on(_ isOn: Bool) -> [(key: String, value: String)] { [("on", "\(isOn)")] }
    switch input {
    case .cellular(let isOn): self.init(now, .network, "cellular", on(isOn))
    case .route(let route): self.init(now, .user, "route", [("to", route.rawValue)])
    case .foreground(let isOn): self.init(now, .user, "foreground", on(isOn))
    case .locked(let isOn): self.init(now, .user, "locked", on(isOn))
    case .microphone(let permission): self.init(now, .user, "microphone", [("says", permission.rawValue)])
    case .restarted: self.init(now, .user, "restarted")
    case .systemReset(let cause): self.init(now, .system, "crash", [("of", cause.rawValue)])
    case .tapRecent(let caller): self.init(now, .user, "tapRecent", Self.caller(caller))
    case .tap(let tap):
      let (button, call, more) = tap.words
      self.init(now, .user, "tap", [("button", button)] + (call.map { Self.call($0) } ?? []) + more)
    default: return nil
    }
  }

  private static func call(_ id: Identifier) -> [(key: String, value: String)] { [("call", id.description)] }
  private static func caller(_ caller: SystemMachine.Caller) -> [(key: String, value: String)] {
    [("handle", caller.handle), ("kind", caller.kind.text)] + (caller.name.map { [("name", $0)] } ?? [])
  }
}

extension SystemMachine.Request {
  var name: String {
    switch self {
    case .start: "start"
    case .answer: "answer"
    case .end: "end"
    case .hold: "hold"
    case .mute: "mute"
    case .digits: "digits"
    case .group: "group"
    case .translate: "translate"
    }
  }

  /// Fields of a transaction: `actions=hold,answer calls=…,… on=true,none`.
  fileprivate static func fields(of requests: [Self]) -> [(key: String, value: String)] {
    func list(_ value: (Self) -> String) -> String { requests.map(value).joined(separator: ",") }
    return [
      ("actions", list(\.name)), ("calls", list { "\($0.call)" }), ("on", list { $0.isOn.map { "\($0)" } ?? "none" }),
    ]
  }

  var isOn: Bool? {
    switch self {
    case .hold(_, let isOn), .mute(_, let isOn), .translate(_, let isOn, _, _): isOn
    case .start, .answer, .end, .digits, .group: nil
    }
  }

  fileprivate var fields: [(key: String, value: String)] {
    let detail: [(key: String, value: String)] =
      switch self {
      case .hold(_, let isOn), .mute(_, let isOn), .translate(_, let isOn, _, _): [("on", "\(isOn)")]
      case .digits(_, let digits): [("digits", digits)]
      case .group(_, let other): [("with", other?.description ?? "none")]
      case .start, .answer, .end: []
      }
    return [("do", name), ("call", call.description)] + detail
  }
}

extension SystemMachine.HandleKind {
  /// The protocol's names (docs/reference/protocol.md).
  var text: String {
    switch self {
    case .generic: "generic"
    case .phoneNumber: "phone"
    case .emailAddress: "email"
    }
  }

  init?(text: String) {
    guard let kind = [Self.generic, .phoneNumber, .emailAddress].first(where: { $0.text == text }) else { return nil }
    self = kind
  }

  /// Kinds by raw values, in ascending order: `generic,phone`.
  fileprivate static func text(_ raw: Set<Int>) -> String {
    raw.sorted().map { Self(rawValue: $0)?.text ?? "\($0)" }.joined(separator: ",")
  }
}

extension SystemMachine.Tap {
  fileprivate var words: (button: String, call: Identifier?, more: [(key: String, value: String)]) {
    switch self {
    case .answer(let id): ("answer", id, [])
    case .end(let id): ("end", id, [])
    case .hold(let id, let isOn): ("hold", id, [("on", "\(isOn)")])
    case .mute(let id, let isOn): ("mute", id, [("on", "\(isOn)")])
    case .digits(let id, let digits): ("digits", id, [("digits", digits)])
    case .holdAndAnswer(let id): ("holdAndAnswer", id, [])
    case .endAndAnswer(let id): ("endAndAnswer", id, [])
    case .speaker(let isOn): ("speaker", nil, [("on", "\(isOn)")])
    case .headset: ("headset", nil, [])
    }
  }
}
