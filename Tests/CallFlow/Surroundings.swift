import AppSessions
import Devices
import PushPolicy
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// The surroundings of the call machine, scripted at its seam: trunk, devices, media threads and journal.
final class Surroundings {
  var machine: CallMachine
  var now = Instant(nanoseconds: 1_000_000_000)
  /// All actions since the last `take`.
  var actions: [CallMachine.Action] = []
  var records: [CallRecord] = []
  var refusals: [Refusal] = []
  var events: [GatewayEvent] = []
  var recordings: [RecordingCommand] = []
  var streams: [StreamCommand] = []
  var measurements: [Measurement] = []
  var lookUps: [DNSQuestion] = []
  var news: [TrunkNews] = []
  var pushes: [(key: PushKey, target: PushTarget, content: CallPush, deadline: Instant)] = []
  var pushesOver: [CallID] = []
  var operationAnswers: [(question: QuestionID, answer: OperationAnswer)] = []
  var lastQuestion: UInt64 = 0
  var deviceChanges: [DeviceChange] = []
  var httpAnswers: [HTTPRequestID: RequestAnswer] = [:]
  var wakesOver: [CallID] = []
  var revoked: [DeviceKey] = []
  var turnedAway: [SessionID] = []
  /// Messages to each device, in order, as `type` or `type reason`.
  var received: [DeviceKey: [String]] = [:]
  var messages: [DeviceKey: [ServerMessage]] = [:]
  var trunkReceived: [String] = []
  var answers: [RequestToken: RequestAnswer] = [:]
  /// The number of the test's next request.
  var nextRequest: UInt64 = 1
  var nextLeg: UInt64 = 1
  var journals = true
  var mediaRefusal: String?
  /// The new endpoint of media that has to move; nil: its address still exists.
  var movedMedia: SocketAddress?
  var isMediaOverloaded = false
  /// False: the media threads never report the end.
  var closesMedia = true
  var statistics = MediaStatistics()
  private var waiting: [CallMachine.Input] = []
  var legs: [DeviceKey: (AppLegID, AppLegRemote)] = [:]
  var addedLegs: Set<AppLegID> = []
  /// The session of the newest reservation, and of the first.
  var session: MediaSessionID?
  var firstSession: MediaSessionID?
  var mediaReceived: [String] = []
  var questions: [RouteQuestion] = []
  var userQuestions: [UserQuestion] = []
  /// Questions to the shared store, released claims, and devices woken at other nodes.
  var locates: [LocateQuestion] = []
  var claims: [ClaimQuestion] = []
  var askedTombstones: [CallID] = []
  var seats: [String] = []
  var unclaimed: [CallID] = []
  var disowned: [CallID] = []
  var wakes: [(key: DeviceKey, node: String, content: CallPush)] = []
  var invites: [OutboundInvite] = []
  var welcomes: [SessionID: (calls: [CallSnapshot], gone: [GoneCall], live: Set<CallID>)] = [:]

  static let alice = "alice"
  static let phone = DeviceKey(user: alice, device: "phone")
  static let tablet = DeviceKey(user: alice, device: "tablet")
  static let browser = DeviceKey(user: alice, device: "browser")
  static let peer = TrunkPeer(
    name: "carrier", domain: "127.0.0.1:5080",
    flow: Flow(transport: .udp, local: SocketAddress(.loopback, 5060), remote: SocketAddress(.loopback, 5080)))
  static var routing: Routing {
    Routing(
      trunks: [.init(name: "carrier", peer: peer)],
      users: [.init(id: alice, numbers: ["+15551230001", "+15551230002"]), .init(id: "bob", numbers: ["+15551230009"])],
      inbound: [.init(trunk: "carrier", target: .users)], outbound: [.init(prefix: "+", trunk: "carrier")])
  }

  static let wakes = WakeTokens(key: Array("a key of at least thirty-two bytes".utf8))!

  /// `network`: trunks are located, registered and probed; without it they have a fixed `peer`. `pushes`: devices can be woken.
  init(
    network: TrunkMachine.Network? = nil, pushes: Bool = false,
    _ configure: (inout CallConfiguration, inout Routing) -> Void = { _, _ in }
  ) {
    var configuration = CallConfiguration()
    var routing = Self.routing
    if pushes { configuration.push = PushSettings(gateway: "wss://gw.example/v1/connect", wakes: Self.wakes) }
    configure(&configuration, &routing)
    machine = CallMachine(configuration: configuration, routing: routing, random: .seeded(7), network: network)
    feed(.wallClock(offsetMilliseconds: 1_700_000_000_000))
  }

