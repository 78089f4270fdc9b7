import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import Foundation
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import SharedStore

/// A client that may write to the shared store, but does not have the cluster's key: its values are skipped and counted, and the
/// nodes write their own again. A previous key is such a key, too.
@Suite(.serialized) struct ForgedValueTests {
  private static func signed(_ port: UInt16, _ key: String = "a cluster's key of thirty-two bytes") -> SharedStoreSettings {
    var out = settings(port)
    out.key = Redacted(Array(key.utf8))
    return out
  }
  private static let old = "the key of before, of thirty-two bytes"

  private func located(_ node: RedisNode, _ user: String = "alice") throws -> LocatedUser {
    guard case .located(let found) = try node.ask(.locate(user: user, entering: nil)) else {
      throw PeerFailure(description: "no answer")
    }
    return found
  }
  private func leases(_ node: RedisNode) throws -> [NodeLease] {
    guard case .nodes(let nodes, _, _, _) = try node.ask(.renew(lease(node.incarnation), for: .seconds(60))) else {
      throw PeerFailure(description: "no answer")
    }
    return nodes.sorted { $0.incarnation < $1.incarnation }
  }
  private func grants(_ node: RedisNode) throws -> [SharedGrant] {
    guard case .grants(let page) = try node.ask(.grants(since: 0)) else { throw PeerFailure(description: "no answer") }
    return page.rows
  }
  private func grant(_ user: String, _ number: String, _ issuedAt: Int64) -> SharedGrant {
    SharedGrant(
      user: user, grant: TokenGrant(numbers: [number], issuedAt: issuedAt), issuedAt: issuedAt,
      seen: Int64(Date().timeIntervalSince1970 * 1_000))
  }

