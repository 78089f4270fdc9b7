import AppProtocol
import Bytes
import DTLS
import Platform
import TrunklineClient

/// An app client for developers: logs in to a gateway, answers or places calls, speaks, records what it hears. One event loop thread;
/// the WebSocket has a thread of its own. One call at a time; a second one is declined as busy.
///
/// Unchecked: everything but `stop` belongs to the thread that is in `run`.
public final class AppPhone: @unchecked Sendable {
  public struct Options: Sendable {
    public var url = "ws://127.0.0.1:8080/v1/connect"
    public var token = ""
    /// Started by this push: the session is for its call only, and `url` and `token` are not used.
    public var push: ReceivedPush?
    /// Registers where it can be woken, then leaves.
    public var registration: DevicePut.Push?
    public var device = "phone"
    /// Answers incoming calls, so long after they ring.
    public var answerAfter: Duration?
    public var call: String?
    public var from: String?
    /// Hangs up this long after `call.connected`; nil waits for the other side.
    public var talk: Duration?
    public var digits = ""
    public var samples: [Int16]?
    public var repeats = false
    /// Ends after this many calls.
    public var calls: Int?
    /// Takes self-signed certificates.
    public var isInsecure = false
    public init() {}
  }

  public struct CallReport: Sendable {
    public var call = ""
    public var wasConnected = false
    public var reason = ""
    public var codec = ""
    public var spoken: [Int16] = []
    public var heard: [Int16] = []
    public var spokenSince: Instant?
    public var heardSince: Instant?
    public var statistics = ClientMedia.Statistics()
    public init() {}
  }

  /// A call with its media; noncopyable media needs a box.
  final class Live {
    var call: ClientCall
    var media: ClientMedia
    var source: SpeechSource
    var recording = Recording()
    var wasConnected = false
    var spokenSince: Instant?
    var heardAudio = false
    var ringingSince: Instant
    var answerAt: Instant?
    var hangUpAt: Instant?
    init(call: ClientCall, media: consuming ClientMedia, source: SpeechSource, now: Instant) {
      self.media = media
      (self.call, self.source, ringingSince) = (call, source, now)
    }
  }

  let options: Options
  let loop: EventLoop
  let random: RandomSource
  let emit: (PeerEvent) -> Void
  private var session: ClientSession
  private var webSocket: WebSocketPool?
  private var sockets: [UDPSocket] = []
  private let mediaConfiguration: ClientMedia.Configuration
  var live: Live?
  private var tags: [Identifier: ClientCall.RequestTag] = [:]
  private var finished = 0
  private var isStopping = false
  private var refusal: String?
  private var sessionTimer: EventLoop.TimerID?
  private var mediaTimer: EventLoop.TimerID?
  private var tickTimer: EventLoop.TimerID?
  private var goneTimer: EventLoop.TimerID?
  private var registering: Identifier?
  private var nextTick = Instant.zero
  public private(set) var reports: [CallReport] = []

  public struct SetupError: Error, CustomStringConvertible { public let description: String }

  /// Binds a UDP socket on each of the machine's addresses.
  public init(_ options: Options, random: RandomSource = .system, emit: @escaping (PeerEvent) -> Void) throws {
    (self.options, self.random, self.emit) = (options, random, emit)
    loop = try EventLoop(name: "phone")
    let endpoint = try WebSocketPool.Endpoint(url: options.push?.gateway ?? options.url, isInsecure: options.isInsecure)
    // A gateway on loopback may offer its media there too.
    let isNear = endpoint.host == "localhost" || IPAddress(endpoint.host)?.isLoopback == true
    for address in try localAddresses(loopback: isNear ? true : nil) {
      sockets.append(try UDPSocket(bind: SocketAddress(address, 0)))
    }
    guard let media = ClientMedia.Configuration(localAddresses: sockets.map(\.localAddress), identity: try DTLSIdentity()) else {
      throw SetupError(description: "no usable certificate")
    }
    mediaConfiguration = media
    var configuration = ClientSession.Configuration(
      token: options.token, device: Hello.Device(id: options.device, platform: "linux", sdk: "trunkline-phone"))
    configuration.wake = options.push?.wake
    session = ClientSession(configuration: configuration, random: random)
    sessionTimer = loop.addTimer { [unowned self] in give(.timer) }
    mediaTimer = loop.addTimer { [unowned self] in mediaTimeout() }
    tickTimer = loop.addTimer { [unowned self] in tick() }
    goneTimer = loop.addTimer { [unowned self] in gone(.unknown) }
    for socket in sockets { try loop.register(socket.fd, .readable) { [unowned self] _ in receive(socket) } }
    webSocket = try WebSocketPool(endpoint: endpoint, count: 1) { [unowned self] _, event in
      loop.post { [unowned self] in handle(event) }
    }
  }

