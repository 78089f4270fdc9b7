import Cluster
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import Store

/// Imports that meet, and a shared store that dies, refuses, loses or is written by strangers.
extension DirectorySyncTests {
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
    var results: [DirectoryNode.Result?] = [nil, nil]
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
    var (result, commits) = (nil as DirectoryNode.Result?, 0)
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
    var device = MovingDevice("phone", accounts: [])
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
}
