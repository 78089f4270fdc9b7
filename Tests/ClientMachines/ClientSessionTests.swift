import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// A session on virtual time with the gateway's side played by hand.
private struct Harness {
  var session = ClientSession(
    configuration: .init(token: "t", device: Hello.Device(id: "d1", platform: "test")), random: .seeded(3))
  var now = Instant.zero
  var actions: [ClientSession.Action] = []

  mutating func give(_ input: ClientSession.Input) -> [ClientSession.Action] {
    actions.removeAll()
    session.handle(input, at: now, into: &actions)
    if case .timer = input { #expect(session.nextDeadline.map { $0 > now } ?? true) }
    return actions
  }
  mutating func give(_ frame: ServerFrame) -> [ClientSession.Action] { give(.frame(frame.encoded())) }
  mutating func request(_ message: ClientMessage, _ call: Identifier) -> (Identifier, [ClientSession.Action]) {
    actions.removeAll()
    return (session.request(message, call: call, at: now, into: &actions), actions)
  }
  mutating func notify(_ message: ClientMessage, _ call: Identifier) -> [ClientSession.Action] {
    actions.removeAll()
    session.notify(message, call: call, at: now, into: &actions)
    return actions
  }
  mutating func goOnline(resumed: Bool = false, replayFrom: Int = 1, calls: [CallSnapshot] = []) -> [ClientSession.Action] {
    _ = give(.start)
    _ = give(.socketOpened)
    return give(welcome(resumed: resumed, replayFrom: replayFrom, calls: calls))
  }
  func welcome(resumed: Bool, replayFrom: Int = 1, calls: [CallSnapshot] = []) -> ServerFrame {
    ServerFrame(
      .welcome(
        Welcome(
          sid: "s", resumeToken: "r", resumed: resumed, replayFrom: replayFrom, time: 0, hb: 15_000, ice: [],
          calls: resumed ? nil : calls)), re: Identifier(high: 0, low: 1))
  }
}

private func frames(_ actions: [ClientSession.Action]) -> [ClientFrame] {
  actions.compactMap { if case .write(let bytes) = $0 { try? ClientFrame(decoding: bytes) } else { nil } }
}
extension [ClientSession.Action] {
  fileprivate var names: [String] { map { String(String(describing: $0).prefix { $0.isLetter }) } }
}
private func closes(_ actions: [ClientSession.Action]) -> [UInt16] {
  actions.compactMap { if case .close(let code) = $0 { code } else { nil } }
}
private func numbered(_ actions: [ClientSession.Action]) -> [Int] { frames(actions).compactMap(\.seq) }

@Suite struct ClientSessionTests {
  let call = Identifier(random: .seeded(9))

  @Test func `hello carries the token first and the resume after a lost socket`() throws {
    var harness = Harness()
    _ = harness.give(.start)
    let first = try #require(frames(harness.give(.socketOpened)).first)
    guard case .message(.hello(let hello)) = first.body else { return #expect(Bool(false)) }
    #expect(hello.proof == .auth("t"))
    _ = harness.give(harness.welcome(resumed: false))
    _ = harness.give(.socketClosed(1006))
    harness.now = try #require(harness.session.nextDeadline)
    _ = harness.give(.timer)
    let second = try #require(frames(harness.give(.socketOpened)).first)
    guard case .message(.hello(let again)) = second.body else { return #expect(Bool(false)) }
    #expect(again.proof == .resume(Hello.Resume(sid: "s", token: "r", lastSeq: 0)))
  }

  @Test func `an attempt that does not open within a second has another beside it, once; the next one begins anew`() throws {
    var harness = Harness()
    #expect(harness.give(.start).names == ["connect"])
    harness.now = try #require(harness.session.nextDeadline)
    #expect(harness.now == .zero + .seconds(1))
    #expect(harness.give(.timer).names == ["connectAlternate"])
    // neither opens, and what has no deadline of its own is the system's to give up
    #expect(harness.session.nextDeadline == nil)
    harness.now = harness.now + .seconds(9)
    #expect(harness.give(.socketClosed(1006)).isEmpty)
    harness.now = try #require(harness.session.nextDeadline)
    #expect(harness.give(.timer).names == ["connect"])
    #expect(harness.session.nextDeadline == harness.now + .seconds(1))
    #expect(frames(harness.give(.socketOpened)).count == 1)
    _ = harness.give(harness.welcome(resumed: false))
    for _ in 0..<3 {
      harness.now = try #require(harness.session.nextDeadline)
      #expect(!harness.give(.timer).names.contains("connectAlternate"))
      _ = harness.give(ServerFrame(.pong))
    }
  }

  @Test func `a path that changes while a second attempt is under way begins with the default route again`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    _ = harness.give(.checkLiveness)
    harness.now = try #require(harness.session.nextDeadline)
    #expect(harness.give(.timer).names == ["event", "connect", "connectAlternate"])
    #expect(harness.give(.networkChanged).names == ["connect"])
    #expect(harness.session.nextDeadline == harness.now + .seconds(1))
  }

  @Test func `received messages are acked within the delay, once`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    _ = harness.give(ServerFrame(.callConnected(CallConnected(at: 1, codec: "opus")), seq: 1, call: call))
    harness.now = try #require(harness.session.nextDeadline)
    #expect(harness.now <= Instant.zero + .milliseconds(200))
    #expect(frames(harness.give(.timer)).map(\.ack) == [1])
    #expect(frames(harness.give(.timer)).isEmpty)
  }

