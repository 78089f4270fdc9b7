import AppSessions
import CallFlow
import Cluster
import Devices
import MemorySharedStore
import Testing
import TrunklineBytes

/// Notification of a node about a device that was revoked at another node, before and after it has answered the device.
@Suite struct RevokedTests {
  /// The device was revoked before this process began, so no message reached it.
  private func world() -> ClusterWorld {
    let world = ClusterWorld.running(2)
    world.input(1, .devices([.stored(device("alice", "d1", seen: 5, revoked: 5))]))
    world.run(for: .seconds(1))
    return world
  }

  @Test
  func `a request by HTTP asks the shared store once for a user of whom nothing is known; one that is known is answered at once`()
  {
    let world = world()
    world.input(0, .sessionState(HTTPRequestID(1), key("alice", "d1")))
    #expect(!world.actions(of: 0).contains { if case .sessionState = $0 { true } else { false } })
    world.run(for: .milliseconds(10))
    for number in 2...3 as ClosedRange<UInt64> {
      world.input(0, .sessionState(HTTPRequestID(number), key("alice", number == 2 ? "d1" : "d2")))
    }
    let answers = world.actions(of: 0).compactMap { action -> Bool? in
      if case .sessionState(_, _, _, let isRevoked) = action { isRevoked } else { nil }
    }
    #expect(answers == [true, true, false])
  }

  @Test func `without an answer of the shared store it goes by what is known, after 100 ms`() {
    let world = world()
    let start = world.now
    world.sharedStore.freeze(until: start + .seconds(1))
    world.input(0, .sessionState(HTTPRequestID(1), key("alice", "d1")))
    world.run(for: .milliseconds(99))
    #expect(!world.actions(of: 0, since: start).contains { if case .sessionState = $0 { true } else { false } })
    world.run(for: .milliseconds(2))
    #expect(world.actions(of: 0, since: start).contains { if case .sessionState(_, _, nil, false) = $0 { true } else { false } })
  }

  @Test func `a revoked device that comes takes the place of no session elsewhere`() {
    let world = world()
    world.came(1, key("alice", "d1"), "with-a-call")
    world.run(for: .seconds(1))
    world.came(0, key("alice", "d1"), "second")
    world.run(for: .seconds(1))
    #expect(!world.actions(of: 1).contains { if case .replaced = $0 { true } else { false } })
    #expect(world.actions(of: 0).contains { if case .welcome(_, SessionID("second"), _, true) = $0 { true } else { false } })
  }

  @Test func `of one that was welcomed without the shared store's word, it is told since when it is revoked`() {
    let world = world()
    let start = world.now
    world.sharedStore.freeze(until: start + .milliseconds(200))
    world.came(0, key("alice", "d1"), "blind")
    world.run(for: .seconds(3))
    let actions = world.actions(of: 0, since: start)
    #expect(actions.contains { if case .welcome(_, _, _, false) = $0 { true } else { false } })
    #expect(actions.contains { if case .revokedBefore(key("alice", "d1"), 5) = $0 { true } else { false } })
  }
}
