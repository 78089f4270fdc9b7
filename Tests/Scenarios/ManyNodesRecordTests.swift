import AppSessions
import CallFlow
import CallModel
import Cluster
import MemorySharedStore
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// One record of each call, whatever a node has missed while it was without the shared store: it is written if others have not
/// closed the call, once that is known. (Here a lease is 2 s, and `lost_after` 5 s.)
@Suite struct ManyNodesRecordTests {
  private func world(isAnswered: Bool = false, seed: UInt64 = 1) -> (nodes: ManyNodes, call: ManyNodes.EdgeCall) {
    let nodes = ManyNodes(seed: seed)
    nodes.app("phone", at: 0) { if isAnswered { $0.answersAfter = .milliseconds(500) } }
    let call = nodes.call(at: 0)
    nodes.run(.seconds(3), following: call)
    return (nodes, call)
  }

  /// Ends the call at both ends: the caller gives up, or hangs up.
  private func end(_ call: ManyNodes.EdgeCall, isAnswered: Bool, _ nodes: ManyNodes) {
    nodes.worlds[0].now = nodes.now
    if isAnswered { nodes.worlds[0].carrier.hangUp(call.leg) } else { nodes.worlds[0].carrier.cancel(call.leg) }
    nodes.run(.seconds(1))
  }

  @Test(arguments: [false, true], [1, 8, 60])
  func `a call that ends at a node that is cut off, before or after others closed it, has their record only`(
    isAnswered: Bool, after seconds: Int
  ) {
    let (nodes, call) = world(isAnswered: isAnswered)
    nodes.cutOff(0)
    nodes.run(.seconds(seconds))
    end(call, isAnswered: isAnswered, nodes)
    #expect(nodes.worlds[0].records.isEmpty && nodes.worlds[0].journal.count == 1, "its record waits, its line stays")
    nodes.run(.seconds(30))
    #expect(nodes.records.map(\.end.detail) == ["node lost"])
    nodes.mend(0)
    nodes.run(.seconds(15))
    #expect(nodes.records.count == 1 && nodes.worlds[0].records.isEmpty, "\(nodes.records.map(\.end))")
    #expect(nodes.worlds[0].journal.isEmpty && nodes.worlds[0].core.cluster?.unconfirmedEndCount == 0)
    nodes.checkEnd()
  }

  @Test(arguments: [false, true])
  func `a call that no other node closed has its record as it ended, seconds after the shared store is back`(isShort: Bool) throws
  {
    let (nodes, call) = world()
    nodes.sharedStore.goDown(at: nodes.now)
    // shorter than a lease, or longer
    nodes.run(isShort ? .milliseconds(200) : .seconds(60))
    end(call, isAnswered: false, nodes)
    #expect(nodes.records.isEmpty)
    nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now)
    nodes.run(.seconds(8))
    let record = try #require(nodes.records.first)
    #expect(nodes.records.count == 1)
    #expect(record.end.reason == (isShort ? .callerCancelled : .unanswered), "\(record.end)")
    #expect(nodes.sharedStore.store.calls.isEmpty && nodes.worlds[0].journal.isEmpty)
    nodes.checkEnd()
  }

  /// A restore after 0 to 5 s would remove the entry before it is read the second time.
  @Test func `a call that was answered and ended while the shared store was away has its record`() {
    for seed in 1...8 as ClosedRange<UInt64> {
      let (nodes, call) = world(seed: seed)
      nodes.sharedStore.goDown(at: nodes.now)
      nodes.run(.seconds(10))
      nodes.answer("phone")
      nodes.run(.seconds(1))
      #expect(nodes.final(call) == 200)
      end(call, isAnswered: true, nodes)
      nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now)
      nodes.run(.seconds(15))
      #expect(nodes.records.map(\.end.reason) == [.remoteHangup], "seed \(seed)")
    }
  }

  @Test func `a call that the shared store never had is recorded at once`() {
    let nodes = ManyNodes()
    nodes.app("phone", at: 0)
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(3))
    let call = nodes.call(at: 0)
    nodes.run(.seconds(3), following: call)
    end(call, isAnswered: false, nodes)
    #expect(nodes.records.map(\.end.reason) == [.callerCancelled])
  }

  @Test func `a shared store that stays away delays a record for a quarter of an hour, and no longer`() throws {
    let (nodes, call) = world()
    let life = try #require(nodes.worlds[0].core.cluster?.incarnation)
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(1))
    end(call, isAnswered: false, nodes)
    nodes.run(Cluster.Limits.confirmation - .seconds(2))
    #expect(nodes.records.isEmpty)
    nodes.run(.seconds(2))
    #expect(nodes.records.map(\.end.reason) == [.callerCancelled])
    nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now)
    nodes.run(.seconds(15))
    #expect(nodes.sharedStore.store.calls(of: life).isEmpty)
    nodes.checkEnd()
  }

  @Test func `a flushed shared store has no entry: the record is written`() {
    let (nodes, call) = world()
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(1))
    end(call, isAnswered: false, nodes)
    nodes.sharedStore.comeUp(isFlushed: true, at: nodes.now)
    nodes.run(.seconds(3))
    #expect(nodes.records.map(\.end.reason) == [.callerCancelled])
    nodes.checkEnd()
  }

  @Test func `a process that ends in order writes what waits`() {
    let (nodes, call) = world()
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(10))
    end(call, isAnswered: false, nodes)
    nodes.end(0)
    #expect(nodes.records.map(\.end.reason) == [.callerCancelled] && nodes.worlds[0].journal.isEmpty)
    nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now)
    nodes.restart(0)
    nodes.run(.seconds(30))
    #expect(nodes.records.count == 1)
  }

  /// The journal has its line. Other nodes closed the call long ago, or none did.
  @Test(arguments: [false, true])
  func `a process that is killed while a record waits leaves one record, whenever it starts again`(isReaped: Bool) {
    let (nodes, call) = world()
    if isReaped { nodes.cutOff(0) } else { for index in nodes.worlds.indices { nodes.cutOff(index) } }
    nodes.run(.seconds(10))
    end(call, isAnswered: false, nodes)
    nodes.kill(0)
    // longer than a reaper's claim
    nodes.run(.seconds(300))
    #expect(nodes.records.count == (isReaped ? 1 : 0))
    for index in nodes.worlds.indices { nodes.mend(index) }
    nodes.restart(0)
    nodes.run(.seconds(30))
    #expect(nodes.records.count == 1, "\(nodes.records.map(\.end))")
    #expect(nodes.worlds[0].journal.isEmpty)
  }
}