  @Test func `a message of a type that this client does not know uses its number up and is acked`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    #expect(harness.give(.frame(Array(#"{"t":"hist.changed","seq":1,"call":"\#(call)","d":{}}"#.utf8))).isEmpty)
    harness.now = try #require(harness.session.nextDeadline)
    #expect(frames(harness.give(.timer)).map(\.ack) == [1])
    let progress = ServerMessage.callProgress(CallProgress(.ringing, at: 1))
    #expect(harness.give(ServerFrame(progress, seq: 2, call: call)).count == 1)
  }

  @Test func `a repeated number is dropped and a gap closes with 4002 for a fresh hello`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    let progress = ServerMessage.callProgress(CallProgress(.ringing, at: 1))
    #expect(harness.give(ServerFrame(progress, seq: 1, call: call)).count == 1)
    #expect(harness.give(ServerFrame(progress, seq: 1, call: call)).isEmpty)
    #expect(closes(harness.give(ServerFrame(progress, seq: 3, call: call))) == [4002])
    _ = harness.give(.socketClosed(4002))
    harness.now = try #require(harness.session.nextDeadline)
    _ = harness.give(.timer)
    guard case .message(.hello(let hello)) = frames(harness.give(.socketOpened))[0].body else { return #expect(Bool(false)) }
    #expect(hello.proof == .auth("t"))
  }

