import Foundation
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineClient

/// The phone that plays the vectors: reads events in the notation of `Tests/Vectors/client/README.md`, and writes the phone's
/// actions in the same notation.
struct VectorPhone {
  private var machine: PhoneMachine
  private var now = Instant.zero
  private let comparesAcks: Bool
  /// The number of the newest socket: messages of older ones are dropped.
  private var socket = 0
  /// The session for which each socket was opened (0: the phone's own), and the newest socket of each session.
  private var owners: [Int: Int] = [:]
  private var newest: [Int: Int] = [:]
  private let hasNodes: Bool
  /// Ids that the phone has made, in order of appearance.
  private var made: [Identifier] = []
  private var told: [Identifier: String] = [:]
  /// Log lines for the actions, messages included.
  private(set) var logged: [String] = []
  private var logLines = LogLines()
  /// The id of the latest request of each type.
  private var sent: [String: Identifier] = [:]

  struct Unreadable: Error { var text: String }

  init(settings: [String], comparesAcks: Bool) throws {
    var configuration = PhoneMachine.Configuration(
      device: Hello.Device(id: "phone-1", platform: "test"), capabilities: ["media.active"])
    for setting in settings {
      switch setting {
      case "background": configuration.isForeground = false
      case "forcesUnlock": configuration.forcesUnlock = true
      case "nodes": configuration.capabilities.append("nodes")
      default: throw Unreadable(text: "no such setting: \(setting)")
      }
    }
    machine = PhoneMachine(configuration, random: .seeded(17))
    self.comparesAcks = comparesAcks
    hasNodes = settings.contains("nodes")
  }

  /// Plays one line of the file; returns its effects.
  mutating func play(_ event: String) throws -> [String] {
    if event.hasPrefix("@") {
      guard let milliseconds = Int64(event.dropFirst()) else { throw Unreadable(text: "no time: \(event)") }
      return try advance(to: .zero + .milliseconds(milliseconds))
    }
    guard let input = try input(event) else { return [] }
    return give(input)
  }

  private mutating func advance(to end: Instant) throws -> [String] {
    guard end >= now else { throw Unreadable(text: "time does not go back") }
    var out: [String] = []
    var turns = 0
    while let due = machine.nextDeadline, due <= end {
      now = max(now, due)
      out += give(.timer)
      turns += 1
      if turns > 10_000 { throw Unreadable(text: "a deadline does not move") }
    }
    now = end
    return out
  }

