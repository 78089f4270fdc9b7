import Cluster
import Foundation
import Logging
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import Store

/// Directories of several nodes over one shared store in memory, without threads or time: each node has its file, and takes its
/// steps.
@Suite struct DirectorySyncTests {
  let folder: Folder
  let hub = SharedStoreHub()
  init() throws { folder = try Folder() }

  func nodes(_ count: Int) throws -> [DirectoryNode] { try (1...count).map { try DirectoryNode("n\($0)", hub, folder) } }
  func contact(_ number: Int64, _ label: String, isBlocked: Bool = false) -> Contact {
    Contact(15_550_000_000 + number, label: label, isBlocked: isBlocked)
  }
  func agree(_ nodes: [DirectoryNode], _ scope: String = "user:alice") throws {
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
  func reconnect(_ nodes: [DirectoryNode]) {
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
    var device = MovingDevice("phone")
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

  @Test
  func `a node two versions behind gets the last one; a device of the version between gets the whole, the others what differs`()
    throws
  {
    let all = try nodes(3)
    try all[0].replace([contact(1, "a"), contact(2, "b")])
    try agree(all)
    var devices = [MovingDevice("before", accounts: []), MovingDevice("between", accounts: [])]
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
    var device = MovingDevice("phone", accounts: ["work"])
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
    let late = try DirectoryNode("late", hub, folder)
    let own = try late.file.write(DirectoryNode.list([contact(9, "own")], []), into: "user:alice", replaces: true, now: 7)
    #expect(own.entries == 1)
    _ = try late.file.write(DirectoryNode.list([contact(8, "own")], []), into: "user:bob", replaces: true, now: 8)
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
    var device = MovingDevice("phone", accounts: ["work"])
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

  @Test(arguments: 1...12 as ClosedRange<UInt64>, [false, true])
  func `whatever happens in whatever order, in the end all nodes have the shared store's, and devices what the nodes have`(
    seed: UInt64, isLossy: Bool
  ) throws {
    var random = SplitMix64(seed: seed)
    func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    hub.random = SplitMix64(seed: seed)
    let all = try nodes(3)
    let scopes = ["user:alice", "account:work"]
    var devices = [MovingDevice("a", accounts: ["work"]), MovingDevice("b", accounts: []), MovingDevice("c", accounts: ["work"])]
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

  // MARK: dropped parts

  /// Parts that do not expire: those of the current versions, and those that wait.
  private func parts() -> Set<String> { hub.store.directoryParts(at: hub.now + Cluster.Limits.staged + .seconds(1)) }
  private func served(_ node: DirectoryNode) throws -> Set<String> { Set(try node.file.partNames("user:alice").map(\.name)) }

  @Test func `what an import drops can be read for a minute more, and then is gone`() throws {
    let all = try nodes(2)
    try all[0].replace((0..<3_000 as Range<Int64>).map { contact($0, "x") })
    try agree(all)
    let before = try served(all[0])
    #expect(parts() == before)
    try all[1].replace([contact(1, "y")])
    #expect(parts().isSuperset(of: before), "the import is answered first")
    try agree(all)
    #expect(try parts() == served(all[1]) && hub.store.directoryParts(at: hub.now).isSuperset(of: before))
  }

  @Test func `dropped parts expire 200 at a time, whichever node finds them`() throws {
    let names = (0..<450).map { "p\($0)" }
    for start in stride(from: 0, to: names.count, by: 50) {
      _ = hub.answer(.stageDirectoryParts(names[start..<start + 50].map { DirectoryPiece($0, [120]) }))
    }
    _ = hub.answer(.commitDirectory(DirectoryCommit("user:zed", from: 0, to: 10, head: [], made: names)))
    _ = hub.answer(.commitDirectory(DirectoryCommit("user:zed", from: 10, to: 20, head: [], made: [], dropped: names)))
    #expect(parts() == Set(names))
    var left: [Int] = []
    hub.loses = { [hub] request in
      if case .expireDirectoryParts = request { left.append(hub.store.directoryParts(at: hub.now + .seconds(61)).count) }
      return false
    }
    for node in try nodes(2) { node.run() }
    #expect(left == [250, 50, 0, 0] && parts().isEmpty)
  }

  @Test(arguments: [0, 1])
  func `an importer that dies after its commit leaves parts that its next connection, or the next import, lets expire`(heir: Int)
    throws
  {
    let all = try nodes(2)
    try all[0].replace((0..<3_000 as Range<Int64>).map { contact($0, "x") })
    try agree(all)
    hub.diesAt = { request in if case .expireDirectoryParts = request { true } else { false } }
    try all[0].replace([contact(1, "y")])
    for _ in 0..<5 { all[0].step() }
    let waiting = parts().count
    (hub.isAway, hub.diesAt) = (false, { _ in false })
    #expect(waiting > 1)
    if heir == 0 {
      all[0].sync.reconnected()
      all[0].run()
    } else {
      try all[1].change([contact(2, "z")])
      all[1].run()
    }
    #expect(try parts() == served(all[heir]))
  }
}
