import Testing
import TrunklineBytes

@testable import Cluster

@Suite struct PeerTests {
  @Test func `a lease that the next renewal does not show is lost, once`() {
    var peers = Peers()
    #expect(peers.see([lease(other), lease(third)], askedAt: seconds(1)).lost.isEmpty && peers.count == 2)
    #expect(peers.see([lease(third, draining: true)], askedAt: seconds(3)).lost == [lease(other)])
    #expect(peers.see([lease(third)], askedAt: seconds(5)).lost.isEmpty)
    #expect(!peers.isFit(other) && peers.isFit(third) && peers.has(name: "n2") && !peers.has(name: "n1"))
  }

  @Test func `a new incarnation of a name replaces the one before, and no other node`() {
    var peers = Peers()
    let next = Incarnation(node: "n1", started: 9)
    _ = peers.see([lease(other)], askedAt: .zero)
    #expect(peers.see([lease(next)], askedAt: .zero).lost == [lease(other)])
    #expect(peers.isReplaced(other) && !peers.isReplaced(next) && !peers.isReplaced(third))
  }

  @Test func `an unknown incarnation is long dead if a renewal that was asked for later does not show it`() {
    var peers = Peers()
    #expect(peers.meet(other, at: seconds(2)) && !peers.meet(other, at: seconds(3)) && peers.meet(third, at: seconds(2)))
    #expect(peers.see([lease(third)], askedAt: seconds(1)).departed.isEmpty)
    #expect(peers.see([lease(third)], askedAt: seconds(2)).departed == [other])
    #expect(peers.see([], askedAt: seconds(9)).departed.isEmpty)
  }

  @Test func `early messages are dequeued once, in order, and no more than the limit are kept`() {
    var peers = Peers()
    for number in 0..<Limits.earlyMessages {
      holds(peers.keep(.history(user: "alice", row: Int64(number)), from: other))
    }
    holds(!peers.keep(.grants, from: other))
    let messages = peers.dequeueEarly()
    #expect(
      messages.count == Limits.earlyMessages && messages[3].message == .history(user: "alice", row: 3)
        && peers.dequeueEarly().isEmpty)
  }

  @Test func `troubles and the number of nodes are reported when they change`() {
    var (peers, step) = (Peers(), Step.at(1))
    peers.reportTroubles(&step)
    peers.reportNodes(held: 0, &step)
    #expect(step.actions.isEmpty)
    var bad = lease(other)
    bad.troubles = ["carrier": "down"]
    _ = peers.see([bad, lease(third, draining: true)], askedAt: .zero)
    for _ in 0..<2 {
      peers.reportTroubles(&step)
      peers.reportNodes(held: 1, &step)
    }
    #expect(step.others.count == 2)
    peers.reportNoTroubles(&step)
    peers.reportNoTroubles(&step)
    #expect(step.others.count == 3)
  }
}
