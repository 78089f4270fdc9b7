import CallFlow
import CallModel
import JSONWebToken
import Synchronization
import Testing
import TrunklineBytes

@testable import Cluster

/// The machine of grants alone; `GrantTests` has it in nodes over a shared store.
@Suite struct GrantSyncTests {
  private func erased(_ user: String, at time: Int64) -> SharedGrant {
    SharedGrant(user: user, grant: nil, issuedAt: time, seen: 0)
  }
  private func page(_ rows: [SharedGrant], position: Int64, hasMore: Bool = false, epoch: String = "e")
    -> Result<SharedStoreReply, SharedStoreFailure>
  {
    var page = GrantPage()
    (page.rows, page.position, page.hasMore, page.epoch, page.last) = (rows, position, hasMore, epoch, position)
    return .success(.grants(page))
  }
  /// Claims are configured, and all rows were read and applied.
  private func synced() -> (sync: GrantSync, step: Step) {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.turn(on: true, nodes: 3, &step)
    sync.read(page([], position: 4), nodes: 3, &step)
    apply(&sync, &step)
    return (sync, step)
  }
  /// The steps that follow a full read.
  private func apply(_ sync: inout GrantSync, _ step: inout Step) {
    sync.compared(nodes: 3, &step)
    var time = Double(step.now.nanoseconds) / 1e9
    for _ in 0..<3 {
      time += 0.02
      var later = Step.at(time, after: step)
      (later.actions, later.statistics) = (step.actions, step.statistics)
      sync.resume(nodes: 3, &later)
      step = later
    }
  }

  @Test func `without claims no grant is put or read`() {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.share([erased("alice", at: 1)], nodes: 3, &step)
    sync.compare(nodes: 3, &step)
    sync.announced(nodes: 3, &step)
    sync.resume(nodes: 3, &step)
    #expect(step.actions.isEmpty && step.due.isEmpty && sync.waiting == 0)
  }

  @Test func `one request at a time, and replies that no request waits for are ignored`() {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.read(page([erased("eve", at: 9)], position: 9), nodes: 3, &step)
    #expect(step.actions.isEmpty)
    sync.turn(on: true, nodes: 3, &step)
    sync.resume(nodes: 3, &step)
    #expect(step.sent == [.grants(since: 0)])
    sync.read(page([erased("alice", at: 1)], position: 4), nodes: 3, &step)
    sync.read(page([erased("eve", at: 9)], position: 9), nodes: 3, &step)
    apply(&sync, &step)
    #expect(step.statistics.grantsRead == 1)
  }

  @Test func `a page with more to follow is continued from its position, and all rows are passed on together`() {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.turn(on: true, nodes: 3, &step)
    sync.read(page([erased("alice", at: 1)], position: 4, hasMore: true), nodes: 3, &step)
    #expect(step.sent == [.grants(since: 0), .grants(since: 4)] && step.others.isEmpty)
    sync.read(page([erased("alice", at: 2), erased("bob", at: 3)], position: 6), nodes: 3, &step)
    apply(&sync, &step)
    #expect(step.statistics.grantsRead == 2 && step.rows.map(\.user) == ["bob", "alice"])
  }

  @Test func `rows of another epoch, or positions that go back, are read again from the beginning`() {
    for (position, epoch) in [(9, "other"), (2, "e")] as [(Int64, String)] {
      var (sync, step) = synced()
      step = Step.at(2, after: step)
      sync.announced(nodes: 3, &step)
      #expect(step.sent == [.grants(since: 4)])
      sync.read(page([erased("alice", at: 1)], position: position, epoch: epoch), nodes: 3, &step)
      #expect(step.sent == [.grants(since: 4), .grants(since: 0)] && step.others.isEmpty)
    }
  }