  // MARK: time

  func feed(_ input: CallMachine.Input) {
    waiting.append(input)
    while !waiting.isEmpty {
      var output = CallMachine.Output()
      let input = waiting.removeFirst()
      machine.handle(input, at: now, into: &output)
      // a deadline that stays in the past stops or spins the loop that waits for it
      if case .timer = input, let next = machine.nextDeadline, next <= now { Issue.record("it waits for \(next) at \(now)") }
      for action in output.actions { perform(action) }
      actions += output.actions
    }
  }

  /// Time passes; every timer on the way fires at its own instant.
  func pass(_ duration: Duration) {
    let end = now + duration
    while let due = machine.nextDeadline, due <= end {
      now = max(now, due)
      feed(.timer)
    }
    now = end
  }

  private func perform(_ action: CallMachine.Action) {
    switch action {
    case .sip(let command): note(command)
    case .app(let command): note(command)
    case .media(let command): note(command)
    case .reserveMedia(let request):
      let (call, session) = (request.call, request.session)
      if request.moves { return waiting.insert(.mediaMoved(call, session, movedMedia), at: 0) }
      if let mediaRefusal {
        return waiting.insert(.mediaRefused(call, reason: mediaRefusal, isOverload: isMediaOverloaded), at: 0)
      }
      self.session = session
      if firstSession == nil { firstSession = session }
      let reservation = MediaReservation(
        session: session, trunkAddress: SocketAddress(.loopback, 41_000),
        appCandidates: [SocketAddress(IPAddress(192, 0, 2, 1), 40_000)],
        fingerprint: [UInt8](repeating: 0xab, count: 32), thread: mediaThread)
      waiting.insert(.mediaReserved(call, reservation), at: 0)
    case .journal(let line): if journals { waiting.append(.journalled(line.call)) }
    case .record(let record): records.append(record)
    case .refused(let refusal): refusals.append(refusal)
    case .measured(let measurement): measurements.append(measurement)
    case .lookUp(let question): lookUps.append(question)
    case .verify, .keepAlive, .requestUnanswered: break
    case .trunkNews(let told): news.append(told)
    case .push(let key, let target, let content, let deadline): self.pushes.append((key, target, content, deadline))
    case .askRoute(let question, _): questions.append(question)
    case .askUser(let question, _): userQuestions.append(question)
    case .locate(let question): locates.append(question)
    case .claim(let question): claims.append(question)
    case .disowned(let call): disowned.append(call)
    case .unclaimed(let call): unclaimed.append(call)
    case .askTombstone(let call): askedTombstones.append(call)
    case .admit(_, let trunk, let most): seats.append("admit \(trunk) \(most)")
    case .released(_, let trunk): seats.append("released \(trunk)")
    case .wake(let key, let node, let content): wakes.append((key, node, content))
    case .pushCallOver(let call): pushesOver.append(call)
    case .answered(let question, let answer): operationAnswers.append((question, answer))
    case .devices(let changes): deviceChanges += changes
    case .grants, .shareGrants, .restoreGrants, .grantsCompared, .staleGrants: break
    case .event(let event): events.append(event)
    case .recording(let command): recordings.append(command)
    case .stream(let command): streams.append(command)
    case .trace: break
    }
  }

  private func note(_ command: UserAgent.Command) {
    switch command {
    case .respondProvisional(_, let code, _, _): trunkReceived.append("\(code)")
    case .answer: trunkReceived.append("200")
    case .refuse(_, let code, _, let cause, _): trunkReceived.append("\(code)" + (cause.map { " \($0)" } ?? ""))
    case .redirect(_, let node): trunkReceived.append("302 \(node)")
    case .invite(_, let invite):
      trunkReceived.append("INVITE \(invite.to)")
      invites.append(invite)
    case .cancel: trunkReceived.append("CANCEL")
    case .bye: trunkReceived.append("BYE")
    case .answerReinvite: trunkReceived.append("200 re-INVITE")
    case .refuseReinvite(_, let code): trunkReceived.append("\(code) re-INVITE")
    case .ping: trunkReceived.append("OPTIONS")
    case .request(_, let request): trunkReceived.append("\(request.method.name) \(request.trunk.name)")
    case .modify: trunkReceived.append("modify")
    case .offer(_, let sdp): trunkReceived.append("re-INVITE \(Self.direction(of: sdp))")
    case .acknowledge: trunkReceived.append("ACK with SDP")
    case .sendDigit(_, let digit, _): trunkReceived.append("INFO \(digit)")
    case .refer(_, let to, let replaces): trunkReceived.append("REFER \(to)" + (replaces == nil ? "" : " Replaces"))
    case .referToLeg(_, let other): trunkReceived.append("REFER \(other)")
    case .acceptRefer: trunkReceived.append("202 REFER")
    case .refuseRefer(_, let code): trunkReceived.append("\(code) REFER")
    case .notifyRefer(_, let code): trunkReceived.append("NOTIFY \(code)")
    }
  }

