import AppProtocol
import AppSessions
import Bytes
import Cluster
import Foundation
import Logging
import MemoryEngine
import Platform
import Testing

@testable import Store

/// Directories of several nodes over one engine in memory, without threads or time: each node has its file, and takes its turns.
@Suite struct DirectorySyncTests {
  private final class Node {
    let file: DirectoryFile
    let sync: DirectorySync
    let counters = DirectoryCounters()
    private let client: EngineClient
    private let answers = EngineHub.Answers()
    private let hub: EngineHub

    init(_ name: String, _ hub: EngineHub, _ folder: Folder) throws {
      self.hub = hub
      file = try DirectoryFile(path: folder.path + "/\(name).directory")
      try file.share(as: name)
      client = hub.client(name, answers)
      let logger = Logger(label: "directory") { _ in SwiftLogNoOpLogHandler() }
      sync = DirectorySync(file, client, counters, logger: logger, clock: { [hub] in hub.now }) {}
    }

    /// One request and its answer, at the most.
    func step() {
      hub.now = hub.now + .milliseconds(100)
      sync.turn(at: hub.now)
      answers.deliver(to: client)
    }

    /// Until nothing is left to do.
    func run() {
      sync.heard()
      for _ in 0..<20_000 {
        step()
        if sync.isIdle, sync.nextTurn > hub.now + .milliseconds(2_500) { return }
      }
      Issue.record("it comes to no end")
    }

    func change(_ contacts: [Contact], removing numbers: [Int64] = [], in scope: String = "user:alice", at time: Int64) throws {
      _ = try file.take(Self.list(contacts, numbers), into: scope, replaces: false, now: time)
      try sync.changedHere()
    }
    func replace(_ contacts: [Contact], in scope: String = "user:alice", at time: Int64) throws {
      _ = try file.take(Self.list(contacts, []), into: scope, replaces: true, now: time)
      try sync.changedHere()
    }
    private static func list(_ contacts: [Contact], _ removed: [Int64]) throws -> ContactList {
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
    func version(_ scope: String = "user:alice") throws -> Int { try file.standing(scope).version }
  }

  /// A device that goes from node to node, and what it was told.
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

    /// What its directories say at a node.
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
  private let hub = EngineHub()
  init() throws { folder = try Folder() }

  private func nodes(_ count: Int) throws -> [Node] { try (1...count).map { try Node("n\($0)", hub, folder) } }
  private func contact(_ number: Int64, _ label: String, isBlocked: Bool = false) -> Contact {
    Contact(15_550_000_000 + number, label: label, isBlocked: isBlocked)
  }
  private func agree(_ nodes: [Node], _ scope: String = "user:alice") throws {
    for node in nodes + nodes {
      // what was read across a flush is read again
      hub.now = hub.now + Limits.sharedFault
      node.run()
    }
    for node in nodes.dropFirst() {
      #expect(try node.contacts(scope) == nodes[0].contacts(scope))
      #expect(try node.file.standing(scope) == nodes[0].file.standing(scope))
    }
    #expect(try nodes.allSatisfy { try !$0.file.standing(scope).isPending })
  }

  @Test func `an import at one node is at the others under the same version, and a change of it comes as a difference`() throws {
    let all = try nodes(3)
    let many = (1...2_500 as ClosedRange<Int64>).map { contact($0, "Name, \"\($0)\"") }
    try all[0].replace(many, at: 1_000_000)
    try agree(all)
    #expect(try all[2].contacts() == many && all[2].version() == all[0].version())
    var device = Device("phone")
    try device.ask(all[0])
    try all[1].change([contact(5, "Five")], removing: [many[9].number], at: 2_000_000)
    let before = hub.requests
    try agree(all)
    #expect(hub.requests - before < 60, "\(hub.requests - before) requests")
    try device.ask(all[2])
    #expect(try device.numbers == device.expected(all[0]) && device.numbers.count == 2_499 && device.wholes == 1)
    #expect(all[2].counters.fetched.value == 2 && all[1].counters.given.value == 1)
  }