  @Test func `of two grants of a user the later token is put, whichever came first`() {
    for order in [[1, 2], [2, 1], [2, 2]] as [[Int64]] {
      var (sync, step) = synced()
      step = Step.at(2, after: step, connected: false)
      for time in order { sync.share([erased("alice", at: time)], nodes: 3, &step) }
      #expect(step.actions.isEmpty && sync.waiting == 1)
      step = Step.at(3, after: step)
      sync.resume(nodes: 3, &step)
      #expect(step.sent == [.putGrants([erased("alice", at: 2)])] && sync.waiting == 0)
    }
  }

  @Test func `a put that failed is made again a second later, and one that succeeded is announced and read`() {
    var (sync, step) = synced()
    step = Step.at(2, after: step)
    let batch = [erased("alice", at: 1)]
    sync.share(batch, nodes: 3, &step)
    sync.put(batch, .failure(.timeout), nodes: 3, &step)
    #expect(sync.waiting == 1 && step.sent == [.putGrants(batch)] && step.timers.next == seconds(3))
    step = Step.at(3, after: step)
    sync.resume(nodes: 3, &step)
    sync.put(batch, .success(.grantsPut(1, others: [])), nodes: 3, &step)
    #expect(step.sent == [.putGrants(batch), .grants(since: 4), .broadcast(.grants)])
    // the same reply again
    sync.put(batch, .success(.grantsPut(0, others: [])), nodes: 3, &step)
    #expect(step.sent.count == 3)
  }

  @Test func `a new connection puts the grants of the last minute again, and no older ones`() {
    for (time, isRepeated) in [(30.0, true), (90.0, false)] {
      var (sync, step) = synced()
      let batch = [erased("alice", at: 1)]
      sync.share(batch, nodes: 3, &step)
      sync.put(batch, .success(.grantsPut(0, others: [])), nodes: 3, &step)
      step = Step.at(time, after: step)
      sync.compare(nodes: 3, &step)
      #expect(step.sent == [.grants(since: 0)], "the read that is due precedes the next put")
      sync.read(page([], position: 4), nodes: 3, &step)
      apply(&sync, &step)
      #expect(step.sent.contains(.putGrants(batch)) == isRepeated && sync.waiting == 0)
    }
  }

  @Test func `no reply at all: nothing else is sent until one comes`() {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.turn(on: true, nodes: 3, &step)
    for time in 2..<40 {
      step = Step.at(Double(time), after: step)
      sync.resume(nodes: 3, &step)
      #expect(step.sent.isEmpty && step.due == [.grants])
    }
    sync.read(.failure(.timeout), nodes: 3, &step)
    step = Step.at(41, after: step)
    sync.resume(nodes: 3, &step)
    #expect(step.sent == [.grants(since: 0)])
  }

  // MARK: in steps

  private func grant(_ index: Int, at time: Int64) -> SharedGrant {
    SharedGrant(user: "u\(index)", grant: TokenGrant(numbers: ["+\(index)"], issuedAt: time), issuedAt: time, seen: 0)
  }

  @Test func `rows of 200,000 users are sorted while they are read and passed on, a few comparisons for each`() {
    var (heap, random) = (Heap<Counted>(), SplitMix64(seed: 4))
    let (count, page) = (Limits.grants, Limits.grantsPerRead)
    let values = (0..<count).map { _ in Int.random(in: 0..<1_000_000, using: &random) }
    func comparisons(_ body: () -> Void) -> Int {
      let before = Counted.comparisons.withLock { $0 }
      body()
      return Counted.comparisons.withLock { $0 } - before
    }
    var most = 0
    for start in stride(from: 0, to: count, by: page) {
      most = max(most, comparisons { for value in values[start..<start + page] { heap.insert(Counted(value: value)) } })
    }
    // 18 doublings
    #expect(most <= page * 18)
    var popped: [Int] = []
    for _ in stride(from: 0, to: count, by: 500) {
      most = comparisons { for _ in 0..<500 { popped.append(heap.popFirst()?.value ?? 0) } }
      #expect(most <= 500 * 2 * 18)
    }
    #expect(heap.popFirst() == nil && popped == values.sorted())
  }
  private struct Counted: Comparable {
    static let comparisons = Mutex(0)
    let value: Int
    static func < (a: Counted, b: Counted) -> Bool {
      comparisons.withLock { $0 += 1 }
      return a.value < b.value
    }
  }

