import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// Wake tokens: what they permit, for which user and how long, and what they do not permit.
@Suite struct WakeTests {
  /// Ring window plus 30 s after the bench's start.
  private static let deadline = Instant.zero + .seconds(76)
  private static let past = Instant.zero + .seconds(1)
  private let device = DeviceKey(user: "alice", device: "d1")
  private func token(_ call: Identifier = callA, _ user: String = "alice", _ device: String = "d1", until: Instant = deadline)
    -> String
  {
    Bench.wakes.token(Wake(call: call, device: DeviceKey(user: user, device: device), firstUseBefore: until))
  }

  private func error(_ bench: inout Bench, _ id: ConnectionID) -> ErrorCode? {
    for case .message(.err(let failure)) in bench.frames(id).map(\.body) { return failure.code }
    return nil
  }

  @Test func `INC-9: a wake token opens a session for its call, on its device`() throws {
    var bench = Bench(wakes: Bench.wakes)
    let (id, session) = bench.wake(token())
    guard case .connected(device, _, let info, resumed: false)? = bench.takeEvents().last else { throw Trouble("not connected") }
    #expect(info.onlyCall == callA)
    bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
    #expect(bench.frames(id).first?.body != nil && bench.closed(id) == nil)
  }

  @Test func `it permits only messages of that call; a refresh makes it a login`() throws {
    var bench = Bench(wakes: Bench.wakes)
    let (id, session) = bench.wake(token())
    bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
    _ = (bench.takeEvents(), bench.frames(id))
    bench.send(.callAnswer(CallAnswer()), on: id, id: number(2), seq: 1, call: callA)
    #expect(bench.takeEvents().count == 1)
    bench.send(.callAnswer(CallAnswer()), on: id, id: number(3), seq: 2, call: callB)
    bench.send(.callRinging(CallRinging()), on: id, seq: 3, call: callB)
    bench.send(.devicePut(DevicePut(prefs: .init(dnd: true))), on: id, id: number(4))
    bench.send(.callStart(CallStart(to: Handle(k: .phone, h: "+1"), sdp: "v=0")), on: id, id: number(5), seq: 4, call: callB)
    #expect(bench.takeEvents() == [])
    let refused = bench.frames(id).compactMap { if case .message(.err(let failure)) = $0.body { failure.code } else { nil } }
    #expect(refused == [.auth, .auth, .auth])
    // another user's login does not upgrade it
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token("bob"))), on: id, id: number(6))
    #expect(error(&bench, id) == .auth && bench.takeEvents() == [])
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token())), on: id, id: number(7))
    guard case .upgraded(device, session, let info)? = bench.takeEvents().last else { throw Trouble("not upgraded") }
    #expect(info.onlyCall == nil && info.accounts == ["default"])
    bench.send(.callRinging(CallRinging()), on: id, seq: 5, call: callB)
    #expect(bench.takeEvents().count == 1)
    // a second refresh is a login's
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token())), on: id, id: number(8))
    #expect(bench.takeEvents() == [])
  }

  @Test func `a refresh at a further node makes the session one for all calls there, and does not locate the device`() throws {
    var bench = Bench(wakes: Bench.wakes)
    let (id, session) = bench.wake(token())
    bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
    _ = (bench.takeEvents(), bench.frames(id))
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(), further: true)), on: id, id: number(7))
    guard case .upgraded(_, _, let info)? = bench.takeEvents().last else { throw Trouble("not upgraded") }
    #expect(info.onlyCall == nil && info.isFurther)
  }

  @Test func `forged, of another device, of no user, too late: err auth, and 4001`() throws {
    let login = Bench.token()
    let other = WakeTokens(key: Array("a third secret of thirty-two bytes..".utf8))!
    let good = token()
    let parts = good.split(separator: ".").map(String.init)
    let none = Base64URL.encode(Array(#"{"alg":"none"}"#.utf8)) + "." + parts[1] + "."
    let bad: [(String, String)] = [
      ("login", login), ("other key", other.token(Wake(call: callA, device: device, firstUseBefore: Self.deadline))),
      ("alg none", none), ("no signature", parts[0] + "." + parts[1] + "."),
      ("flipped", parts[0] + "." + parts[1] + ".AAAA" + parts[2].dropFirst(4)),
      ("another device's", token(callA, "alice", "d2")), ("unknown user", token(callA, "mallory", "d1")),
      ("expired", token(until: Self.past)),
      ("empty parts", ".."), ("text", "wake"),
    ]
    for (name, text) in bad {
      var bench = Bench(wakes: Bench.wakes)
      let (id, session) = bench.wake(text)
      #expect(session == nil && bench.closed(id) == .authFailed, "\(name)")
      #expect(error(&bench, id) == .auth, "\(name)")
      #expect(bench.events == [], "\(name)")
    }
    // and a wake token is not a login
    var bench = Bench(wakes: Bench.wakes)
    let id = bench.open()
    bench.send(.hello(Hello(.auth(good), device: .init(id: "d1"))), on: id, id: number(1))
    #expect(bench.closed(id) == .authFailed)
  }

  @Test func `the first use comes before the ring deadline and 30 s; the same device may come again until the tombstone is gone`()
    throws
  {
    var bench = Bench(wakes: Bench.wakes)
    bench.pass(.seconds(74))
    let (first, session) = bench.wake(token())
    bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
    bench.give(.closed(first, nil))
    bench.pass(.seconds(600))
    _ = bench.takeEvents()
    #expect(bench.wake(token()).1 != nil)
    _ = bench.takeEvents()
    // another device cannot use the same token
    #expect(bench.wake(token(), "d2").1 == nil)
    bench.perform(.wakesOver(callA))
    _ = bench.takeEvents()
    let (late, none) = bench.wake(token())
    #expect(none == nil && bench.closed(late) == .authFailed)
    var slow = Bench(wakes: Bench.wakes)
    slow.pass(.seconds(75))
    #expect(slow.wake(token()).1 == nil)
  }

  @Test func `a step of the wall clock costs no wake`() throws {
    for step in [-3_600_000, 3_600_000] as [Int64] {
      var bench = Bench(wakes: Bench.wakes)
      bench.machine.setWallClock(unixMilliseconds: Bench.epoch * 1_000 + step, at: bench.now)
      let (id, session) = bench.wake(token())
      bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
      bench.machine.setWallClock(unixMilliseconds: Bench.epoch * 1_000 - step, at: bench.now)
      _ = bench.frames(id)
      bench.pass(.seconds(10))
      bench.send(.callAnswer(CallAnswer()), on: id, id: number(2), seq: 1, call: callA)
      #expect(bench.events.contains { if case .request = $0 { true } else { false } } && bench.closed(id) == nil)
    }
  }

  @Test func `a refused wake leaves the device's session alone, a good one replaces it`() throws {
    var bench = Bench(wakes: Bench.wakes)
    let client = try bench.login()
    #expect(bench.wake(token(until: Self.past)).1 == nil)
    #expect(bench.closed(client.connection) == nil)
    #expect(bench.wake(token()).1 != nil)
    #expect(bench.closed(client.connection) == .replaced)
  }

  @Test func `without a call the session ends by itself, with one it lasts as long as the call`() throws {
    for isLive in [false, true] {
      var bench = Bench(wakes: Bench.wakes)
      let (id, session) = bench.wake(token())
      bench.perform(.welcome(try #require(session), calls: [], gone: [], live: isLive ? [callA] : []))
      for _ in 0..<20 {
        bench.pass(.seconds(10))
        bench.send(.ping, on: id)
      }
      #expect(bench.closed(id) == (isLive ? nil : .authFailed))
      #expect(!bench.frames(id).contains { if case .message(.authExpiring) = $0.body { true } else { false } })
      bench.perform(.callDead(device, callA))
      #expect(bench.closed(id) == .authFailed)
    }
  }

  @Test func `the 4001 after its call has no err, since it is not a refusal: at once when its time is over, else at its end`()
    throws
  {
    for lasts in [20, 300] {
      var bench = Bench(wakes: Bench.wakes)
      let (id, session) = bench.wake(token())
      bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
      func pass(_ seconds: Int) {
        for _ in 0..<seconds where bench.closed(id) == nil {
          bench.pass(.seconds(1))
          bench.send(.ping, on: id)
        }
      }
      pass(lasts)
      _ = bench.frames(id)
      bench.perform(.send(device, .callEnded(CallOver(.remoteHangup)), call: callA))
      bench.perform(.callDead(device, callA))
      #expect(bench.closed(id) == (lasts == 20 ? nil : .authFailed))
      let frames = bench.frames(id)
      #expect(frames.map(\.body) == [.message(.callEnded(CallOver(.remoteHangup)))], "its terminal message comes before")
      // the token's first-use time ends 75 s from here
      if lasts == 20 { pass(54) }
      #expect(bench.closed(id) == (lasts == 20 ? nil : .authFailed))
      pass(2)
      #expect(bench.closed(id) == .authFailed)
      #expect(!bench.frames(id).contains { if case .message(.err) = $0.body { true } else { false } })
      #expect(bench.machine.stats.refusals.isEmpty)
    }
  }

  @Test func `while draining a woken device still gets its call, and is disconnected after it`() throws {
    var bench = Bench(wakes: Bench.wakes)
    bench.perform(.drain)
    let (id, session) = bench.wake(token())
    bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
    #expect(bench.closed(id) == nil)
    bench.perform(.callDead(device, callA))
    #expect(bench.closed(id) == .draining)
  }

  @Test func `a resumed session is still for its call only`() throws {
    var bench = Bench(wakes: Bench.wakes)
    let (id, session) = bench.wake(token())
    bench.perform(.welcome(try #require(session), calls: [], gone: [], live: [callA]))
    guard case .message(.welcome(let welcome))? = bench.frames(id).first?.body else { throw Trouble("no welcome") }
    bench.give(.closed(id, nil))
    let client = Client(connection: id, device: device, session: try #require(session), welcome: welcome)
    let again = bench.resume(client, lastSeq: 0)
    guard case .connected(device, session, let info, resumed: true)? = bench.takeEvents().last else {
      throw Trouble("not resumed")
    }
    #expect(info.onlyCall == callA)
    _ = bench.frames(again)
    bench.send(.callHold(CallHold(on: true)), on: again, id: number(9), seq: 1, call: callB)
    #expect(error(&bench, again) == .auth)
  }

  // MARK: POST /v1/calls/<id>/reject

  private func status(_ bench: inout Bench, _ number: UInt64) -> Int? {
    for case .httpAnswer(HTTPRequestID(number), let status, let body) in bench.actions {
      #expect(body.first == UInt8(ascii: "{") && body.last == UInt8(ascii: "}"))
      return status
    }
    return nil
  }

  @Test func `a reject over HTTP by wake or login goes to control, whose answer becomes a status`() throws {
    for bearer in [token(), Bench.token()] {
      for (answer, expected) in [
        (RequestAnswer.ok, 200), (.err(Failure(.gone, reason: .callerCancelled)), 410), (.err(Failure(.badState)), 409),
      ] {
        var bench = Bench(wakes: Bench.wakes)
        let id = HTTPRequestID(1)
        bench.give(.httpReject(id, call: callA, bearer: bearer, body: Array(#"{"scope":"device","reason":"busy"}"#.utf8)))
        #expect(bench.takeEvents() == [.httpReject(id, device, CallReject(scope: .device, reason: .busy), call: callA)])
        #expect(bench.actions.isEmpty)
        bench.perform(.httpAnswer(id, answer))
        #expect(status(&bench, 1) == expected)
        bench.perform(.httpAnswer(id, answer))
        #expect(bench.actions.count == 1, "answered once")
      }
    }
  }

  @Test func `a reject over HTTP without the right to it, or with invalid contents, is refused`() throws {
    let cases: [(String?, String, Int)] = [
      (nil, "", 401), ("", "{}", 401), ("wake", "{}", 401), (token(callB), "{}", 401), (token(until: Self.past), "{}", 401),
      (Bench.token(lives: -60), "{}", 401), (token(callA, "mallory"), "{}", 401), (token(), "[]", 400), (token(), "{", 400),
      (token(), #"{"scope":"everyone"}"#, 400),
      (token(), String(repeating: "{\"a\":", count: 40) + "1" + String(repeating: "}", count: 40), 400),
    ]
    for (index, (bearer, body, expected)) in cases.enumerated() {
      var bench = Bench(wakes: Bench.wakes)
      bench.give(.httpReject(HTTPRequestID(7), call: callA, bearer: bearer, body: Array(body.utf8)))
      #expect(status(&bench, 7) == expected, "case \(index)")
      #expect(bench.events == [], "case \(index)")
    }
    var bench = Bench(wakes: Bench.wakes)
    bench.give(.httpReject(HTTPRequestID(8), call: callA, bearer: token(), body: []))
    #expect(
      bench.takeEvents() == [.httpReject(HTTPRequestID(8), device, CallReject(), call: callA)], "an empty body is a plain reject")
  }

  @Test func `rejects over HTTP that control owes an answer are bounded; one whose client left is forgotten`() throws {
    var bench = Bench(wakes: Bench.wakes)
    for number in 1...UInt64(Limits.pendingHTTP) {
      bench.give(.httpReject(HTTPRequestID(number), call: callA, bearer: token(), body: []))
    }
    bench.give(.httpReject(HTTPRequestID(9_999), call: callA, bearer: token(), body: []))
    #expect(status(&bench, 9_999) == 503)
    bench.give(.httpGone(HTTPRequestID(1)))
    bench.give(.httpReject(HTTPRequestID(10_000), call: callA, bearer: token(), body: []))
    #expect(status(&bench, 10_000) == nil)
    bench.perform(.httpAnswer(HTTPRequestID(1), .ok))
    #expect(status(&bench, 1) == nil)
  }

  @Test(arguments: [RequestAnswer.ok, .err(Failure(.gone, reason: .callerCancelled))])
  func `a call declined over HTTP is not offered again by a resume; one whose reject was refused is`(answer: RequestAnswer) throws
  {
    var bench = Bench(wakes: Bench.wakes)
    let client = try bench.login(live: [callA])
    bench.perform(.send(client.device, offer, call: callA))
    bench.perform(.send(client.device, offer, call: callB))
    bench.give(.closed(client.connection, nil))
    bench.give(.httpReject(HTTPRequestID(1), call: callA, bearer: token(), body: []))
    bench.perform(.httpAnswer(HTTPRequestID(1), answer))
    let id = bench.resume(client, lastSeq: 0)
    let frames = bench.frames(id).dropFirst()
    #expect(frames.map(\.seq) == [1, 2] && frames.map(\.call) == [callA, callB])
    let offers = frames.map { if case .message(.callOffer) = $0.body { true } else { false } }
    #expect(offers == [answer != .ok, true])
  }

  @Test func `a revoked device's session is closed with 4003, after its calls`() throws {
    for live in [Set<Identifier>(), [callA]] {
      var bench = Bench()
      let client = try bench.login(live: live)
      bench.perform(.revoke(client.device))
      #expect(bench.closed(client.connection) == (live.isEmpty ? .revoked : nil))
      bench.perform(.callDead(client.device, callA))
      #expect(bench.closed(client.connection) == .revoked)
    }
  }
}
