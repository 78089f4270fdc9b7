import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// A client that follows docs/reference/protocol.md, over sockets that break at any moment and lose data on the way.
private struct HonestClient {
  var socket: ConnectionID?
  var session: Client?
  /// Numbered messages not acked, oldest first.
  var outbox: [ClientFrame] = []
  var nextSeq = 1
  var lastSeq = 0
  /// Requests without an answer, oldest first.
  var open: [Identifier] = []
  var answered: [Identifier: Int] = [:]
  /// The gateway's numbered messages that arrived, over all sessions.
  var received: [Int64] = []

  mutating func request(_ id: Identifier) {
    open.append(id)
    enqueue(id)
  }

  mutating func enqueue(_ id: Identifier) {
    outbox.append(ClientFrame(.callMute(CallMute(on: true)), id: id, seq: nextSeq, ack: lastSeq, call: callA))
    nextSeq += 1
  }

  /// Handles the frames that arrived.
  mutating func take(_ frames: [ServerFrame]) {
    for frame in frames {
      if let ack = frame.ack { outbox.removeAll { ($0.seq ?? 0) <= ack } }
      if let seq = frame.seq {
        guard seq > lastSeq else { continue }
        #expect(seq == lastSeq + 1, "a gap from the gateway")
        lastSeq = seq
      }
      switch frame.body {
      case .message(.callProgress(let d)): received.append(d.at)
      case .message(.ok), .message(.err):
        guard let re = frame.re else { continue }
        answered[re, default: 0] += 1
        open.removeAll { $0 == re }
      default: break
      }
    }
  }
}

@Suite struct SimulationTests {
  @Test(arguments: 1...40) func `breaking sockets lose no message and double no effect`(seed: UInt64) throws {
    let random = RandomSource.seeded(seed)
    func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }
    var bench = Bench()
    var client = HonestClient()
    var effects: [RequestToken: Int] = [:]
    var unanswered: [RequestToken] = []
    var told: Int64 = 0
    var requests: UInt64 = 0

    func connect(_ bench: inout Bench, _ client: inout HonestClient) throws {
      if let session = client.session {
        let id = bench.resume(session, lastSeq: client.lastSeq)
        let frames = bench.frames(id)
        guard case .message(.welcome(let welcome))? = frames.first?.body, welcome.resumed else {
          throw Trouble("not resumed")
        }
        client.outbox.removeAll { ($0.seq ?? 0) < welcome.replayFrom }
        client.socket = id
        // Sent messages are repeated unchanged, then requests without an answer under a new number.
        let replayed = Set(client.outbox.compactMap(\.id))
        for id in client.open where !replayed.contains(id) { client.enqueue(id) }
        client.take(frames)
      } else {
        let session = try bench.login(live: [callA])
        (client.session, client.socket) = (session, session.connection)
      }
      for frame in client.outbox { bench.give(.frame(client.socket ?? ConnectionID(0), frame.encoded())) }
    }

    for _ in 0..<300 {
      if client.socket == nil { try connect(&bench, &client) }
      guard let socket = client.socket else { return }
      if chance(30) {
        requests += 1
        client.request(number(1_000 + requests))
        if let frame = client.outbox.last, chance(80) {
          bench.give(.frame(socket, frame.encoded()))
        } else {  // lost on the way, with everything after it
          bench.give(.closed(socket, nil))
          client.socket = nil
        }
      }
      if chance(30) {
        told += 1
        bench.perform(.send(DeviceKey(user: "alice", device: "d1"), progress(told), call: callA))
      }
      for case .request(_, _, let token, _, _) in bench.takeEvents() {
        effects[token, default: 0] += 1
        unanswered.append(token)
      }
      if !unanswered.isEmpty, chance(40) { bench.perform(.answer(unanswered.removeFirst(), .ok)) }
      bench.pass(.milliseconds(Int64(random.next() % 300)))
      if let socket = client.socket {
        if chance(10) {
          // The socket breaks: a part of the data on the way arrives.
          let frames = bench.frames(socket)
          client.take(Array(frames.prefix(Int(random.next() % UInt64(frames.count + 1)))))
          bench.give(.closed(socket, nil))
          client.socket = nil
        } else {
          client.take(bench.frames(socket))
          bench.send(.ack, on: socket, ack: client.lastSeq)
        }
      }
    }
    // Then nothing breaks: every open request is answered.
    if client.socket == nil { try connect(&bench, &client) }
    guard let socket = client.socket else { return }
    for _ in 0..<3 {
      for case .request(_, _, let token, _, _) in bench.takeEvents() {
        effects[token, default: 0] += 1
        unanswered.append(token)
      }
      for token in unanswered { bench.perform(.answer(token, .ok)) }
      unanswered = []
      bench.pass(.milliseconds(300))
      client.take(bench.frames(socket))
    }
    #expect(bench.closed(socket) == nil)
    #expect(client.received == Array(1...max(1, told)).prefix(Int(told)).map { $0 }, "seed \(seed)")
    #expect(client.open.isEmpty, "seed \(seed)")
    #expect(client.outbox.isEmpty, "seed \(seed)")
    #expect(effects.count == Int(requests) && effects.values.allSatisfy { $0 == 1 }, "seed \(seed)")
  }
}
