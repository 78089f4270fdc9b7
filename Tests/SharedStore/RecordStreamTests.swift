import CallFlow
import CallModel
import Cluster
import Devices
import Foundation
import Logging
import RESP
import SharedStore
import Store
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

/// Records from a store's file into the stream of a Redis, and out of the stream by a follower.
@Suite(.serialized) struct RecordStreamTests {
  private func record(_ number: UInt64) -> CallRecord {
    CallRecord(orphan: entry(CallID(number)).line, at: 1_790_000_001_000 + Int64(number))
  }

  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// A process with a store and a shared store, connected as in the gateway.
  private func process(_ folder: String, _ node: String, _ port: UInt16, records: ClosedRange<UInt64>?) throws -> CallStore {
    let box = Box()
    let connected = DispatchSemaphore(value: 0)
    let sharedStore = try RedisSharedStore(settings(port), node: Incarnation(node: node, started: 1), logger: logger) { event in
      switch event {
      case .connected: connected.signal()
      case .reply(let id, .success(.granted(let isNew, _))): box.take(id.number)?(isNew ? .added : .superseded)
      case .reply(let id, _): box.take(id.number)?(.failed)
      default: break
      }
    }
    defer { sharedStore.stop() }
    #expect(connected.wait(timeout: .now() + 20) == .success)
    let path = folder + "/calls.jsonl"
    let store = try CallStore(sqlite: folder + "/a.db", records: path, readiness: Readiness(), logger: logger)
    store.stream(path) { call, line, answer in
      sharedStore.post(SharedStoreRequestID(box.add(answer)), .append(call, record: line))
    }
    if let records { for number in records { store.end(record(number)) } }
    store.stop()
    return store
  }

  /// The callbacks that wait for answers.
  private final class Box: Sendable {
    private let answers = Mutex<[UInt64: @Sendable (RecordAnswer) -> Void]>([:])
    private let numbers = Atomic<UInt64>(0)
    func add(_ answer: @escaping @Sendable (RecordAnswer) -> Void) -> UInt64 {
      let number = numbers.wrappingAdd(1, ordering: .relaxed).newValue
      answers.withLock { $0[number] = answer }
      return number
    }
    func take(_ number: UInt64) -> (@Sendable (RecordAnswer) -> Void)? { answers.withLock { $0.removeValue(forKey: number) } }
  }

  private func folder() throws -> String {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("records-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func follow(_ port: UInt16, _ start: RecordFollower.Start, count: Int) throws -> [RecordFollower.Entry] {
    var out: [RecordFollower.Entry] = []
    let follower = try RecordFollower(settings(port), from: start)
    try follower.run { entry in
      out.append(entry)
      return out.count < count
    }
    return out
  }

  private func call(_ entry: RecordFollower.Entry) throws -> CallID {
    struct Line: Decodable { var call: CallID }
    return try JSONDecoder().decode(Line.self, from: Data(entry.record)).call
  }

  @Test func `one entry a call, though the process starts again from an old place, and another node has one, too`() throws {
    let redis = try RedisPeer()
    let (a, b) = (try folder(), try folder())
    defer { for path in [a, b] { try? FileManager.default.removeItem(atPath: path) } }
    let first = try process(a, "a", redis.port, records: 1...20)
    #expect(first.written.value == 20)
    #expect(redis.say("XLEN", "tl:{records}") == "20")
    // killed before the shipped position was written: all of them are sent again
    try FileManager.default.removeItem(atPath: a + "/calls.jsonl.shipped")
    _ = try process(a, "a", redis.port, records: 21...22)
    #expect(redis.say("XLEN", "tl:{records}") == "22")
    // a node that has taken over calls of the first
    _ = try process(b, "b", redis.port, records: 20...23)
    #expect(redis.say("XLEN", "tl:{records}") == "23")
    let all = try follow(redis.port, .beginning, count: 23)
    #expect(Store.Limits.streamedRecordBytes <= Cluster.Limits.valueBytes, "no record is too long for the shared store")
    #expect(try all.map(call) == (1...23).map { CallID($0) })
    let file = try String(contentsOfFile: a + "/calls.jsonl", encoding: .utf8).split(separator: "\n")
    #expect(all.prefix(22).map { String(decoding: $0.record, as: UTF8.self) } == file.map(String.init), "byte for byte")
    let rest = try follow(redis.port, .after(all[20].id), count: 2)
    #expect(rest == Array(all[21...]))
  }

  @Test func `a follower goes on behind the last entry after the shared store was lost, and leaves out what is no record`() throws
  {
    var redis: RedisPeer? = try RedisPeer()
    let port = try #require(redis?.port)
    let seen = Mutex<[String]>([])
    let done = DispatchSemaphore(value: 0)
    let settings = settings(port)
    let thread = try NamedThread.start(name: "follower", logger: logger) {
      let follower = try? RecordFollower(settings, from: .beginning)
      try? follower?.run { entry in
        seen.withLock {
          $0.append(String(decoding: entry.record, as: UTF8.self))
          return $0.count < 3
        }
      }
      done.signal()
    }
    func add(_ text: String, _ field: String = "record") {
      redis?.say("XADD", "tl:{records}", "*", field, text)
    }
    add("{\"n\":1}")
    add("two\nlines")
    add("{\"n\":0}", "other")
    try waitUntil("the first is there") { seen.withLock { $0.count } == 1 }
    redis = nil
    redis = try RedisPeer(port: port)
    add("{\"n\":2}")
    try waitUntil("it is back") { seen.withLock { $0.count } == 2 }
    add("{\"n\":3}")
    #expect(done.wait(timeout: .now() + 20) == .success)
    thread.join()
    #expect(seen.withLock { $0 } == ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"])
  }

  @Test func `a shared store that is not there, or refuses, is told at once with what to do`() throws {
    let port = try RedisPeer.freePort()
    #expect(throws: RecordFollower.Failure.self) { try follow(port, .now, count: 1) }
    let redis = try RedisPeer(["--requirepass", "secret"])
    let location = "127.0.0.1:\(redis.port): "
    #expect(
      throws: RecordFollower.Failure.refused(
        location + "Redis requires a password: use --password-file, or set password_file of cluster.shared_store")
    ) { try follow(redis.port, .now, count: 1) }
    var wrong = settings(redis.port)
    wrong.password = Redacted("wrong")
    #expect(
      throws: RecordFollower.Failure.refused(
        location + "Redis refuses the password (WRONGPASS invalid username-password pair or user is disabled.): check --user and "
          + "--password-file, or user and password_file of cluster.shared_store")
    ) { try RecordFollower(wrong, from: .now).run { _ in false } }
  }

  @Test func `the stream is found behind Sentinels and in a Redis Cluster`() throws {
    let sentinels = try SentinelPeers()
    sentinels.primary.say("XADD", "tl:{records}", "*", "record", "{}")
    let addresses = sentinels.sentinels.map { RedisServers.Address("127.0.0.1", $0.port) }
    let cluster = try ClusterPeers()
    run(
      "/usr/bin/redis-cli",
      ["-c", "-p", "\(cluster.nodes[0].port)", "XADD", "tl:{records}", "*", "record", "{}"])
    for location in [RedisServers.sentinels(addresses, name: SentinelPeers.name)]
      + cluster.nodes.map({ .cluster([RedisServers.Address("127.0.0.1", $0.port)]) })
    {
      var count = 0
      try RecordFollower(SharedStoreSettings(location, prefix: "tl"), from: .beginning).run { _ in
        count += 1
        return false
      }
      #expect(count == 1, "\(location)")
    }
  }
}
