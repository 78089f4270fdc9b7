import CallFlow
import CallModel
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
    return (sync, step)
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
    #expect(step.others.count == 1 && step.statistics.grantsRead == 1)
  }

  @Test func `a page with more to follow is continued from its position, and all rows are passed on together`() {
    var (sync, step) = (GrantSync(spread: .seconds(5)), Step.at(1))
    sync.turn(on: true, nodes: 3, &step)
    sync.read(page([erased("alice", at: 1)], position: 4, hasMore: true), nodes: 3, &step)
    #expect(step.sent == [.grants(since: 0), .grants(since: 4)] && step.others.isEmpty)
    sync.read(page([erased("alice", at: 2), erased("bob", at: 3)], position: 6), nodes: 3, &step)
    #expect(step.statistics.grantsRead == 2 && step.others.count == 1)
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
}
