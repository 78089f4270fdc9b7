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

/// Directories of several nodes over one shared store in memory, without threads or time: each node has its file, and takes its
/// steps.
@Suite struct DirectorySyncTests {
  private final class Node {
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
      sync = DirectorySync(file, client, counters, logger: logger, clock: { [hub] in hub.now }) {}
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
  private struct Device {
    let key: DeviceKey
    var accounts: [String]
    var have: Int?
    var of: String?
    var numbers: [Int64: Contact] = [:]
    var wholes = 0

    init(_ name: String, accounts: [String] = ["default"]) {
      (key, self.accounts) = (DeviceKey(user: "alice", device: name), accounts)
    }

    mutating func ask(_ node: Node) throws {
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
    func expected(_ node: Node) throws -> [Int64: Contact] {
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

  private let folder: Folder
  private let hub = SharedStoreHub()
  init() throws { folder = try Folder() }

  private func nodes(_ count: Int) throws -> [Node] { try (1...count).map { try Node("n\($0)", hub, folder) } }
  private func contact(_ number: Int64, _ label: String, isBlocked: Bool = false) -> Contact {
    Contact(15_550_000_000 + number, label: label, isBlocked: isBlocked)
  }
  private func agree(_ nodes: [Node], _ scope: String = "user:alice") throws {
    for node in nodes + nodes { node.run() }
    for node in nodes.dropFirst() {
      #expect(try node.contacts(scope) == nodes[0].contacts(scope))
      #expect(try node.file.syncState(scope) == nodes[0].file.syncState(scope))
      #expect(try node.file.partNames(scope) == nodes[0].file.partNames(scope))
    }
    #expect(
      try nodes.allSatisfy { try $0.file.syncState(scope).isCopy && $0.file.syncState(scope).sharedStore == $0.version(scope) })
  }
  /// The next comparison notices what the shared store has lost or gained.
  private func reconnect(_ nodes: [Node]) {
    hub.now = hub.now + .seconds(10)
    for node in nodes { node.sync.reconnected() }
    for node in nodes + nodes { node.run() }
  }

  @Test func `an import at one node is at the others under the same version, and a change of it writes one part and reads one`()
    throws
  {
    let all = try nodes(3)
    let many = (1...20_500 as ClosedRange<Int64>).map { contact($0, "Name, \"\($0)\"") }
    try all[0].replace(many)
    try agree(all)
    #expect(try all[2].contacts() == many && all[2].version() == all[0].version())
    var device = Device("phone")
    try device.ask(all[0])
    var parts: [String] = []
    hub.loses = { request in
      switch request {
      case .stageDirectoryParts(let pieces): parts += pieces.map { "staged \($0.name)" }
      case .directoryParts(let names): parts += names.map { "read \($0)" }
      default: break
      }
      return false
    }
    let before = try all[1].file.partNames("user:alice")
    try all[1].change([contact(5, "Five"), contact(1_000_000, "Last")], removing: [many[9].number])
    try agree(all)
    // the first part and the last, by one node; the others read what they do not have
    #expect(parts.count { $0.hasPrefix("staged") } == 2 && parts.count { $0.hasPrefix("read") } == 4, "\(parts)")
    #expect(try Set(before).intersection(all[0].file.partNames("user:alice")).count == before.count - 2)
    try device.ask(all[2])
    #expect(try device.numbers == device.expected(all[0]) && device.numbers.count == 20_500 && device.wholes == 1)
    #expect(all[2].counters.fetched.value == 2 && all[1].counters.given.value == 1)
    let version = try all[0].version()
    #expect(try all[0].change([contact(5, "Five")]) == version && all[0].replace(all[0].contacts()) == version, "no change")
    try all[1].replace([])
    try agree(all)
    #expect(try all[2].contacts().isEmpty && all[2].version() > version, "an empty directory keeps its version")
    try all[2].change([contact(7, "x")])
    try agree(all)
    #expect(try all[0].contacts() == [contact(7, "x")])
  }

  /// New parts are made where contacts are added, and none is longer than others may read.
  @Test func `parts have their bounds whatever is added and removed: between, before, behind, all of one, long labels`() throws {
    let all = try nodes(2)
    var random = SplitMix64(seed: 5)
    var wanted: [Int64: Contact] = [:]
    let long = String(repeating: "\"", count: 255)
    for step in 0..<12 as Range<Int64> {
      var changes: [Contact] = []
      for _ in 0..<Int.random(in: 0...900, using: &random) {
        let number = Int64.random(in: 0..<6_000, using: &random)
        changes.append(contact(number, step.isMultiple(of: 3) ? long : "s\(step)", isBlocked: number.isMultiple(of: 5)))
      }
      let unique = Dictionary(changes.map { ($0.number, $0) }) { first, _ in first }
      let start = Int64.random(in: 0..<6_000, using: &random)
      let removed = wanted.keys.filter { (start..<start + 900).contains($0 - 15_550_000_000) && unique[$0] == nil }
      for number in removed { wanted[number] = nil }
      wanted.merge(unique) { $1 }
      try all[Int(step) % 2].change(Array(unique.values), removing: removed.map(\.self))
      try agree(all)
      #expect(try all[1].contacts() == wanted.values.sorted { $0.number < $1.number }, "step \(step)")
    }
  }

  @Test func `a directory of more parts than a head names has pages; a change of it writes one part and its pages`() throws {
    let all = try nodes(2)
    for node in all { node.sync.headParts = 4 }
    let many = (1...9_500 as ClosedRange<Int64>).map { contact($0, "n") }
    try all[0].replace(many)
    try agree(all)
    #expect(try all[1].file.partNames("user:alice").count == 10)
    var parts = 0
    hub.loses = { request in
      if case .stageDirectoryParts(let pieces) = request { parts += pieces.count }
      return false
    }
    try all[1].change([contact(6_000, "one")])
    try agree(all)
    #expect(try all[0].contacts()[5_999] == contact(6_000, "one") && all[0].contacts().count == 9_500)
    #expect(parts == 1 + 3, "the part, and its pages")
    try all[0].replace(Array(many.prefix(1_500)))
    try agree(all)
    #expect(try all[1].contacts().count == 1_500, "no pages any more")
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `two nodes import at the same time: each is done whole or refused, one after the other, and never a mixture`(
    seed: UInt64
  ) throws {
    let all = try nodes(2)
    var random = SplitMix64(seed: seed)
    try all[0].replace([contact(1, "a"), contact(2, "b")])
    try agree(all)
    // the second is begun while the first stages its parts
    let lists = (0..<2).map { node in (0..<3_000 as Range<Int64>).map { contact($0 * 2 + Int64(node), "n\(node)") } }
    let kinds = [seed.isMultiple(of: 2), seed.isMultiple(of: 3)]
    var results: [Node.Result?] = [nil, nil]
    for (index, node) in all.enumerated() {
      try node.begin(lists[index], replaces: kinds[index]) { results[index] = $0 }
    }
    for _ in 0..<2_000 where results.contains(where: { $0 == nil }) { all[Int.random(in: 0..<2, using: &random)].step() }
    try agree(all)
    let done = results.enumerated().compactMap { index, result in (try? result?.get().version).map { (index, $0) } }
    #expect(results.allSatisfy { $0 != nil } && !done.isEmpty)
    #expect(results.allSatisfy { [nil, .conflict].contains($0?.failure) }, "\(results)")
    var wanted = [contact(1, "a"), contact(2, "b")]
    for (index, _) in done.sorted(by: { $0.1 < $1.1 }) {
      var next = kinds[index] ? [:] : Dictionary(uniqueKeysWithValues: wanted.map { ($0.number, $0) })
      for contact in lists[index] { next[contact.number] = contact }
      wanted = next.values.sorted { $0.number < $1.number }
    }
    #expect(try all[0].contacts() == wanted)
  }

  @Test func `an import that meets another one each time is refused after its tries`() throws {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")])
    try agree(all)
    var (result, commits) = (nil as Node.Result?, 0)
    let other = all[1]
    var isBusy = false
    hub.loses = { [hub] request in
      // whenever the first is about to commit, the second one has changed something
      guard case .stageDirectoryParts = request, !isBusy else { return false }
      isBusy = true
      defer { isBusy = false }
      commits += 1
      let before = hub.now
      _ = try? other.change([contact(50 + Int64(commits), "other")])
      hub.now = before
      return false
    }
    try all[0].begin([contact(9, "mine")], replaces: false) { result = $0 }
    for _ in 0..<200 where result == nil { all[0].step() }
    hub.loses = { _ in false }
    #expect(result == .failure(.conflict) && commits == Limits.importTries + 1)
    try agree(all)
    #expect(try all[0].contacts().count == 1 + commits && !all[0].contacts().contains(contact(9, "mine")))
  }

  @Test func `the shared store is away: what is here is served, imports are refused at once, and it is all as it was afterwards`()
    throws
  {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")])
    try agree(all)
    let version = try all[0].version()
    hub.isAway = true
    #expect(try all[0].put([contact(2, "b")], replaces: true) == .failure(.sharedStore))
    #expect(try all[0].put([contact(2, "b")], replaces: false) == .failure(.sharedStore))
    #expect(try all[0].contacts() == [contact(1, "a")] && all[0].version() == version)
    hub.isAway = false
    for refusal in ["OOM command not allowed", "READONLY You can't write"] {
      reconnect(all)
      hub.refuses = refusal
      #expect(try all[1].put([contact(2, "b")], replaces: false) == .failure(.sharedStore))
      hub.refuses = nil
    }
    reconnect(all)
    try agree(all)
    #expect(try all[1].contacts() == [contact(1, "a")] && all[1].version() == version)
    #expect(try all[1].change([contact(2, "b")]) > version)
    try agree(all)
  }

  @Test(arguments: 0..<8, [nil, "OOM command not allowed", "READONLY You can't write"] as [String?])
  func `the shared store dies or refuses writes in mid-import: the version before it stays, whole, until the next import`(
    step: Int, refusal: String?
  ) throws {
    let all = try nodes(2)
    let before = (0..<3_000 as Range<Int64>).map { contact($0, "before") }
    let after = (0..<9_500 as Range<Int64>).map { contact($0, "after") }
    try all[0].replace(before)
    try agree(all)
    var left = step
    hub.diesAt = { request in
      switch request {
      case .stageDirectoryParts, .commitDirectory, .directoryHead: left -= 1
      default: break
      }
      if left < 0 { hub.refuses = refusal }
      return left < 0 && refusal == nil
    }
    let result = try all[0].put(after, replaces: true)
    if result.failure != nil { #expect(try all.allSatisfy { try $0.contacts() == before }, "the copies go on") }
    (hub.isAway, hub.refuses, hub.diesAt) = (false, nil, { _ in false })
    reconnect(all)
    try agree(all)
    let isDone = (try? result.get()) != nil
    #expect(try all[1].contacts() == (isDone ? after : before), "\(result)")
    try all[0].replace(after)
    try agree(all)
    #expect(try all[1].contacts() == after)
  }

  @Test func `the answer to the last step is lost: the import is done, once`() throws {
    let all = try nodes(2)
    var left = 1
    hub.loses = { request in
      guard case .commitDirectory = request, left > 0 else { return false }
      left -= 1
      return true
    }
    let version = try all[0].replace([contact(1, "a")])
    try agree(all)
    #expect(try all[1].version() == version && all[0].counters.given.value == 1 && left == 0)
  }

  @Test func `parts that were staged for too long make no version; the import stages them again`() throws {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")])
    var left = 1
    hub.loses = { [hub] request in
      guard case .stageDirectoryParts = request, left > 0 else { return false }
      left -= 1
      hub.now = hub.now + Cluster.Limits.staged + .seconds(1)
      return false
    }
    try all[0].change([contact(2, "b")])
    try agree(all)
    #expect(try all[1].contacts().count == 2 && left == 0)
  }

  @Test
  func
    `the shared store is flushed, or swapped for an empty one: copies are served, it is reported, and an operator gives them back`()
    throws
  {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")])
    try all[1].replace([contact(2, "b", isBlocked: true)], in: "account:work")
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    let versions = try (all[0].version(), all[0].version("account:work"))
    hub.store = SharedStoreStore()
    reconnect(all)
    for node in all {
      #expect(try node.contacts() == [contact(1, "a")] && node.contacts("account:work").count == 1)
      #expect(try node.version() == versions.0 && node.file.syncState("user:alice").sharedStore == 0)
      #expect(node.counters.stale.value == 2)
      let lines = node.log.lines.filter { $0.contains("has lost directories") }
      #expect(lines.count == 1 && lines.allSatisfy { $0.contains("age_seconds") && $0.contains("served") }, "\(lines)")
    }
    guard case .success(.directories(let none)) = hub.answer(.directories(since: 0)) else { return #expect(Bool(false)) }
    #expect(none.versions.isEmpty, "no node puts back what it has by itself")
    // one of them is imported again, the other is restored
    try all[1].change([contact(3, "c")])
    for node in all { node.run() }
    #expect(try all[0].contacts() == [contact(1, "a"), contact(3, "c")], "on the copy")
    #expect(try all[0].file.restore() == 1)
    try all[0].sync.changedHere()
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    #expect(try all[1].version("account:work") > versions.1 && all[1].contacts("account:work").count == 1)
    #expect(all.allSatisfy { $0.counters.stale.value == 0 })
  }

  @Test
  func `a failover loses the last version: a node with it serves it, and the next import at any node is at all of them, whole`()
    throws
  {
    let all = try nodes(3)
    try all[0].replace([contact(1, "a")])
    try agree(all)
    let replica = hub.store
    // the third node was away, or slow
    let lost = try all[0].change([contact(2, "lost", isBlocked: true)])
    all[1].run()
    hub.store = replica
    reconnect(all)
    for node in all[..<2] {
      #expect(try node.contacts().count == 2 && node.version() == lost, "the block goes on")
      #expect(node.counters.stale.value == 1 && node.log.lines.contains { $0.contains("older version") })
    }
    #expect(try all[2].contacts().count == 1)
    var device = Device("phone", accounts: [])
    try device.ask(all[1])
    try all[2].change([contact(3, "c")])
    try agree(all)
    #expect(try all[0].contacts() == [contact(1, "a"), contact(3, "c")] && all[0].version() > lost)
    #expect(all.allSatisfy { $0.counters.stale.value == 0 })
    try device.ask(all[0])
    #expect(try device.numbers == device.expected(all[2]))
    // imported again by a node that has what was lost: with it
    let replicaAgain = hub.store
    try all[0].change([contact(4, "lost again")])
    hub.store = replicaAgain
    reconnect(all)
    try all[0].change([contact(5, "d")])
    try agree(all)
    #expect(try all[2].contacts().map(\.number).suffix(2) == [contact(4, "").number, contact(5, "").number])
  }

  @Test
  func `a node two versions behind gets the last one; a device of the version between gets the whole, the others what differs`()
    throws
  {
    let all = try nodes(3)
    try all[0].replace([contact(1, "a"), contact(2, "b")])
    try agree(all)
    var devices = [Device("before", accounts: []), Device("between", accounts: [])]
    try devices[0].ask(all[2])
    // a contact that only the version between has: no comparison of first and last shows it
    try all[0].change([contact(9, "between", isBlocked: true)])
    try devices[1].ask(all[0])
    try all[0].change([contact(3, "c")], removing: [contact(9, "").number])
    all[2].run()
    #expect(try all[2].contacts() == all[0].contacts() && all[2].version() == all[0].version())
    for index in devices.indices {
      try devices[index].ask(all[2])
      #expect(try devices[index].numbers == devices[index].expected(all[0]))
    }
    #expect(devices[0].wholes == 1 && devices[1].wholes == 2)
  }

  @Test func `a version that lacks a part, or that no node here has signed, is not served; the next import repairs it`() throws {
    let all = try nodes(3)
    let many = (0..<5_000 as Range<Int64>).map { contact($0, "n") }
    try all[0].replace(many)
    try agree([all[0], all[1]])
    let version = try all[0].version()
    try all[0].change([contact(1, "one"), contact(4_500, "two")])
    // half of it, as in a shared store that was restored from a broken file
    let names = try all[0].file.partNames("user:alice")
    hub.hides = [try #require(names.last).name]
    for node in all { node.run() }
    #expect(try all[1].version() == version && all[1].contacts() == many, "the copy goes on")
    #expect(try all[2].version() == 0, "this one has none")
    #expect(all[1].counters.stale.value == 1 && all[1].log.lines.contains { $0.contains("missing or not signed") })
    #expect(try all[1].file.syncState("user:alice").sharedStore == all[0].version())
    try all[1].change([contact(2, "three")])
    for node in all { node.run() }
    hub.now = hub.now + Limits.sharedFault
    try agree(all)
    #expect(try all[2].contacts()[2] == contact(2, "three") && all[2].contacts().count == 5_000)
    #expect(all.allSatisfy { $0.counters.stale.value == 0 })
  }

  @Test func `a version that arrives late becomes a later one: a device that was sent another directory gets it`()
    throws
  {
    let all = try nodes(2)
    try all[0].replace([contact(1, "own")])
    try all[0].replace([contact(2, "work")], in: "account:work")
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    try all[0].change([contact(3, "late")], in: "account:work")
    hub.hides = Set(try all[0].file.partNames("account:work").map(\.name))
    try all[0].change([contact(4, "early")])
    all[1].run()
    var device = Device("phone", accounts: ["work"])
    try device.ask(all[1])
    #expect(device.numbers.count == 3)
    hub.hides = []
    hub.now = hub.now + Limits.sharedFault
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    try device.ask(all[1])
    #expect(try device.numbers == device.expected(all[0]) && device.numbers.count == 4)
  }

  @Test func `a gateway that was alone brings its directories along, and takes the shared store's where there is one`() throws {
    let all = try nodes(2)
    try all[0].replace([contact(1, "shared store's")])
    let late = try Node("late", hub, folder)
    let own = try late.file.write(Node.list([contact(9, "own")], []), into: "user:alice", replaces: true, now: 7)
    #expect(own.entries == 1)
    _ = try late.file.write(Node.list([contact(8, "own")], []), into: "user:bob", replaces: true, now: 8)
    late.run()
    for scope in ["user:alice", "user:bob"] { try agree(all + [late], scope) }
    #expect(try late.contacts() == [contact(1, "shared store's")] && all[1].contacts("user:bob") == [contact(8, "own")])
  }

  @Test func `other accounts, a version of another life, a device that says nothing of its directories: whole, never half`()
    throws
  {
    let all = try nodes(2)
    try all[0].replace([contact(2, "work")], in: "account:work")
    try all[0].replace([contact(1, "own")])
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    var device = Device("phone", accounts: ["work"])
    try device.ask(all[0])
    #expect(device.numbers.count == 2)
    // the version is the user's own in both: it does not distinguish them
    device.accounts = []
    try device.ask(all[1])
    #expect(device.numbers.count == 1 && device.wholes == 2)
    device.accounts = ["work"]
    try device.ask(all[0])
    #expect(device.numbers.count == 2 && device.wholes == 3)
    try device.ask(all[1])
    #expect(device.wholes == 3, "the same at another node")
    device.of = nil
    try device.ask(all[1])
    #expect(device.wholes == 4)
    device.accounts = ["none"]
    try all[0].replace([])
    try all[0].replace([], in: "account:work")
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    try device.ask(all[1])
    #expect(device.numbers.isEmpty)
    let mark = try all[0].file.sharedVersion(of: device.key, accounts: ["none"])
    #expect(try mark.of == all[1].file.sharedVersion(of: device.key, accounts: ["none"]).of)
    #expect(DirectoryFile.mark(device.key, ["a", "b"]) != DirectoryFile.mark(device.key, ["b", "a"]), "the first has the label")
    device.have = 9_000_000_000_000
    try device.ask(all[0])
    #expect(device.have == 9_000_000_000_000, "a version that this node does not have yet")
  }

  @Test func `what a stranger has written into the shared store is not used, traps nothing, and stops nothing else`() throws {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")], in: "user:bob")
    let texts = [
      "", "2", "2 5 0 0 parts 1\n", "2 99999999999999999999 0 0 parts 0\n", "1 5 0 0 parts 0\n", "2 5 5 0 parts 0\n",
      "2 5 0 -1 parts 0\n", "2 5 0 1 parts 1\n1\n", "2 5 0 1 parts 1\n1 A\n", "2 5 0 1 parts 2\n2 a\n1 b\n", "2 5 0 1 pages 0\n",
      "2 5 0 1 pages 1\n../x\n", "2 5 0 1 parts 1\n1 a", String(repeating: "x", count: 5_000), "2 5 0 1000001 parts 0\n",
    ]
    var version: Int64 = 1 << 42
    for (index, text) in texts.enumerated() {
      #expect(DirectoryText.head(Array(text.utf8)) == nil, "\(text.prefix(40))")
      for scope in ["user:x\(index)", "nobody\(index)", "user:\u{1}"] {
        version += 2
        let bytes = Array(text.replacing("2 5 5", with: "2 \(version) \(version)").replacing("2 5 ", with: "2 \(version) ").utf8)
        _ = hub.answer(.commitDirectory(DirectoryCommit(scope, from: 0, to: version, head: bytes)))
      }
    }
    // heads that are well-formed and name contents that are not
    for (index, part) in ["", "x\n", "+15550000001,a\n", "+15550000001,a,identify\n+15550000001,a,identify\n"].enumerated() {
      version += 2
      _ = hub.answer(.stageDirectoryParts([DirectoryPiece("p\(index)", Array(part.utf8))]))
      let head = DirectoryHead(version: Int(version), from: 0, contacts: 2, parts: [.init(first: 1, name: "p\(index)")])
      _ = hub.answer(
        .commitDirectory(
          DirectoryCommit("user:y\(index)", from: 0, to: version, head: DirectoryText.head(head), made: ["p\(index)"])))
    }
    try agree(all, "user:bob")
    #expect(try all[1].contacts("user:bob") == [contact(1, "a")])
    #expect(try all[1].file.directories().map(\.name) == ["user:bob"])
    #expect(all[1].counters.failures.value > 0)
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>, [false, true])
  func `whatever happens in whatever order, in the end all nodes have the shared store's, and devices what the nodes have`(
    seed: UInt64, isLossy: Bool
  ) throws {
    var random = SplitMix64(seed: seed)
    func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    hub.random = SplitMix64(seed: seed)
    let all = try nodes(3)
    let scopes = ["user:alice", "account:work"]
    var devices = [Device("a", accounts: ["work"]), Device("b", accounts: []), Device("c", accounts: ["work"])]
    /// The imports that were done, by the version that each became.
    var done: [String: [Int: (changes: [Contact], removed: [Int64], replaces: Bool)]] = [:]
    for step in 0..<300 {
      let node = all[below(3)]
      switch below(10) {
      case 0, 1, 2:
        let replaces = below(4) == 0
        let contacts = (0..<below(4)).map { _ in contact(Int64(below(12)), "s\(step)", isBlocked: below(3) == 0) }
        let unique = Array(Dictionary(contacts.map { ($0.number, $0) }) { first, _ in first }.values)
        let removed = replaces ? [] : [15_550_000_020 + Int64(below(3))]
        let scope = scopes[below(2)]
        try node.begin(unique, removing: removed, replaces: replaces, in: scope) { result in
          guard let change = try? result.get() else { return }
          if done[scope, default: [:]][change.version] == nil {
            done[scope, default: [:]][change.version] = (unique, removed, replaces)
          }
        }
      case 3 where isLossy: hub.losesReplies = below(3) == 0 ? 0.3 : 0
      case 4 where isLossy: hub.isAway = below(5) == 0
      case 5: try devices[below(3)].ask(node)
      default: for _ in 0..<below(20) { node.step() }
      }
    }
    (hub.isAway, hub.losesReplies) = (false, 0)
    for node in all + all { node.run() }
    try all[below(3)].change([contact(40, "last")])
    for scope in scopes where try all[0].version(scope) > 0 { try agree(all, scope) }
    for index in devices.indices {
      try devices[index].ask(all[below(3)])
      #expect(try devices[index].numbers == devices[index].expected(all[0]), "seed \(seed), device \(index)")
    }
    // without lost answers it is known which imports were done: the nodes have those, in the order of their versions
    for scope in scopes where !isLossy {
      var wanted: [Int64: Contact] = [:]
      for (_, one) in (done[scope] ?? [:]).sorted(by: { $0.key < $1.key }) {
        if one.replaces { wanted = [:] }
        for number in one.removed { wanted[number] = nil }
        for contact in one.changes { wanted[contact.number] = contact }
      }
      if scope == scopes[0] { wanted[contact(40, "").number] = contact(40, "last") }
      #expect(try all[0].contacts(scope) == wanted.values.sorted { $0.number < $1.number }, "seed \(seed) \(scope)")
    }
  }
}

extension Result {
  fileprivate var failure: Failure? { if case .failure(let failure) = self { failure } else { nil } }
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
