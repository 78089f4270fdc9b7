import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// Log entries for the machine's inputs and actions. No clock: the same events cause the same entries.
struct LogLines: Sendable {
  typealias Entry = Phone.LogEntry
  struct Line: Sendable {
    var level: Entry.Level
    var code: Entry.Code
    var call: Identifier?
    var fields: [Entry.Field] = []
    init(_ level: Entry.Level, _ code: Entry.Code, _ call: Identifier? = nil, _ fields: [(String, String)] = []) {
      (self.level, self.code, self.call) = (level, code, call)
      self.fields = fields.map { Entry.Field($0.0, $0.1) }
    }
  }
  /// Live calls, as last logged.
  private var known: [Identifier: CallInfo] = [:]
  private static let mostCalls = 64

  /// - Parameter isDetailed: also logs messages, which are decoded for it.
  mutating func lines(of input: PhoneMachine.Input, isDetailed: Bool) -> [Line] {
    switch input {
    case .pushed(let push, _): [Line(push == nil ? .error : .info, .pushReceived, push?.call, [("isReadable", "\(push != nil)")])]
    case .reported(let call, let refusal?): [Line(.warning, .reportRefused, call, [("error", Self.text(refusal))])]
    case .perform(_, let request, _): [Line(.info, .systemAction, request.call, [("does", Self.name(request))])]
    case .timedOut(_, let request):
      [Line(.warning, .systemAction, request.call, [("does", Self.name(request)), ("isTimedOut", "true")])]
    case .requestRefused(let request):
      [Line(.warning, .systemAction, request.call, [("does", Self.name(request)), ("isRefused", "true")])]
    case .audioActivated: [Line(.info, .audioSession, nil, [("isOn", "true")])]
    case .audioDeactivated: [Line(.info, .audioSession, nil, [("isOn", "false")])]
    case .audioChanged(let isReset): [Line(.info, .audioSession, nil, [("isReset", "\(isReset)")])]
    case .reset: [Line(.warning, .systemReset)]
    case .audioFailed(let request): [Line(.error, .audioFailed, nil, [("does", "\(request)")])]
    case .pathChanged: [Line(.info, .networkChanged)]
    case .foreground(let isOn): [Line(.info, .foreground, nil, [("isOn", "\(isOn)")])]
    case .microphone(let permission):
      [Line(permission == .denied ? .warning : .info, .microphone, nil, [("is", "\(permission)")])]
    case .token: [Line(.info, .tokenInUse)]
    case .tokenFailed: [Line(.error, .tokenFailed)]
    case .pushToken(let token): [Line(.info, .pushToken, nil, [("is", token == nil ? "none" : "there")])]
    case .dial(let call, _, _): [Line(.info, .callAction, call, [("does", "dial")])]
    case .act(let call, let action): [Line(.info, .callAction, call, [("does", Self.name(action))])]
    case .socket(let input), .further(_, let input): lines(of: input, isDetailed)
    case .media(let call, let report): lines(of: report, call)
    case .reported, .audioRuns, .start, .preferences, .logOut, .followDirectory, .read, .testCall, .statistics, .timer: []
    }
  }

  private func lines(of input: ClientSession.Input, _ isDetailed: Bool) -> [Line] {
    switch input {
    case .socketOpened: return [Line(.info, .socketOpened)]
    case .socketClosed(let code): return [Line(code == 1000 ? .info : .warning, .socketClosed, nil, [("code", "\(code)")])]
    case .frame(let bytes):
      guard isDetailed else { return [] }
      guard let frame = try? ServerFrame(decoding: bytes) else {
        return [Line(.warning, .messageReceived, nil, [("type", "unreadable"), ("bytes", "\(bytes.count)")])]
      }
      guard case .message(let message) = frame.body else {
        return [Line(.debug, .messageReceived, frame.call, [("type", "unknown")])]
      }
      return [Line(.debug, .messageReceived, frame.call, [("type", message.content.type.rawValue)])]
    case .start, .timer, .checkLiveness, .networkChanged, .hurry, .finish: return []
    }
  }

  private func lines(of report: ClientCall.MediaReport, _ call: Identifier) -> [Line] {
    switch report {
    case .described: return []
    case .connected(let generation, let pair, let trip, let profile):
      let kinds = [pair?.local, pair?.remote].map { $0 ?? "?" }.joined(separator: "/")
      let time = trip.map { [("roundTripMs", "\(Int(clampingMilliseconds: $0))")] } ?? []
      return [
        Line(.info, .mediaConnected, call, [("generation", "\(generation)"), ("pair", kinds), ("profile", profile)] + time)
      ]
    case .failed(let stage, let why):
      return [Line(.error, .mediaFailed, call, [("stage", stage.rawValue), ("detail", Self.withoutNumbers(why))])]
    case .silence(let silence):
      let text =
        switch silence {
        case .began: "began"
        case .stays: "stays"
        case .ended: "ended"
        }
      return [Line(text == "ended" ? .info : .warning, .mediaSilence, call, [("is", text)])]
    }
  }

