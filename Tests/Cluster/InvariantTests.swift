import AppSessions
import CallFlow
import CallModel
import Devices
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import Cluster

/// Random event orders and faults of shared store, network and processes. The invariants hold in all; a failure prints its seed.
@Suite struct InvariantTests {
  /// Random calls, devices and faults over some nodes, and the checks of every action.
  private final class Run {
    let world: ClusterWorld
    let seed: UInt64
    var random: SplitMix64
    var asked: [CallID: Int] = [:]
    var located: [CallID: Int] = [:]
    var claimedAt: [CallID: Set<Int>] = [:]
    var claims: [CallID: Int] = [:]
    var welcomes: [SessionID: Int] = [:]
    var hellos: [SessionID: Int] = [:]
    /// Live calls: the node and its incarnation.
    var live: [CallID: (node: Int, life: Incarnation)] = [:]
    var orphans: [CallID: [Int]] = [:]
    /// Calls that a node ended with a record of its own.
    var recorded: Set<CallID> = []
    /// Ended calls whose records wait.
    var waiting: [CallID: Incarnation] = [:]
    var broken: [String] = []
    var number = 0
    /// A second record is allowed: a reaper was killed, or a failover happened, between a close and its removal.
    var mayDouble = false
    var hasRestarted = false

    init(nodes: Int, seed: UInt64, faults: MemorySharedStore.Faults) {
      self.seed = seed
      random = SplitMix64(seed: seed)
      world = ClusterWorld(nodes: nodes, seed: seed)
      world.sharedStore.faults = faults
      world.onAction = { [unowned self] in note($0) }
      for index in 0..<nodes { world.input(index, .trunks(single: ["carrier"], limited: ["carrier"])) }
      world.run(for: .seconds(15))
    }

    func note(_ logged: ClusterWorld.Logged) -> Bool {
      switch logged.action {
      case .located(let call, let answer):
        located[call, default: 0] += 1
        if case .redirect(let uri) = answer {
          if uri == ClusterWorld.sip(logged.node) { broken.append("n\(logged.node) redirects to itself") }
          if world.nodes[logged.node].machine.state != .up { broken.append("steered without a lease") }
        }
        if case .here = answer { live[call] = (logged.node, logged.incarnation) }
      case .claimed(let call, let answer):
        claims[call, default: 0] -= 1
        if case .granted = answer {
          live[call] = (logged.node, logged.incarnation)
        }
      case .welcome(_, let session, _, _): welcomes[session, default: 0] += 1
      case .orphan(let entry, let of):
        let call = entry.line.call
        orphans[call, default: []].append(logged.node)
        if recorded.contains(call) { broken.append("\(call) was recorded by its node") }
        if let own = live[call], own.life == of, world.nodes[own.node].isAlive, !world.nodes[own.node].isFrozen,
          world.incarnation(own.node) == of
        {
          broken.append("a call of n\(own.node), which answers, is closed by n\(logged.node)")
        }
      case .reaped(let calls):
        for call in calls { (live[call], waiting[call]) = (nil, nil) }
      case .recordsDue(let calls):
        for call in calls {
          if waiting.removeValue(forKey: call) == nil { broken.append("\(call) is settled, and did not wait") }
          record(call)
        }
      case .nameInUse: broken.append("n\(logged.node) lost its name")
      default: break
      }
      return true
    }

    private func record(_ call: CallID) {
      if !recorded.insert(call).inserted || orphans[call] != nil { broken.append("\(call) has two records") }
    }

    func restart(_ index: Int) {
      hasRestarted = true
      waiting = waiting.filter { $0.value != world.incarnation(index) }
      world.kill(index)
      world.restart(index)
      world.input(index, .trunks(single: ["carrier"], limited: ["carrier"]))
    }

