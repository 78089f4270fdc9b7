import AppSessions
import Cluster
import Foundation
import Logging
import MemorySharedStore
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

@testable import Store

/// A node with its file of directories, which takes its steps.
final class DirectoryNode {
  typealias Result = Swift.Result<DirectoryFile.Change, DirectoryService.Fault>
  let name: String
  let file: DirectoryFile
  let sync: DirectorySync
  let counters = DirectoryCounters()
  let log = LogLines()
  private let client: SharedStoreClient
  private let answers = SharedStoreHub.Answers()
  private let hub: SharedStoreHub

  init(_ name: String, _ hub: SharedStoreHub, _ folder: Folder) throws {
    (self.name, self.hub) = (name, hub)
    file = try DirectoryFile(path: folder.path + "/\(name).directory")
    client = hub.client(name, answers)
    let logger = Logger(label: "directory") { [log] _ in log }
    sync = DirectorySync(file, sharedStore: client, counters: counters, logger: logger, clock: { [hub] in hub.now }) {}
  }

  /// At most one request and its answer.
  func step() {
    hub.now = hub.now + .milliseconds(100)
    sync.step(at: hub.now)
    answers.deliver(to: client)
  }

  /// Runs until nothing is left to do.
  func run() {
    sync.received()
    for _ in 0..<20_000 {
      step()
      if sync.isIdle, sync.nextStep > hub.now + .milliseconds(2_500) { return }
    }
    Issue.record("it comes to no end")
  }

  /// Begins an import; the answer comes with later steps.
  func begin(
    _ contacts: [Contact], removing numbers: [Int64] = [], replaces: Bool, in scope: String = "user:alice",
    done: @escaping (Result) -> Void
  ) throws {
    sync.write(try Self.list(contacts, numbers), into: scope, replaces: replaces, done: done)
  }
  @discardableResult func put(
    _ contacts: [Contact], removing numbers: [Int64] = [], replaces: Bool, in scope: String = "user:alice"
  ) throws -> Result {
    var result: Result?
    try begin(contacts, removing: numbers, replaces: replaces, in: scope) { result = $0 }
    for _ in 0..<20_000 where result == nil { step() }
    return try #require(result)
  }
  @discardableResult func change(_ contacts: [Contact], removing numbers: [Int64] = [], in scope: String = "user:alice") throws
    -> Int
  {
    try put(contacts, removing: numbers, replaces: false, in: scope).get().version
  }
  @discardableResult func replace(_ contacts: [Contact], in scope: String = "user:alice") throws -> Int {
    try put(contacts, replaces: true, in: scope).get().version
  }
  static func list(_ contacts: [Contact], _ removed: [Int64]) throws -> ContactList {
    var list = ContactList()
    for contact in contacts { try list.add(contact) }
    for number in removed { try list.add(Contact(number), isRemoved: true) }
    try list.finish()
    return list
  }
  func contacts(_ scope: String = "user:alice") throws -> [Contact] {
    var all: [Contact] = []
    try file.forEach(in: scope) { all.append($0) }
    return all
  }
  func version(_ scope: String = "user:alice") throws -> Int { try file.syncState(scope).version }
}

/// A device that moves from node to node, and what it was sent.
struct MovingDevice {
  let key: DeviceKey
  var accounts: [String]
  var have: Int?
  var of: String?
  var numbers: [Int64: Contact] = [:]
  var wholes = 0

  init(_ name: String, accounts: [String] = ["default"]) {
    (key, self.accounts) = (DeviceKey(user: "alice", device: name), accounts)
  }

  mutating func ask(_ node: DirectoryNode) throws {
    var get = DirectoryGet(have: have, of: of)
    var first: DirectoryAnswer?
    var parts: [DirectoryPart] = []
    while true {
      let found = try node.file.answer(.init(get, isShared: true), to: key, accounts: accounts, now: 1)
      if let first {
        #expect((first.version, first.from, first.of) == (found.answer.version, found.answer.from, found.answer.of))
      }
      first = found.answer
      parts += found.parts
      guard let next = found.answer.next else { break }
      (get.version, get.after) = (found.answer.version, next)
    }
    guard let answer = first else { return }
    if answer.from == nil, !parts.isEmpty { (numbers, wholes) = ([:], wholes + 1) }
    for part in parts {
      for number in part.block ?? [] { numbers[number, default: Contact(number)].isBlocked = true }
      for number in part.unblock ?? [] { numbers[number]?.isBlocked = false }
      for name in part.identify ?? [] { numbers[name.n, default: Contact(name.n)].label = name.l }
      for number in part.unidentify ?? [] { numbers[number]?.label = nil }
    }
    numbers = numbers.filter { $0.value.isBlocked || $0.value.label != nil }
    (have, of) = (answer.version, answer.of)
  }

  /// The contents of its directories at a node.
  func expected(_ node: DirectoryNode) throws -> [Int64: Contact] {
    var out: [Int64: Contact] = [:]
    for scope in DirectoryScope.of(key, accounts: accounts) {
      for contact in try node.contacts(scope) {
        var merged = out[contact.number] ?? Contact(contact.number)
        merged.label = merged.label ?? contact.label
        merged.isBlocked = merged.isBlocked || contact.isBlocked
        out[contact.number] = merged
      }
    }
    return out
  }
}

extension Result {
  var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
}

/// What was logged.
final class LogLines: LogHandler, @unchecked Sendable {
  // Unchecked: one thread of a test writes and reads.
  var lines: [String] = []
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace
  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
  func log(event: LogEvent) { lines.append("\(event.message) \(event.metadata ?? [:])") }
}