  @Test func `a full read is compared first, then its rows follow in steps, the latest token first, and no request meanwhile`() {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.turn(on: true, nodes: 3, &step)
    for first in stride(from: 0, to: 1_200, by: 200) {
      let rows = (first..<first + 200).map { grant($0, at: Int64($0)) }
      sync.read(page(rows, position: Int64(first + 200), hasMore: first < 1_000), nodes: 3, &step)
    }
    guard case .grants(.comparison(let known))? = step.actions.last, known.count == 1_200, known["u7"] == 7 else {
      Issue.record("\(step.others.count) actions")
      return
    }
    var time = 1.02
    for _ in 0..<3 {
      step = Step.at(time, after: step)
      sync.announced(nodes: 3, &step)
      sync.share([grant(2_000, at: 1)], nodes: 3, &step)
      #expect(step.others == ["grants(CallModel.SharedGrants.comparisonStep)"] && step.sent.isEmpty, "no more than one in a step")
      time += 0.02
    }
    sync.compared(nodes: 3, &step)
    var users: [String] = []
    for count in [500, 500, 200] {
      step = Step.at(time, after: step)
      sync.resume(nodes: 3, &step)
      #expect(step.rows.count == count)
      users += step.rows.map(\.user)
      time += 0.02
    }
    #expect(users == (0..<1_200).reversed().map { "u\($0)" } && step.sent.count == 1)
  }

  @Test
  func `grants that wait to be written are known to a comparison, however many there are, also those that arrive meanwhile`() {
    var (sync, step) = synced()
    step = Step.at(5, after: step, connected: false)
    sync.share((0..<1_100).map { grant($0, at: 5) }, nodes: 3, &step)
    step = Step.at(6, after: step)
    sync.compare(nodes: 3, &step)
    var next = 0
    while next < step.sent.count {
      switch step.sent[next] {
      case .putGrants(let batch): sync.put(batch, .success(.grantsPut(0, others: [])), nodes: 3, &step)
      default: sync.read(page([], position: 4), nodes: 3, &step)
      }
      next += 1
    }
    #expect(next == 2 && sync.waiting == 1_100 - 32, "no further request before the rows are applied")
    var known: [[String: Int64]] = []
    for time in 1...4 {
      step = Step.at(6 + Double(time) * 0.02, after: step)
      if time == 2 {
        sync.share([grant(500, at: 7), grant(2_000, at: 7)], nodes: 3, &step)
      } else {
        sync.resume(nodes: 3, &step)
      }
      for case .grants(.comparison(let all)) in step.actions { known.append(all) }
    }
    #expect(known.count == 1 && known[0].count == 1_100 - 32 + 1)
    #expect(known[0]["u1099"] == 5 && known[0]["u500"] == 7 && known[0]["u2000"] == 7)
  }

  @Test func `puts of the last minute are repeated in steps of 500`() {
    var (sync, step) = synced()
    step = Step.at(5, after: step)
    let all = (0..<1_200).map { grant($0, at: 5) }
    sync.share(all, nodes: 3, &step)
    var time = 5.0
    for _ in 0..<400 where sync.waiting > 0 || !step.sent.isEmpty {
      let requests = step.sent
      time += 0.02
      step = Step.at(time, after: step)
      for request in requests {
        if case .putGrants(let batch) = request { sync.put(batch, .success(.grantsPut(0, others: [])), nodes: 3, &step) }
        if case .grants = request { sync.read(page([], position: 4), nodes: 3, &step) }
      }
      sync.resume(nodes: 3, &step)
    }
    #expect(sync.waiting == 0)
    step = Step.at(time + 1, after: step, connected: false)
    step = Step.at(time + 1, after: step)
    sync.compare(nodes: 3, &step)
    #expect(sync.waiting <= 500 && sync.waiting > 400)
  }