  private mutating func give(_ input: PhoneMachine.Input) -> [String] {
    var actions: [PhoneMachine.Action] = []
    machine.handle(input, at: now, into: &actions)
    log(logLines.lines(of: input, isDetailed: true))
    for action in actions { log(logLines.lines(of: action, gateway: "wss://gw.example/v1/connect", isDetailed: true)) }
    if case .timer = input { #expect(machine.nextDeadline.map { $0 > now } ?? true) }
    return actions.compactMap { line($0) }
  }

  private mutating func log(_ lines: [LogLines.Line]) {
    for line in lines {
      logged.append("\(line.level) \(line.code.rawValue) " + line.fields.map { "\($0.name)=\($0.value)" }.joined(separator: " "))
    }
  }

  // MARK: events

  private mutating func input(_ text: String) throws -> PhoneMachine.Input? {
    var (word, rest) = VectorFile.split(text)
    var session = owners[socket] ?? 0
    if word.hasPrefix("#") {
      guard let number = Int(word.dropFirst()), let owner = owners[number], newest[owner] == number else { return nil }
      session = owner
      (word, rest) = VectorFile.split(rest)
    }
    func received(_ input: ClientSession.Input) -> PhoneMachine.Input { session == 0 ? .socket(input) : .further(session, input) }
    let words = rest.split(separator: " ").map(String.init)
    switch word {
    case "opened": return received(.socketOpened)
    case "closed": return received(.socketClosed(UInt16(rest) ?? 1006))
    case "raw": return received(.frame(Array(rest.utf8)))
    case "recv": return received(.frame(Array(try frame(rest).utf8)))
    case "start": return .start
    case "path": return .pathChanged
    case "reset": return .reset
    case "didActivate": return .audioActivated
    case "didDeactivate": return .audioDeactivated
    case "logOut": return .logOut
    case "token": return rest == "none" ? .tokenFailed : .token(rest, expires: Self.expiry(of: rest))
    case "foreground": return .foreground(rest == "on")
    case "microphone": return .microphone(rest == "denied" ? .denied : .granted)
    case "pushToken":
      return .pushToken(rest == "none" ? nil : .init(kind: .apnsVoIP, token: rest, env: "production", topic: "org.example.voip"))
    case "audio": return .audioRuns(rest == "runs" ? .running : .idle)
    case "audioFailed": return .audioFailed(rest == "configure" ? .configure : .start)
    case "push": return try push(words)
    case "reported": return .reported(try id(words.first), try refusal(words.dropFirst().first))
    case "perform":
      let timeout = words.last.flatMap { $0.hasPrefix("timeout=") ? Int64($0.dropFirst(8)) : nil }
      return .perform(try action(words), try request(words.dropFirst()), timeout: timeout.map { .milliseconds($0) })
    case "timedOut": return .timedOut(try action(words), try request(words.dropFirst()))
    case "refused": return .requestRefused(try request(words[...]))
    case "ask": return .read(made.count, try question(words))
    case "dial": return .dial(try id(words.first), to: handle(words.last ?? ""))
    case "wish": return .act(try id(words.first), try wish(words))
    case "media": return .media(try id(words.first), try report(words))
    default: throw Unreadable(text: "no such event: \(text)")
    }
  }

  private func push(_ words: [String]) throws -> PhoneMachine.Input {
    let mustReport = words.last != "needNotReport"
    if words.first == "unreadable" { return .pushed(nil, mustReport: mustReport) }
    guard words.count >= 3 else { throw Unreadable(text: "push: call, caller and wake token") }
    let gateway = words.first { $0.hasPrefix("gw=") }.map { String($0.dropFirst(3)) }
    return .pushed(
      .init(call: try id(words[0]), caller: handle(words[1]), wake: words[2], gateway: gateway), mustReport: mustReport)
  }

  private func refusal(_ text: String?) throws -> ReportRefusal? {
    switch text {
    case "ok": nil
    case "exists": .exists
    case "doNotDisturb": .doNotDisturb
    case "blocked": .blocked
    default: throw Unreadable(text: "reported: ok, exists, doNotDisturb or blocked")
    }
  }

  private func action(_ words: [String]) throws -> SystemActionID {
    guard let number = words.first.flatMap({ Int($0) }) else { throw Unreadable(text: "no number of an action") }
    return .init(number)
  }

  private func request(_ words: ArraySlice<String>) throws -> SystemRequest {
    let words = Array(words)
    guard words.count >= 2 else { throw Unreadable(text: "an action is a word and a call") }
    let call = try id(words[1])
    switch words[0] {
    case "answer": return .answer(call)
    case "end": return .end(call)
    case "start": return .start(call, handle(words.count > 2 ? words[2] : ""))
    case "hold": return .hold(call, words.count > 2 && words[2] == "on")
    case "mute": return .mute(call, words.count > 2 && words[2] == "on")
    case "digits": return .digits(call, words.count > 2 ? words[2] : "")
    case "group": return .group(call, words.count > 2 ? try id(words[2]) : nil)
    default: throw Unreadable(text: "no such action: \(words[0])")
    }
  }

  private func question(_ words: [String]) throws -> ClientMessage {
    switch words.first {
    case "user.get": return .userGet
    case "dir.find": return .dirFind(DirectoryFind(text: words.last ?? "", limit: 20))
    default: throw Unreadable(text: "ask: user.get, or dir.find and a text")
    }
  }

  private func wish(_ words: [String]) throws -> PhoneMachine.CallAction {
    let last = words.last ?? ""
    switch words.dropFirst().first {
    case "answer": return .answer
    case "end": return .end
    case "hold": return .hold(last == "on")
    case "mute": return .mute(last == "on")
    case "digits": return .digits(last)
    case "transfer": return .transfer(to: handle(last))
    case "join": return .join(try id(last))
    case "merge": return .group(try id(last))
    case "leave": return .group(nil)
    default: throw Unreadable(text: "no such wish: \(words)")
    }
  }

  private func report(_ words: [String]) throws -> ClientCall.MediaReport {
    let (number, last) = (words.count > 2 ? Int(words[2]) ?? 1 : 1, words.last ?? "")
    switch words.dropFirst().first {
    case "described": return .described(sdp: last, generation: number)
    case "connected": return .connected(generation: number, pair: nil, roundTripMilliseconds: nil, profile: "AEAD_AES_128_GCM")
    case "failed": return .failed(MediaFail.Stage(rawValue: last) ?? .ice, "")
    default: throw Unreadable(text: "media: described, connected or failed")
    }
  }

  /// Turns `call.ended $A seq=3 {"reason":"busy"}` into a frame.
  private func frame(_ text: String) throws -> String {
    let brace = text.firstIndex(of: "{") ?? text.endIndex
    var fields: [String] = []
    for (index, word) in text[..<brace].split(separator: " ").map(String.init).enumerated() {
      if index == 0 {
        fields.append("\"t\":\"\(word)\"")
      } else if word.hasPrefix("$") {
        fields.append("\"call\":\"\(try id(word))\"")
      } else {
        let parts = word.split(separator: "=").map(String.init)
        guard parts.count == 2 else { throw Unreadable(text: "no field: \(word)") }
        fields.append(parts[1].hasPrefix("$") ? "\"\(parts[0])\":\"\(try id(parts[1]))\"" : "\"\(parts[0])\":\(parts[1])")
      }
    }
    if brace < text.endIndex {
      var payload = String(text[brace...])
      for letter in "ABCDEFGH" {
        payload = payload.replacingOccurrences(of: "\"$\(letter)\"", with: "\"\(try id("$\(letter)"))\"")
      }
      fields.append("\"d\":\(payload)")
    }
    return "{" + fields.joined(separator: ",") + "}"
  }

  /// `$A` is a call's id, `$1` the first id that the phone made, `$hello` the id of the latest `hello`.
  private func id(_ text: String?) throws -> Identifier {
    guard let text, text.hasPrefix("$") else { throw Unreadable(text: "no id: \(text ?? "")") }
    if let number = Int(text.dropFirst()), made.indices.contains(number - 1) { return made[number - 1] }
    if let request = sent[String(text.dropFirst())] { return request }
    guard let letter = text.utf8.dropFirst().first, (65...72).contains(letter), text.count == 2 else {
      throw Unreadable(text: "the phone has made no id \(text)")
    }
    return Identifier(high: 0x4000, low: 0x8000_0000_0000_0000 + UInt64(letter))
  }

  /// `+15550001/Ann`: a text that begins with + is a number, one with an @ an address, any other a generic name.
  private func handle(_ text: String) -> Handle {
    let parts = text.split(separator: "/", maxSplits: 1).map(String.init)
    let value = parts.first ?? ""
    return Handle(
      k: value.hasPrefix("+") ? .phone : value.contains("@") ? .email : .generic, h: value, n: parts.count > 1 ? parts[1] : nil)
  }
}

extension VectorPhone {
  /// `exp` of a token `h.PAYLOAD.s`; nil if it has none.
  private static func expiry(of token: String) -> Int64? {
    struct Claims: Decodable { var exp: Int64 }
    let parts = token.split(separator: ".")
    guard parts.count == 3 else { return nil }
    let text = parts[1] + String(repeating: "=", count: (4 - parts[1].count % 4) % 4)
    return Data(base64Encoded: String(text)).flatMap { try? JSONDecoder().decode(Claims.self, from: $0) }?.exp
  }
}

// MARK: outputs

extension VectorPhone {
  private mutating func name(_ id: Identifier) -> String {
    let low = id.low &- 0x8000_0000_0000_0000
    if id.high == 0x4000, (65...72).contains(low) { return "$" + String(UnicodeScalar(UInt8(low))) }
    if let index = made.firstIndex(of: id) { return "$\(index + 1)" }
    made.append(id)
    return "$\(made.count)"
  }

