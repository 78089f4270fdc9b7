import Cluster
import Foundation
import MemorySharedStore
import TrunklineBytes

/// The shared store in memory, as the contract uses it: callable from any thread, on a virtual time that advances only while a
/// caller waits.
final class MemoryHub: @unchecked Sendable {
  private let lock = NSLock()
  private var sharedStore = MemorySharedStore(seed: 1)
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var count = 0
  private var replies: [Int: [SharedStoreRequestID: Result<SharedStoreReply, SharedStoreFailure>]] = [:]
  private var heard: [Int: [ClusterMessage]] = [:]
  private var connected: Set<Int> = []

  init() {
    sharedStore.faults.latency = 0...0.000_1
  }

  func attach(_ incarnation: Incarnation) throws -> Int {
    let client = lock.withLock {
      count += 1
      sharedStore.attach(count, incarnation, at: now)
      return count
    }
    try wait { connected.contains(client) }
    return client
  }

  func ask(_ client: Int, _ requests: [SharedStoreRequest], _ ids: [SharedStoreRequestID]) throws -> [Result<
    SharedStoreReply, SharedStoreFailure
  >] {
    lock.withLock { for (id, request) in zip(ids, requests) { sharedStore.send(client, id, request, at: now) } }
    try wait { ids.allSatisfy { replies[client]?[$0] != nil } }
    return lock.withLock { ids.compactMap { replies[client]?[$0] } }
  }

  func messages(of client: Int) -> [ClusterMessage] {
    lock.withLock {
      take()
      return heard[client] ?? []
    }
  }

  /// Advances the time by the interval at which the contract polls a real shared store.
  func pass() { lock.withLock { now = now + .milliseconds(5) } }

  private func take() {
    while let (client, event) = sharedStore.take(at: now) {
      switch event {
      case .reply(let id, let result): replies[client, default: [:]][id] = result
      case .message(let message, _): heard[client, default: []].append(message)
      case .connected: connected.insert(client)
      case .lost, .dropped: break
      }
    }
  }

  /// Advances from event to event. The waiting threads do it one after the other: a thread whose reply was read in another's step
  /// is done.
  private func wait(until isDone: () -> Bool) throws {
    try lock.withLock {
      take()
      while !isDone() {
        guard let next = sharedStore.next else { throw PeerFailure(description: "the shared store in memory never answers") }
        now = max(now, next)
        take()
      }
    }
  }
}

/// One node's connection to a `MemoryHub`.
final class MemoryNode: SharedStoreUnderTest, @unchecked Sendable {
  let incarnation: Incarnation
  private let hub: MemoryHub
  private let client: Int
  private var number: UInt64 = 0

  init(_ name: String, _ hub: MemoryHub, started: Int64) throws {
    incarnation = Incarnation(node: name, started: started)
    self.hub = hub
    client = try hub.attach(incarnation)
  }

  var messages: [ClusterMessage] { hub.messages(of: client) }

  func ask(_ requests: [SharedStoreRequest]) throws -> [Result<SharedStoreReply, SharedStoreFailure>] {
    let ids = requests.map { _ in
      number += 1
      return SharedStoreRequestID(number)
    }
    return try hub.ask(client, requests, ids)
  }

  func stop() {}

  func wait(for what: String, _ condition: () throws -> Bool) throws {
    for _ in 0..<4_000 {
      if try condition() { return }
      hub.pass()
    }
    throw PeerFailure(description: "not within 20 s of the shared store's time: \(what)")
  }
}