  /// From any thread: hangs up, leaves the session, then `run` returns.
  public func stop() { loop.post { [unowned self] in finishAll() } }

  /// Runs until its calls are over, `stop`, or the gateway refuses this device; the text says why in that case.
  public func run() -> String? {
    loop.post { [unowned self] in give(.start) }
    loop.run()
    webSocket?.stop()
    for socket in sockets { loop.unregister(socket.fd) }
    return refusal
  }

  private func finishAll() {
    guard !isStopping else { return }
    isStopping = true
    if let live, live.call.state != .ended { return act(.hangUp) }
    leave()
  }

  private func leave() {
    give(.finish)
    loop.stop()
  }

  // MARK: session

  private func handle(_ event: WebSocketPool.Event) {
    if case .closed(_, let why?) = event { emit(PeerEvent("disconnected", ["why": why])) }
    give(event.input)
  }

  private func give(_ input: ClientSession.Input) {
    var actions: [ClientSession.Action] = []
    session.handle(input, at: loop.now, into: &actions)
    perform(actions)
  }

  private func perform(_ actions: [ClientSession.Action]) {
    webSocket?.perform(actions, 0) { handle($0) }
    if let sessionTimer { loop.setTimer(sessionTimer, at: session.nextDeadline) }
  }

  private func handle(_ event: ClientSession.Event) {
    switch event {
    case .online(_, let snapshot):
      emit(PeerEvent("online"))
      if let registration = options.registration { return register(registration) }
      if let snapshot { compare(snapshot) }
      if let number = options.call, live == nil, finished == 0 { dial(number) }
    case .offline: emit(PeerEvent("offline"))
    case .refused(let code):
      refusal =
        code == 4001 ? "the gateway refused the login (4001): make a new token" : "the gateway closed the session (\(code))"
      loop.stop()
    case .message(.callGone(let over), let call) where call == options.push?.call && live == nil: gone(over.reason)
    case .message(.callOffer(let offer), let call?): offered(call, offer.from, offer.sdp, offer.gen)
    case .message(let message, let call): if call == live?.call.id { act(.message(message)) }
    case .answered(let id, _, let result) where id == registering: registered(result)
    case .answered(let id, _, let result): if let tag = tags.removeValue(forKey: id) { act(.answered(tag, result)) }
    case .mediaAnswer(let id, _, let answer):
      tags[id] = nil
      act(.restarted(answer))
    }
  }

  /// After a fresh welcome: what rings and is not known is taken up, what we show and the gateway does not know has ended.
  private func compare(_ snapshot: [CallSnapshot]) {
    if let live, live.call.state != .starting, !snapshot.contains(where: { $0.call == live.call.id }) { act(.lostByGateway) }
    for entry in snapshot where entry.state == .ringing && entry.dir == .incoming {
      if let sdp = entry.sdp, live == nil { offered(entry.call, entry.from, sdp, entry.gen) }
    }
    // `call.gone` follows the welcome at once; a call that is in neither ended with `unknown`.
    if options.push != nil, live == nil, let goneTimer { loop.setTimer(goneTimer, at: loop.now + .seconds(2)) }
  }

  // MARK: pushes