  static func direction(of sdp: String) -> String {
    ["sendonly", "recvonly", "inactive", "sendrecv"].first { sdp.contains("a=\($0)\r\n") } ?? "sendrecv"
  }

  private func note(_ command: SessionCommand) {
    switch command {
    case .send(let key, let message, _):
      var text = message.type.rawValue
      switch message {
      case .callCancel(let over), .callEnded(let over), .callGone(let over): text += " \(over.reason.rawValue)"
      case .callProgress(let progress): text += " \(progress.stage.rawValue)"
      case .callTransferred(let transferred): text += " \(transferred.status.rawValue)"
      case .callHeld(let held): text += " \(held.by.rawValue) \(held.on)"
      case .callMuted(let muted): text += " \(muted.on)"
      default: break
      }
      received[key, default: []].append(text)
      messages[key, default: []].append(message)
    case .answer(let token, let answer):
      #expect(answers[token] == nil, "a request was answered twice")
      answers[token] = answer
    case .welcome(let session, let calls, let gone, let live): welcomes[session] = (calls, gone, live)
    case .httpAnswer(let request, let answer):
      #expect(httpAnswers[request] == nil, "an HTTP request was answered twice")
      httpAnswers[request] = answer
    case .wakesOver(let call): wakesOver.append(call)
    case .revoke(let key): revoked.append(key)
    case .refuse(let session, _): turnedAway.append(session)
    case .callLive, .callDead, .drain, .replace, .nodes, .notify, .directory: break
    }
  }

  private func note(_ command: MediaCommand) {
    switch command {
    case .bridge(let from, let to, let connects):
      mediaReceived.append(
        "bridge \(from == firstSession ? "caller" : "number") → \(to == firstSession ? "caller" : "number")"
          + (connects ? "" : " early"))
    case .tap(_, let tap): mediaReceived.append(tap == nil ? "no tap" : "tap")
    case .stream: mediaReceived.append("stream")
    case .play(_, let announcement): mediaReceived.append(announcement.map { "play \($0.milliseconds * 8)" } ?? "no play")
    case .sendDigits(let id, let request):
      mediaReceived.append("digits \(request.digits) to \(id == firstSession ? "caller" : "number")")
    case .group(let id, let group): groups[id] = group
    case .lockWinner: mediaReceived.append("lock")
    case .connect: mediaReceived.append("connect")
    case .addAppLeg(_, let leg, _): addedLegs.insert(leg)
    case .setAppRemote(_, let leg, let remote, _, _):
      if let key = keyOf[leg] { legs[key] = (leg, remote) }
      lastRemote = (leg, remote)
    case .close(let session): if closesMedia { waiting.append(.media(.closed(session, statistics))) }
    default: break
    }
  }
  private var keyOf: [AppLegID: DeviceKey] = [:]
  /// The group of each session, as last sent to its media.
  var groups: [MediaSessionID: MediaGroupID] = [:]
  /// The media thread of later calls.
  var mediaThread = 0
  var lastRemote: (AppLegID, AppLegRemote)?

  // MARK: devices

  func connect(
    _ key: DeviceKey, _ session: String? = nil, caps: Set<String> = ["media.active"], resumed: Bool = false,
    platform: String? = nil,
    state: AppState = .fg, wake: CallID? = nil
  ) {
    let info = DeviceInfo(platform: platform, caps: caps, state: state, onlyCall: wake)
    feed(.app(.connected(key, SessionID(session ?? key.device), info, resumed: resumed)))
  }

  /// Breaks the socket; with `forGood` the session cannot be resumed.
  func disconnect(_ key: DeviceKey, _ session: String? = nil, forGood: Bool = false) {
    feed(.app(.disconnected(key, SessionID(session ?? key.device))))
    if forGood { feed(.app(.ended(key, SessionID(session ?? key.device)))) }
  }

  static func put(_ key: DeviceKey) -> DevicePut {
    let token = key.device.utf8.map { hexString(CollectionOfOne($0)) }.joined()
    return DevicePut(push: .init(kind: .apnsVoIP, token: token.padding(to: 64), env: "production", topic: "com.example.app.voip"))
  }

