import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineClient

/// The phone as an app sees it, with a gateway that the test plays. A process has one phone, so there is one suite, one test
/// after the other.
@MainActor @Suite(.serialized) struct PhoneTests {
  private struct NoToken: Error, CustomStringConvertible { let description = "the backend is away" }
  private static let gateway = "wss://phone.example.com/v1/connect"

  private func phone(
    _ sockets: FakeSockets, system: any CallSystem = .none, audio: any AudioDevice = NoAudio(),
    secrets: any SecretStore = MemorySecrets(),
    token: @escaping @Sendable () async throws -> String = { "a.b.c" }
  ) -> Phone {
    Phone(Self.gateway, device: "desk", system: system, audio: audio, sockets: sockets, secrets: secrets, token: token)
  }

  private func wait(for state: Phone.State, _ phone: Phone) async {
    for await next in phone.states where next == state { return }
  }

  private func online(_ phone: Phone, _ sockets: FakeSockets) async {
    for await _ in sockets.hellos.stream { break }
    sockets.welcome()
    await wait(for: .online, phone)
  }

  @Test func `a login: the token's hello, then online`() async {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    #expect(phone.state == .idle)
    await online(phone, sockets)
    #expect(phone.state.description == "online" && sockets.opened == [Self.gateway])
    #expect(sockets.sent.first?.contains(#""auth":"a.b.c""#) == true)
  }

