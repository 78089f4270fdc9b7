import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@Suite struct NumberingTests {
  @Test func `messages are numbered from 1 and acked within 200 ms`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
    bench.send(.mediaReady(MediaReady()), on: client.connection, seq: 2, call: callA)
    #expect(
      bench.takeEvents() == [
        .notification(client.device, client.session, .callRinging(CallRinging()), call: callA),
        .notification(client.device, client.session, .mediaReady(MediaReady()), call: callA),
      ])
    #expect(bench.frames(client.connection).isEmpty)
    bench.pass(.milliseconds(200))
    #expect(bench.frames(client.connection) == [ServerFrame(.ack, ack: 2)])
    bench.pass(.seconds(5))
    #expect(bench.frames(client.connection).isEmpty, "acked once")
  }

  @Test func `what goes out anyway carries the ack`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
    bench.perform(.send(client.device, progress(1), call: callA))
    #expect(bench.frames(client.connection) == [ServerFrame(progress(1), seq: 1, ack: 1, call: callA)])
    bench.pass(.milliseconds(200))
    #expect(bench.frames(client.connection).isEmpty)
  }

  @Test func `a number seen before is dropped and acked again`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
    bench.pass(.milliseconds(200))
    _ = (bench.frames(client.connection), bench.takeEvents())
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 1, call: callA)
    #expect(bench.takeEvents().isEmpty)
    #expect(bench.machine.stats.duplicates == 1)
    bench.pass(.milliseconds(200))
    #expect(bench.frames(client.connection) == [ServerFrame(.ack, ack: 1)])
  }

  @Test func `a gap closes with 4002 and the session is dead`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.send(.callRinging(CallRinging()), on: client.connection, seq: 2, call: callA)
    #expect(bench.closed(client.connection) == .sequenceGap)
    #expect(bench.takeEvents() == [.disconnected(client.device, client.session), .ended(client.device, client.session)])
    bench.give(.closed(client.connection, .sequenceGap))
    let id = bench.resume(client, lastSeq: 0)
    #expect(bench.closed(id) == .authFailed)
  }

  @Test func `a malformed or unknown message uses its number up`() throws {
    var bench = Bench()
    let client = try bench.login()
    let c = client.connection
    bench.text(#"{"t":"call.dtmf","id":"\#(number(5))","seq":1,"call":"\#(callA)","d":{"digits":"x"}}"#, on: c)
    bench.text(#"{"t":"media.ready","seq":2,"call":"\#(callA)","d":{"gen":"x"}}"#, on: c)
    bench.text(#"{"t":"call.fly","seq":3}"#, on: c)
    bench.text(#"{"t":"call.swim","id":"\#(number(6))"}"#, on: c)
    bench.send(.callRinging(CallRinging()), on: c, seq: 4, call: callA)
    let errors = bench.frames(c).map { frame -> String in
      guard case .message(.err(let failure)) = frame.body else { return "\(frame.body)" }
      return "\(failure.code) \(frame.re.map(\.description) ?? "-")"
    }
    #expect(errors == ["badRequest \(number(5))", "unsupported -", "unsupported \(number(6))"])
    #expect(bench.takeEvents() == [.notification(client.device, client.session, .callRinging(CallRinging()), call: callA)])
    #expect(bench.machine.stats.malformed == 2 && bench.machine.stats.unknown == 2)
  }

  @Test func `a reserved or unknown type gets unsupported, and its number is acknowledged`() throws {
    var bench = Bench()
    let client = try bench.login()
    for (n, type) in ["call.later", "call.other"].enumerated() {
      bench.text(
        #"{"t":"\#(type)","id":"\#(number(UInt64(20 + n)))","seq":\#(n + 1),"call":"\#(callA)"}"#, on: client.connection)
    }
    for (n, type) in ["dir.get", "hist.list", "hist.resolve"].enumerated() {
      bench.text(#"{"t":"\#(type)","id":"\#(number(UInt64(30 + n)))","d":{"handles":[]}}"#, on: client.connection)
    }
    let frames = bench.frames(client.connection)
    #expect(frames.map(\.re) == [20, 21, 30, 31, 32].map { number($0) })
    #expect(frames.map(\.ack) == [1, 2, nil, nil, nil])
    #expect(frames.allSatisfy { $0.body == .message(.err(Failure(.unsupported))) })
    #expect(bench.takeEvents().isEmpty)
  }

  @Test func `an acked offer is told to control once`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.perform(.send(client.device, offer, call: callA))
    bench.perform(.send(client.device, offer, call: callB))
    #expect(bench.frames(client.connection).map(\.seq) == [1, 2])
    bench.send(.ack, on: client.connection, ack: 1)
    #expect(bench.takeEvents() == [.offerAcked(client.device, client.session, call: callA)])
    bench.send(.ping, on: client.connection, ack: 2)
    bench.send(.ack, on: client.connection, ack: 2)
    bench.send(.ack, on: client.connection, ack: 1)
    #expect(bench.takeEvents() == [.offerAcked(client.device, client.session, call: callB)])
  }

  @Test func `an ack of what was never sent changes nothing`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.perform(.send(client.device, offer, call: callA))
    bench.send(.ack, on: client.connection, ack: 2)
    #expect(bench.takeEvents().isEmpty)
    #expect(bench.closed(client.connection) == nil)
    bench.send(.ack, on: client.connection, ack: 1)
    #expect(bench.takeEvents() == [.offerAcked(client.device, client.session, call: callA)])
  }

  @Test func `256 messages without an ack are kept, the next closes with 4008`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    for n in 0..<256 { bench.perform(.send(client.device, progress(Int64(n)), call: callA)) }
    #expect(bench.closed(client.connection) == nil)
    bench.perform(.send(client.device, progress(256), call: callA))
    #expect(bench.closed(client.connection) == .overflow)
    #expect(bench.takeEvents() == [.disconnected(client.device, client.session), .ended(client.device, client.session)])
  }

  @Test func `256 KiB without an ack are kept, also for a socket that is gone`() throws {
    var bench = Bench()
    let client = try bench.login(live: [callA])
    let large = ServerMessage.mediaAnswer(MediaAnswer(sdp: String(repeating: "a", count: 64_000), gen: 2))
    for _ in 0..<4 { bench.perform(.send(client.device, large, call: callA)) }
    bench.send(.ack, on: client.connection, ack: 1)
    bench.perform(.send(client.device, large, call: callA))
    #expect(bench.closed(client.connection) == nil)
    bench.give(.closed(client.connection, nil))
    _ = bench.takeEvents()
    bench.perform(.send(client.device, large, call: callA))
    #expect(bench.takeEvents() == [.ended(client.device, client.session)])
  }

  @Test func `a congested socket is closed with 4008 and its session is dead, others go on`() throws {
    var bench = Bench()
    let slow = try bench.login("alice", "d1")
    let fine = try bench.login("alice", "d2")
    bench.give(.congested(slow.connection))
    #expect(bench.closed(slow.connection) == .overflow)
    #expect(bench.takeEvents() == [.disconnected(slow.device, slow.session), .ended(slow.device, slow.session)])
    bench.send(.ping, on: fine.connection)
    #expect(bench.frames(fine.connection).map(\.body) == [.message(.pong)])
  }

  @Test func `what is not JSON closes with 1007, and the session can be resumed`() throws {
    var bench = Bench()
    let client = try bench.login()
    bench.text("[1]", on: client.connection)
    #expect(bench.closed(client.connection) == .malformed)
    bench.give(.closed(client.connection, nil))
    let id = bench.resume(client, lastSeq: 0)
    #expect(bench.closed(id) == nil)
  }

  @Test func `too many messages a second close with 1008, a full replay does not`() throws {
    var bench = Bench()
    let client = try bench.login()
    for n in 1...256 {
      bench.send(.mediaActive(MediaActive(capture: true, playout: true)), on: client.connection, seq: n, call: callA)
    }
    #expect(bench.closed(client.connection) == nil)
    for _ in 0..<400 { bench.send(.ping, on: client.connection) }
    #expect(bench.closed(client.connection) == .policy)
    #expect(bench.machine.stats.rateLimited == 1)
  }

  @Test func `too many bytes a second close with 1008`() throws {
    var bench = Bench()
    let client = try bench.login()
    let big = #"{"t":"ping","d":""# + String(repeating: "a", count: 65_000) + #""}"#
    for _ in 0..<16 { bench.text(big, on: client.connection) }
    #expect(bench.closed(client.connection) == nil)
    bench.text(big, on: client.connection)
    #expect(bench.closed(client.connection) == .policy)
  }
}
