import AppSessions
import CallFlow
import CallModel
import Cluster
import Foundation
import Glibc
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

@testable import SharedStore

/// The shared store's thread when its shared store fails. Each test has a Redis of its own.
@Suite(.serialized) struct FaultTests {
  private let look = SharedStoreRequest.locate(user: "alice", entering: nil)

  private func outcome(_ node: RedisNode, _ request: SharedStoreRequest? = nil) throws -> String {
    switch try node.ask([request ?? look])[0] {
    case .success: "answered"
    case .failure(let failure): "\(failure)"
    }
  }

  @Test func `a frozen shared store costs 250 ms, then nothing until it is back`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port, commandTime: .milliseconds(250)))
    redis.stop()
    let start = MonotonicClock.now()
    let ids = node.post([SharedStoreRequest](repeating: look, count: 5))
    try node.waitFor("lost")
    let took = MonotonicClock.now() - start
    #expect(took >= .milliseconds(240) && took < .seconds(2), "\(took)")
    try waitUntil("all are told") { ids.allSatisfy { node.reply($0) == .failure(.timeout) } }
    let before = MonotonicClock.now()
    #expect(try node.ask([look]) == [.failure(.away)])
    #expect(MonotonicClock.now() - before < .milliseconds(200), "away is told at once")
    redis.goOn()
    try node.waitFor("connected", count: 2)
    #expect(try outcome(node) == "answered")
    #expect(node.repliedTwice == 0)
    #expect(node.metric("failures_total", "timeout") == 5 && node.metric("losses_total") == 1)
  }

  @Test func `a few late answers are no loss`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port, commandTime: .milliseconds(250)))
    redis.stop()
    let ids = node.post([look, look])
    try waitUntil("both have timed out") { ids.allSatisfy { node.reply($0) == .failure(.timeout) } }
    redis.goOn()
    #expect(try outcome(node) == "answered", "the late answers are read and forgotten")
    #expect(node.events == ["connected"] && node.repliedTwice == 0)
  }

  @Test func `a slow shared store answers, one after the other`() throws {
    let redis = try RedisPeer()
    let path = try SlowPath(to: redis.port, delay: 0.08)
    let node = try RedisNode("a", settings(path.port, commandTime: .milliseconds(250)))
    let replies = try node.ask([SharedStoreRequest](repeating: look, count: 50))
    #expect(replies.allSatisfy { if case .success = $0 { true } else { false } }, "50 in one write, 160 ms there and back")
  }

  @Test func `killed and started again: another shared store, and said so`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    let location = location("alice", "phone", node.incarnation)
    _ = try node.ask(.enter(location))
    redis.kill()
    try node.waitFor("lost")
    #expect(try outcome(node) == "away")
    try waitUntil("it says why") { node.note.contains("the shared store is unavailable") && node.note.contains("refused") }
    try redis.start()
    try node.waitFor("connected after a flush")
    #expect(try node.enter(location).before == nil, "nothing of it is left")
    #expect(node.metric("flushes_total") == 1 && node.metric("up") == 1 && node.note.isEmpty)
  }

  @Test func `flushed while connected: found at the next connection`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    redis.say("CLIENT", "KILL", "TYPE", "normal")
    try node.waitFor("connected", count: 2)
    #expect(node.events == ["connected", "lost", "connected"], "the same shared store")
    redis.say("FLUSHALL")
    redis.say("CLIENT", "KILL", "TYPE", "normal")
    try node.waitFor("connected after a flush")
  }

  @Test func `a half-open path is found by both connections`() throws {
    let redis = try RedisPeer()
    let path = try SlowPath(to: redis.port, delay: 0)
    let node = try RedisNode("a", settings(path.port, commandTime: .milliseconds(250)))
    path.swallow(true)
    // no request is sent: the subscription finds it
    try node.waitFor("lost")
    path.swallow(false)
    try node.waitFor("connected", count: 2)
    path.swallow(true)
    node.post([look, look, look])
    try node.waitFor("lost", count: 2)
    path.swallow(false)
    try node.waitFor("connected", count: 3)
    #expect(try outcome(node) == "answered")
  }

  @Test func `one shard's connection that is silent is found while the others answer and nobody asks it`() throws {
    let peers = try ClusterPeers()
    var settings = settings(0, commandTime: .milliseconds(250))
    settings.servers = .cluster([.init("127.0.0.1", peers.nodes[0].port)])
    let node = try RedisNode("a", settings)
    // the subscription is at the first node
    peers.nodes[2].stop()
    try node.waitFor("lost")
    try waitUntil("it says which") { node.note.contains("127.0.0.1:\(peers.nodes[2].port)") }
    peers.nodes[2].goOn()
    try node.waitFor("connected", count: 2)
  }

  @Test func `commands that are late once a day are no loss, and a connection that answers its PINGs is kept`() throws {
    let shard = SharedStoreShard(.init("127.0.0.1", 1), tag: "t", at: .zero)
    var now = Instant.zero
    func ask() { shard.append(.init(id: SharedStoreRequestID(1), sent: now, deadline: now + .milliseconds(250))) }
    for _ in 0..<10 {
      ask()
      now = now + .milliseconds(300)
      #expect(shard.expired(at: now).count == 1 && shard.loss(at: now) == nil)
      _ = shard.next(at: now)
      now = now + .seconds(3_600)
      #expect(shard.pingIsDue(at: now))
      shard.append(.init(sent: now, deadline: now + .milliseconds(250)))
      #expect(!shard.pingIsDue(at: now))
      now = now + .milliseconds(2)
      _ = shard.next(at: now)
    }
    // many commands wait and the oldest is answered late, but answers arrive
    for _ in 0..<30 { shard.append(.init(sent: now, deadline: now + .seconds(60))) }
    for _ in 0..<30 {
      now = now + .milliseconds(1_900)
      #expect(shard.loss(at: now) == nil)
      _ = shard.next(at: now)
    }
    ask()
    now = now + .milliseconds(1_999)
    _ = shard.expired(at: now)
    #expect(shard.loss(at: now) == nil && shard.deadline == now + .milliseconds(1))
    now = now + .milliseconds(1)
    #expect(shard.loss(at: now) != nil)
  }

  @Test func `a full shared store refuses what it cannot hold, and stays connected`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    redis.say("CONFIG", "SET", "maxmemory", "1")
    #expect(try outcome(node, .put(entry(CallID(1)), at: node.incarnation)).contains("OOM"))
    #expect(try outcome(node) == "answered", "reading goes on")
    #expect(try outcome(node, .enter(location("alice", "phone", node.incarnation))).contains("refused"))
    #expect(node.note.isEmpty, "nothing that a node needs was refused so far")
    let renewal = SharedStoreRequest.renew(lease(node.incarnation), for: .seconds(6))
    #expect(try outcome(node, renewal).contains("OOM"))
    #expect(node.note.contains("no lease: the shared store refuses it: OOM"))
    redis.say("CONFIG", "SET", "maxmemory", "0")
    #expect(try outcome(node, renewal) == "answered")
    #expect(node.note.isEmpty)
    #expect(try outcome(node, .put(entry(CallID(1)), at: node.incarnation)) == "answered")
    #expect(node.events == ["connected"])
  }

  @Test func `a primary that becomes a replica is left, and taken again`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    redis.say("REPLICAOF", "127.0.0.1", "1")
    #expect(try outcome(node, .put(entry(CallID(1)), at: node.incarnation)).contains("READONLY"))
    try node.waitFor("lost")
    try waitUntil("it says what to do") { node.note.contains("it is a replica") }
    redis.say("REPLICAOF", "NO", "ONE")
    try node.waitFor("connected", count: 2)
    #expect(try outcome(node, .put(entry(CallID(1)), at: node.incarnation)) == "answered")
  }

  @Test func `a wrong password, and none, are named; the right one is taken`() throws {
    let redis = try RedisPeer(["--requirepass", "right"])
    let none = try RedisNode("a", settings(redis.port), connects: false)
    try waitUntil("none") { none.note.contains("requires a password") }
    var other = settings(redis.port)
    other.password = Redacted("wrong")
    let wrong = try RedisNode("b", other, connects: false)
    try waitUntil("wrong") { wrong.note.contains("refuses the password") && wrong.note.contains("WRONGPASS") }
    other.password = Redacted("right")
    let right = try RedisNode("c", other)
    #expect(try outcome(right) == "answered")
    #expect(!"\(other)".contains("right\""))
  }

  @Test func `a user without a right: the commands are named`() throws {
    let redis = try RedisPeer()
    // the rule as docs/design/cluster-shared-store.md has it
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("docs/design/cluster-shared-store.md")
    let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
    let rule = try #require(lines.first { $0.hasPrefix("ACL SETUSER") }).split(separator: " ").map(String.init)
      .map { $0 == "trunkline" ? "node" : $0 == ">PASSWORD" ? ">pass" : $0 }
    #expect(redis.say(rule + ["-hset", "-xadd"]) == "OK")
    var settings = settings(redis.port)
    (settings.username, settings.password) = ("node", Redacted("pass"))
    let node = try RedisNode("a", settings, connects: false)
    try waitUntil("named") { node.note.contains("no right to HSET, XADD") }
    redis.say("ACL", "SETUSER", "node", "+hset", "+xadd", "-info")
    // another node: the first may have read INFO before its right was removed, and then reads it no more
    let late = try RedisNode("b", settings, connects: false)
    try waitUntil("named") { late.note.contains("no right to INFO") }
    redis.say("ACL", "SETUSER", "node", "+info")
    try node.waitFor("connected")
    try SharedStoreContract("ACL") { name, started in try RedisNode(name, settings, started: started) }.check()
  }

  @Test func `what is no Redis for this setting says what to write`() throws {
    let cluster = try RedisPeer(["--cluster-enabled", "yes", "--cluster-port", "\(try RedisPeer.freePort())"])
    let single = try RedisNode("a", settings(cluster.port), connects: false)
    try waitUntil("a Redis Cluster as single") { single.note.contains("write shared_store: { cluster: [") }
    let redis = try RedisPeer()
    var other = settings(0)
    other.servers = .cluster([.init("127.0.0.1", redis.port)])
    let many = try RedisNode("b", other, connects: false)
    try waitUntil("single as a Redis Cluster") { many.note.contains("write shared_store: { redis:") }
    other.servers = .sentinels([.init("127.0.0.1", redis.port)], name: "trunkline")
    let sentinel = try RedisNode("c", other, connects: false)
    try waitUntil("no Sentinel") { sentinel.note.contains("no Sentinel returned the primary") }
    other.servers = .redis(.init("no-such-host.invalid", 1))
    let nowhere = try RedisNode("d", other, connects: false)
    try waitUntil("no host") { nowhere.note.contains("has no address") }
  }

  @Test func `flushed scripts: every request is carried out, the last word stays the last`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    for round in 0..<20 as Range<UInt64> {
      let user = "u\(round)"
      let call = CallLocation(CallID(round), at: node.incarnation, .incoming)
      redis.say("SCRIPT", "FLUSH")
      // entered by a script that was flushed, removed by a plain command
      let replies = try node.ask([
        .locate(user: user, entering: call), .leaveCall(user: user, call.call), .consumeQuota(user: user, most: 1),
        .enter(location(user, "phone", node.incarnation)), .leave(DeviceKey(user: user, device: "phone"), SessionID("s1")),
      ])
      #expect(replies.allSatisfy { if case .success = $0 { true } else { false } }, "round \(round): \(replies)")
      guard case .located(let seen) = try node.ask(.locate(user: user, entering: nil)) else { continue }
      #expect(seen.calls.isEmpty && seen.whereabouts.isEmpty, "round \(round)")
    }
    #expect(node.events == ["connected"] && node.repliedTwice == 0)
  }

  @Test func `broken values are left out and counted`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    let good = location("alice", "phone", node.incarnation)
    _ = try node.ask(.enter(good))
    let huge = String(repeating: "x", count: 100_000)
    let deep = String(repeating: "[", count: 5_000)
    for (number, value) in ["", "{", "null", "7", "[]", huge, deep, #"{"v":1}"#, #"{"v":99,"i":"a.1","s":"x"}"#].enumerated() {
      redis.say("HSET", "tl:{u:alice}:where", "broken\(number)", value)
      redis.say("HSET", "tl:{u:alice}:devices", "broken\(number)", value)
    }
    // longer than a command line allows
    for key in ["tl:{u:alice}:where", "tl:{u:alice}:devices"] {
      redis.say("EVAL", "return redis.call('HSET', KEYS[1], 'long', string.rep('[', 1048576))", "1", key)
    }
    redis.say("HSET", "tl:{u:alice}:calls", "no call", #"{"n":1,"v":1,"i":"a.1","d":"in"}"#)
    redis.say("SET", "tl:{nodes}:lease:broken", "{")
    redis.say("SADD", "tl:{nodes}:names", "broken")
    redis.say("HSET", "tl:{i:a.1}:calls", "x", "{}")
    guard case .located(let seen) = try node.ask(look) else { return }
    #expect(seen.whereabouts == [good] && seen.devices.isEmpty && seen.calls.isEmpty)
    #expect(seen.dropped == 21)
    guard case .nodes(let nodes, _, _, let dropped) = try node.ask(.renew(lease(node.incarnation), for: .seconds(6))) else {
      return
    }
    #expect(nodes.count == 1 && dropped == 1)
    #expect(try node.ask(.entries(of: node.incarnation, cursor: 0)) == .entries([], next: 0, dropped: 1))
    #expect(node.metric("values_dropped_total") == 23)
    // a value of the wrong type is refused
    redis.say("SET", "tl:{u:bob}:where", "x")
    #expect(try outcome(node, .locate(user: "bob", entering: nil)).contains("refused"))
    // unknown fields are ignored
    redis.say("HSET", "tl:{u:carol}:where", "phone", #"{"v":1,"i":"a.1","s":"x","new":{"a":[1]}}"#)
    guard case .located(let later) = try node.ask(.locate(user: "carol", entering: nil)) else { return }
    #expect(later.whereabouts.count == 1 && later.dropped == 0)
  }

  @Test func `what is no message is dropped and counted, and messages are still heard`() throws {
    let redis = try RedisPeer()
    let (a, b) = (try RedisNode("a", settings(redis.port)), try RedisNode("b", settings(redis.port)))
    let (alice, bob) = (DeviceKey(user: "alice", device: "phone"), DeviceKey(user: "bob", device: "phone"))
    let junk = [
      "", "{", "null", String(repeating: "[", count: 9_000), String(repeating: "y", count: 100_000),
      #"{"v":1,"f":"x","k":"wake","u":"a"}"#, #"{"v":1,"f":"a.1","k":"wake","u":"a","d":"b","c":{"call":"x"}}"#,
      #"{"v":1,"f":"a.1","k":"wake","u":"a","d":"b","call":"00000000-0000-0000-0000-000000000001","c":"{}"}"#,
      #"{"v":1,"f":"a.1","k":"wake","u":"a"}"#, #"{"v":1,"f":"a.1","k":"unknown","u":"a","d":"b"}"#,
      #"{"v":9,"f":"a.1","k":"revoked","u":"a","d":"b"}"#,
      #"{"v":1,"f":"a.1","k":"revoked","u":"al"#,
    ]
    for text in junk { redis.say("PUBLISH", "tl:to:b", text) }
    let forged = #"{"v":1,"f":"stranger.7","k":"revoked","u":"alice","d":"phone"}"#
    for _ in 0..<2 { redis.say("PUBLISH", "tl:all", forged) }
    _ = try a.ask(.publish(.revoked(bob), to: "b"))
    try waitUntil("heard") { b.messages.count == 3 && b.dropped == junk.count }
    #expect(b.messages == [.revoked(alice), .revoked(alice), .revoked(bob)])
    #expect(b.events == ["connected"])
    // a value that is too long for its readers is not sent
    let long = SharedStoreRequest.publish(
      .wake(
        DeviceKey(user: "a", device: "b"),
        CallWake(call: CallID(1), exp: 1, gw: "g", wake: String(repeating: "a", count: 20_000))), to: "b")
    #expect(try outcome(a, long).contains("the value is longer than other nodes read"))
  }

  @Test func `five thousand leases, ten thousand messages`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    let many = (0..<5_100).map { SharedStoreRequest.renew(lease(Incarnation(node: "n\($0)", started: 1)), for: .seconds(60)) }
    // each reads all leases: only the first ones are quick enough to send so many
    for request in stride(from: 0, to: 200, by: 1).map({ many[$0] }) { _ = try node.ask(request) }
    let rest = (200..<5_100).map { "n\($0)" }
    let value = #"{"v":1,"i":"NAME.1","url":"wss://a.example.com/v1/connect","sip":"sip:127.0.0.1"}"#
    for chunk in stride(from: 0, to: rest.count, by: 500).map({ rest[$0..<min($0 + 500, rest.count)] }) {
      redis.say(["MSET"] + chunk.flatMap { ["tl:{nodes}:lease:" + $0, value.replacingOccurrences(of: "NAME", with: $0)] })
      redis.say(["SADD", "tl:{nodes}:names"] + chunk)
    }
    guard case .success(.nodes(let nodes, _, _, let dropped)) = try node.ask([many[0]])[0] else {
      throw PeerFailure(description: "no nodes")
    }
    #expect(nodes.count == 5_000 && dropped == 100)
    let loud = try RedisNode("loud", settings(redis.port))
    let sent = try loud.ask(
      [SharedStoreRequest](repeating: .publish(.revoked(DeviceKey(user: "alice", device: "phone")), to: "a"), count: 10_000))
    #expect(sent.count == 10_000)
    let failed = sent.filter { if case .success = $0 { false } else { true } }
    #expect(failed.isEmpty, "\(failed.count) failed: \(failed.first.map { "\($0)" } ?? ""), \(loud.events)")
    try waitUntil("all are received") { node.messages.count == 10_000 }
  }

  @Test func `the primary is killed: Sentinel's next one is taken, with what it knew`() throws {
    let peers = try SentinelPeers()
    var settings = settings(0)
    settings.servers = .sentinels(peers.sentinels.map { .init("127.0.0.1", $0.port) }, name: SentinelPeers.name)
    let node = try RedisNode("a", settings)
    let location = location("alice", "phone", node.incarnation)
    _ = try node.ask(.enter(location))
    try waitUntil("the replica has it") { peers.replica.say("HLEN", "tl:{u:alice}:where") == "1" }
    peers.primary.kill()
    try node.waitFor("lost")
    try node.waitFor("connected", count: 2, seconds: 30)
    #expect(node.events.last == "connected", "it is the same data: not flushed")
    #expect(try node.enter(location).before == location)
    #expect(peers.replica.say("INFO", "replication").contains("role:master"))
  }

  @Test func `one shard of a Redis Cluster is frozen, then all are there again`() throws {
    let peers = try ClusterPeers()
    var settings = settings(0, commandTime: .milliseconds(250))
    settings.servers = .cluster(peers.nodes.map { .init("127.0.0.1", $0.port) })
    let node = try RedisNode("a", settings)
    peers.nodes[0].stop()
    node.post((0..<30).map { .locate(user: "u\($0)", entering: nil) })
    try node.waitFor("lost")
    peers.nodes[0].goOn()
    try node.waitFor("connected", count: 2)
    let replies = try node.ask((0..<30).map { .locate(user: "u\($0)", entering: nil) })
    #expect(replies.allSatisfy { if case .success = $0 { true } else { false } })
  }

  @Test func `a slot that moves is followed`() throws {
    let peers = try ClusterPeers()
    var settings = settings(0)
    settings.servers = .cluster([.init("127.0.0.1", peers.nodes[0].port)])
    let node = try RedisNode("a", settings)
    let user = "mover"
    _ = try node.ask(.locate(user: user, entering: nil))
    let slot = peers.nodes[0].say("CLUSTER", "KEYSLOT", "tl:{u:\(user)}:where")
    let owner = try #require(peers.nodes.first { !$0.say("GET", "tl:{u:\(user)}:where").contains("MOVED") })
    let other = try #require(peers.nodes.first { $0 !== owner })
    let id = other.say("CLUSTER", "MYID")
    // As redis-cli does it: the importing node gets a newer epoch with the slot, otherwise the old owner's next message reclaims
    // it.
    other.say("CLUSTER", "SETSLOT", slot, "IMPORTING", owner.say("CLUSTER", "MYID"))
    owner.say("CLUSTER", "SETSLOT", slot, "MIGRATING", id)
    for peer in [other, owner] + peers.nodes.filter({ $0 !== owner && $0 !== other }) {
      peer.say("CLUSTER", "SETSLOT", slot, "NODE", id)
    }
    let location = location(user, "phone", node.incarnation)
    #expect(try node.enter(location).before == nil)
    #expect(other.say("HLEN", "tl:{u:\(user)}:where") == "1")
    #expect(node.events == ["connected"])
  }

  @Test func `an end in order: what was posted is carried out, every request has its reply`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", settings(redis.port))
    _ = try node.ask(.renew(lease(node.incarnation), for: .seconds(60)))
    let ids = node.post([.endLease(node.incarnation)])
    node.stop()
    #expect(node.reply(ids[0]) == .success(.done))
    #expect(redis.say("EXISTS", "tl:{nodes}:lease:a") == "0")
    let gone = try RedisNode("b", settings(1), connects: false)
    let away = gone.post([look])
    gone.stop()
    #expect(gone.reply(away[0]) == .failure(.away))
  }

  @Test func `TLS, with a certificate that is verified`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("shared-store-tls-\(UUID().uuidString.prefix(8))")
      .path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    func certificate(_ name: String, _ rest: [String]) {
      let key = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
      run("/usr/bin/openssl", key + ["-keyout", name + ".key", "-out", name + ".pem", "-subj", "/CN=" + name] + rest, in: folder)
    }
    certificate("ca", [])
    certificate("other", [])
    certificate("redis", ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1"])
    let files = ["--tls-cert-file", "redis.pem", "--tls-key-file", "redis.key", "--tls-ca-cert-file", "ca.pem"]
      .map { $0.hasPrefix("--") ? $0 : folder + "/" + $0 }
    let redis = try RedisPeer(files + ["--tls-auth-clients", "no"], isTLS: true)
    var settings = settings(redis.port)
    settings.tls = TLSFiles(authorities: folder + "/ca.pem")
    let node = try RedisNode("a", settings)
    let replies = try node.ask([SharedStoreRequest](repeating: look, count: 500))
    #expect(replies.allSatisfy { if case .success = $0 { true } else { false } })
    settings.tls = TLSFiles(authorities: folder + "/other.pem")
    let strange = try RedisNode("b", settings, connects: false)
    try waitUntil("not verified") {
      strange.note.contains("TLS: ") && strange.note.contains("verify") || strange.note.contains("certificate")
    }
    settings.tls = TLSFiles(authorities: folder + "/ca.pem")
    settings.servers = .redis(.init("localhost", redis.port))
    let misnamed = try RedisNode("c", settings, connects: false)
    try waitUntil("another name") { misnamed.note.contains("the certificate is not for localhost") }
  }
}
