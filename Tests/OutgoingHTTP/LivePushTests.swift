import Foundation
import JSONWebToken
import Logging
import PushPolicy
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import OutgoingHTTP

/// The push thread against a foreign HTTP/2 server.
@Suite(.enabled(if: Peer.python != nil, "no Python with h2: `Scripts/install test` makes it"), .serialized) struct LivePushTests {
  final class Reports: Sendable {
    private let all = Mutex<[PushReport]>([])
    private let event: EventDescriptor
    init() throws { event = try EventDescriptor() }
    func add(_ report: PushReport) {
      all.withLock { $0.append(report) }
      event.signal()
    }
    /// Waits until there are `count`, at most 20 s.
    func wait(_ count: Int) -> [PushReport] {
      let end = MonotonicClock.now() + .seconds(20)
      while all.withLock({ $0.count }) < count, MonotonicClock.now() < end {
        _ = event.wait(milliseconds: 200)
        event.clear()
      }
      return all.withLock { $0 }
    }
  }

  struct Bench {
    let peer: Peer
    let sender: PushSender
    let reports: Reports

    init(keyID: String = "KEY1", authorities: Bool = true) throws {
      let peer = try Peer()
      let reports = try Reports()
      sender = try PushSender(
        providers: try Self.providers(peer, keyID), tls: TLSFiles(authorities: authorities ? peer.certificate : nil),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      ) { reports.add($0) }
      (self.peer, self.reports) = (peer, reports)
    }

    static func providers(_ peer: Peer, _ keyID: String) throws -> PushProviders {
      let signer = try TokenSigner(keys: try KeySet(.ES256, keyFile: Array(TestKeys.p256.utf8)), kid: keyID)
      return PushProviders([
        APNsProvider(
          .key(signer, keyID: keyID, team: "TEAM1"), production: ("127.0.0.1", peer.port), sandbox: ("localhost", peer.port))
      ])
    }

    /// The peer chooses its answer by the token's first three digits.
    func wake(_ device: String, _ digits: String, window: Duration = .seconds(45)) {
      let call = Identifier(high: 7, low: 7)
      sender.wake(
        PushKey(call: call, user: "u", device: device),
        PushTarget(.apns, token: digits + String(repeating: "0", count: 61), topic: "org.example.app.voip"),
        CallPush(call: call, deadline: 1, handle: "+1555", gateway: "wss://gw", wake: "w"),
        deadline: MonotonicClock.now() + window)
    }

    func stop() {
      sender.stop()
      peer.stop()
    }
  }

  @Test func `SRV-4, TOK-4: pushes are accepted, refused and unregistered as the service answers, with a token it can verify`()
    throws
  {
    let bench = try Bench()
    defer { bench.stop() }
    for (index, digits) in ["200", "410", "400", "429", "777"].enumerated() { bench.wake("d\(index)", digits) }
    let outcomes = Dictionary(uniqueKeysWithValues: bench.reports.wait(5).map { ($0.key.device, $0.outcome) })
    #expect(
      outcomes == [
        "d0": .accepted, "d1": .unregistered(before: 1_700_000_000_123), "d2": .tokenMismatch, "d3": .failed, "d4": .accepted,
      ])
    for _ in 0..<5 {
      let request = try bench.peer.request()
      #expect((request["claims"] as? [String: Any])?["iss"] as? String == "TEAM1")
      let headers = try #require(request["headers"] as? [String: String])
      #expect(headers["apns-push-type"] == "voip" && headers["apns-expiration"] == "0" && headers[":method"] == "POST")
    }
  }

  @Test func `one connection carries a hundred pushes`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    bench.wake("first", "200")
    _ = bench.reports.wait(1)
    for index in 0..<100 { bench.wake("d\(index)", "200") }
    // Read as they arrive: the peer waits while the pipe is full.
    let connections = try Set((0..<101).map { _ in try bench.peer.request()["connection"] as? Int ?? 0 })
    #expect(bench.reports.wait(101).filter { $0.outcome == .accepted }.count == 101)
    #expect(connections == [1])
  }

  @Test func `503 and a closed connection are retried once on a new connection with the same apns-id`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    bench.wake("d1", "503")
    #expect(bench.reports.wait(1).map(\.attempts) == [2])
    bench.wake("d2", "999")
    #expect(bench.reports.wait(2).last?.attempts == 2)
    let seen = try (0..<4).map { _ in try bench.peer.request() }
    let ids = seen.map { ($0["headers"] as? [String: String])?["apns-id"] }
    #expect(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2])
    let connections = seen.compactMap { $0["connection"] as? Int }
    #expect(connections[0] != connections[1] && connections[2] != connections[3])
  }

  @Test func `many pushes that fail on one connection cost one new connection, not one each`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    bench.wake("first", "200")
    _ = bench.reports.wait(1)
    // All four are under way before one fails.
    for index in 0..<4 { bench.wake("d\(index)", "666") }
    #expect(bench.reports.wait(5).filter { $0.attempts == 2 }.count == 4)
    let connections = try Set((0..<9).map { _ in try bench.peer.request()["connection"] as? Int ?? 0 })
    #expect(connections == [1, 2])
  }

  @Test func `SRV-5: after a new key no push is lost and the new key's pushes have a connection of their own`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    for index in 0..<20 { bench.wake("a\(index)", "200") }
    bench.sender.replace(try Bench.providers(bench.peer, "KEY2"))
    for index in 0..<20 { bench.wake("b\(index)", "200") }
    var connections: [Character: Set<Int>] = [:]
    for _ in 0..<40 {
      let request = try bench.peer.request()
      let kid = try #require(Self.keyID(request))
      connections[kid.last ?? "?", default: []].insert(request["connection"] as? Int ?? 0)
    }
    #expect(bench.reports.wait(40).filter { $0.outcome == .accepted }.count == 40)
    #expect(connections.count == 2 && connections["1"]?.isDisjoint(with: connections["2"] ?? []) == true)
  }

  private static func keyID(_ request: [String: Any]) -> String? {
    let headers = request["headers"] as? [String: String]
    let head = headers?["authorization"]?.dropFirst("bearer ".count).prefix { $0 != "." } ?? ""
    let json = Base64URL.decode(head.utf8).flatMap { try? JSONSerialization.jsonObject(with: Data($0)) as? [String: String] }
    return json?["kid"]
  }

  @Test func `a service whose certificate no trusted authority signed gets no push`() throws {
    let bench = try Bench(authorities: false)
    defer { bench.stop() }
    bench.wake("d1", "200")
    let report = try #require(bench.reports.wait(1).first)
    #expect(report.outcome == .failed && report.reason.contains("broke:"))
  }

  @Test func `a service that never answers costs the push at the end of its window, and stopping reports what is left`() throws {
    let bench = try Bench()
    defer { bench.peer.stop() }
    bench.wake("d1", "888", window: .milliseconds(300))
    #expect(bench.reports.wait(1).first?.outcome == .failed)
    bench.wake("d2", "888")
    _ = try bench.peer.request()
    _ = try bench.peer.request()
    bench.sender.stop()
    #expect(bench.reports.wait(2).last?.reason == "stopped")
    #expect(NamedThread.live.value == 0)
  }
}
