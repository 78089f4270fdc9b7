import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineClient

/// The engine with parts that misbehave: closures, audio devices, keychains, call systems. No main actor takes part: one that
/// hangs changes nothing here.
@Suite struct EngineBadInputTests {
  private static let first = Identifier(high: 3, low: 1)
  private static let second = Identifier(high: 3, low: 2)

  /// An engine, and what it was asked to show.
  private struct Rig {
    let engine: PhoneEngine
    let sockets = FakeSockets()
    let system = WatchedSystem()
    let updates = PhoneUpdates {}

    init(
      audio: any AudioDevice = NoAudio(), secrets: any SecretStore = MemorySecrets(),
      token: @escaping @Sendable () async throws -> String = { "a.b.c" }, change: (inout PhoneParts) -> Void = { _ in }
    ) {
      var parts = PhoneParts(
        gateway: "wss://phone.example.com/v1/connect",
        configuration: .init(device: Hello.Device(id: "desk")), system: system, audio: audio, sockets: sockets, secrets: secrets,
        token: token)
      change(&parts)
      engine = PhoneEngine(parts, updates: updates)
      engine.start()
    }

    func give(_ input: PhoneMachine.Input) { engine.enqueue { $0.give(input) } }
    /// Returns when the engine has handled all its inputs.
    func drain() { engine.executor.queue.sync {} }
    func logIn() async {
      for await _ in sockets.hellos.stream { break }
      sockets.welcome()
    }
    /// Waits for an entry of the trace, or for a sent message; the test's time limit is the limit.
    func until(_ isThere: () -> Bool) async { while !isThere() { try? await Task.sleep(for: .milliseconds(2)) } }
    func info(_ call: Identifier) -> CallInfo? {
      engine.executor.queue.sync { engine.assumeIsolated { $0.machine.info(of: call) } }
    }
    func isOver(_ call: Identifier) -> Bool { info(call)?.state == .ended }