  mutating func lines(of action: PhoneMachine.Action, gateway: String?, isDetailed: Bool) -> [Line] {
    switch action {
    case .socket(let action), .further(_, let action): return lines(of: action, gateway, isDetailed)
    case .media(let call, .offer(let generation)) where generation > 1:
      return [Line(.warning, .mediaRestart, call, [("generation", "\(generation)")])]
    case .audio(let request): return [Line(.info, .audioOrder, nil, [("does", "\(request)")])]
    case .needsToken: return [Line(.info, .tokenAsked)]
    case .tokenStale: return [Line(.warning, .tokenStale)]
    case .state(.refused(let code)): return [Line(.error, .sessionState, nil, [("is", "refused"), ("code", "\(code)")])]
    case .state(let state): return [Line(.info, .sessionState, nil, [("is", "\(state)")])]
    case .changed(let info): return lines(of: info)
    case .registered(let refusal):
      return [Line(refusal == nil ? .info : .error, .pushRegistered, nil, refusal.map { [("error", $0.rawValue)] } ?? [])]
    case .loggedOut: return [Line(.info, .loggedOut)]
    case .report, .updated, .reportEnded, .reportConnecting, .reportConnected, .request, .complete, .post, .media, .relays,
      .listen,
      .mix, .presentInApp, .digit, .transferred, .directory, .read, .historyChanged,
      .tested:
      return []
    }
  }

  private func lines(of action: ClientSession.Action, _ gateway: String?, _ isDetailed: Bool) -> [Line] {
    switch action {
    case .connect: [Line(.info, .socketConnect, nil, [("host", Self.host(gateway))])]
    case .connectAlternate: [Line(.warning, .socketConnect, nil, [("host", Self.host(gateway)), ("isAlternate", "true")])]
    case .write(let bytes):
      if isDetailed, let frame = try? ClientFrame(decoding: bytes), case .message(let message) = frame.body {
        [Line(.debug, .messageSent, frame.call, [("type", message.type.rawValue)])]
      } else {
        []
      }
    case .close, .event: []
    }
  }

  private mutating func lines(of info: CallInfo) -> [Line] {
    let before = known[info.id]
    known[info.id] = info.state == .ended ? nil : info
    if known.count > Self.mostCalls { known = [info.id: info] }
    var lines: [Line] = []
    if before?.state != info.state {
      var fields = [("is", info.state.rawValue)]
      if before == nil {
        fields += [("direction", info.isOutgoing ? "outgoing" : "incoming"), ("peer", Self.shown(info.peer))]
      }
      if info.state == .connected { fields += info.codec.map { [("codec", $0)] } ?? [] }
      if let reason = info.reason { fields.append(("reason", reason.rawValue)) }
      if let refusal = info.refusal { fields.append(("error", refusal.rawValue)) }
      if info.lacksMicrophone { fields.append(("error", "noMicrophone")) }
      lines.append(Line(Self.level(info), .callState, info.id, fields))
    }
    if info.state != .ended, before?.isReconnecting ?? false != info.isReconnecting {
      lines.append(
        Line(info.isReconnecting ? .warning : .info, .callReconnecting, info.id, [("isOn", "\(info.isReconnecting)")]))
    }
    if info.state != .ended, (before?.isHeld ?? false, before?.isHeldByPeer ?? false) != (info.isHeld, info.isHeldByPeer) {
      lines.append(
        Line(.info, .callHeld, info.id, [("isHeld", "\(info.isHeld)"), ("isHeldByPeer", "\(info.isHeldByPeer)")]))
    }
    return lines
  }

  private static func level(_ info: CallInfo) -> Entry.Level {
    switch info.reason {
    case .mediaTimeout, .mediaFailed, .networkLost, .trunkLost, .trunkFailed, .codec, .auth, .overload, .server, .unknown,
      .gatewayRestart, .appRestart:
      .error
    default: info.refusal != nil || info.lacksMicrophone ? .error : .info
    }
  }

  // MARK: privacy

  /// The gateway's own rule (docs/operate/monitoring.md): all but the last two digits are masked. An address is reduced to its
  /// kind.
  static func shown(_ handle: Handle) -> String {
    handle.k == .phone ? masked(handle.h) : handle.k.rawValue
  }

  /// Omits the path and the query, which may contain secrets.
  static func host(_ url: String?) -> String {
    guard let url, let parts = URLComponents(string: url), let host = parts.host else { return "none" }
    return host + (parts.port.map { ":\($0)" } ?? "")
  }

  /// A foreign text may contain numbers of users.
  private static func withoutNumbers(_ text: String) -> String { text.replacing(/\+?\d{5,}/) { masked(String($0.output)) } }

  /// The name of a case, without its associated values.
  private static func name(_ value: Any) -> String { String(String(describing: value).prefix { $0.isLetter }) }

  private static func text(_ refusal: ReportRefusal) -> String {
    if case .other(let code) = refusal { "\(code)" } else { name(refusal) }
  }
}

extension Int {
  fileprivate init(clampingMilliseconds value: Double) { self = value.isFinite ? Int(Swift.max(0, Swift.min(value, 1e9))) : 0 }
}