    func step() {
      let index = Int.random(in: 0..<world.nodes.count, using: &random)
      guard world.nodes[index].isAlive, !world.nodes[index].isFrozen else { return }
      let user = "u\(Int.random(in: 0..<12, using: &random))"
      number += 1
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3:
        let call = callID(number)
        asked[call] = index
        world.input(
          index,
          .locate(question(number, users: [user], mostOfTrunk: 20, mostOfUser: 5, mayRedirect: Bool.random(using: &random))))
      case 3:
        // the same claim at another node a moment later
        let claim = ClaimQuestion(
          callID(number), device: key(user), trunk: "carrier", mostOfTrunk: 20, mostOfUser: 5, mostPerHour: 50)
        for node in [index, Int.random(in: 0..<world.nodes.count, using: &random)] where world.nodes[node].isAlive {
          guard !world.nodes[node].isFrozen, world.nodes[node].machine.state == .up else { continue }
          claims[claim.call, default: 0] += 1
          claimedAt[claim.call, default: []].insert(node)
          world.input(node, .claim(claim))
          world.run(for: .milliseconds(Int64.random(in: 0..<3, using: &random)))
        }
      case 4..<7:
        let session = SessionID("s\(number)")
        hellos[session] = index
        world.came(index, key(user, "d\(number % 2)"), session.text)
      case 7:
        if let (call, own) = live.filter({ $0.value.node == index }).min(by: { "\($0.key)" < "\($1.key)" }) {
          guard own.life == world.incarnation(index) else { return }
          let started = JournalEntry(
            call: call, sipCallId: nil, direction: .incoming, trunk: "carrier", from: "1", to: "2", user: user, start: 1,
            connect: Bool.random(using: &random) ? 5 : nil)
          world.input(index, .started(started, users: [user]))
        }
      default:
        if let (call, own) = live.filter({ $0.value.node == index }).max(by: { "\($0.key)" < "\($1.key)" }) {
          guard own.life == world.incarnation(index) else { return }
          live[call] = nil
          world.input(index, .ended(call, over: nil))
          // otherwise it waits until it is known whether other nodes closed it
          if world.nodes[index].machine.isEndUnconfirmed(call) { waiting[call] = own.life } else { record(call) }
        }
      }
    }

    /// Ends all faults, and waits until all nodes agree.
    func settle() {
      for index in world.nodes.indices {
        if world.nodes[index].isFrozen { world.thaw(index) }
        world.sharedStore.mend(index, at: world.now)
      }
      world.sharedStore.faults = MemorySharedStore.Faults()
      if world.sharedStore.isDown { world.sharedStore.comeUp(isFlushed: false, at: world.now) }
      world.run(for: .seconds(150))
    }

    func check() {
      let kept = waiting.filter { call in world.nodes.contains { $0.isAlive && $0.machine.incarnation == call.value } }
      if !kept.isEmpty { broken.append("\(kept.keys) have no record") }
      for (call, node) in asked where world.nodes[node].isAlive && located[call] != 1 {
        Issue.record("seed \(seed): \(call) was located \(located[call] ?? 0) times")
      }
      for (session, node) in hellos where world.nodes[node].isAlive && welcomes[session] != 1 {
        Issue.record("seed \(seed): \(session) was welcomed \(welcomes[session] ?? 0) times")
      }
      for (call, open) in claims where open < 0 || open > 0 && !hasRestarted {
        Issue.record("seed \(seed): \(call) has \(open) claims without an answer")
      }
      for (call, nodes) in orphans where nodes.count > 1 && !mayDouble {
        Issue.record("seed \(seed): \(call) was recorded by \(nodes)")
      }
      for text in Set(broken) { Issue.record("seed \(seed): \(text)") }
    }

