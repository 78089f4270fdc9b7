import AppSessions
import CallFlow
import CallModel
import Cluster
import Foundation
import PushPolicy
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import trunkline

/// Locations of calls and devices, as the admin port and the commands show them.
@Suite struct ClusterCallsTests {
  private static let own = Incarnation(node: "n2", started: 5)
  private static func node(_ name: String) -> Incarnation { Incarnation(node: name, started: 7) }

  private static func lease(_ incarnation: Incarnation) -> NodeLease {
    NodeLease(incarnation, url: "wss://\(incarnation.node)/v1/connect", sip: "sip:127.0.0.1:5060", version: "1")
  }

  private static func entry(_ number: UInt64, connect: Int64? = nil) -> CallEntry {
    let line = JournalEntry(
      call: CallID(high: 1, low: number), sipCallId: "a\(number)@carrier", direction: .incoming, trunk: "carrier", from: "+1",
      to: "+2",
      user: "alice", start: 1_790_000_000_000, connect: connect)
    return CallEntry(line, users: ["alice"])
  }

  /// A node n2 with its own calls, which sees these others as living.
  private func machine(calls: Range<UInt64> = 0..<0, others: [String]) -> ClusterMachine {
    let settings = ClusterMachine.Settings(
      Self.own, url: "wss://n2/v1/connect", sip: "sip:127.0.0.1:5060", version: "1", configuration: "")
    let now = Instant.zero + .seconds(100)
    var machine = ClusterMachine(settings, random: .seeded(1), at: now)
    var output = ClusterMachine.Output()
    machine.handle(.sharedStore(.connected(wasFlushed: false)), at: now, into: &output)
    let leases = [Self.lease(Self.own)] + others.map { Self.lease(Self.node($0)) }
    for case .sharedStore(let id, .renew) in output.actions {
      machine.handle(.sharedStore(.reply(id, .success(.nodes(leases, hadLease: false, clock: 0)))), at: now, into: &output)
    }
    for number in calls { machine.handle(.started(Self.entry(number).line, users: ["alice"]), at: now, into: &output) }
    return machine
  }

  /// A shared store that answers with these calls, in pages of its own size.
  private final class SharedStore: Sendable {
    let asked = Mutex<[String]>([])
    let calls: [Incarnation: [CallEntry]]
    let size: Int
    let fails: Bool
    init(_ calls: [Incarnation: [CallEntry]], by size: Int = 100, fails: Bool = false) {
      (self.calls, self.size, self.fails) = (calls, size, fails)
    }

    func ask(_ request: SharedStoreRequest, _ answer: SharedStoreQuestions.Answer) {
      guard case .entries(let incarnation, let cursor) = request else { return answer(.failure(.full)) }
      asked.withLock { $0.append("\(incarnation.node) \(cursor)") }
      if fails { return answer(.failure(.away)) }
      let all = calls[incarnation] ?? []
      let end = min(all.count, Int(cursor) + size)
      answer(.success(.entries(Array(all[Int(cursor)..<end]), next: end == all.count ? 0 : UInt64(end))))
    }
  }