  private func text(_ handle: Handle) -> String { handle.h + (handle.n.map { "/" + $0 } ?? "") }

  private mutating func line(_ action: PhoneMachine.Action) -> String? {
    switch action {
    case .report(let id, let caller, let isVideo): "report \(name(id)) \(text(caller))" + (isVideo ? " video" : "")
    case .updated(let id, let caller, let caps): "update \(name(id)) \(text(caller))" + flags(caps)
    case .reportEnded(let id, let reason): "reportEnded \(name(id)) \(reason.rawValue)"
    case .reportConnecting(let id): "reportConnecting \(name(id))"
    case .reportConnected(let id, let at): "reportConnected \(name(id)) \(at.map(String.init) ?? "-")"
    case .request(let request): "request \(text(request))"
    case .complete(let action, let isDone): (isDone ? "fulfil " : "fail ") + String(action.raw)
    case .socket(let action): line(action, of: 0)
    case .further(let session, let action): line(action, of: session)
    case .post(let reject, let id, let wake, _):
      "post \(name(id)) bearer=\(wake.exposed) " + canonical(String(decoding: reject.json, as: UTF8.self))
    case .media(let id, let request): "media \(name(id)) \(text(request))"
    case .audio(let request): "audio \(request)"
    case .mix(let others): "mix " + (others.isEmpty ? "-" : others.map { name($0) }.joined(separator: ","))
    case .listen(let id): "listen " + (id.map { name($0) } ?? "-")
    case .relays(let servers): "relays \(servers.count)"
    case .needsToken: "needsToken"
    case .tokenStale: "tokenStale"
    case .state(let state): "state \(text(state))"
    case .changed(let info): line(info)
    case .presentInApp(let id): "presentInApp \(name(id))"
    case .registered(let refusal): "registered \(refusal?.rawValue ?? "ok")"
    case .digit(let id, let digit): "digit \(name(id)) \(digit)"
    case .transferred(let id, let status): "transferred \(name(id)) \(status.status.rawValue)"
    case .loggedOut: "loggedOut"
    case .directory(let parts): "directory \(parts.count)"
    case .read(_, let result): answered(result)
    case .tested(let id, let outcome): "tested \(name(id)) \(outcome)"
    case .historyChanged(let id): "historyChanged \(id)"
    }
  }