  @Test func `two nodes change one directory at the same time: both changes stay, and of one number the later`() throws {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a"), contact(2, "b"), contact(3, "c")], at: 1_000_000)
    try agree(all)
    try all[0].change([contact(1, "n1"), contact(2, "n1")], at: 2_000_000)
    try all[1].change([contact(2, "n2"), contact(4, "n2")], removing: [15_550_000_003], at: 3_000_000)
    var (first, second) = (Device("first"), Device("second"))
    try first.ask(all[0])
    try second.ask(all[1])
    try agree(all)
    #expect(try all[0].contacts() == [contact(1, "n1"), contact(2, "n2"), contact(4, "n2")])
    // each goes to the other node: what it was told of its own node's is not of a branch that was lost
    try first.ask(all[1])
    try second.ask(all[0])
    #expect(try first.numbers == first.expected(all[0]) && second.numbers == second.expected(all[0]))
    // the later one is here first this time
    try all[1].change([contact(1, "late")], at: 9_000_000)
    try all[0].change([contact(1, "early"), contact(7, "x")], at: 8_000_000)
    all[1].run()
    try agree(all)
    #expect(try all[0].contacts().first == contact(1, "late") && all[0].contacts().contains(contact(7, "x")))
  }

  @Test func `of two whole imports the later stays and nothing of the other; single changes after it stay, those before go`()
    throws
  {
    let all = try nodes(3)
    try all[0].replace([contact(1, "a"), contact(2, "b")], at: 1_000_000)
    try agree(all)
    for isLateFirst in [true, false] {
      let start: Int64 = isLateFirst ? 10_000_000 : 9_000_000_000_000 / 2
      try all[0].replace([contact(10, "early"), contact(11, "early")], at: start)
      if isLateFirst { try all[2].change([contact(30, "before")], at: start + 500_000) }
      try all[1].replace([contact(20, "late")], at: start + 1_000_000)
      if isLateFirst { try all[2].change([contact(31, "after")], at: start + 2_000_000) }
      for node in isLateFirst ? [all[1], all[2], all[0]] : [all[0], all[2], all[1]] { node.run() }
      try agree(all)
      let after = isLateFirst ? [contact(31, "after")] : []
      #expect(try all[0].contacts() == [contact(20, "late")] + after, "late first: \(isLateFirst)")
      try all[0].replace([], at: start + 5_000_000)
      try agree(all)
      #expect(try all[1].contacts().isEmpty && all[1].version() > 0, "an empty directory keeps its version")
    }
  }

