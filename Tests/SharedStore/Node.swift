import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import Foundation
import Logging
import PushPolicy
import SharedStore
import TrunklineBytes
import TrunklinePlatform

/// One node's connection to a shared store, as the contract uses it.
protocol SharedStoreUnderTest: AnyObject {
  var incarnation: Incarnation { get }
  /// Sends all at once; returns the replies in the order of the requests.
  func ask(_ requests: [SharedStoreRequest]) throws -> [Result<SharedStoreReply, SharedStoreFailure>]
  /// The messages received so far.
  var messages: [ClusterMessage] { get }
  func stop()
  /// Waits until the condition holds, or fails after 20 s of this shared store's time.
  func wait(for what: String, _ condition: () throws -> Bool) throws
}

extension SharedStoreUnderTest {
  func wait(for what: String, _ condition: () throws -> Bool) throws { try waitUntil(what, condition) }
  func ask(_ request: SharedStoreRequest) throws -> SharedStoreReply {
    let replies = try ask([request])
    return try replies[0].get()
  }
  func enter(_ location: Whereabouts, since: Int64? = nil) throws
    -> (before: Whereabouts?, device: Device?, since: Int64, isOlder: Bool)
  {
    guard case .entered(let before, _, let device, let since, let isOlder, 0) = try ask(.enter(location, since: since)) else {
      throw PeerFailure(description: "no answer to enter")
    }
    return (before, device, since, isOlder)
  }
  func granted(_ request: SharedStoreRequest) throws -> Bool {
    guard case .granted(let granted, _) = try ask(request) else { throw PeerFailure(description: "not granted or refused") }
    return granted
  }
}

/// A `RedisSharedStore` with methods that wait for replies.
final class RedisNode: SharedStoreUnderTest {
  let incarnation: Incarnation
  let readiness = Readiness()
  private let sharedStore: RedisSharedStore
  private let inbox = Inbox()

  init(_ name: String, _ settings: SharedStoreSettings, started: Int64 = 1, connects: Bool = true) throws {
    incarnation = Incarnation(node: name, started: started)
    let logger = Logger(label: "shared-store") { _ in SwiftLogNoOpLogHandler() }
    sharedStore = try RedisSharedStore(settings, node: incarnation, readiness: readiness, logger: logger) { [inbox] in
      inbox.take($0)
    }
    if connects { try waitFor("connected") }
  }

  deinit { sharedStore.stop() }
  func stop() { sharedStore.stop() }

  var messages: [ClusterMessage] { inbox.read { $0.messages } }
  /// `connected`, `connected after a flush`, `lost`, in order.
  var events: [String] { inbox.read { $0.events } }
  var dropped: Int { inbox.read { $0.dropped } }
  var repliedTwice: Int { inbox.read { $0.twice } }
  /// The note that `/readyz` would show.
  var note: String { readiness.report.first { $0.component == "shared-store" }?.note ?? "" }

  func ask(_ requests: [SharedStoreRequest]) throws -> [Result<SharedStoreReply, SharedStoreFailure>] {
    let ids = post(requests)
    // Each reply is checked only once: the shared store's thread waits for this lock.
    var replied = 0
    try inbox.wait("replies to \(requests.count) requests; \(note)") { seen in
      while replied < ids.count, seen.replies[ids[replied]] != nil { replied += 1 }
      return replied == ids.count
    }
    return inbox.read { seen in ids.compactMap { seen.replies[$0] } }
  }

  @discardableResult func post(_ requests: [SharedStoreRequest]) -> [UInt64] {
    let ids = requests.map { _ in inbox.nextNumber() }
    for (id, request) in zip(ids, requests) { sharedStore.post(SharedStoreRequestID(id), request, gathers: true) }
    sharedStore.wake()
    return ids
  }

  func reply(_ id: UInt64) -> Result<SharedStoreReply, SharedStoreFailure>? { inbox.read { $0.replies[id] } }

  func metric(_ name: String, _ label: String? = nil) -> Int64 {
    let samples = sharedStore.metrics.first { $0.name == "trunkline_shared_store_" + name }?.snapshot() ?? []
    return samples.filter { label == nil || $0.labels == [label ?? ""] }.reduce(0) { sum, sample in
      if case .integer(let value) = sample.value { sum + value } else { sum }
    }
  }