  /// Numbers, or handles with their names.
  private func answered(_ result: Result<Success, Failure>?) -> String {
    switch result {
    case .success(let success):
      (["answered"] + (success.user?.numbers ?? success.names?.map { text($0) } ?? [])).joined(separator: " ")
    case .failure(let failure): "answered refused \(failure.code.rawValue)"
    case nil: "answered unreachable"
    }
  }

  private mutating func line(_ action: ClientSession.Action, of session: Int) -> String? {
    let name = hasNodes ? newest[session].map { "#\($0) " } ?? "" : ""
    switch action {
    case .connect:
      socket += 1
      owners[socket] = session
      newest[session] = socket
      let gateway = session == 0 ? machine.gateway : machine.gateway(of: session)
      return "connect #\(socket)" + (gateway.map { " " + $0 } ?? "")
    // browsers cannot choose an interface
    case .connectAlternate: return nil
    case .close(let code): return name + "close \(code)"
    case .write(let bytes): return frame(bytes).map { name + $0 }
    case .event: return nil
    }
  }

  private mutating func frame(_ bytes: [UInt8]) -> String? {
    guard let frame = try? ClientFrame(decoding: bytes), case .message(let message) = frame.body else { return "send ?" }
    let type = message.type.rawValue
    if let id = frame.id { sent[type] = id }
    if type == "ack", !comparesAcks { return nil }
    var out = "send " + type
    if let call = frame.call { out += " " + name(call) }
    if let id = frame.id { out += " id=" + name(id) }
    if let seq = frame.seq { out += " seq=\(seq)" }
    if let ack = frame.ack, comparesAcks { out += " ack=\(ack)" }
    guard let object = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any], let payload = object["d"],
      var text = try? String(
        decoding: JSONSerialization.data(withJSONObject: payload, options: [.sortedKeys, .withoutEscapingSlashes]), as: UTF8.self)
    else { return out }
    for letter in UInt8(65)...72 {
      let id = Identifier(high: 0x4000, low: 0x8000_0000_0000_0000 + UInt64(letter))
      text = text.replacingOccurrences(of: "\"\(id)\"", with: "\"$\(String(UnicodeScalar(letter)))\"")
    }
    return text == "{}" ? out : out + " " + text
  }