  @Test func `a resumed session replays what the gateway lacks and repeats open requests with their id`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    _ = harness.notify(.callRinging(CallRinging()), call)
    let (id, _) = harness.request(.callAnswer(CallAnswer(ageMs: 1)), call)
    _ = harness.give(.socketClosed(1006))
    #expect(harness.notify(.mediaReady(MediaReady(gen: 1)), call).isEmpty)
    harness.now = try #require(harness.session.nextDeadline)
    let replay = harness.goOnlineAgain(replayFrom: 2)
    #expect(numbered(replay) == [2, 3])
    #expect(frames(replay).first?.id == id)
    // The gateway has everything, but its answer was lost: the same id goes again under a new number.
    _ = harness.give(.socketClosed(1006))
    harness.now = try #require(harness.session.nextDeadline)
    let repeated = frames(harness.goOnlineAgain(replayFrom: 4)).filter { $0.seq != nil }
    #expect(repeated.map(\.id) == [id] && repeated.map(\.seq) == [4])
  }

  @Test func `after a fresh welcome numbers start at one and only what the snapshot's calls need goes again`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    let other = Identifier(random: .seeded(10))
    _ = harness.notify(.callRinging(CallRinging()), call)
    _ = harness.notify(.callRinging(CallRinging()), other)
    let (id, _) = harness.request(.callMute(CallMute(on: true)), call)
    _ = harness.give(.socketClosed(4008))
    harness.now = try #require(harness.session.nextDeadline)
    _ = harness.give(.timer)
    _ = harness.give(.socketOpened)
    let snapshot = CallSnapshot(
      call: call, dir: .incoming, state: .ringing, from: Handle(k: .phone, h: "+1"), to: Handle(k: .phone, h: "+2"),
      acct: "default", sdp: nil, gen: 1,
      at: 0)
    let sent = frames(harness.give(harness.welcome(resumed: false, calls: [snapshot]))).filter { $0.seq != nil }
    #expect(sent.map(\.seq) == [1, 2])
    #expect(sent.map(\.id) == [id, nil])
    #expect(sent.allSatisfy { $0.call == call })
  }

  @Test func `silence of two heartbeats loses the socket, and waits grow to five seconds`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    var lost = false
    for _ in 0..<4 where !lost {
      harness.now = try #require(harness.session.nextDeadline)
      lost = !closes(harness.give(.timer)).isEmpty
    }
    #expect(lost && harness.now - .zero <= .seconds(46))
    var waits: [Duration] = []
    for _ in 0..<8 {
      let due = try #require(harness.session.nextDeadline)
      waits.append(due - harness.now)
      harness.now = due
      _ = harness.give(.timer)
      _ = harness.give(.socketClosed(1006))
    }
    #expect(waits[0] < .milliseconds(260) && waits[7] >= .seconds(5) && waits[7] <= .milliseconds(6250))
  }

  @Test func `a socket that is asked and says nothing for a second is given up for another, each with more time`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    harness.now = .zero + .seconds(3)
    #expect(frames(harness.give(.checkLiveness)).count == 1)
    #expect(frames(harness.give(.checkLiveness)).isEmpty, "once")
    harness.now = harness.now + .milliseconds(900)
    _ = harness.give(ServerFrame(.pong))
    #expect(harness.session.nextDeadline.map { $0 > harness.now + .seconds(5) } == true, "it answered")
    _ = harness.give(.checkLiveness)
    var connects: [Duration] = []
    var last = harness.now
    for _ in 0..<5 {
      harness.now = try #require(harness.session.nextDeadline)
      let actions = harness.give(.timer)
      #expect(actions.contains { if case .connect = $0 { true } else { false } })
      connects.append(harness.now - last)
      last = harness.now
    }
    #expect(connects == [.seconds(1), .seconds(3), .seconds(6), .seconds(12), .seconds(12)])
    #expect(!harness.session.isOnline)
    _ = harness.give(.socketOpened)
    _ = harness.give(harness.welcome(resumed: true))
    #expect(harness.session.isOnline)
  }

  /// A tab or an app that was stopped comes back with its timers late: what it should have heard meanwhile has yet to be read.
  @Test func `a process that was stopped for minutes asks once more before it gives its socket up`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    harness.now = try #require(harness.session.nextDeadline)
    #expect(closes(harness.give(.timer)).isEmpty)
    harness.now = harness.now + .seconds(600)
    #expect(closes(harness.give(.timer)).isEmpty)
    _ = harness.give(ServerFrame(.pong))
    for _ in 0..<3 {
      harness.now = try #require(harness.session.nextDeadline)
      #expect(closes(harness.give(.timer)).isEmpty)
      _ = harness.give(ServerFrame(.pong))
    }
  }

  @Test func `what no gateway would take is refused here, and repeated to nobody`() throws {
    var harness = Harness()
    _ = harness.goOnline()
    let start = ClientMessage.callStart(
      CallStart(to: Handle(k: .phone, h: "+1"), sdp: "v=0", location: "<" + String(repeating: "x", count: 70_000)))
    let (id, actions) = harness.request(start, call)
    #expect(numbered(actions).isEmpty)
    guard case .event(.answered(id, _, .failure(let failure)))? = actions.last else { return #expect(Bool(false)) }
    #expect(failure.code == .badRequest && harness.session.isQuiet)
  }

  @Test(arguments: [1006, 4001, 1012] as [UInt16])
  func `a gateway that closes right behind each welcome is asked less and less often`(_ code: UInt16) throws {
    var harness = Harness()
    _ = harness.goOnline()
    var count = 0
    while harness.now < .zero + .seconds(60) {
      var actions = harness.give(.socketClosed(code))
      if !actions.contains(where: { if case .connect = $0 { true } else { false } }) {
        harness.now = try #require(harness.session.nextDeadline)
        actions = harness.give(.timer)
      }
      count += 1
      try #require(count < 100)
      _ = harness.give(.socketOpened)
      _ = harness.give(harness.welcome(resumed: false))
    }
    #expect(count < 22, "\(count)")
    // one that stood for a while is a first one again
    for _ in 0..<12 {
      harness.now = harness.now + .seconds(1)
      _ = harness.give(ServerFrame(.ping))
    }
    _ = harness.give(.socketClosed(1006))
    #expect(try #require(harness.session.nextDeadline) - harness.now < .milliseconds(260))
  }

  @Test(arguments: [4001, 4003, 4009] as [UInt16])
  func `a refusal is final and told`(_ code: UInt16) {
    var harness = Harness()
    _ = harness.give(.start)
    _ = harness.give(.socketOpened)
    let actions = harness.give(.socketClosed(code))
    guard case .event(.refused(let told)) = actions.first else { return #expect(Bool(false)) }
    #expect(told == code && harness.session.nextDeadline == nil)
  }

  @Test func `any bytes from the gateway are survived`() {
    var harness = Harness()
    var random = SplitMix64(seed: 5)
    for _ in 0..<2000 {
      _ = harness.goOnline()
      let bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      _ = harness.give(.frame(bytes))
      _ = harness.give(.socketClosed(1006))
      harness.now = harness.session.nextDeadline ?? harness.now
      _ = harness.give(.timer)
    }
    #expect(!harness.session.isOnline)
  }
}

extension Harness {
  fileprivate mutating func goOnlineAgain(replayFrom: Int) -> [ClientSession.Action] {
    _ = give(.timer)
    _ = give(.socketOpened)
    return give(welcome(resumed: true, replayFrom: replayFrom))
  }
}