  func waitFor(_ what: String, count: Int = 1, seconds: Double = 20) throws {
    try inbox.wait("\(count) × \(what)", seconds: seconds) { seen in seen.events.count { $0.hasPrefix(what) } >= count }
  }
}

/// Events of a node's shared store. Its thread writes, the test reads and waits.
private final class Inbox: @unchecked Sendable {
  struct Seen {
    var replies: [UInt64: Result<SharedStoreReply, SharedStoreFailure>] = [:]
    var twice = 0
    var messages: [ClusterMessage] = []
    var events: [String] = []
    var dropped = 0
  }
  private let lock = NSCondition()
  private var seen = Seen()
  private var number: UInt64 = 0

  func read<Value>(_ body: (Seen) -> Value) -> Value { lock.withLock { body(seen) } }

  func nextNumber() -> UInt64 {
    lock.withLock {
      number += 1
      return number
    }
  }

  func take(_ event: SharedStoreEvent) {
    lock.withLock {
      switch event {
      case .reply(let id, let result):
        if seen.replies[id.number] != nil { seen.twice += 1 }
        seen.replies[id.number] = result
      case .connected(let wasFlushed): seen.events.append(wasFlushed ? "connected after a flush" : "connected")
      case .lost: seen.events.append("lost")
      case .message(let message, _): seen.messages.append(message)
      case .dropped(let count): seen.dropped += count
      }
      lock.broadcast()
    }
  }

  func wait(_ what: String, seconds: Double = 20, _ condition: (Seen) -> Bool) throws {
    let end = Date().addingTimeInterval(seconds)
    try lock.withLock {
      while !condition(seen) {
        guard lock.wait(until: end) else { throw PeerFailure(description: "not within \(seconds) s: \(what); \(seen.events)") }
      }
    }
  }
}

// MARK: samples

extension CallID { init(_ number: UInt64) { self.init(high: 0x4000, low: 0x8000_0000_0000_0000 | number) } }

/// - Parameter commandTime: long where the test is not about time, for busy machines.
func settings(_ port: UInt16, commandTime: Duration = .seconds(10)) -> SharedStoreSettings {
  var settings = SharedStoreSettings(.redis(.init("127.0.0.1", port)), prefix: "tl")
  settings.commandTime = commandTime
  settings.retry = .milliseconds(20)...(.milliseconds(200))
  return settings
}

func lease(_ incarnation: Incarnation, calls: Int = 0) -> NodeLease {
  var lease = NodeLease(
    incarnation, url: "wss://\(incarnation.node).example.com/v1/connect", sip: "sip:127.0.0.1:5060", version: "1",
    configuration: "c")
  (lease.calls, lease.isDraining) = (calls, calls > 5)
  if calls > 5 { lease.troubles = ["carrier": "OPTIONS not answered"] }
  return lease
}

func location(_ user: String, _ device: String, _ incarnation: Incarnation, session: String = "s1") -> Whereabouts {
  Whereabouts(
    DeviceKey(user: user, device: device), at: incarnation, session: SessionID(session), state: .bg, caps: ["nodes", "wake"],
    accounts: ["default", "work"])
}

func device(_ user: String, _ name: String, seen: Int64, revoked: Int64? = nil) -> Device {
  var device = Device(key: DeviceKey(user: user, device: name), accounts: ["work"], at: 1_000)
  (device.platform, device.model, device.os, device.sdk) = ("ios", "iPhone 15", "18.1", "1.4.0")
  (device.lastSeen, device.revokedAt, device.doNotDisturb) = (seen, revoked, true)
  let key = [UInt8](repeating: 7, count: 32)
  let token = String(repeating: "ab", count: 32)
  device.bindings = [
    PushBinding(
      PushTarget(.apns, token: token, environment: .sandbox, topic: "com.example.app.voip", sealKey: key), registeredAt: 5),
    PushBinding(PushTarget(.fcm, token: "f:\"}" + token), registeredAt: 6, isUsable: false),
  ]
  return device
}

func entry(_ call: CallID, user: String = "alice", connect: Int64? = nil) -> CallEntry {
  let line = JournalEntry(
    call: call, sipCallId: "abc@carrier", direction: .incoming, trunk: "carrier", from: "+4930123", to: "+4930456", user: user,
    start: 1_790_000_000_000, connect: connect)
  return CallEntry(line, users: [user])
}