  private func register(_ push: DevicePut.Push) {
    var actions: [ClientSession.Action] = []
    registering = session.request(.devicePut(DevicePut(push: push)), call: nil, at: loop.now, into: &actions)
    perform(actions)
  }

  private func registered(_ result: Result<Success, Failure>) {
    switch result {
    case .success: emit(PeerEvent("registered", ["device": options.device]))
    case .failure(let failure): refusal = "device.put was refused: \(failure.msg ?? failure.code.rawValue)"
    }
    leave()
  }

  /// The call that woke this app is over, or nobody knows it.
  private func gone(_ reason: EndReason) {
    guard live == nil, finished == 0, let call = options.push?.call else { return }
    emit(PeerEvent("gone", ["call": "\(call)", "reason": reason.rawValue]))
    var report = CallReport()
    (report.call, report.reason) = ("\(call)", reason.rawValue)
    reports.append(report)
    leave()
  }

  // MARK: calls

  private func makeLive(_ call: ClientCall) -> Live {
    let source = SpeechSource(samples: options.samples ?? SpeechSource.app, repeats: options.repeats)
    let made = Live(
      call: call, media: ClientMedia(configuration: mediaConfiguration, random: random), source: source, now: loop.now)
    live = made
    nextTick = loop.now
    if let tickTimer { loop.setTimer(tickTimer, at: nextTick) }
    return made
  }

  private func dial(_ number: String) {
    let from = options.from.map { Handle(k: .phone, h: $0) }
    let made = makeLive(ClientCall(outgoing: Identifier(random: random), to: Handle(k: .phone, h: number), from: from))
    emit(PeerEvent("dial", ["to": number]))
    var actions: [ClientCall.Action] = []
    made.call.dial(into: &actions)
    perform(actions, made)
  }

  private func offered(_ id: Identifier, _ from: Handle, _ sdp: String, _ generation: Int) {
    if let live, live.call.id != id {
      var actions: [ClientSession.Action] = []
      _ = session.request(.callReject(CallReject(scope: .device, reason: .busy)), call: id, at: loop.now, into: &actions)
      return perform(actions)
    }
    let made = live ?? makeLive(ClientCall(incoming: id, from: from))
    emit(PeerEvent("ringing", ["from": from.h, "call": "\(id)"]))
    act(.offered(sdp: sdp, generation: generation))
    if let wait = options.answerAfter { made.answerAt = loop.now + wait }
  }

  func act(_ input: ClientCall.Input) {
    guard let live else { return }
    var actions: [ClientCall.Action] = []
    live.call.handle(input, into: &actions)
    perform(actions, live)
  }

  private func perform(_ actions: [ClientCall.Action], _ live: Live) {
    var output = ClientMedia.Output()
    var toSession: [ClientSession.Action] = []
    for action in actions {
      switch action {
      case .request(let message, let tag):
        tags[session.request(message, call: live.call.id, at: loop.now, into: &toSession)] = tag
      case .notify(let message): session.notify(message, call: live.call.id, at: loop.now, into: &toSession)
      case .media(let order): live.media.handle(order, at: loop.now, into: &output)
      case .stateChanged(let state): changed(live, state)
      case .digit(let digit): emit(PeerEvent("digit", ["digit": String(digit)]))
      case .quality(let quality): emit(PeerEvent("quality", ["level": quality.level, "cause": quality.cause ?? ""]))
      }
    }
    perform(toSession)
    take(output)
    if live.call.state == .ended { ended(live) }
  }

  private func changed(_ live: Live, _ state: ClientCall.State) {
    switch state {
    case .connected:
      live.wasConnected = true
      if let talk = options.talk { live.hangUpAt = loop.now + talk }
      emit(PeerEvent("connected", ["codec": live.call.codec ?? ""]))
    case .ended: break
    default: emit(PeerEvent(state.rawValue))
    }
  }

