import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import AppSessions

@Suite struct AnswerTests {
  let end = ClientMessage.callEnd(CallEnd())
  let won = RequestAnswer.ok(Success(won: true))

  @Test func `a request reaches control once and its answer is sent with re`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.send(.callAnswer(CallAnswer(ageMs: 5)), on: client.connection, id: number(50), seq: 1, call: callA)
    let token = RequestToken(device: client.device, request: number(50))
    #expect(
      bench.takeEvents() == [.request(client.device, client.session, token, .callAnswer(CallAnswer(ageMs: 5)), call: callA)])
    bench.perform(.answer(token, won))
    #expect(bench.frames(client.connection) == [ServerFrame(.ok(Success(won: true)), re: number(50), ack: 1)])
    // Twice is a fault of control: not sent again.
    bench.perform(.answer(token, .err(Failure(.server))))
    #expect(bench.frames(client.connection).isEmpty)
    #expect(bench.machine.stats.strayCommands == 1)
  }

  @Test func `a repeat gets the stored answer, a repeat before the answer gets it once`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.send(end, on: client.connection, id: number(50), seq: 1, call: callA)
    bench.send(end, on: client.connection, id: number(50), seq: 2, call: callA)
    #expect(bench.takeEvents().count == 1)
    bench.perform(.answer(RequestToken(device: client.device, request: number(50)), .err(Failure(.gone, reason: .busy))))
    #expect(bench.frames(client.connection).map(\.re) == [number(50)])
    bench.send(end, on: client.connection, id: number(50), seq: 3, call: callA)
    #expect(bench.takeEvents().isEmpty)
    #expect(bench.frames(client.connection).map(\.body) == [.message(.err(Failure(.gone, reason: .busy)))])
    #expect(bench.machine.stats.repeats == 2)
  }

  @Test func `an answer made while the socket was gone is given to the repeat, on a resumed or a new session`() throws {
    var bench = Bench()
    var client = try bench.login(live: [callA])
    let token = RequestToken(device: client.device, request: number(50))
    bench.send(end, on: client.connection, id: number(50), seq: 1, call: callA)
    bench.give(.closed(client.connection, nil))
    bench.perform(.answer(token, .ok))
    let resumed = bench.resume(client, lastSeq: 0)
    #expect(bench.frames(resumed).count == 1, "ok and err are not replayed")
    bench.send(end, on: resumed, id: number(50), seq: 2, call: callA)
    #expect(bench.frames(resumed).map(\.re) == [number(50)])
    bench.give(.closed(resumed, .normal))
    client = try bench.login()
    bench.send(end, on: client.connection, id: number(50), seq: 1, call: callA)
    #expect(bench.frames(client.connection).map(\.body) == [.message(.ok(Success()))])
    #expect(bench.takeEvents().isEmpty)
  }

  @Test func `a repeat on a new socket before the answer moves the answer there`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    bench.send(end, on: client.connection, id: number(50), seq: 1, call: callA)
    bench.give(.closed(client.connection, nil))
    let resumed = bench.resume(client, lastSeq: 0)
    _ = bench.frames(resumed)
    bench.send(end, on: resumed, id: number(50), seq: 2, call: callA)
    bench.perform(.answer(RequestToken(device: client.device, request: number(50)), .ok))
    #expect(bench.frames(resumed).map(\.re) == [number(50)])
  }

  @Test func `an answer is forgotten only after 64 later requests and 10 minutes`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 36_000)
    var seq = 0
    func ask(_ n: UInt64, _ bench: inout Bench) -> Int {
      seq += 1
      bench.send(end, on: client.connection, id: number(n), seq: seq, call: callA)
      let requests = bench.takeEvents()
      for case .request(_, _, let token, _, _) in requests { bench.perform(.answer(token, .ok)) }
      _ = bench.frames(client.connection)
      return requests.count
    }
    #expect(ask(100, &bench) == 1)
    for n in 0..<70 { _ = ask(200 + UInt64(n), &bench) }
    #expect(ask(100, &bench) == 0, "64 later requests, but no 10 minutes")
    for _ in 0..<61 {
      bench.pass(.seconds(10))
      bench.send(.ping, on: client.connection)
    }
    #expect(ask(269, &bench) == 0, "10 minutes, but no 64 later requests")
    #expect(ask(100, &bench) == 0, "not before a new request comes")
    #expect(ask(300, &bench) == 1)
    #expect(ask(100, &bench) == 1)
  }

  @Test func `a device with much to say is not locked out: the oldest answers go, the last 64 stay`() throws {
    var bench = Bench()
    let client = try bench.login()
    for n in 1...3_000 {
      bench.send(.deviceState(DeviceState(state: .fg)), on: client.connection, id: number(UInt64(1_000 + n)))
      bench.pass(.milliseconds(10))
    }
    #expect(bench.frames(client.connection).filter { $0.body == .message(.ok(Success())) }.count == 3_000)
    bench.send(end, on: client.connection, id: number(5_000), seq: 1, call: callA)
    #expect(bench.takeEvents().count == 1)
    let repeats = bench.machine.stats.repeats
    for n in 2_940...3_000 {
      bench.send(.deviceState(DeviceState(state: .fg)), on: client.connection, id: number(UInt64(1_000 + n)))
    }
    #expect(bench.machine.stats.repeats == repeats + 61)
  }

  @Test func `behind a request that control answers late the store stays as small as it is`() {
    var store = AnswerStore()
    let waiter = AnswerStore.Waiter(session: SessionID("s"), connection: ConnectionID(1))
    let now = Instant.zero
    #expect(store.arrived(number(1), of: nil, from: waiter, at: now) == .new)
    for n in 2...60_000 {
      #expect(store.arrived(number(UInt64(n)), of: nil, from: waiter, at: now) == .new)
      _ = store.answered(number(UInt64(n)), .ok)
    }
    #expect(store.count == Limits.answersPerDevice && store.orderCount <= 2 * Limits.answersPerDevice)
    #expect(store.answered(number(1), .ok) == waiter, "it is kept until it is answered")
  }

  @Test func `1024 requests without an answer are the end of it, said to app and log, and one answer makes room`() throws {
    var bench = Bench()
    let client = try bench.login()
    for n in 1...1_024 {
      bench.send(end, on: client.connection, id: number(UInt64(1_000 + n)), seq: n, call: callA)
      bench.pass(.milliseconds(10))
    }
    _ = bench.frames(client.connection)
    #expect(bench.takeEvents().count == 1_024)
    bench.send(end, on: client.connection, id: number(5_000), seq: 1_025, call: callA)
    let text = "1024 requests of this device wait for their answers"
    #expect(bench.frames(client.connection).map(\.body) == [.message(.err(Failure(.tooMany, msg: text)))])
    #expect(bench.refusedRequests.map(\.why) == [text] && bench.machine.stats.unkept == 1)
    bench.perform(.answer(RequestToken(device: client.device, request: number(1_500)), .ok))
    bench.send(end, on: client.connection, id: number(5_001), seq: 1_026, call: callA)
    #expect(bench.takeEvents().count == 1)
  }

  @Test func `the answer of media.restart is numbered, carries re and is kept`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    bench.send(.mediaRestart(MediaRestart(sdp: "v", gen: 2)), on: client.connection, id: number(50), seq: 1, call: callA)
    bench.give(.closed(client.connection, nil))
    bench.perform(.answer(RequestToken(device: client.device, request: number(50)), .mediaAnswer(MediaAnswer(sdp: "w", gen: 2))))
    let resumed = bench.resume(client, lastSeq: 0)
    let answer = ServerFrame(.mediaAnswer(MediaAnswer(sdp: "w", gen: 2)), re: number(50), seq: 1, call: callA)
    #expect(bench.frames(resumed).dropFirst().map { $0 } == [answer])
    bench.send(.mediaRestart(MediaRestart(sdp: "v", gen: 2)), on: resumed, id: number(50), seq: 2, call: callA)
    #expect(bench.frames(resumed).isEmpty, "it is on its way already")
  }

  @Test func `device.state is answered here and told to control when it changes`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.send(.deviceState(DeviceState(state: .bg)), on: client.connection, id: number(50))
    bench.send(.deviceState(DeviceState(state: .bg)), on: client.connection, id: number(51))
    #expect(bench.takeEvents() == [.stateChanged(client.device, .bg)])
    #expect(bench.frames(client.connection).map(\.re) == [number(50), number(51)])
  }

  @Test func `answers of a device without a session are forgotten after an hour`() throws {
    var bench = Bench()
    let client = try bench.login(lives: 36_000)
    bench.send(end, on: client.connection, id: number(50), seq: 1, call: callA)
    bench.perform(.answer(RequestToken(device: client.device, request: number(50)), .ok))
    bench.give(.closed(client.connection, .normal))
    bench.pass(.seconds(3_601))
    #expect(bench.machine.nextDeadline == nil)
    _ = bench.takeEvents()
    let again = try bench.login(lives: 36_000)
    bench.send(end, on: again.connection, id: number(50), seq: 1, call: callA)
    #expect(bench.takeEvents().count == 1)
  }
}
