import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklineDTLS
import TrunklinePlatform

/// Many phones in one process: the SDK's machine for each, one event loop, one thread for all WebSockets. Speech is coded once
/// and replayed as PCMU, which the gateway relays. A phone answers automatically or on a command.
///
/// Unchecked: all state but the functions under "from any thread" belongs to the thread that is in `run`.
public final class PhoneFleet: @unchecked Sendable {
  /// One phone; a file of phones has one JSON object per line.
  public struct Member: Codable, Sendable {
    public var name: String
    public var token: String
    public var device: String
    /// Seconds from ringing to the answer; nil: it rings until a command answers it.
    public var answerAfter: Double?
    public init(name: String, token: String, device: String, answerAfter: Double? = nil) {
      (self.name, self.token, self.device, self.answerAfter) = (name, token, device, answerAfter)
    }
  }

  public struct Options: Sendable {
    public var url = "ws://127.0.0.1:8080/v1/connect"
    /// Address of the phones' media sockets.
    public var mediaAddress = IPAddress.loopback
    public var members: [Member] = []
    /// Logins started per second.
    public var loginsPerSecond = 100.0
    public init() {}
  }

  /// Sockets of one phone: its own, and the others for simultaneous sessions at further nodes.
  static let sockets = 6
  /// Each call speaks in one of these slots, 20 ms apart.
  static let slots = 10
  private static let step = Duration.milliseconds(2)
  /// Limit of lateness that is caught up on a busy machine: sockets must be read, too.
  private static let lateness = Duration.milliseconds(100)

  let options: Options
  let loop: EventLoop
  let random: RandomSource
  let emit: @Sendable (PeerEvent) -> Void
  let frames: [[UInt8]]
  let identity: DTLSIdentity
  var phones: [FleetPhone] = []
  var pool: WebSocketPool?
  private var timer: EventLoop.TimerID?
  private var due = Instant.zero
  private var since = Instant.zero
  private var steps = 0
  private var begun = 0

  public init(_ options: Options, random: RandomSource = .system, emit: @escaping @Sendable (PeerEvent) -> Void) throws {
    (self.options, self.random, self.emit) = (options, random, emit)
    loop = try EventLoop(name: "phones")
    frames = try CodedSpeech(relayed: true).appFrames
    identity = try DTLSIdentity()
    phones = options.members.enumerated().map { FleetPhone($0, $1, random) }
    timer = loop.addTimer("phones") { [unowned self] in keepTime() }
    pool = try WebSocketPool(
      endpoint: try WebSocketPool.Endpoint(url: options.url, isInsecure: true), count: phones.count * Self.sockets
    ) { [unowned self] number, event in
      loop.post { [unowned self] in received(event, of: phones[number / Self.sockets], number % Self.sockets) }
    }
  }

  /// Runs on the calling thread until `stop`.
  public func run() {
    loop.post { [unowned self] in
      (since, due) = (loop.now, loop.now)
      if let timer { loop.setTimer(timer, at: due) }
    }
    loop.run()
    pool?.stop()
  }

  // MARK: from any thread

  /// Makes `run` return at once; calls are not hung up.
  public func stop() { loop.post { [unowned self] in loop.stop() } }

  /// Answers the ringing calls of the phones of this name; `*`: of all.
  public func answer(_ name: String) {
    each(name) { [unowned self] phone in
      for id in phone.machine.liveCalls where phone.machine.info(of: id)?.state == .ringing { give(phone, .act(id, .answer)) }
    }
  }

  /// Ends the calls of the phones of this name; `*`: of all.
  public func hangUp(_ name: String) {
    each(name) { [unowned self] phone in
      for id in phone.machine.liveCalls { give(phone, .act(id, .end)) }
    }
  }

  /// Registers this push token (hex), by which APNs can wake the phones of this name; an event `registered` follows.
  public func register(_ name: String, token: String) {
    each(name) { [unowned self] phone in
      give(
        phone, .pushToken(DevicePut.Push(kind: .apnsVoIP, token: token, env: "production", topic: "org.example.phone.voip")))
    }
  }

  /// Delivers a push to the phones of this name; one that cannot be read is ignored.
  public func push(_ name: String, _ json: [UInt8]) {
    guard let push = PushPayload(json: json) else { return }
    each(name) { [unowned self] phone in
      report(phone, "pushed", push.call)
      give(
        phone,
        .pushed(
          PhoneMachine.Push(
            call: push.call, caller: push.caller, wake: push.wake.exposed, gateway: push.gateway,
            details: push.details),
          mustReport: true))
    }
  }

  /// Reports an event `status` for each phone that is online or has a call.
  public func reportStatus() {
    each("*") { [unowned self] phone in
      let calls = phone.machine.liveCalls
      guard phone.isOnline || !calls.isEmpty else { return }
      report(phone, "status", calls.first, ["online": "\(phone.isOnline)", "calls": "\(calls.count)"])
    }
  }

  private func each(_ name: String, _ body: @escaping @Sendable (FleetPhone) -> Void) {
    loop.post { [unowned self] in for phone in phones where name == "*" || phone.member.name == name { body(phone) } }
  }

  // MARK: time

  private func keepTime() {
    let now = MonotonicClock.now()
    begin(now)
    due = max(due, now - Self.lateness)
    while due <= now {
      for index in stride(from: steps % Self.slots, to: begun, by: Self.slots) { advance(phones[index], now) }
      steps += 1
      due = due + Self.step
    }
    if let timer { loop.setTimer(timer, at: due) }
  }

  private func begin(_ now: Instant) {
    let wanted = min(phones.count, Int((now - since).inSeconds * options.loginsPerSecond) + 1)
    while begun < wanted {
      give(phones[begun], .start)
      begun += 1
    }
  }

  /// Advances one phone by 20 ms.
  private func advance(_ phone: FleetPhone, _ now: Instant) {
    if let due = phone.due, due <= now { give(phone, .timer) }
    for (id, due) in phone.answerAt where due <= now {
      phone.answerAt[id] = nil
      give(phone, .act(id, .answer))
    }
    for (id, call) in phone.calls { advance(phone, id, call, now) }
  }

  private func advance(_ phone: FleetPhone, _ id: Identifier, _ call: FleetCall, _ now: Instant) {
    var output = ClientMedia.Output()
    if let due = call.media.nextDeadline, due <= now { call.media.handleTimeout(at: now, into: &output) }
    call.media.send(encoded: frames[call.position % frames.count], into: &output)
    call.position += 1
    handle(output, phone, id, call)
  }

  func handle(_ output: ClientMedia.Output, _ phone: FleetPhone, _ id: Identifier, _ call: FleetCall) {
    call.transmit(output)
    if !output.frames.isEmpty { call.heardAt = MonotonicClock.now() }
    for report in output.reports { give(phone, .media(id, report)) }
  }

  func receive(_ phone: FleetPhone, _ id: Identifier, _ call: FleetCall) {
    call.socket.receiveAll { bytes, source in
      var output = ClientMedia.Output()
      var datagram = Array(bytes)
      datagram.withUnsafeMutableBytes {
        call.media.receive($0, from: source, to: call.socket.localAddress, at: MonotonicClock.now(), into: &output)
      }
      handle(output, phone, id, call)
    }
  }
}