  private func ended(_ over: Live) {
    guard live === over else { return }
    live = nil
    var report = CallReport()
    (report.call, report.wasConnected, report.reason) = ("\(over.call.id)", over.wasConnected, over.call.reason?.rawValue ?? "")
    (report.codec, report.spoken) = (over.call.codec ?? "", over.source.samples)
    (report.heard, report.heardSince) = (over.recording.samples, over.recording.origin)
    (report.spokenSince, report.statistics) = (over.spokenSince, over.media.statistics)
    if reports.count < 1000 { reports.append(report) }
    finished += 1
    let statistics = over.media.statistics
    emit(
      PeerEvent(
        "ended",
        [
          "reason": report.reason, "connected": "\(over.wasConnected)", "sent": "\(statistics.sentPackets)",
          "received": "\(statistics.receivedPackets)", "lost": "\(statistics.lostPackets)",
          "concealedMs": "\(statistics.concealedMilliseconds)", "refused": "\(statistics.refusedPackets)",
          "digits": statistics.digits,
          "jitterMs": PeerEvent.number(statistics.jitterMilliseconds),
          "bufferMs": PeerEvent.number(statistics.bufferDelayMilliseconds),
          "spokenAt": PeerEvent.wall(report.spokenSince), "heardAt": PeerEvent.wall(report.heardSince),
        ]))
    let limit = options.calls ?? (options.call != nil ? 1 : nil)
    // The last request must leave before the socket is closed: the session's close follows it on the same queue.
    if isStopping || limit.map({ finished >= $0 }) ?? false { leave() }
  }

  // MARK: media

  private func take(_ output: ClientMedia.Output) {
    for datagram in output.datagrams {
      guard let socket = sockets.first(where: { $0.localAddress == datagram.local }) else { continue }
      // An unreachable path is what ICE finds out; there is nothing else to do with the error.
      _ = try? socket.send(datagram.bytes, to: datagram.remote)
    }
    for report in output.reports {
      if case .connected(_, let pair, let trip, let profile) = report {
        emit(
          PeerEvent(
            "media",
            [
              "pair": "\(pair?.local ?? "?")→\(pair?.remote ?? "?")", "rttMs": trip.map { "\(Int($0))" } ?? "",
              "profile": profile,
            ]))
      }
      act(.media(report))
    }
    if let mediaTimer { loop.setTimer(mediaTimer, at: live?.media.nextDeadline) }
  }

  private func mediaTimeout() {
    guard let live else { return }
    var output = ClientMedia.Output()
    live.media.handleTimeout(at: loop.now, into: &output)
    take(output)
  }

  private func receive(_ socket: UDPSocket) {
    socket.receiveAll { bytes, source in
      guard let live else { return }
      var output = ClientMedia.Output()
      live.media.receive(Array(bytes), from: source, to: socket.localAddress, at: MonotonicClock.now(), into: &output)
      take(output)
    }
  }

  private func tick() {
    guard let live, let tickTimer else { return }
    let now = loop.now
    if let due = live.answerAt, due <= now {
      live.answerAt = nil
      act(.answer(ageMilliseconds: 0))
    }
    if let due = live.hangUpAt, due <= now {
      live.hangUpAt = nil
      act(.hangUp)
    }
    if self.live != nil, live.call.state == .connected { speak(live, now) }
    nextTick = nextTick + .milliseconds(20)
    if now - nextTick > .milliseconds(200) { nextTick = now + .milliseconds(20) }
    loop.setTimer(tickTimer, at: nextTick)
  }

  private func speak(_ live: Live, _ now: Instant) {
    if live.spokenSince == nil {
      live.spokenSince = now
      if !options.digits.isEmpty { act(.digits(options.digits)) }
    }
    var output = ClientMedia.Output()
    let played = live.media.tick(captured: live.source.next(), at: now, into: &output)
    live.recording.write(played, at: nextTick)
    if !live.heardAudio, played.contains(where: { abs(Int($0)) > 300 }) {
      live.heardAudio = true
      emit(PeerEvent("firstAudio", at: now))
    }
    take(output)
  }
}
