import AppSessions
import CallFlow
import CallModel
import Cluster
import MemorySharedStore
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Store

/// Histories of a cluster, over a shared store in memory.
@Suite struct SharedHistoryTests {
  private final class Heard { var list: [(user: String, row: Int64)] = [] }
  private let hub = SharedStoreHub()
  private let answers = SharedStoreHub.Answers()
  private let counters = DirectoryCounters()
  private let client: SharedStoreClient
  private let history: SharedHistory
  private let heard = Heard()

  init() {
    client = hub.client("n1", answers)
    history = SharedHistory(client, settings: HistorySettings(), counters: counters) { [heard] in heard.list.append(($0, $1)) }
  }

  private func record(_ number: UInt64, _ more: (inout CallRecord) -> Void = { _ in }) -> CallRecord {
    var record = CallRecord(orphan: journalEntry(number, start: Int64(number) * 1_000), at: Int64(number) * 1_000 + 500)
    record.end = .init(.callerCancelled, by: .trunk)
    more(&record)
    return record
  }
  private func turn() {
    hub.now = hub.now + .seconds(3)
    history.step(at: hub.now)
    answers.deliver(to: client)
  }
  private func page(_ list: HistoryList = HistoryList(), of user: String = "alice") -> HistoryPage? {
    var found: HistoryPage?
    history.page(list, of: user, at: hub.now) { found = $0 }
    answers.deliver(to: client)
    return found
  }

  @Test func `a call is a row of each user whom it was for, at once, and nodes of their devices are told`() throws {
    let whereabouts = Whereabouts(
      DeviceKey(user: "bob", device: "phone"), at: Incarnation(node: "n2", started: 1), session: SessionID("s"))
    _ = hub.answer(.enter(whereabouts))
    history.add([record(1) { $0.otherUsers = ["bob"] }, record(1)])
    turn()
    #expect(Set(heard.list.map(\.user)) == ["alice", "bob"] && heard.list.count == 2, "the second record of a call adds nothing")
    let told = hub.store.published
    #expect(told.count == 1 && told[0].to == "n2")
    let row = try #require(heard.list.first { $0.user == "bob" }?.row)
    #expect(told[0].message == .history(user: "bob", row: row))
    let mine = try #require(page()?.calls.first)
    #expect(mine.outcome == .missed && mine.reason == .callerCancelled && mine.start == 1_000 && mine.end == 1_500)
    #expect(mine.peer.k == .phone && mine.dir == .incoming && mine.call == CallID(high: 1, low: 1))
    #expect(counters.calls.value == 2)
  }

  @Test func `pages go back to the oldest of 200`() throws {
    for number in 1...230 as ClosedRange<UInt64> {
      history.add([record(number)])
      turn()
    }
    var (list, seen) = (HistoryList(limit: 45), [HistoryEntry]())
    while true {
      let page = try #require(self.page(list))
      seen += page.calls
      guard let next = page.next else { break }
      list.before = next
    }
    #expect(seen.count == 200 && seen.map(\.id) == seen.map(\.id).sorted(by: >) && seen.first?.start == 230_000)
    history.settings.keep = .seconds(91)
    #expect(try #require(page()).calls.count == 31, "older ones than are kept")
    history.settings.perUser = 0
    history.add([record(900)])
    turn()
    #expect(counters.calls.value == 230)
  }

  @Test func `rows wait for the shared store, a bounded number of them, and none is added twice`() throws {
    hub.isAway = true
    history.add((1...UInt64(Limits.waitingHistory) + 5).map { record($0) { $0.user = "u\($0.call.description.suffix(4))" } })
    #expect(counters.lost.value == 5)
    for _ in 0..<3 { turn() }
    #expect(counters.calls.value == 0 && counters.lost.value == 5)
    #expect(page() == nil, "never an empty page")
    hub.isAway = false
    hub.losesReplies = 0.3
    for _ in 0..<3_000 where counters.calls.value < 10 || heard.list.count < 10 { turn() }
    hub.losesReplies = 0
    for _ in 0..<400 { turn() }
    let users = Set((1...UInt64(Limits.waitingHistory)).map { "u\(CallID(high: 1, low: $0).description.suffix(4))" })
    #expect(users.allSatisfy { page(of: $0)?.calls.isEmpty == false })
    #expect(counters.lost.value == 5)
  }

  @Test func `erased, at all nodes; without an answer nobody says so`() throws {
    history.add([record(1), record(2)])
    turn()
    var counts: [Int?] = []
    hub.isAway = true
    history.erase("alice", at: hub.now) { counts.append($0) }
    answers.deliver(to: client)
    hub.isAway = false
    history.erase("alice", at: hub.now) { counts.append($0) }
    answers.deliver(to: client)
    #expect(counts == [nil, 2])
    #expect(hub.store.published.last?.message == .history(user: "alice", row: 0) && heard.list.last?.row == 0)
    #expect(try #require(page()).calls.isEmpty)
  }

  @Test func `a row that was under way when its user was erased does not come back`() throws {
    history.add([record(1)])
    hub.isAway = true
    hub.now = hub.now + .seconds(3)
    history.step(at: hub.now)
    hub.isAway = false
    history.erase("alice", at: hub.now) { _ in }
    answers.deliver(to: client)
    for _ in 0..<3 { turn() }
    #expect(try #require(page()).calls.isEmpty && counters.calls.value == 0)
  }

  @Test func `rows that no node has written are left out and counted`() throws {
    let texts = [
      "}", #""c":1}"#, #""v":1,"c":"00000000-0000-4000-8000-000000000001"}"#, String(repeating: "[", count: 6_000),
      #""v":99,"c":"00000000-0000-4000-8000-000000000001","d":"in","p":"+1","s":1,"e":1,"o":"missed","r":"unknown"}"#,
      #""v":1,"c":"00000000-0000-4000-8000-000000000001","d":"in","p":"a\u0007","s":1,"e":1,"o":"missed","r":"unknown"}"#,
      #""v":1,"c":"00000000-0000-4000-8000-000000000001","d":"in","p":"+1","s":-1,"e":1,"o":"missed","r":"unknown"}"#,
    ]
    for (index, text) in texts.enumerated() {
      let call = CallID(high: 7, low: UInt64(index))
      _ = hub.answer(.addHistory(call, user: "alice", row: Array(text.utf8), most: 200, keep: .seconds(1_000)))
    }
    history.add([record(1)])
    turn()
    #expect(try #require(page()).calls.count == 1)
    #expect(counters.failures.value == UInt64(texts.count))
  }
}