  @Test func `a hash field of a good shape gives nobody another's number, and its owner's word takes its place`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("a", Self.signed(redis.port))
    let mine = grant("alice", "+15551", 1_000)
    _ = try node.ask(.putGrants([mine]))
    let row = redis.say("HGET", "tl:{grants}:rows", "alice")
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    let forged = #"15551\n{"t":9000000000000,"s":\#(now),"v":1,"g":{"numbers":["+15551"]}}"#.replacing("\\n", with: "\n")
    for (field, value) in [
      ("mallory", forged), ("mallory", row), ("alice", forged), ("alice", row.replacing("+15551", with: "+15559")),
    ] {
      redis.say("HSET", "tl:{grants}:rows", field, value)
      redis.say("ZADD", "tl:{grants}:order", "99", field)
      #expect(try grants(node).allSatisfy { $0 == mine }, "\(field) \(value)")
    }
    try waitUntil("four values without a signature are counted") { node.metric("values_unsigned_total") >= 4 }
    redis.say("HSET", "tl:{grants}:rows", "alice", forged)
    guard case .grantsPut(1, others: [], _) = try node.ask(.putGrants([mine])) else {
      Issue.record("a forged later token does not stand in the way")
      return
    }
    #expect(try grants(node) == [mine])
    // a genuine row with another number prepended
    redis.say("HSET", "tl:{grants}:rows", "alice", "15551 15559\n" + (row.split(separator: "\n").last ?? ""))
    #expect(try grants(node) == [mine], "a user has no number that the token did not name")
    // a forged later token of an invented user keeps a number from no user
    redis.say("HSET", "tl:{grants}:rows", "mallory", forged.replacing("15551", with: "15552"))
    redis.say("HSET", "tl:{grants}:numbers", "15552", "mallory")
    let bob = grant("bob", "+15552", 2_000)
    #expect(try node.ask(.putGrants([bob])) == .grantsPut(1, others: []))
    #expect(try grants(node).contains(bob))
  }

  @Test func `a forged lease names no host to anybody, and does not take a node's name`() throws {
    let redis = try RedisPeer()
    let (a, b) = (try RedisNode("a", Self.signed(redis.port)), try RedisNode("b", Self.signed(redis.port)))
    #expect(try leases(a).count == 1 && leases(b).count == 2)
    let evil = #"{"v":1,"i":"evil.5","url":"wss://evil.example/v1/connect","sip":"sip:192.0.2.6:5060","e":9999999999}"#
    redis.say("SADD", "tl:{nodes}:names", "evil")
    for value in [
      evil, redis.say("GET", "tl:{nodes}:lease:b"), redis.say("GET", "tl:{nodes}:lease:b").replacing("b.1", with: "evil.5"),
    ] {
      redis.say("SET", "tl:{nodes}:lease:evil", value)
      #expect(try leases(a).allSatisfy { ["a", "b"].contains($0.incarnation.node) }, "\(value)")
    }
    redis.say("DEL", "tl:{nodes}:lease:evil")
    redis.say("SET", "tl:{nodes}:lease:a", evil.replacing("evil.5", with: "a.99"))
    #expect(try leases(a).map(\.incarnation) == [a.incarnation, b.incarnation], "its owner writes it anew, at once")
  }

  @Test func `a forged or moved device, place, call, end or claim is none`() throws {
    let redis = try RedisPeer()
    let (a, b) = (try RedisNode("a", Self.signed(redis.port)), try RedisNode("b", Self.signed(redis.port)))
    let (phone, call) = (DeviceKey(user: "alice", device: "phone"), CallID(7))
    _ = try a.enter(location("alice", "phone", a.incarnation))
    _ = try a.ask(.register(user: "alice", [.stored(device("alice", "phone", seen: 2_000, revoked: 3_000))]))
    _ = try a.ask(.locate(user: "alice", entering: CallLocation(call, at: a.incarnation, .incoming)))
    _ = try a.ask(.put(entry(call), at: a.incarnation))
    _ = try a.ask(.putTombstone(call, RemoteTombstone(users: ["alice"], CallOver(.unanswered, by: .gateway, at: 5))))
    let good = try located(b)
    #expect(good.whereabouts.count == 1 && good.devices.count == 1 && good.calls.count == 1 && good.dropped == 0)
    #expect(try b.ask(.entry(call, of: a.incarnation)) == .entries([entry(call)], next: 0))
    // moved to another device, call or user
    for (key, field) in [("where", "phone"), ("devices", "phone"), ("calls", call.description)] {
      let value = redis.say("HGET", "tl:{u:alice}:\(key)", field)
      redis.say("HSET", "tl:{u:alice}:\(key)", key == "calls" ? CallID(8).description : "other", value)
      redis.say("HSET", "tl:{u:mallory}:\(key)", field, value)
    }
    redis.say("HSET", "tl:{i:a.1}:calls", CallID(8).description, redis.say("HGET", "tl:{i:a.1}:calls", call.description))
    redis.say("SET", "tl:{c:\(CallID(8))}:over", redis.say("GET", "tl:{c:\(call)}:over"))
    var seen = try located(b)
    #expect(seen.dropped == 3)
    seen.dropped = 0
    #expect(seen == good)
    let mallory = try located(b, "mallory")
    #expect(mallory.whereabouts.isEmpty && mallory.devices.isEmpty && mallory.calls.isEmpty && mallory.dropped == 3)
    #expect(try b.ask(.entries(of: a.incarnation, cursor: 0)) == .entries([entry(call)], next: 0, dropped: 1))
    #expect(try b.ask(.tombstone(of: CallID(8))) == .tombstone(nil, dropped: 1))
    // a revocation removed by a client that may write
    let stored = redis.say("HGET", "tl:{u:alice}:devices", "phone")
    redis.say("HSET", "tl:{u:alice}:devices", "phone", stored.replacing("\"x\":3000", with: "\"x\":null"))
    #expect(try located(b).devices.isEmpty)
    // neither a forged later value nor a forged newer session keeps a node from writing its own
    redis.say("HSET", "tl:{u:alice}:devices", "phone", #"{"w":9000000000000,"v":1,"f":1,"l":9000000000000}"#)
    _ = try a.ask(.register(user: "alice", [.stored(device("alice", "phone", seen: 2_000, revoked: 3_000))]))
    #expect(try located(b).devices == good.devices)
    redis.say("HSET", "tl:{u:alice}:where", "phone", #"{"t":9000000000000,"v":1,"i":"evil.5","s":"x"}"#)
    // the forged value is replaced in the same request
    guard case .entered(nil, _, _, _, false, _) = try a.ask(.enter(location("alice", "phone", a.incarnation), since: 5)) else {
      Issue.record("a forged newer session stands in the way")
      return
    }
    #expect(try located(b).whereabouts == good.whereabouts)
    // claims
    for (key, request) in [
      ("tl:{l:reaper}", .lead(.reaper, a.incarnation)),
      ("tl:{i:b.1}:reap:\(call)", .claimReaping(call, of: b.incarnation, by: a.incarnation)),
      ("tl:{c:\(call)}:start", .claimStart(call, device: phone, at: a.incarnation)),
    ] as [(String, SharedStoreRequest)] {
      redis.say("SET", key, "evil.5")
      #expect(try a.granted(request), "\(key)")
      #expect(try a.granted(request), "\(key): again")
    }
    guard case .granted(false, let holder) = try b.ask(.lead(.reaper, b.incarnation)) else {
      Issue.record("two lead")
      return
    }
    #expect(holder == a.incarnation)
  }

  @Test func `a forged, moved or older head or part of a directory is none; the version that stands there can be replaced`()
    throws
  {
    let redis = try RedisPeer()
    let (a, b) = (try RedisNode("a", Self.signed(redis.port)), try RedisNode("b", Self.signed(redis.port)))
    func head(_ scope: String) throws -> (text: String?, version: Int64) {
      guard case .directoryHead(let head, let version, _) = try b.ask(.directoryHead(scope)) else {
        throw PeerFailure(description: "no answer")
      }
      return (head.map { String(decoding: $0, as: UTF8.self) }, version)
    }
    func parts(_ names: String...) throws -> [String] {
      guard case .directoryParts(let pieces) = try b.ask(.directoryParts(names)) else {
        throw PeerFailure(description: "no answer")
      }
      return pieces.map(\.name)
    }
    _ = try a.ask(.stageDirectoryParts([DirectoryPiece("p1", [1, 10]), DirectoryPiece("p2", [2, 10])]))
    func commit(_ scope: String, _ from: Int64, _ to: Int64, _ text: String, _ made: [String]) throws -> SharedStoreReply {
      try a.ask(.commitDirectory(DirectoryCommit(scope, from: from, to: to, head: Array(text.utf8), made: made)))
    }
    _ = try commit("user:alice", 0, 10, "ten\n", ["p1", "p2"])
    #expect(try head("user:alice") == ("ten\n", 10) && parts("p1", "p2") == ["p1", "p2"])
    let first = redis.say("HGET", "tl:{dirs}:heads", "user:alice")
    redis.say("HSET", "tl:{dirs}:heads", "user:bob", first)
    redis.say("HSET", "tl:{dirs}:current", "user:bob", "10")
    redis.say("SET", "tl:{dirs}:part:p3", redis.say("GET", "tl:{dirs}:part:p1"))
    redis.say("SET", "tl:{dirs}:part:p2", "+15550000001,,block")
    #expect(try head("user:bob") == (nil, 10) && parts("p1", "p2", "p3") == ["p1"], "moved, and not signed")
    redis.say("HSET", "tl:{dirs}:heads", "user:alice", first.replacing("ten", with: "two"))
    #expect(try head("user:alice") == (nil, 10))
    try waitUntil("four values without a signature are counted") { b.metric("values_unsigned_total") >= 4 }
    #expect(try commit("user:alice", 10, 20, "twenty\n", []) == .committed(.done, version: 10, last: 10))
    #expect(try head("user:alice") == ("twenty\n", 20))
    // an older head is genuine; the version in it shows that it is older
    redis.say("HSET", "tl:{dirs}:heads", "user:alice", first)
    #expect(try head("user:alice") == ("ten\n", 20))
  }

  @Test func `messages without a signature, of another channel, or with the key of before are dropped`() throws {
    let redis = try RedisPeer()
    let (a, b) = (try RedisNode("a", Self.signed(redis.port)), try RedisNode("b", Self.signed(redis.port)))
    let stranger = try RedisNode("a", Self.signed(redis.port, Self.old))
    let (alice, bob) = (DeviceKey(user: "alice", device: "phone"), DeviceKey(user: "bob", device: "phone"))
    redis.say("PUBLISH", "tl:all", #"{"v":1,"f":"a.1","k":"revoked","u":"alice","d":"phone","e":9999999999}"#)
    _ = try stranger.ask(.broadcast(.revoked(alice)))
    _ = try a.ask(.publish(.revoked(bob), to: "b"))
    try waitUntil("heard") { b.messages.count == 1 && b.dropped == 2 }
    #expect(b.messages == [.revoked(bob)])
    try waitUntil("counted") { b.metric("values_unsigned_total") == 2 }
  }

  @Test func `after a change of the key what was written with the one before is skipped, and written anew by its owners`() throws
  {
    let redis = try RedisPeer()
    do {
      let before = try RedisNode("a", Self.signed(redis.port, Self.old))
      _ = try leases(before)
      _ = try before.enter(location("alice", "phone", before.incarnation))
      _ = try before.ask(.register(user: "alice", [.stored(device("alice", "phone", seen: 2_000))]))
      _ = try before.ask(.putGrants([grant("alice", "+15551", 1_000)]))
      #expect(try located(before).devices.count == 1)
      before.stop()
    }
    let node = try RedisNode("a", Self.signed(redis.port), started: 2)
    let empty = try located(node)
    #expect(empty.whereabouts.isEmpty && empty.devices.isEmpty && empty.dropped == 2)
    #expect(try grants(node).isEmpty && leases(node).map(\.incarnation) == [node.incarnation])
    guard case .entered(nil, [], nil, _, false, 2) = try node.ask(.enter(location("alice", "phone", node.incarnation))) else {
      Issue.record("what is there is none of this node's")
      return
    }
    _ = try node.ask(.register(user: "alice", [.stored(device("alice", "phone", seen: 1_000))]))
    let mine = grant("alice", "+15551", 900)
    _ = try node.ask(.putGrants([mine]))
    #expect(try located(node).devices.map(\.lastSeen) == [1_000] && located(node).whereabouts.count == 1)
    #expect(try grants(node) == [mine])
  }
}