    func dial(_ call: Identifier) { give(.dial(call, to: Handle(k: .phone, h: "+15551230001"))) }
    func count(of type: String) -> Int { sockets.sent.count { $0.contains(#""t":"\#(type)""#) } }
    /// The gateway accepts the newest call.
    func takeCall(_ call: Identifier, seq: Int) async {
      await until { sockets.sent.contains { $0.contains(#""t":"call.start""#) && $0.contains("\(call)") } }
      let text = sockets.sent.last { $0.contains(#""t":"call.start""#) } ?? ""
      let fields = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      let id = (fields?["id"] as? String).flatMap { Identifier($0) }
      sockets.deliver(.received(ServerFrame(.ok(Success(sdp: "v=0")), re: id).encoded()))
      let progress = ServerMessage.callProgress(CallProgress(.ringing, at: 0))
      sockets.deliver(.received(ServerFrame(progress, seq: seq, call: call).encoded()))
    }
    func push(_ call: Identifier, extra: String = "") {
      let payload = #"{"call":"\#(call)","wake":"w","from":{"k":"phone","h":"+1555","n":"Jane"}\#(extra)}"#
      system.tell(.pushed(payload: Array(payload.utf8), mustReport: true))
    }
  }

  @Test(.timeLimit(.minutes(1))) func `a token closure that hangs is reported, asked again for a call, and the call goes out`()
    async
  {
    let asked = Mutex(0)
    let token: @Sendable () async throws -> String = {
      let number = asked.withLock { number in
        number += 1
        return number
      }
      if number == 1 { try await Task.sleep(for: .seconds(3_600)) }
      return "a.b.c"
    }
    let rig = Rig(token: token, change: { $0.tokenTime = .milliseconds(200) })
    var error: PhoneError?
    while error == nil {
      try? await Task.sleep(for: .milliseconds(2))
      if case .some(let told) = rig.updates.drain().error { error = told }
    }
    guard case .noToken(let why)? = error else { return #expect(Bool(false), "\(String(describing: error))") }
    #expect(why.contains("no answer within"))
    rig.dial(Self.first)
    await rig.logIn()
    await rig.takeCall(Self.first, seq: 1)
    await rig.until { rig.info(Self.first)?.state == .progress }
    rig.engine.stop()
  }

  @Test(.timeLimit(.minutes(1)), arguments: ["", " ", "two words", "line\n", "ümlaut", String(repeating: "x", count: 20_000)])
  func `a token closure that returns rubbish is reported, and no rubbish is sent`(text: String) async {
    let rig = Rig(token: { text })
    await rig.until { rig.engine.trace.text.contains { $0.contains("tokenFailed") } }
    rig.drain()
    #expect(rig.updates.drain().error == .some(.noToken("what it returned is not a token")) && rig.sockets.opened.isEmpty)
    rig.engine.stop()
  }

  @Test(.timeLimit(.minutes(1)), arguments: AudioRequest.phases)
  func `an audio device that does not return: pushes are reported, the call ends, and the next one is heard once it has`(
    phase: AudioRequest
  ) async {
    let device = HangingAudio(phase)
    let rig = Rig(audio: device, change: { $0.audioTime = .seconds(1) })
    await rig.logIn()
    rig.dial(Self.first)
    if phase == .configure {
      await rig.until { device.isHanging }
    } else {
      await rig.takeCall(Self.first, seq: 1)
      if phase == .stop || phase == .release { rig.give(.act(Self.first, .end)) }
    }
    await rig.until { device.isHanging }
    // the device hangs: a push is reported nevertheless, in its own step
    rig.push(Self.second)
    #expect(rig.system.performed.contains { if case .report(Self.second, _, _) = $0 { true } else { false } })
    await rig.until { rig.isOver(Self.first) }
    #expect(rig.info(Self.first)?.reason == (phase == .configure || phase == .start ? .mediaFailed : .localEnd))
    rig.give(.act(Self.second, .end))
    // a start that returns too late is stopped, and counts for nothing
    let starts = device.starts + (phase == .start ? 1 : 0)
    device.goOn()
    let third = Identifier(high: 3, low: 3)
    rig.dial(third)
    await rig.takeCall(third, seq: phase == .configure ? 1 : 2)
    await rig.until { device.starts > starts && rig.info(third)?.state == .progress }
    rig.engine.stop()
  }

  @Test(.timeLimit(.minutes(1)), arguments: ["closed", "full", "gone"])
  func `a keychain that is closed, full or gone: login, push and call work, and a sealed caller is Unknown`(kind: String) async {
    let path = NSTemporaryDirectory() + "secrets-\(UUID().uuidString)"
    // a file instead of the folder
    #expect(FileManager.default.createFile(atPath: path, contents: Data()))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let secrets: any SecretStore = kind == "gone" ? FileSecrets(folder: path) : UnwritableSecrets(isFull: kind == "full")
    let rig = Rig(secrets: secrets, change: { $0.sealsCallers = true })
    rig.system.tell(.pushToken(.init(kind: .apnsVoIP, token: "0a0b")))
    await rig.logIn()
    await rig.until { rig.count(of: "device.put") == 1 }
    #expect(!rig.sockets.sent.contains { $0.contains("sealKey") }, "a key that is not kept opens nothing")
    rig.push(Self.second, extra: #","enc":"AAAA""#)
    #expect(rig.system.performed.contains { if case .report(Self.second, _, _) = $0 { true } else { false } })
    rig.dial(Self.first)
    await rig.takeCall(Self.first, seq: 1)
    await rig.until { rig.info(Self.first)?.state == .progress }
    rig.engine.stop()
  }

  @Test(arguments: ["no address", "", "wss://", "http://g", "//g/v1", "wss:g", "javascript:alert(1)"])
  func `a gateway in the push that is no WebSocket address: the call comes by the phone's own`(gateway: String) {
    let rig = Rig(token: { throw NoToken() })
    rig.push(Self.first, extra: #","gw":"\#(gateway)""#)
    rig.drain()
    #expect(rig.sockets.opened == ["wss://phone.example.com/v1/connect"])
    rig.engine.stop()
  }

  @Test func `a gateway in the push that resolves nowhere: shown, declined by POST, and the next push is another gateway's`() {
    let rig = Rig(token: { throw NoToken() })
    rig.push(Self.first, extra: #","gw":"wss://nowhere.invalid/v1/connect""#)
    rig.drain()
    rig.sockets.deliver(.closed(1006, "no such host"))
    rig.system.tell(.perform(SystemActionID(900), .end(Self.first), timeout: .seconds(5)))
    #expect(rig.isOver(Self.first) && rig.system.completed == [true])
    #expect(rig.sockets.posts == ["https://nowhere.invalid/v1/calls/\(Self.first)/reject"])
    rig.push(Self.second, extra: #","gw":"wss://good.example/v1/connect""#)
    rig.drain()
    #expect(rig.sockets.opened.last == "wss://good.example/v1/connect" && !rig.isOver(Self.second))
    rig.engine.stop()
  }

  @Test(.timeLimit(.minutes(1)))
  func `a main actor that reads nothing: a call comes, is answered and heard, and the queued updates are bounded`()
    async
  {
    let rig = Rig()
    await rig.logIn()
    rig.push(Self.first)
    for digit in 0..<2_000 { rig.updates.report(.digit(Self.first, digit % 2 == 0 ? "1" : "2")) }
    rig.system.tell(.perform(SystemActionID(900), .answer(Self.first), timeout: .seconds(20)))
    let offer = ServerMessage.callOffer(
      CallOffer(
        from: Handle(k: .phone, h: "+1555"), to: Handle(k: .phone, h: "+1666"), acct: "a", sdp: "v=0", gen: 1, exp: 0))
    rig.sockets.deliver(.received(ServerFrame(offer, seq: 1, call: Self.first).encoded()))
    rig.drain()
    #expect(rig.info(Self.first)?.state == .answering)
    rig.sockets.deliver(
      .received(ServerFrame(.callConnected(CallConnected(at: 1, codec: "opus")), seq: 2, call: Self.first).encoded()))
    rig.drain()
    #expect(rig.info(Self.first)?.state == .connected && rig.system.completed == [true])
    let batch = rig.updates.drain()
    #expect(batch.events.count == PhoneUpdates.limit && batch.order == [Self.first])
    #expect(batch.calls[Self.first]?.state == .connected, "the latest state only")
    rig.engine.stop()
  }

  @Test(.timeLimit(.minutes(1)))
  func `a call system that calls from a thread of its own: nothing traps, and the call is reported`() async {
    let rig = Rig()
    let payload = Array(#"{"call":"\#(Self.first)","wake":"w"}"#.utf8)
    Thread { rig.system.tellHere(.pushed(payload: payload, mustReport: true)) }.start()
    await rig.until { rig.system.performed.contains { if case .report = $0 { true } else { false } } }
    rig.engine.stop()
  }
}

extension AudioRequest {
  static let phases: [AudioRequest] = [.configure, .start, .stop, .release]
}

/// Performs requests at once, and keeps them and what it was notified of.
private final class WatchedSystem: CallSystem {
  private struct State {
    var queue: DispatchQueue?
    var events: (@Sendable (CallSystemEvent) -> Void)?
    var performed: [CallSystemRequest] = []
    var actions = 0
    var requests: [SystemActionID: SystemRequest] = [:]
  }
  private let state = Mutex(State())

  func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void) {
    state.withLock { ($0.queue, $0.events) = (queue, events) }
  }
  func perform(_ request: CallSystemRequest) {
    state.withLock { $0.performed.append(request) }
    switch request {
    case .report(let call, _, _): later(.reported(call, nil))
    case .request(let request):
      let id = state.withLock { state -> SystemActionID in
        state.actions += 1
        state.requests[SystemActionID(state.actions)] = request
        return SystemActionID(state.actions)
      }
      later(.perform(id, request, timeout: .seconds(20)))
    case .complete(let id, true):
      if case .start? = state.withLock({ $0.requests[id] }) { later(.audioActivated) }
    default: break
    }
  }
  private func later(_ event: CallSystemEvent) {
    let (queue, events) = state.withLock { ($0.queue, $0.events) }
    queue?.async { events?(event) }
  }
  /// As a delegate does: done when it returns.
  func tell(_ event: CallSystemEvent) {
    let (queue, events) = state.withLock { ($0.queue, $0.events) }
    queue?.sync { events?(event) }
  }
  func tellHere(_ event: CallSystemEvent) { state.withLock { $0.events }?(event) }
  var performed: [CallSystemRequest] { state.withLock { $0.performed } }
  var completed: [Bool] { performed.compactMap { if case .complete(_, let isDone) = $0 { isDone } else { nil } } }
}

/// Hangs in one phase until `goOn`.
private final class HangingAudio: AudioDevice {
  private let phase: AudioRequest
  private let gate = DispatchSemaphore(value: 0)
  private let state = Mutex((isHanging: false, isOpen: false, starts: 0))

  init(_ phase: AudioRequest) { self.phase = phase }
  var isHanging: Bool { state.withLock { $0.isHanging } }
  var starts: Int { state.withLock { $0.starts } }

  func goOn() {
    state.withLock { $0.isOpen = true }
    gate.signal()
  }
  private func hang(_ request: AudioRequest) {
    let waits = state.withLock { state -> Bool in
      guard request == phase, !state.isOpen else { return false }
      state.isHanging = true
      return true
    }
    if waits { gate.wait() }
  }
  func configure(_ handle: AudioHandle) -> Bool {
    hang(.configure)
    return true
  }
  func start() -> Bool {
    hang(.start)
    state.withLock { $0.starts += 1 }
    return true
  }
  func stop() { hang(.stop) }
  func release() { hang(.release) }
}

/// Before the first unlock, or without room.
private struct UnwritableSecrets: SecretStore {
  let isFull: Bool
  func read(_ key: String) -> [UInt8]? { isFull && key == SecretKey.deviceID ? Array("desk".utf8) : nil }
  func write(_ key: String, _ value: [UInt8]?) -> Bool { false }
}