  // MARK: restoring

  @Test func `a batch is confirmed when the shared store has it, and not before what was read is applied`() {
    var (sync, step) = synced()
    step = Step.at(5, after: step)
    sync.restore([], nodes: 3, &step)
    #expect(step.others == ["grantsRestored(users: 0, hasFailed: false)"])
    let batch = (0..<40).map { grant($0, at: 5) }
    step = Step.at(6, after: step)
    sync.restore(batch, nodes: 3, &step)
    guard case .putGrants(let first)? = step.sent.last, first.count == 32 else {
      Issue.record("\(step.sent)")
      return
    }
    sync.put(first, .success(.grantsPut(32, others: [])), nodes: 3, &step)
    #expect(step.others.isEmpty && step.sent.last != step.sent.first)
    sync.read(page(first, position: 40), nodes: 3, &step)
    sync.put(Array(batch[32...]), .success(.grantsPut(8, others: [])), nodes: 3, &step)
    #expect(step.others.last == "grantsRestored(users: 40, hasFailed: false)")
  }

  @Test func `a put that fails, a lost connection and claims that are turned off end the pass, and each batch has one answer`() {
    for end in 0..<4 {
      var (sync, step) = synced()
      step = Step.at(5, after: step)
      let batch = (0..<40).map { grant($0, at: 5) }
      sync.restore(batch, nodes: 3, &step)
      sync.put(Array(batch[..<32]), .success(.grantsPut(0, others: [])), nodes: 3, &step)
      switch end {
      case 0: sync.put(Array(batch[32...]), .failure(.timeout), nodes: 3, &step)
      case 1: sync.disconnected(&step)
      case 2: sync.turn(on: false, nodes: 3, &step)
      default:
        sync.put(Array(batch[32...]), .failure(.timeout), nodes: 3, &step)
        sync.disconnected(&step)
      }
      #expect(step.others == ["grantsRestored(users: 32, hasFailed: true)"], "\(end)")
      step = Step.at(6, after: step, connected: false)
      sync.restore(batch, nodes: 3, &step)
      #expect(step.others == ["grantsRestored(users: 0, hasFailed: true)"])
    }
  }

  @Test func `a token or an erasure that arrives after the batch is put instead, and does not count as restored`() {
    var (sync, step) = synced()
    step = Step.at(5, after: step)
    sync.share([erased("first", at: 1)], nodes: 3, &step)
    sync.restore([grant(0, at: 5), grant(1, at: 5), grant(2, at: 5)], nodes: 3, &step)
    sync.share([grant(0, at: 9), erased("u1", at: 9)], nodes: 3, &step)
    sync.put([erased("first", at: 1)], .success(.grantsPut(0, others: [])), nodes: 3, &step)
    // the number of the erased user may be an earlier owner's in the shared store
    #expect(step.sent.last == .grants(since: 0))
    sync.read(page([], position: 4), nodes: 3, &step)
    apply(&sync, &step)
    guard case .putGrants(let put)? = step.sent.last else {
      Issue.record("\(step.others) \(step.sent)")
      return
    }
    #expect(put.map(\.issuedAt).sorted() == [5, 9, 9] && put.first { $0.user == "u1" }?.grant == nil)
    sync.put(put, .success(.grantsPut(0, others: [])), nodes: 3, &step)
    #expect(step.others.last == "grantsRestored(users: 1, hasFailed: false)")
  }
}

extension Step {
  /// Rows that were passed on.
  fileprivate var rows: [SharedGrant] {
    actions.flatMap { if case .grants(.rows(let rows, _)) = $0 { rows } else { [] as [SharedGrant] } }
  }
}
