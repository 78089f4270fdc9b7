import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import RESP
import Testing
import TrunklineBytes

@testable import SharedStore

/// The checks of a shared store's first answers, and the names of keys: pure.
@Suite struct GreetingTests {
  private let greeting = SharedStoreGreeting(username: nil, password: nil, clientName: "trunkline-a")

  private func found(_ information: String, _ rights: [String] = [], isCluster: Bool = false) throws -> SharedStoreGreeting.Found
  {
    let digests = SharedStoreScript.allCases.map { RESPValue.bytes(Array($0.rawValue.utf8)) }
    let replies: [RESPValue] =
      [.status("OK"), .bytes(Array(information.utf8))] + digests + [
        .bytes(Array("marker".utf8)), .array(rights.map { .bytes(Array($0.utf8)) }),
      ]
    return try greeting.found(replies, isCluster: isCluster)
  }

  private func problem(_ information: String, _ rights: [String] = [], isCluster: Bool = false) -> String? {
    do {
      _ = try found(information, rights, isCluster: isCluster)
      return nil
    } catch {
      return (error as? SharedStoreGreeting.Problem)?.text
    }
  }

  private static let good = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\n"

  @Test func `a primary that is new enough is taken`() throws {
    for version in ["6.2.0", "6.10.1", "7.2.4", "8.0.0", "10.1"] {
      #expect(problem("redis_version:\(version)\r\nrole:master\r\n") == nil, "\(version)")
    }
    let found = try found(Self.good)
    #expect(found.marker == "marker" && found.digests[.locate] == "locate" && found.warning == nil)
  }

  @Test func `what is not taken says what to do`() {
    for version in ["2.8.1", "5.0.14", "6.0.16"] {
      #expect(problem("redis_version:\(version)\r\nrole:master\r\n")?.contains("too old: 6.2") == true, "\(version)")
    }
    #expect(problem("redis_version:7.0.0\r\nrole:slave\r\n")?.contains("it is a replica") == true)
    #expect(problem("redis_version:7.0.0\r\nredis_mode:cluster\r\nrole:master\r\n")?.contains("cluster: [") == true)
    #expect(problem("redis_version:7.0.0\r\nredis_mode:cluster\r\nrole:master\r\n", isCluster: true) == nil)
    #expect(problem("redis_version:7.0.0\r\nredis_mode:sentinel\r\n")?.contains("sentinels: [") == true)
    #expect(problem("redis_version:7.0.0\r\nrole:master\r\nloading:1\r\n")?.contains("loading") == true)
    #expect(problem(Self.good, ["XADD", "HSET", "HSET"])?.contains("no right to HSET, XADD") == true)
  }

  @Test func `a shared store that evicts is taken with a warning`() throws {
    let evicting = "role:master\r\nmaxmemory:1000000\r\nmaxmemory_policy:allkeys-lru\r\n"
    #expect(try found(evicting).warning?.contains("delete registrations") == true)
    #expect(
      try found("role:master\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n").warning == nil, "it has no limit to evict at")
    #expect(try found("role:master\r\nmaxmemory:1000000\r\nmaxmemory_policy:noeviction\r\n").warning == nil)
  }

  @Test func `answers that are none never trap`() {
    let answers: [[RESPValue]] = [
      [], [.null], [RESPValue](repeating: .error("ERR no"), count: SharedStoreScript.allCases.count + 4),
      [RESPValue](repeating: .integer(7), count: SharedStoreScript.allCases.count + 4),
      [RESPValue](repeating: .array([]), count: SharedStoreScript.allCases.count + 4),
    ]
    for replies in answers { #expect(throws: SharedStoreGreeting.Problem.self) { try greeting.found(replies, isCluster: false) } }
    let command = SharedStoreCommand(
      .locate(user: "a", entering: nil), SharedStoreKeys(prefix: "tl"), from: Incarnation(node: "a", started: 1))
    var leases = LeaseReading()
    for value in answers.joined() { if case .located(let seen)? = command.read(value, &leases) { #expect(seen.devices.isEmpty) } }
    #expect(command.read(.array([.integer(1), .array([.integer(2), .null, .null]), .status("x")]), &leases) != nil)
    let renewal = SharedStoreCommand(
      .renew(NodeLease(Incarnation(node: "a", started: 1), url: "", sip: "", version: ""), for: .seconds(6)),
      SharedStoreKeys(prefix: "tl"),
      from: Incarnation(node: "a", started: 1))
    for value in answers.joined() { #expect(renewal.read(value, &leases) == nil) }
    for ranges in answers { #expect(SharedStoreWorker.map(ranges, from: .init("h", 1)) == nil) }
  }

  @Test func `slots are those of Redis Cluster`() {
    // as CLUSTER KEYSLOT of a Redis 7.0 returns it
    #expect(SharedStoreKeys.slot("123456789") == 12_739)
    #expect(SharedStoreKeys.slot("u:alice") == SharedStoreKeys.slot("u:alice"))
    #expect(SharedStoreKeys.slot("") == 0)
  }

  @Test func `no name breaks its tag, and no two names share a key`() {
    let names = [
      "", "}", "{", "%7D", "a}b", "a", "A", "ü", "a b", "a\u{0}", String(repeating: "}", count: 400),
      String(repeating: "}", count: 401),
    ]
    let tags = names.map { SharedStoreKeys.user($0) }
    #expect(Set(tags).count == names.count)
    for tag in tags {
      #expect(!tag.contains("}") && !tag.contains("{") && tag.utf8.count < 160)
      #expect(tag.utf8.allSatisfy { $0 > 32 && $0 < 127 })
    }
    #expect(SharedStoreKeys(prefix: "a{b}").key("nodes").hasPrefix("a%7Bb%7D:{nodes}"))
  }

  @Test func `every field of a value is kept`() throws {
    func kept(_ entry: CallEntry) -> CallEntry? {
      ValueCoding.decode(StoredEntry.self, ValueCoding.encode(StoredEntry(entry)))?.value(entry.line.call)
    }
    let call = CallID(random: .seeded(1))
    for user in [nil, "alice", "bob"] as [String?] {
      for users in [[], ["alice"], ["alice", "bob"]] {
        var line = JournalEntry(
          call: call, sipCallId: user, direction: .outgoing, trunk: "t", from: "f", to: "o", user: user, start: 1,
          connect: user.map { _ in 2 })
        line.legs = user == nil ? nil : []
        #expect(kept(CallEntry(line, users: users)) == CallEntry(line, users: users))
        // a new field of a journal entry, of a device or of a lease must be added to ValueCoding
        #expect(Mirror(reflecting: line).children.count == 10)
      }
    }
    let device = Device(key: DeviceKey(user: "a", device: "b"), at: 1)
    #expect(Mirror(reflecting: device).children.count == 12)
    var lease = NodeLease(Incarnation(node: "a", started: 1), url: "", sip: "", version: "")
    (lease.admin, lease.troubles) = ("http://10.0.0.5:7060", ["carrier": "not registered"])
    lease.staleGrants = .max
    #expect(ValueCoding.decode(StoredLease.self, ValueCoding.encode(StoredLease(lease)))?.value == lease)
    #expect(Mirror(reflecting: lease).children.count == 14)
    #expect(Mirror(reflecting: Whereabouts(device.key, at: lease.incarnation, session: SessionID("s"))).children.count == 6)
  }
}
