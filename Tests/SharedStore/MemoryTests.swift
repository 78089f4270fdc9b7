import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import Foundation
import JSONWebToken
import PushPolicy
import SharedStore
import Testing
import TrunklineBytes
import TrunklineSIPDialogs

/// The memory that a shared store needs for 10,000 users, by MEMORY USAGE.
@Suite(.serialized) struct MemoryTests {
  private static let count = 10_000

  /// The memory of all keys that match the pattern, in bytes.
  private func memory(_ redis: RedisPeer, _ pattern: String) -> Int {
    let script = """
      local sum, cursor = 0, '0'
      repeat
        local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 10000)
        cursor = page[1]
        for _, key in ipairs(page[2]) do sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') end
      until cursor == '0'
      return sum
      """
    return Int(redis.say("EVAL", script, "0", pattern).filter(\.isNumber)) ?? .max
  }

  private func all(_ node: RedisNode, _ requests: [SharedStoreRequest]) throws {
    for start in stride(from: 0, to: requests.count, by: 500) {
      for reply in try node.ask(Array(requests[start..<min(start + 500, requests.count)])) { _ = try reply.get() }
    }
  }

  @Test func `a device at rest`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("n1", settings(redis.port), started: 1_790_000_000_000)
    var random = SplitMix64(seed: 1)
    func hex(_ count: Int) -> String {
      (0..<count).map { _ in "0123456789abcdef".randomElement(using: &random) ?? "0" }.map(String.init).joined()
    }
    try all(
      node,
      (0..<Self.count).flatMap { number -> [SharedStoreRequest] in
        let key = DeviceKey(user: "user\(number)@example.com", device: "\(CallID(random: .seeded(UInt64(number))))")
        var device = Device(key: key, at: 1_790_000_000_000)
        (device.platform, device.model, device.os, device.sdk) = ("ios", "iPhone15,3", "18.1", "1.4.0")
        let seal = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
        let target = PushTarget(.apns, token: hex(64), topic: "com.example.phone.voip", sealKey: seal)
        device.bindings = [PushBinding(target, registeredAt: 1_790_000_000_000)]
        let location = Whereabouts(key, at: node.incarnation, session: SessionID(hex(22)), caps: ["nodes", "wake", "transfer"])
        return [.enter(location), .register(user: key.user, [.stored(device)])]
      })
    let each = memory(redis, "tl:{u:*") / Self.count
    print("bytes of a device at rest: \(each)")
    #expect(each <= 1_024)
  }

  @Test func `a row of a history, and a contact of a directory`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("n1", settings(redis.port), started: 1_790_000_000_000)
    let rows = 200
    try all(
      node,
      (0..<Self.count).map { number -> SharedStoreRequest in
        let call = CallID(random: .seeded(UInt64(number)))
        let row = """
          "v":1,"c":"\(call)","d":"in","p":"+4917612345678","s":1790000000000,"k":1790000005000,"e":1790000065000,"o":"answered",\
          "r":"remoteHangup","x":"\(CallID(random: .seeded(7)))","a":"default"}
          """
        return .addHistory(
          call, user: "user\(number / rows)@example.com", row: Array(row.utf8), most: rows, keep: .seconds(86_400))
      })
    let row = memory(redis, "tl:{u:*") / Self.count
    let lines = (0..<Self.count).map { "+\(4_917_600_000_000 + $0 * 7_919),Contact Number \($0),identify\n" }
    for start in stride(from: 0, to: lines.count, by: 1_000) {
      let part = Array(lines[start..<start + 1_000].joined().utf8)
      _ = try node.ask(.stageDirectoryParts([DirectoryPiece("p\(start / 1_000)", part)]))
    }
    let names = (0..<Self.count / 1_000).map { "p\($0)" }
    let commit = DirectoryCommit("user:alice", from: 0, to: 1_000, head: Array("2 1000 0 0 parts 0\n".utf8), made: names)
    #expect(try node.ask(.commitDirectory(commit)) == .committed(.done, version: 0, last: 0))
    let contact = memory(redis, "tl:{dirs}:part:*") / Self.count
    print("bytes of a row of a history: \(row), of a contact: \(contact)")
    #expect(row <= 320 && contact <= 64)
  }

  @Test func `what a token grants`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("n1", settings(redis.port), started: 1_790_000_000_000)
    let rows = (0..<Self.count).map { number -> SharedGrant in
      let grant = TokenGrant(numbers: ["+\(4_930_000_000_000 + number)"], name: "Name \(number)", maxCalls: 2, issuedAt: 1)
      // the shared store drops old grants by its own clock
      return SharedGrant(user: "user\(number)@example.com", grant: grant, issuedAt: 1_790_000_000_000, seen: 1 << 50)
    }
    let step = Cluster.Limits.grantsPerPut
    try all(node, stride(from: 0, to: rows.count, by: step).map { .putGrants(Array(rows[$0..<min($0 + step, rows.count)])) })
    let each = memory(redis, "tl:{grants}*") / Self.count
    print("bytes of what a token grants: \(each)")
    #expect(each <= 640)
  }

  @Test func `a live call`() throws {
    let redis = try RedisPeer()
    let node = try RedisNode("n1", settings(redis.port), started: 1_790_000_000_000)
    let invite = """
      INVITE sip:+493012345678@198.51.100.5:5060 SIP/2.0\\r\\nVia: SIP/2.0/UDP 192.0.2.9:5060;branch=z9hG4bK1f0e.b2a4c8;rport=5060\\r\\n\
      From: <sip:+4917612345678@carrier.example>;tag=gK0c4d5e6f\\r\\nTo: <sip:+493012345678@198.51.100.5>\\r\\n\
      Call-ID: 1179403648_12345678@192.0.2.9\\r\\nCSeq: 102 INVITE\\r\\n\\r\\n
      """
    let leg = """
      {"phase":"ringing","trunk":"carrier","transport":"udp","local":"198.51.100.5:5060","remote":"192.0.2.9:5060","tag":"a1b2c3d4e5","invite":"\(invite)"}
      """
    let legs = [try JSONDecoder().decode(OrphanedLeg.self, from: Data(leg.utf8))]
    try all(
      node,
      (0..<Self.count).flatMap { number -> [SharedStoreRequest] in
        let (user, call) = ("user\(number)@example.com", CallID(random: .seeded(UInt64(number))))
        var line = JournalEntry(
          call: call, sipCallId: "1179403648_12345678@192.0.2.9", direction: .incoming, trunk: "carrier", from: "+4917612345678",
          to: "+493012345678", user: user, start: 1_790_000_000_000)
        line.legs = legs
        return [
          .locate(user: user, entering: CallLocation(call, at: node.incarnation, .incoming)),
          .put(CallEntry(line, users: [user]), at: node.incarnation),
          .admit(trunk: "carrier", most: Self.count, at: node.incarnation),
        ]
      })
    let each = (memory(redis, "tl:{u:*") + memory(redis, "tl:{i:*") + memory(redis, "tl:{t:*")) / Self.count
    print("bytes of a live call: \(each), of these its user's \(memory(redis, "tl:{u:*") / Self.count)")
    #expect(each <= 922)
    try all(
      node,
      (0..<Self.count).flatMap { number -> [SharedStoreRequest] in
        let (user, call) = ("user\(number)@example.com", CallID(random: .seeded(UInt64(number))))
        return [.remove(call, at: node.incarnation), .leaveCall(user: user, call)]
      } + [.share(trunk: "carrier", count: 0, of: node.incarnation)])
    let left = redis.say("KEYS", "*").split(separator: "\n").filter { !$0.hasSuffix(":shared-store") }
    #expect(left.isEmpty, "nothing of a call that is over: \(left.prefix(3))")
  }
}
