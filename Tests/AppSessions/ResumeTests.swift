import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@Suite struct ResumeTests {
  @Test func `a resume replays what was not acked, after a welcome that names the next number`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
    bench.perform(.send(client.device, offer, call: callA))
    bench.perform(.send(client.device, progress(2), call: callA))
    bench.give(.closed(client.connection, nil))
    bench.perform(.send(client.device, progress(3), call: callA))
    #expect(
      bench.takeEvents() == [
        .notification(client.device, client.session, .callRinging(CallRinging()), call: callA),
        .disconnected(client.device, client.session),
      ])
    let id = bench.resume(client, lastSeq: 1)
    let events = bench.takeEvents()
    #expect(events.count == 2)
    #expect(events[1] == .offerAcked(client.device, client.session, call: callA))
    let frames = bench.frames(id)
    guard case .message(.welcome(let welcome))? = frames.first?.body else {
      Issue.record("no welcome")
      return
    }
    #expect(welcome.resumed && welcome.replayFrom == 2 && welcome.calls == nil && welcome.sid == client.welcome.sid)
    #expect(frames[0].re == number(2))
    #expect(frames.dropFirst().map(\.seq) == [2, 3])
    // Replayed by the client, and then the next.
    bench.send(.callRinging(CallRinging()), on: id, seq: 1, call: callA)
    bench.send(.mediaActive(MediaActive(capture: true, playout: true)), on: id, seq: 2, call: callA)
    #expect(bench.takeEvents().count == 1)
  }

  @Test func `any split of a stream of messages over sockets arrives once and in order`() throws {
    for cut in 0...6 {
      var bench = Bench()
      let client = try bench.login(live: [callA])
      var received: [Int64] = []
      func take(_ id: ConnectionID, _ bench: inout Bench) {
        for frame in bench.frames(id) {
          if case .message(.callProgress(let d)) = frame.body { received.append(d.at) }
        }
      }
      var id = client.connection
      for n in 1...6 {
        if n == cut {
          take(id, &bench)
          bench.give(.closed(id, nil))
        }
        bench.perform(.send(client.device, progress(Int64(n)), call: callA))
        if n == cut + 2, cut > 0 { id = bench.resume(client, lastSeq: received.count) }
      }
      if cut >= 5 { id = bench.resume(client, lastSeq: received.count) }
      take(id, &bench)
      #expect(received == [1, 2, 3, 4, 5, 6], "cut before \(cut)")
    }
  }

  @Test func `a resume while the old socket still stands closes it with 4009`() throws {
    var bench = Bench()
    let client = try bench.login()
    let id = bench.resume(client, lastSeq: 0)
    #expect(bench.closed(client.connection) == .replaced)
    #expect(bench.closed(id) == nil)
    let events = bench.takeEvents()
    #expect(events.first == .disconnected(client.device, client.session))
    guard case .connected(client.device, client.session, _, resumed: true)? = events.last else {
      Issue.record("no .connected")
      return
    }
    bench.give(.closed(client.connection, .replaced))
    bench.send(.ping, on: id)
    #expect(bench.frames(id).last?.body == .message(.pong))
  }

  @Test func `a wrong token, device, sid or lastSeq is refused with 4001, and the session stays`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.perform(.send(client.device, offer, call: callA))
    bench.perform(.send(client.device, offer, call: callB))
    bench.send(.ack, on: client.connection, ack: 1)
    bench.give(.closed(client.connection, nil))
    let wrong = bench.resume(client, lastSeq: 1, token: String(client.welcome.resumeToken.dropLast()) + "x")
    #expect(bench.closed(wrong) == .authFailed)
    var other = client
    other.device.device = "d2"
    #expect(bench.resumeCode(other, lastSeq: 1) == .authFailed)
    other = client
    other.welcome.sid = "nosuch"
    #expect(bench.resumeCode(other, lastSeq: 1) == .authFailed)
    #expect(bench.resumeCode(client, lastSeq: 3) == .authFailed, "never sent")
    #expect(bench.resumeCode(client, lastSeq: 0) == .authFailed, "acked before, so no longer kept")
    #expect(bench.resumeCode(client, lastSeq: 1) == nil)
    #expect(bench.machine.stats.refusals == [.resumeUnknown: 5])
  }

  @Test func `a session without calls can be resumed for two minutes`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.give(.closed(client.connection, nil))
    bench.pass(.milliseconds(119_999))
    #expect(bench.takeEvents() == [.disconnected(client.device, client.session)])
    bench.pass(.milliseconds(1))
    #expect(bench.takeEvents() == [.ended(client.device, client.session)])
    #expect(bench.resumeCode(client, lastSeq: 0) == .authFailed)
  }

  @Test func `a session with calls can be resumed until two minutes after the last of them`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.perform(.callLive(client.device, callA))
    bench.perform(.callLive(client.device, callB))
    bench.give(.closed(client.connection, nil))
    bench.pass(.seconds(600))
    bench.perform(.callDead(client.device, callA))
    bench.pass(.seconds(600))
    bench.perform(.callDead(client.device, callB))
    bench.pass(.milliseconds(119_999))
    #expect(bench.takeEvents() == [.disconnected(client.device, client.session)])
    bench.pass(.milliseconds(1))
    #expect(bench.takeEvents() == [.ended(client.device, client.session)])
  }

  @Test func `a call that comes during the window holds the session`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.give(.closed(client.connection, nil))
    bench.pass(.seconds(100))
    bench.perform(.send(client.device, offer, call: callA))
    bench.perform(.callLive(client.device, callA))
    bench.pass(.seconds(60))
    let id = bench.resume(client, lastSeq: 0)
    #expect(bench.frames(id).last == ServerFrame(offer, seq: 1, call: callA))
  }

  @Test func `only a client's close with 1000 ends the session at once`() throws {
    var bench = Bench()
    for code in [CloseCode.goingAway, .abnormal, nil] {
      let client = try bench.login()
      bench.give(.closed(client.connection, code))
      #expect(bench.takeEvents() == [.disconnected(client.device, client.session)])
      bench.give(.closed(bench.resume(client, lastSeq: 0), .normal))
      #expect(bench.takeEvents().last == .ended(client.device, client.session))
    }
  }

  @Test func `a socket that says nothing after a message for it is pinged, and dead six seconds after it`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.perform(.send(client.device, progress(1), call: callA))
    bench.pass(.milliseconds(1_999))
    #expect(!bench.actions.contains(.ping(client.connection)))
    bench.pass(.milliseconds(236))
    #expect(bench.actions.contains(.ping(client.connection)))
    // any sign of life will do
    bench.give(.alive(client.connection))
    bench.pass(.seconds(10))
    #expect(bench.closed(client.connection) == nil)
    bench.perform(.send(client.device, progress(1), call: callA))
    bench.pass(.milliseconds(5_999))
    #expect(bench.closed(client.connection) == nil)
    bench.pass(.milliseconds(472))
    #expect(bench.closed(client.connection) == .goingAway)
    #expect(bench.takeEvents().last == .disconnected(client.device, client.session))
    #expect(bench.resumeCode(client, lastSeq: 0) == nil, "what was said waits for it")
  }

  @Test func `silence is answered by a ping after 9/8 heartbeats and closes after two, the session can be resumed`() throws {
    var bench = Bench()
    let client = try bench.login()
    // Who pings each heartbeat, as it should, is not pinged.
    for _ in 0..<4 {
      bench.pass(.seconds(15))
      bench.send(.ping, on: client.connection)
    }
    bench.pass(.milliseconds(16_874))
    #expect(!bench.actions.contains(.ping(client.connection)))
    bench.pass(.milliseconds(236))  // sockets are looked at 64 times a heartbeat
    #expect(bench.actions.filter { $0 == .ping(client.connection) }.count == 1)
    bench.give(.alive(client.connection))
    bench.pass(.seconds(20))
    bench.send(.ping, on: client.connection)
    bench.pass(.milliseconds(29_999))
    #expect(bench.closed(client.connection) == nil)
    bench.pass(.milliseconds(236))
    #expect(bench.closed(client.connection) == .goingAway)
    #expect(bench.takeEvents() == [.disconnected(client.device, client.session)])
    #expect(bench.resumeCode(client, lastSeq: 0) == nil)
  }
}