  /// Registers the push tokens of apps, which are killed then.
  func register(_ keys: [DeviceKey] = [phone]) {
    for key in keys {
      connect(key, "login")
      #expect(request(key, .devicePut(Self.put(key)), call: nil, on: "login") == .ok)
      disconnect(key, "login", forGood: true)
    }
  }

  /// The push service's report for the newest push to a device.
  func pushed(
    _ outcome: PushReport.Outcome = .accepted, to key: DeviceKey = phone, reason: String = "", attempts: Int = 1,
    _ location: SourceLocation = #_sourceLocation
  ) {
    guard let push = pushes.last(where: { $0.key.device == key.device }) else {
      Issue.record("no push to \(key.device)", sourceLocation: location)
      return
    }
    let report = PushReport(
      key: push.key, target: push.target, outcome: outcome, reason: reason, isFault: false, attempts: attempts,
      elapsed: .milliseconds(30))
    feed(.pushed(report))
  }

  /// An INVITE for a killed app; returns the call as its push names it.
  func parked(_ keys: [DeviceKey] = [phone], accepted: Bool = true) throws -> (LegID, CallID) {
    register(keys)
    let leg = invite()
    if accepted { for key in keys { pushed(to: key) } }
    return (leg, try #require(pushes.last?.key.call))
  }

  func reject(_ key: DeviceKey, _ call: CallID, _ reject: CallReject = CallReject()) -> RequestAnswer? {
    let request = HTTPRequestID(nextRequest)
    nextRequest += 1
    feed(.app(.httpReject(request, key, reject, call: call)))
    return httpAnswers[request]
  }

  func gone(_ session: String) -> [EndReason]? { welcomes[SessionID(session)]?.gone.map(\.over.reason) }

  @discardableResult
  func request(_ key: DeviceKey, _ message: ClientMessage, call: CallID?, on session: String? = nil) -> RequestAnswer? {
    let token = RequestToken(device: key, request: Identifier(high: 1, low: nextRequest))
    nextRequest += 1
    feed(.app(.request(key, SessionID(session ?? key.device), token, message, call: call)))
    return answers[token]
  }

  func notify(_ key: DeviceKey, _ message: ClientMessage, call: CallID, on session: String? = nil) {
    feed(.app(.notification(key, SessionID(session ?? key.device), message, call: call)))
  }

  /// The device's SDP.
  static func appSDP(codecs: [AudioEncoding] = [.opus], setup: String = "active", fingerprint: UInt8 = 1) -> String {
    let print = (0..<32).map { _ in hexString(CollectionOfOne(fingerprint)).uppercased() }.joined(separator: ":")
    let formats = codecs.map { "\($0.row.payloadType)" }.joined(separator: " ")
    let maps = codecs.map { "a=rtpmap:\($0.row.payloadType) \($0.row.rtpmap)" }
    return
      ([
        "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF \(formats)",
        "c=IN IP4 0.0.0.0", "a=mid:0", "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuv", "a=fingerprint:sha-256 \(print)",
        "a=setup:\(setup)", "a=rtcp-mux", "a=sendrecv",
      ] + maps).joined(separator: "\r\n") + "\r\n"
  }

  func prepare(_ key: DeviceKey, _ call: CallID, gen: Int = 1, on session: String? = nil) -> RequestAnswer? {
    let answer = request(key, .callPrepare(CallPrepare(sdp: Self.appSDP(), gen: gen)), call: call, on: session)
    if let lastRemote { legs[key] = lastRemote }
    return answer
  }

  func pair(_ key: DeviceKey) {
    guard let session, let (leg, remote) = legs[key] else { return }
    feed(.media(.nominated(session, leg, generation: remote.generation, remote: SocketAddress(.loopback, 1))))
  }
  func keys(_ key: DeviceKey) {
    guard let session, let (leg, remote) = legs[key] else { return }
    feed(.media(.keysInstalled(session, leg, generation: remote.generation, profile: "AEAD_AES_128_GCM")))
  }
  func ready(_ key: DeviceKey, _ call: CallID, gen: Int = 1) { notify(key, .mediaReady(MediaReady(gen: gen)), call: call) }

  /// Prepared, with a pair, keys and `media.ready`.
  func warm(_ key: DeviceKey, _ call: CallID) {
    _ = prepare(key, call)
    pair(key)
    keys(key)
    ready(key, call)
  }

  // MARK: trunk

  static func trunkSDP(port: UInt16 = 6_000, formats: String = "0 8 101", direction: String = "sendrecv") -> String {
    [
      "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "c=IN IP4 127.0.0.1", "t=0 0", "m=audio \(port) RTP/AVP \(formats)",
      "a=rtpmap:101 telephone-event/8000", "a=\(direction)",
    ].joined(separator: "\r\n") + "\r\n"
  }

  @discardableResult
  func invite(
    to number: String = "+15551230001", sdp: String? = trunkSDP(), isPrivate: Bool = false, trunk: String = "carrier",
    diversions: Int = 0, isFromEdge: Bool = false, isSteered: Bool = false
  ) -> LegID {
    let leg = LegID.inbound(nextLeg)
    nextLeg += 1
    var invite = InboundInvite(
      trunk: trunk, source: Self.peer.flow, callID: "call-\(nextLeg)@carrier",
      from: .init(number: "+15550000042", displayName: "Carol"),
      to: .init(number: number), isPrivate: isPrivate, sdp: sdp, diversions: diversions)
    (invite.isFromEdge, invite.isSteered) = (isFromEdge, isSteered)
    feed(.sip(.inviteReceived(leg, invite)))
    return leg
  }

  /// The call of the newest offer to a device.
  func offeredCall(_ key: DeviceKey = phone) -> CallID? {
    for action in actions.reversed() {
      if case .app(.send(key, .callOffer, let call)) = action { return call }
    }
    return nil
  }

  /// INVITE, offer, ringing and 180 to connected devices.
  func ringing(_ devices: [DeviceKey] = [phone], sdp: String? = trunkSDP(), diversions: Int = 0) throws -> (LegID, CallID) {
    for device in devices { connect(device) }
    let leg = invite(sdp: sdp, diversions: diversions)
    let call = try #require(offeredCall(devices[0]))
    for device in devices {
      feed(.app(.offerAcked(device, SessionID(device.device), call: call)))
      notify(device, .callRinging(CallRinging()), call: call)
    }
    return (leg, call)
  }

  /// A connected incoming call.
  func connected(diversions: Int = 0) throws -> (LegID, CallID) {
    let (leg, call) = try ringing(diversions: diversions)
    warm(Self.phone, call)
    request(Self.phone, .callAnswer(CallAnswer()), call: call)
    feed(.sip(.acknowledged(leg, sdp: nil)))
    return (leg, call)
  }

  /// `call.start` up to the open gate.
  func started(_ call: CallID, number: String = "+15557654321") throws {
    connect(Self.phone)
    let answer = request(
      Self.phone, .callStart(CallStart(to: Handle(k: .phone, h: number), sdp: Self.appSDP(setup: "actpass"))), call: call)
    guard case .ok(let success) = answer else { throw Wrong(answer) }
    #expect(success.sdp != nil && success.call == call)
    if let lastRemote { legs[Self.phone] = lastRemote }
  }

  struct Wrong: Error {
    var answer: RequestAnswer?
    init(_ answer: RequestAnswer?) { self.answer = answer }
  }

  func openOutgoingGate(_ call: CallID) {
    pair(Self.phone)
    keys(Self.phone)
    ready(Self.phone, call)
  }

  var outgoingLeg: LegID? {
    for action in actions.reversed() {
      if case .sip(.invite(let leg, _)) = action { return leg }
    }
    return nil
  }

  func code(_ answer: RequestAnswer?) -> ErrorCode? {
    if case .err(let failure) = answer { return failure.code }
    return nil
  }
  func reason(_ answer: RequestAnswer?) -> EndReason? {
    if case .err(let failure) = answer { return failure.reason }
    return nil
  }
  func isOK(_ answer: RequestAnswer?) -> Bool {
    if case .ok = answer { return true }
    return false
  }

  /// Expects one record with this end.
  func expectRecord(_ reason: EndReason, by side: CallSide? = nil, sip: Int? = nil, _ location: SourceLocation = #_sourceLocation)
  {
    #expect(records.count == 1, sourceLocation: location)
    #expect(records.first?.end.reason == reason, sourceLocation: location)
    if let side { #expect(records.first?.end.by == side, sourceLocation: location) }
    if let sip { #expect(records.first?.end.sip == sip, sourceLocation: location) }
    #expect(machine.summaries.isEmpty, sourceLocation: location)
    #expect(machine.statistics.answeredWithoutMedia == 0, sourceLocation: location)
    #expect(
      machine.calls.isEmpty && machine.pending.isEmpty && machine.trunksWithCalls.isEmpty, "keys are left",
      sourceLocation: location)
  }
}

extension String {
  fileprivate func padding(to count: Int) -> String { self + String(repeating: "0", count: max(0, count - self.count)) }
}