  private func canonical(_ json: String) -> String {
    guard let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)),
      let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
    else { return json }
    return String(decoding: data, as: UTF8.self)
  }

  /// The call as the app sees it; nil if that has not changed.
  private mutating func line(_ info: CallInfo) -> String? {
    var words = [info.state.rawValue, text(info.peer)]
    if info.isMuted { words.append("muted") }
    if info.isHeld { words.append("held") }
    if info.isHeldByPeer { words.append("heldByPeer") }
    if info.group != nil { words.append("grouped") }
    if let account = info.account { words.append("acct=\(account)") }
    if let at = info.connectedAt { words.append("at=\(at)") }
    if let codec = info.codec { words.append("codec=\(codec)") }
    if let level = info.quality?.level { words.append("quality=\(level)") }
    if let reason = info.reason { words.append("reason=\(reason.rawValue)") }
    if let refusal = info.refusal { words.append("refusal=\(refusal.rawValue)") }
    let line = words.joined(separator: " ") + flags(info.capabilities)
    guard told[info.id] != line else { return nil }
    told[info.id] = line
    return "call \(name(info.id)) \(line)"
  }

  private func flags(_ caps: CallCapabilities?) -> String {
    guard let caps else { return "" }
    let names = [(caps.hold, "hold"), (caps.dtmf, "dtmf"), (caps.transfer, "transfer"), (caps.group, "group")]
    return " caps=" + names.filter { $0.0 == true }.map(\.1).joined(separator: ",")
  }

  private mutating func text(_ request: SystemRequest) -> String {
    switch request {
    case .start(let id, let peer): "start \(name(id)) \(text(peer))"
    case .answer(let id): "answer \(name(id))"
    case .end(let id): "end \(name(id))"
    case .hold(let id, let isOn): "hold \(name(id)) \(isOn ? "on" : "off")"
    case .mute(let id, let isOn): "mute \(name(id)) \(isOn ? "on" : "off")"
    case .digits(let id, let digits): "digits \(name(id)) \(digits)"
    case .group(let id, let other): "group \(name(id))" + (other.map { " " + name($0) } ?? "")
    }
  }

  private func text(_ request: ClientCall.MediaRequest) -> String {
    switch request {
    case .answer(let offer, let generation): "answer \(generation) \(offer)"
    case .offer(let generation): "offer \(generation)"
    case .apply(let answer, let generation): "apply \(generation) \(answer)"
    case .activate(let isConnected): isConnected ? "activate" : "activate early"
    case .mute(let isOn): "mute \(isOn ? "on" : "off")"
    case .close: "close"
    }
  }

  private func text(_ state: PhoneState) -> String {
    switch state {
    case .idle: "idle"
    case .connecting: "connecting"
    case .online: "online"
    case .refused(let code): "refused \(code)"
    case .loggedOut: "loggedOut"
    }
  }
}