  @Test func `the engine is flushed, is away, loses its answers: every directory is there again, and pending changes are given`()
    throws
  {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")], at: 1_000_000)
    try all[1].replace([contact(2, "b", isBlocked: true)], in: "account:work", at: 2_000_000)
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    let versions = try (all[0].version(), all[0].version("account:work"))
    hub.store = EngineStore()
    try all[1].change([contact(3, "c")], at: 3_000_000)
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    #expect(try all[0].version("account:work") == versions.1 && all[0].version() > versions.0)
    #expect(try all[0].contacts() == [contact(1, "a"), contact(3, "c")])
    guard case .success(.directories(let seen)) = hub.answer(.directories(since: 0)) else { return #expect(Bool(false)) }
    #expect(seen.versions.map(\.scope).sorted() == ["account:work", "user:alice"])
    hub.isAway = true
    try all[0].change([contact(4, "d")], at: 4_000_000)
    for _ in 0..<20 { all[0].step() }
    hub.isAway = false
    hub.losesReplies = 0.5
    for _ in 0..<300 { for node in all { node.step() } }
    hub.losesReplies = 0
    try agree(all)
    #expect(try all[1].contacts() == [contact(1, "a"), contact(3, "c"), contact(4, "d")])
  }

  @Test func `more changes than are kept, of an import and in all, come whole; a new node has everything`() throws {
    let all = try nodes(2)
    let many = (1...25_000 as ClosedRange<Int64>).map { contact($0, "n") }
    try all[0].replace(many, at: 1_000_000)
    try agree(all)
    try all[1].replace(many.map { Contact($0.number, label: "m") }, at: 2_000_000)
    try agree(all)
    #expect(try all[0].contacts().allSatisfy { $0.label == "m" })
    for step in 0..<600 as Range<Int64> {
      try all[0].change([contact(step, "s\(step)")], in: "user:bob", at: 3_000_000 + step)
      all[0].run()
    }
    try agree(all, "user:bob")
    let late = try Node("late", hub, folder)
    for scope in ["user:alice", "user:bob"] { try agree([all[0], late], scope) }
    #expect(try late.contacts("user:bob").count == 600)
    guard case .success(.values(let kept, _)) = hub.answer(.directory("user:bob", since: 0, skip: 400)) else {
      return #expect(Bool(false))
    }
    #expect(kept.isEmpty, "once there were \(Cluster.Limits.directoryChangesWritten) changes the whole was written anew")
  }

  @Test func `other accounts, a version of another life, a device that says nothing of its directories: whole, never half`()
    throws
  {
    let all = try nodes(2)
    try all[0].replace([contact(1, "own")], at: 1_000_000)
    try all[0].replace([contact(2, "work")], in: "account:work", at: 500_000)
    for scope in ["user:alice", "account:work"] { try agree(all, scope) }
    var device = Device("phone", accounts: ["work"])
    try device.ask(all[0])
    #expect(device.numbers.count == 2)
    // the version is the user's own in both: it does not tell the one from the other
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
    try all[0].replace([], at: 5_000_000)
    try all[0].replace([], in: "account:work", at: 6_000_000)
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

  @Test func `what a stranger has written into the engine is not taken, traps nothing, and stops nothing else`() throws {
    let all = try nodes(2)
    try all[0].replace([contact(1, "a")], in: "user:bob", at: 1_000_000)
    let texts = [
      "", "1", "1 whole 0 5 1\n", "1 whole 0 99999999999999999999 1\n", "2 whole 0 5 0\n", "1 whole 0 5 -1\n", "1 whole 6 5 1\n",
      "1 change 0 5 part 0 1\n+1,,\n",
      "1 change 0 5 part 1 1\n", "1 change 5 0 part 0 1\n",
      "1 change 0 5 part 0 1\n+15550000001,a,identify",
      String(repeating: "x", count: 5_000), "1 change 0 5 part 0 1\n+15550000001,a,identify\n+15550000001,a,identify\n",
    ]
    for (index, text) in texts.enumerated() {
      let bytes = Array(text.utf8)
      #expect(
        DirectoryText.change(bytes) == nil && (DirectoryText.head(bytes) == nil || text == "1 whole 0 5 1\n"),
        "\(text.prefix(40))")
      for scope in ["user:x\(index)", "nobody\(index)", "user:\u{1}"] {
        for part in [nil, 0] { _ = hub.answer(.stageDirectory("s\(index)", part: part, bytes)) }
        _ = hub.answer(
          .commitDirectory(
            DirectoryCommit(
              scope, from: 0, to: Int64(5 + index), .whole, staged: "s\(index)", parts: 2, isNew: false,
              after: 0)))
      }
    }
    try agree(all, "user:bob")
    #expect(try all[1].contacts("user:bob") == [contact(1, "a")])
    #expect(try all[1].file.directories().map(\.name) == ["user:bob"])
    #expect(all[1].counters.failures.value > 0)
  }

  /// After a flush a device may have contacts of a change that went with the engine: docs/design/cluster.md says so.
  @Test(arguments: 1...12 as ClosedRange<UInt64>, [false, true])
  func `whatever happens in whatever order, in the end all nodes and, without a flush, all devices have the same`(
    seed: UInt64, isFlushed: Bool
  ) throws {
    var random = SplitMix64(seed: seed)
    func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    hub.random = SplitMix64(seed: seed)
    let all = try nodes(3)
    let scopes = ["user:alice", "account:work"]
    var devices = [Device("a", accounts: ["work"]), Device("b", accounts: []), Device("c", accounts: ["work"])]
    var time: Int64 = 1_000
    for step in 0..<300 {
      let node = all[below(3)]
      // clocks differ, and stand
      time += Int64(below(3))
      let at = max(1, time + Int64(below(40)) - 20)
      switch below(10) {
      case 0, 1:
        let contacts = (0..<below(4)).map { _ in contact(Int64(below(12)), "s\(step)", isBlocked: below(3) == 0) }
        let unique = Dictionary(contacts.map { ($0.number, $0) }) { first, _ in first }
        let removed = 15_550_000_020 + Int64(below(3))
        try node.change(unique.values.map(\.self), removing: [removed], in: scopes[below(2)], at: at)
      case 2 where below(3) == 0:
        try node.replace((0..<below(5)).map { contact(Int64($0 + 8), "w\(step)") }, in: scopes[below(2)], at: at)
      case 3 where isFlushed && below(6) == 0: hub.store = EngineStore()
      case 4: hub.losesReplies = below(3) == 0 ? 0.3 : 0
      case 5: hub.isAway = below(5) == 0
      case 6: try devices[below(3)].ask(node)
      default: for _ in 0..<below(20) { node.step() }
      }
    }
    (hub.isAway, hub.losesReplies) = (false, 0)
    for node in all + all { node.run() }
    for scope in scopes { try agree(all, scope) }
    // one more change: a device whose version is that of before hears of it
    try all[below(3)].change([contact(40, "last")], in: "user:alice", at: time + 10_000)
    for scope in scopes { try agree(all, scope) }
    for index in devices.indices where !isFlushed {
      try devices[index].ask(all[below(3)])
      #expect(try devices[index].numbers == devices[index].expected(all[0]), "seed \(seed), device \(index)")
    }
  }
}
