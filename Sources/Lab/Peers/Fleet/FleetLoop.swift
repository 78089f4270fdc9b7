import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklineDTLS
import TrunklinePlatform

/// The phones of a fleet: all on the thread that is in `run`, before that on the thread that made it.
final class FleetLoop {
  /// Sockets of one phone: its own, and the others for simultaneous sessions at further nodes.
  static let sockets = 6
  /// Each call speaks in one of these slots, 20 ms apart.
  static let slots = 10
  private static let step = Duration.milliseconds(2)
  /// Limit of lateness that is caught up on a busy machine: sockets must be read, too.
  private static let lateness = Duration.milliseconds(100)

  let options: PhoneFleet.Options
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

  init(_ options: PhoneFleet.Options, random: RandomSource, emit: @escaping @Sendable (PeerEvent) -> Void) throws {
    (self.options, self.random, self.emit) = (options, random, emit)
    loop = try EventLoop(name: "phones")
    frames = try CodedSpeech(relayed: true).appFrames
    identity = try DTLSIdentity()
    phones = options.members.enumerated().map { FleetPhone($0, $1, random) }
    timer = loop.addTimer("phones") { [unowned self] in keepTime() }
  }

  func begin() {
    since = loop.now
    due = loop.now
    if let timer { loop.setTimer(timer, at: due) }
  }

  func run() {
    loop.run()
    pool?.stop()
  }

  // MARK: commands

  func answer(_ name: String) {
    for phone in named(name) {
      for id in phone.machine.liveCalls where phone.machine.info(of: id)?.state == .ringing { give(phone, .act(id, .answer)) }
    }
  }

  func hangUp(_ name: String) {
    for phone in named(name) { for id in phone.machine.liveCalls { give(phone, .act(id, .end)) } }
  }

  func register(_ name: String, token: String) {
    let push = DevicePut.Push(kind: .apnsVoIP, token: token, env: "production", topic: "org.example.phone.voip")
    for phone in named(name) { give(phone, .pushToken(push)) }
  }

  func push(_ name: String, _ push: PushPayload) {
    for phone in named(name) {
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

  func reportStatus() {
    for phone in phones {
      let calls = phone.machine.liveCalls
      guard phone.isOnline || !calls.isEmpty else { continue }
      report(phone, "status", calls.first, ["online": "\(phone.isOnline)", "calls": "\(calls.count)"])
    }
  }

  /// `*`: all.
  private func named(_ name: String) -> [FleetPhone] { phones.filter { name == "*" || $0.member.name == name } }

  // MARK: time

  private func keepTime() {
    let now = MonotonicClock.now()
    logIn(now)
    due = max(due, now - Self.lateness)
    while due <= now {
      for index in stride(from: steps % Self.slots, to: begun, by: Self.slots) { advance(phones[index], now) }
      steps += 1
      due = due + Self.step
    }
    if let timer { loop.setTimer(timer, at: due) }
  }

  private func logIn(_ now: Instant) {
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