  @Test func `a call of another node has a socket of its own, which closes with it, and the first one stays`() async throws {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    for await _ in sockets.hellos.stream { break }
    sockets.welcome(node: "n1")
    await wait(for: .online, phone)
    let call = Identifier(high: 7, low: 7)
    let wake = CallWake(call: call, exp: 1, from: Handle(k: .phone, h: "+15550001"), gw: "wss://n2", wake: "w1")
    sockets.deliver(.received(ServerFrame(.callWake(wake), call: call).encoded()))
    for await hello in sockets.hellos.stream {
      #expect(hello.contains(#""wake":"w1""#))
      break
    }
    #expect(sockets.opened == [Self.gateway, "wss://n2"])
    sockets.welcome(node: "n2")
    let gone = ServerFrame(.callGone(CallOver(.callerCancelled)), seq: 1, call: call)
    sockets.deliver(.received(gone.encoded()), on: 1)
    for await closing in sockets.closings.stream {
      #expect(closing == "wss://n2 1000")
      break
    }
    sockets.deliver(.closed(1000, nil), on: 1)
    sockets.deliver(.received(Array(#"{"t":"ping"}"#.utf8)), on: 0)
    #expect(phone.state == .online && sockets.opened.count == 2 && sockets.closes.count == 1)
  }

  @Test func `a default route that does not answer: the other interface's socket is the session's, and the first closes`() async {
    let sockets = FakeSockets()
    sockets.hang()
    sockets.haveAlternate()
    let phone = phone(sockets)
    for await url in sockets.alternates.stream {
      #expect(url == Self.gateway)
      break
    }
    sockets.deliver(.opened, on: 1)
    await online(phone, sockets)
    for await closing in sockets.closings.stream {
      #expect(closing == "\(Self.gateway) 1000")
      break
    }
    // later events of the losing socket are not the session's
    sockets.deliver(.opened, on: 0)
    sockets.deliver(.closed(1006, "late"), on: 0)
    sockets.deliver(.received(Array(#"{"t":"ping"}"#.utf8)), on: 1)
    #expect(phone.state == .online && sockets.opened == [Self.gateway])
  }

  @Test func `two attempts that fail are one break, reported when the second has failed`() async {
    let sockets = FakeSockets()
    sockets.hang()
    sockets.haveAlternate()
    let phone = phone(sockets)
    let events = phone.events
    for await _ in sockets.alternates.stream { break }
    sockets.deliver(.closed(1006, "the first"), on: 0)
    sockets.deliver(.closed(1006, "the second"), on: 1)
    for await event in events {
      guard case .disconnected(let why) = event else { continue }
      #expect(why == "the second")
      break
    }
    #expect(phone.state == .connecting)
  }

  @Test func `a second phone is refused in its state, and the first one continues`() async {
    let sockets = FakeSockets()
    let first = phone(sockets)
    let second = phone(FakeSockets())
    #expect(second.state == .failed(.secondPhone))
    let call = second.call("+15551230001")
    #expect(call.endReason != nil && call.error == .secondPhone && second.calls.isEmpty)
    for _ in 0..<8 { #expect(phone(FakeSockets()).state == .failed(.secondPhone)) }
    await second.logOut()
    await online(first, sockets)
  }

  @Test func `a phone that is gone leaves room for the next`() async {
    do {
      let sockets = FakeSockets()
      await online(phone(sockets), sockets)
    }
    let sockets = FakeSockets()
    await online(phone(sockets), sockets)
  }

  @Test func `a token closure that throws is reported with its text`() async {
    let phone = phone(FakeSockets()) { throw NoToken() }
    await wait(for: .failed(.noToken("the backend is away")), phone)
  }

  @Test func `a token that is refused is requested again once, then reported`() async {
    let sockets = FakeSockets()
    let asked = Mutex(0)
    let phone = phone(sockets) {
      asked.withLock { $0 += 1 }
      return "old"
    }
    for await _ in sockets.hellos.stream { break }
    sockets.deliver(.closed(4001, nil))
    for await _ in sockets.hellos.stream { break }
    sockets.deliver(.closed(4001, nil))
    await wait(for: .failed(.loginRefused), phone)
    #expect(asked.withLock { $0 } == 2)
  }

  @Test(arguments: [(UInt16(4_003), PhoneError.revoked), (4_009, .replaced)])
  func `a device that was turned away says what to do`(code: UInt16, error: PhoneError) async {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    await online(phone, sockets)
    sockets.deliver(.closed(code, nil))
    await wait(for: .failed(error), phone)
  }

  @Test func `a call to an empty number ends at once, with that error`() {
    let phone = phone(FakeSockets())
    for number in ["", "   ", "\n"] {
      let call = phone.call(number)
      #expect(call.error == .emptyNumber && call.endReason != nil)
    }
    #expect(phone.calls.isEmpty)
  }

  @Test(arguments: [(ErrorCode.emergency, PhoneError.emergency), (.callerNumber, .callerNumber)])
  func `an emergency call, or one from another's number, is refused with what to do instead`(code: ErrorCode, error: PhoneError)
    async throws
  {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    await online(phone, sockets)
    let call = phone.call("112")
    let id = try await request("call.start", sockets)
    sockets.deliver(.received(ServerFrame(.err(Failure(code)), re: id).encoded()))
    for await state in call.states { if case .ended = state { break } }
    #expect(call.error == error && call.endReason == .forbidden)
  }

  @Test func `a call without a microphone fails with what to do; once it is granted the next one goes out`() async throws {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    await online(phone, sockets)
    phone.microphone(.denied)
    let call = phone.call("+15551230001")
    for await state in call.states { if case .ended = state { break } }
    #expect(call.error == .noMicrophone && call.endReason == .mediaFailed)
    #expect(call.error?.description.contains("ask for it") == true)
    phone.microphone(.granted)
    phone.call("+15551230002")
    _ = try await request("call.start", sockets)
    #expect(!sockets.sent.contains { $0.contains("+15551230001") })
  }

  /// The id of the request of this type, once it has been sent.
  private func request(_ type: String, _ sockets: FakeSockets) async throws -> Identifier {
    for _ in 0..<500 {
      if let text = sockets.sent.first(where: { $0.contains("\"t\":\"\(type)\"") }),
        let frame = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], let id = frame["id"] as? String
      {
        return try #require(Identifier(id))
      }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw NoToken()
  }

  @Test func `a call made while logged out ends, and a logout returns once the gateway has forgotten the device`() async throws {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    await online(phone, sockets)
    async let out: Void = phone.logOut()
    let id = try await request("device.del", sockets)
    #expect(phone.state == .online, "not before the gateway has said so")
    sockets.deliver(.received(ServerFrame(.ok(Success()), re: id).encoded()))
    await out
    await wait(for: .loggedOut, phone)
    let call = phone.call("+15551230001")
    for await state in call.states { if case .ended = state { break } }
    #expect(call.error == .loggedOut)
  }

  @Test func `finish returns once the gateway has every message, and closes the session`() async throws {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    await online(phone, sockets)
    async let over: Void = phone.finish(within: .seconds(60))
    let state = try await request("device.state", sockets)
    #expect(phone.state == .online && sockets.sent.last?.contains("device.state") == true)
    let number = try sockets.sent.compactMap { text in
      (try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])?["seq"] as? Int
    }.max()
    sockets.deliver(.received(ServerFrame(.ok(Success()), re: state, ack: number).encoded()))
    await over
    #expect(phone.state == .idle)
  }

  @Test func `finish gives up without a gateway`() async throws {
    let sockets = FakeSockets()
    sockets.hang()
    let phone = phone(sockets)
    await wait(for: .connecting, phone)
    await phone.finish(within: .milliseconds(50))
    #expect(phone.state == .connecting)
  }

  @Test func `a main thread that hangs while a call comes: it is reported, and shown when the thread is back`() async throws {
    let sockets = FakeSockets()
    let system = NoCallSystem()
    let phone = phone(sockets, system: system)
    await online(phone, sockets)
    let call = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"
    let payload =
      #"{"call":"\#(call)","wake":"w","gw":"wss://other.example/v1/connect","from":{"k":"phone","h":"+1555","n":"Jane"}}"#
    system.pushed(Array(payload.utf8))
    // this test holds the main actor until the trace has the report
    while !phone.trace.contains(where: { $0.contains("reported") }) { usleep(1_000) }
    #expect(phone.calls.isEmpty)
    while phone.calls.isEmpty { await Task.yield() }
    #expect(phone.calls.first?.peer.description == "Jane" && phone.calls.first?.state == .ringing)
  }

  @Test func `the trace names events and calls, no number and no token`() async {
    let sockets = FakeSockets()
    let phone = phone(sockets) { "secret.token.text" }
    await online(phone, sockets)
    phone.call("+15551230001")
    while !phone.trace.contains(where: { $0.contains("dial") }) { await Task.yield() }
    let text = phone.trace.joined(separator: "\n")
    #expect(!text.contains("5551230001") && !text.contains("secret") && text.contains("state"))
  }

  @Test(arguments: [AudioPhase.configure, .start]) func `an audio device that refuses: the call ends as failed`(
    _ phase: AudioPhase
  ) async throws {
    let sockets = FakeSockets()
    let phone = phone(sockets, audio: RefusingAudio(phase))
    await online(phone, sockets)
    let call = phone.call("+15551230001")
    if phase == .start {
      let id = try await request("call.start", sockets)
      sockets.deliver(.received(ServerFrame(.ok(Success(sdp: "v=0")), re: id).encoded()))
      sockets.deliver(.received(numbered(.callProgress(CallProgress(.ringing, at: 0)), 1, call)))
    }
    for await state in call.states { if case .ended = state { break } }
    #expect(call.endReason == .mediaFailed)
  }

  private func numbered(_ message: ServerMessage, _ seq: Int, _ call: Call) -> [UInt8] {
    ServerFrame(message, seq: seq, call: Identifier(call.id)).encoded()
  }

  @Test func `CFG-7: a system without VoIP pushes shows in the state, and calls still work while the app is open`() async {
    let sockets = FakeSockets()
    let system = NoCallSystem(saysUnsupported: true)
    let phone = phone(sockets, system: system) {
      try await Task.sleep(for: .seconds(3_600))
      return ""
    }
    await wait(for: .failed(.unsupported), phone)
    #expect(phone.state.description.contains("while the app is open"))
    withExtendedLifetime(system) {}
  }

  @Test func `INC-11: another reporter instead of CallKit: a call is shown by it, answered on it and ended on it`() async throws {
    let sockets = FakeSockets()
    let reporter = Reporter()
    let phone = phone(sockets, system: reporter)
    await online(phone, sockets)
    let id = try #require(Identifier("8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"))
    // An offer that media can be made of: one that it refuses would end the call by itself, before or after the cancellation.
    let offer = CallOffer(
      from: Handle(k: .phone, h: "+1555", n: "Jane"), to: Handle(k: .phone, h: "+1556"), acct: "default", sdp: gatewayOffer,
      gen: 1, exp: 0)
    sockets.deliver(.received(ServerFrame(.callOffer(offer), seq: 1, call: id).encoded()))
    #expect(await reporter.next("report") == "report Jane")
    while !sockets.sent.contains(where: { $0.contains("call.ringing") }) { await Task.yield() }
    reporter.perform(.answer(id))
    #expect(await reporter.next("configure") == "configureAudio")
    sockets.deliver(.received(ServerFrame(.callCancel(CallOver(.answeredElsewhere)), seq: 2, call: id).encoded()))
    #expect(await reporter.next("ended") == "ended answeredElsewhere")
    #expect(await reporter.next("complete") == "complete false")
  }

  @Test func `INC-10: a call has one id, in every vocabulary`() {
    let sockets = FakeSockets()
    let call = phone(sockets).call("+15551230001")
    #expect("\(call.id)".lowercased() == "\(Identifier(call.id))" && Identifier(call.id).uuid == call.id)
  }

  @Test func `any frames from a gateway are survived`() async {
    let sockets = FakeSockets()
    let phone = phone(sockets)
    await online(phone, sockets)
    let random = RandomSource.seeded(3)
    for _ in 0..<2_000 {
      sockets.deliver(.received(random.bytes(Int(random.next() % 300))))
      sockets.deliver(.opened)
    }
    sockets.deliver(.received(Array(#"{"t":"call.offer","seq":1,"call":"x","d":{}}"#.utf8)))
    for await state in phone.states where state == .connecting || state == .online { break }
    #expect(phone.calls.isEmpty)
  }
}

/// What LiveCommunicationKit would be: shows calls, and has nothing of CallKit.
private final class Reporter: CallSystem {
  private struct State {
    var queue: DispatchQueue?
    var events: (@Sendable (CallSystemEvent) -> Void)?
  }
  private let state = Mutex(State())
  private let requests = AsyncStream.makeStream(of: String.self)

  func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void) {
    state.withLock { $0 = State(queue: queue, events: events) }
  }

  func perform(_ request: CallSystemRequest) {
    switch request {
    case .report(let call, let caller, _):
      requests.continuation.yield("report \(caller.n ?? caller.h)")
      tell(.reported(call, nil))
    case .reportEnded(_, let reason): requests.continuation.yield("ended \(reason.rawValue)")
    case .complete(_, let isDone): requests.continuation.yield("complete \(isDone)")
    case .configureAudio: requests.continuation.yield("configureAudio")
    case .update, .reportConnecting, .reportConnected, .request: break
    }
  }

  /// The user's button.
  func perform(_ request: SystemRequest) { tell(.perform(SystemActionID(1), request, timeout: .seconds(60))) }

  private func tell(_ event: CallSystemEvent) {
    let state = state.withLock { $0 }
    state.queue?.async { state.events?(event) }
  }

  /// The next request of this kind; others are skipped.
  func next(_ kind: String) async -> String? {
    for await request in requests.stream where request.hasPrefix(kind) { return request }
    return nil
  }
}

/// A gateway's candidate; its address does not answer.
private let gatewayOffer = """
  v=0\r
  o=- 7 1 IN IP4 127.0.0.1\r
  s=-\r
  t=0 0\r
  a=group:BUNDLE 0\r
  a=ice-lite\r
  m=audio 9 UDP/TLS/RTP/SAVPF 111\r
  c=IN IP4 127.0.0.1\r
  a=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r
  a=end-of-candidates\r
  a=ice-ufrag:uf1x\r
  a=ice-pwd:password+1+0123456789abcdef\r
  a=fingerprint:sha-256 \(Array(repeating: "01", count: 32).joined(separator: ":"))\r
  a=setup:actpass\r
  a=mid:0\r
  a=sendrecv\r
  a=rtcp-mux\r
  a=rtpmap:111 opus/48000/2\r

  """

enum AudioPhase: Sendable { case configure, start }

/// Refuses in one phase.
struct RefusingAudio: AudioDevice {
  let phase: AudioPhase
  init(_ phase: AudioPhase) { self.phase = phase }
  func configure(_ handle: AudioHandle) -> Bool { phase != .configure }
  func start() -> Bool { phase != .start }
  func stop() {}
  func release() {}
}