    /// Compares the shared store with the nodes, after each user was located: that removes what a dead node left unfinished.
    func checkSharedStore() {
      for number in 10_000..<10_036 {
        let reader = world.reaper
        guard reader >= 0 else {
          Issue.record("seed \(seed): nobody reaps")
          return
        }
        world.input(reader, .locate(question(number, users: ["u\(number % 12)"])))
        world.run(for: .seconds(1))
        live[callID(number)] = nil
        world.input(reader, .ended(callID(number), over: nil))
        world.run(for: .milliseconds(10))
      }
      let store = world.sharedStore.store
      for index in world.nodes.indices where world.nodes[index].isAlive {
        #expect(world.nodes[index].machine.unwritten == 0, "seed \(seed): n\(index)")
        #expect(world.nodes[index].machine.state == .up, "seed \(seed): n\(index)")
      }
      var lives: [Incarnation: Set<CallID>] = [:]
      for node in world.nodes where node.isAlive { lives[node.machine.incarnation] = Set(node.machine.calls.ids) }
      let entered = store.calls.values.flatMap(\.values)
      for location in entered where lives[location.incarnation]?.contains(location.call) != true {
        Issue.record("seed \(seed): \(location.call) of \(location.incarnation) is in the shared store and nowhere else")
      }
      for (life, calls) in lives {
        let there = Set(entered.filter { $0.incarnation == life }.map(\.call))
        // A call that two nodes claimed while the shared store was silent has one location, or none once one of the two has
        // ended.
        let twice = claimedAt.filter { $0.value.count > 1 }.keys
        #expect(
          calls.subtracting(there).subtracting(twice).isEmpty,
          "seed \(seed): calls of \(life) that the shared store does not have")
      }
      for (life, count) in store.trunks["carrier"] ?? [:] {
        let own = world.nodes.first { $0.machine.incarnation == life }?.machine.calls.count(of: "carrier") ?? 0
        #expect(count == own, "seed \(seed): count of \(life), \(store.trunks)")
      }
      #expect(world.leaders(of: .reaper).count == 1)
      #expect(world.leaders(of: .trunk("carrier")).count == 1)
    }
  }

  @Test func `nodes that die, freeze and come back, over a shared store that works`() {
    for seed in 0..<10 as Range<UInt64> {
      let run = Run(nodes: 5, seed: seed, faults: MemorySharedStore.Faults())
      for _ in 0..<400 {
        run.step()
        run.world.run(for: .milliseconds(Int64.random(in: 0..<200, using: &run.random)))
        let index = Int.random(in: 0..<5, using: &run.random)
        switch Int.random(in: 0..<150, using: &run.random) {
        case 0: run.world.freeze(index)
        case 1: if run.world.nodes[index].isFrozen { run.world.thaw(index) }
        case 2:
          // A reaper that dies in the middle of a close may have written a record without removing the entry.
          if run.world.nodes[index].machine.leads.contains(.reaper) { run.mayDouble = true }
          run.restart(index)
        default: break
        }
      }
      run.settle()
      run.check()
      run.checkSharedStore()
    }
  }

  @Test func `a shared store that loses, delays, reorders, freezes, goes and is flushed, and nodes that are cut off from it`() {
    for seed in 100..<110 as Range<UInt64> {
      var faults = MemorySharedStore.Faults()
      faults.latency = 0.000_3...0.120
      faults.losesRequests = 0.05
      faults.losesReplies = 0.05
      faults.losesMessages = 0.2
      faults.reorders = seed % 2 == 0
      let run = Run(nodes: 4, seed: seed, faults: faults)
      for _ in 0..<400 {
        run.step()
        run.world.run(for: .milliseconds(Int64.random(in: 0..<200, using: &run.random)))
        let index = Int.random(in: 0..<4, using: &run.random)
        let world = run.world
        switch Int.random(in: 0..<60, using: &run.random) {
        case 0: world.sharedStore.cut(index, at: world.now)
        case 1, 2: world.sharedStore.mend(index, at: world.now)
        case 3: if !world.sharedStore.isDown { world.sharedStore.goDown(at: world.now) }
        case 4, 5:
          if world.sharedStore.isDown { world.sharedStore.comeUp(isFlushed: Bool.random(using: &run.random), at: world.now) }
        case 6: world.sharedStore.flush(at: world.now)
        case 7: world.sharedStore.freeze(until: world.now + .milliseconds(Int64.random(in: 0..<3_000, using: &run.random)))
        default: break
        }
      }
      run.settle()
      run.check()
      // No node died: no call was closed, whatever the shared store did.
      #expect(run.orphans.isEmpty, "seed \(seed)")
      if !faults.reorders { run.checkSharedStore() }
    }
  }

  @Test func `failovers that lose writes, with nodes that die`() {
    for seed in 200..<207 as Range<UInt64> {
      let run = Run(nodes: 5, seed: seed, faults: MemorySharedStore.Faults())
      run.world.sharedStore.replicationLag = .seconds(1)
      for _ in 0..<300 {
        run.step()
        run.world.run(for: .milliseconds(Int64.random(in: 0..<200, using: &run.random)))
        let index = Int.random(in: 0..<5, using: &run.random)
        switch Int.random(in: 0..<100, using: &run.random) {
        case 0: run.world.sharedStore.failOver(at: run.world.now)
        case 1:
          if run.world.nodes[index].machine.leads.contains(.reaper) { run.mayDouble = true }
          run.restart(index)
        default: break
        }
      }
      run.settle()
      run.check()
      run.checkSharedStore()
    }
  }
}