  private func page(_ machine: ClusterMachine, _ sharedStore: SharedStore, after: String? = nil) throws -> ClusterCalls {
    let page = Mutex<ClusterCalls?>(nil)
    let position = try after.map { try #require(ClusterCallsReader.Position($0)) }
    let part = ClusterCallsReader.part(after: position, at: machine.incarnation)
    let sight = machine.sight(part, most: 256, at: .zero + .seconds(100))
    ClusterCallsReader(sight, after: position, ask: { sharedStore.ask($0, $1) }) { read in page.withLock { $0 = read } }.read()
    return try #require(page.withLock { $0 })
  }

  /// All pages, as a client would read them.
  private func pages(_ machine: ClusterMachine, _ sharedStore: SharedStore) throws -> [ClusterCalls] {
    var out = [try page(machine, sharedStore)]
    while let next = out.last?.next, out.count < 100 { out.append(try page(machine, sharedStore, after: next)) }
    return out
  }

  @Test func `pages are bounded, and together every call of every node, once`() throws {
    let machine = machine(calls: 0..<250, others: ["n1", "n3"])
    let sharedStore = SharedStore([
      Self.node("n1"): (1_000..<1_230).map { Self.entry($0) }, Self.node("n3"): [Self.entry(5_000, connect: 5)],
    ])
    let pages = try pages(machine, sharedStore)
    let rows = pages.flatMap(\.calls)
    #expect(pages.allSatisfy { $0.calls.count < 2 * ClusterCallsReader.calls && !$0.partial } && pages.count > 4)
    #expect(rows.count == 481 && Set(rows.map(\.call)).count == 481)
    #expect(rows.map(\.node) == Array(repeating: "n1", count: 230) + Array(repeating: "n2", count: 250) + ["n3"])
    #expect(rows.last?.state == "connected" && rows.first?.state == "ringing")
    #expect(rows.allSatisfy { $0.liveness == "living" && $0.url == "wss://\($0.node)/v1/connect" })
  }

  @Test func `many nodes without calls are several pages, of so many questions each`() throws {
    let names = (0..<200).map { "a\(String(format: "%03d", $0))" }
    let sharedStore = SharedStore([Self.node("a199"): [Self.entry(1)]])
    let pages = try pages(machine(others: names), sharedStore)
    #expect(pages.count == 4 && pages.flatMap(\.calls).map(\.node) == ["a199"])
    #expect(sharedStore.asked.withLock { $0.count } == 200, "each is asked once")
  }

  @Test func `a node that went between two pages is passed over, and its successor is read whole`() throws {
    let sharedStore = SharedStore([Self.node("n3"): (0..<3).map { Self.entry($0) }])
    let machine = machine(others: ["n3"])
    let read = try page(machine, sharedStore, after: "n1.4:77")
    #expect(read.calls.count == 3 && read.next == nil)
    #expect(sharedStore.asked.withLock { $0 } == ["n3 0"])
    #expect(try page(machine, sharedStore, after: "n9.4:77").calls.isEmpty)
  }

  @Test func `without the shared store: the calls of this node, marked as partial`() throws {
    let sharedStore = SharedStore([:], fails: true)
    let read = try page(machine(calls: 0..<3, others: ["n1", "n3"]), sharedStore)
    #expect(read.partial && read.calls.count == 3 && read.next == nil && read.asked == "n2")
    #expect(sharedStore.asked.withLock { $0 } == ["n1 0"], "nobody else is asked")
  }

  @Test(arguments: [
    "", "n1", "n1.4", "n1.4:x", "n1:4", ".4:1", "n1.4:00000000-0000", String(repeating: "n", count: 200) + ".1:1",
  ])
  func `an invalid position is refused`(text: String) { #expect(ClusterCallsReader.Position(text) == nil) }

  @Test func `a url of two nodes is found, and shown beside both`() {
    func lease(_ name: String, _ url: String) -> NodeLease {
      var lease = Self.lease(Self.node(name))
      lease.url = url
      return lease
    }
    let leases = [lease("n1", "wss://x"), lease("n2", "wss://x"), lease("n3", "wss://y")]
    #expect(NodeLease.sharing("wss://x", among: leases, but: Self.node("n1")) == ["n2"])
    #expect(NodeLease.sharing("wss://y", among: leases, but: Self.node("n3")).isEmpty)
    #expect(
      NodeLease.sharing("wss://x", among: leases, but: Incarnation(node: "n1", started: 8)) == ["n2"], "not its own last life")
    let rows = zip(leases, ["living", "draining", "living"]).map { lease, liveness in
      NodeRow(
        node: lease.incarnation.node, own: false, liveness: liveness, started: 0, url: lease.url, sip: "", calls: 0, sessions: 0,
        version: "1", differs: false)
    }
    let text = NodeTable.render(ClusterStatus(state: "up", leads: [], nodes: rows)).split(separator: "\n")
    #expect(text.filter { $0.hasSuffix("wss://x (of two nodes)") }.count == 2, "\(text)")
  }

  // MARK: a user

  private static func whereabouts(_ device: String, _ incarnation: Incarnation) -> Whereabouts {
    Whereabouts(
      DeviceKey(user: "alice", device: device), at: incarnation, session: SessionID("s-\(device)"), state: .bg, caps: ["nodes"],
      accounts: ["work"])
  }

  @Test func `a user's devices: at the asked node by its own table, elsewhere by the shared store, at a dead one as gone`() {
    let view = ClusterView(machine(others: ["n1"]).sight(.nodes, most: 256, at: .zero + .seconds(100)))
    var found = LocatedUser("alice")
    // an entry of the shared store for a device that is no longer here does not count
    found.whereabouts = [
      Self.whereabouts("cell", Self.node("n1")), Self.whereabouts("old", Incarnation(node: "n1", started: 3)),
      Self.whereabouts("stale", Self.own),
    ]
    found.calls = [
      CallLocation(CallID(high: 0, low: 1), at: Self.node("n1"), .outgoing),
      CallLocation(CallID(high: 0, low: 2), at: Self.own, .incoming),
    ]
    var mine = LocatedUser("alice")
    mine.whereabouts = [Self.whereabouts("desk", Self.own)]
    mine.calls = [CallLocation(CallID(high: 0, low: 3), at: Self.own, .incoming)]
    let locations = UserLocations("alice", found, mine: mine, registered: [], view)
    #expect(locations.devices.map(\.device) == ["cell", "desk", "old"])
    #expect(
      locations.devices.map(\.node) == ["n1", "n2", "n1"] && locations.devices.map(\.liveness) == ["living", "living", "gone"])
    #expect(
      locations.devices[0].caps == ["nodes"] && locations.devices[0].state == "bg" && locations.devices[0].accounts == ["work"])
    #expect(
      locations.calls.map(\.node) == ["n1", "n2"] && locations.calls.map { $0.call.suffix(1) } == ["1", "3"] && !locations.partial
    )
    let alone = UserLocations("alice", nil, mine: mine, registered: [], view)
    #expect(alone.partial && alone.devices.map(\.device) == ["desk"] && alone.calls.count == 1)
    let text = LocationTable.render(locations)
    #expect(text.contains("n1 (gone)") && text.contains("s-desk") && text.contains("out"))
    let nothing = UserLocations("bob", LocatedUser("bob"), mine: LocatedUser("bob"), registered: [], view)
    #expect(LocationTable.render(nothing) == "no device of bob is connected or registered\n\nbob has no live call")
  }
}
