import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import MemorySharedStore
import Testing
import TrunklineBytes

/// Rules (1) to (4) of finding a device.
@Suite struct LocateTests {
  @Test func `a device at another node is steered to if an edge sent the INVITE, and woken through its socket if not`() {
    let world = ClusterWorld.running(3)
    world.came(1, key("alice"))
    world.run(for: .seconds(1))
    let steered = world.locate(0, question(1, mayRedirect: true))
    #expect(steered.located == .redirect(to: ClusterWorld.sip(1)))
    #expect(steered.took < .milliseconds(5))
    #expect(world.sharedStore.store.calls["alice"] == nil, "the call is not entered any more")
    #expect(world.locate(0, question(2)).located?.remoteDevices == [RemoteDevice(key("alice"), at: "n1")])
    #expect(world.sharedStore.store.calls["alice"]?.count == 1)
    #expect(world.nodes[0].machine.statistics.locates == [.steered: 1, .elsewhere: 1])
  }

  @Test func `a user who is connected here is not steered away`() {
    let world = ClusterWorld.running(2)
    world.came(0, key("alice"))
    world.came(1, key("alice", "tablet"))
    world.run(for: .seconds(1))
    #expect(
      world.locate(0, question(1, mayRedirect: true)).located?.remoteDevices == [RemoteDevice(key("alice", "tablet"), at: "n1")])
  }

  @Test func `a live call of the user draws the next one to its node, even from where the user is connected`() {
    let world = ClusterWorld.running(2)
    world.came(0, key("alice"))
    world.start(1, 1)
    #expect(world.locate(0, question(2, mayRedirect: true)).located == .redirect(to: ClusterWorld.sip(1)))
    #expect(world.locate(1, question(3, mayRedirect: true)).located?.remoteDevices?.count == 1, "the call's own node keeps it")
    for call in [1, 3] { world.input(1, .ended(callID(call), over: nil)) }
    world.run(for: .seconds(1))
    #expect(world.locate(0, question(4, mayRedirect: true)).located?.remoteDevices == [])
  }

  @Test func `nobody is steered to a node that drains, refuses, is dead or has lost its lease`() {
    let world = ClusterWorld.running(4)
    world.came(1, key("alice"))
    world.came(2, key("bob"))
    world.came(3, key("carol"))
    world.run(for: .seconds(1))
    world.input(1, .draining)
    world.input(2, .load(calls: 1, sessions: 1, refuses: true))
    world.kill(3)
    world.run(for: .seconds(9))
    let asked = 0
    #expect(world.locate(asked, question(1, users: ["alice"], mayRedirect: true)).located?.remoteDevices?.map(\.node) == ["n1"])
    #expect(world.locate(asked, question(2, users: ["bob"], mayRedirect: true)).located?.remoteDevices?.map(\.node) == ["n2"])
    // her node is dead: she will reconnect to another one, and the call waits for her
    #expect(world.locate(asked, question(3, users: ["carol"], mayRedirect: true)).located?.remoteDevices?.map(\.node) == ["n3"])
  }

  @Test func `a device whose node has just died is waited for and pushed to at once, for 30 s; and not where it has come to`() {
    let world = ClusterWorld.running(3)
    world.came(2, key("alice"))
    world.came(2, key("bob"))
    world.run(for: .seconds(1))
    world.kill(2)
    world.run(for: .seconds(9))
    let waited = world.locate(0, question(1, mayRedirect: true)).located?.remoteDevices
    #expect(waited?.map(\.key) == [key("alice")] && waited?.map(\.state) == [.bg])
    world.came(0, key("alice"), "s2")
    world.run(for: .seconds(1))
    #expect(world.locate(0, question(2)).located?.remoteDevices == [])
    world.run(for: .seconds(30))
    let dropped = world.nodes[0].machine.statistics.hintsDropped
    #expect(world.locate(0, question(3, users: ["bob"])).located?.remoteDevices == [])
    #expect(world.nodes[0].machine.statistics.hintsDropped > dropped)
  }

  @Test func `a device that a draining node has sent away is waited for until it is somewhere else`() {
    let world = ClusterWorld.running(3)
    world.came(2, key("alice"))
    world.run(for: .seconds(1))
    world.input(2, .draining)
    world.run(for: .seconds(1))
    world.input(2, .deviceLeft(key("alice"), SessionID("s1")))
    world.run(for: .seconds(1))
    #expect(world.locate(0, question(1, mayRedirect: true)).located?.remoteDevices?.map(\.node) == ["n2"])
    world.input(0, .ended(callID(1), over: nil))
    world.came(1, key("alice"), "s2")
    world.run(for: .seconds(1))
    #expect(world.locate(0, question(2)).located?.remoteDevices?.map(\.node) == ["n1"])
  }

  @Test func `a node that is back at once is a new one: devices of its life before are waited for there, too`() {
    let world = ClusterWorld.running(3)
    world.came(2, key("alice"))
    world.came(2, key("bob"))
    world.run(for: .seconds(1))
    world.kill(2)
    world.run(for: .seconds(1))
    world.restart(2)
    world.run(for: .seconds(3))
    for (node, user) in [(0, "alice"), (2, "bob")] {
      let located = world.locate(node, question(1 + node, users: [user], mayRedirect: true)).located
      #expect(located?.remoteDevices?.map(\.state) == [.bg], "at n\(node)")
    }
  }

  @Test func `three users on three nodes: the call is taken where the most devices are not, and all are woken`() {
    let world = ClusterWorld.running(4)
    for (index, user) in ["a", "b", "c"].enumerated() { world.came(index + 1, key(user)) }
    world.run(for: .seconds(1))
    let located = world.locate(0, question(1, users: ["a", "b", "c"])).located
    #expect(located?.remoteDevices?.map(\.node) == ["n1", "n2", "n3"])
    let steered = world.locate(0, question(2, users: ["a", "b"], mayRedirect: true)).located
    // `a` has a live call at n0 now, so it stays
    #expect(steered?.remoteDevices?.count == 2)
  }

  @Test func `without shared store the answer comes at once, from memory, with revoked devices silenced`() {
    let world = ClusterWorld.running(2)
    world.input(1, .devices([.stored(device("alice")), .stored(device("alice", "old"))]))
    world.came(1, key("alice"))
    world.run(for: .seconds(1))
    #expect(world.locate(0, question(1)).located?.registry?["alice"]?.count == 2)
    world.input(1, .revoke(key("alice", "old")))
    world.run(for: .seconds(1))
    world.sharedStore.goDown(at: world.now)
    world.run(for: .milliseconds(10))
    let (located, took) = world.locate(0, question(2, mayRedirect: true))
    #expect(took == .zero)
    #expect(located?.remoteDevices == [], "nobody can be woken through a node that cannot be told")
    #expect(located?.registry?["alice"]?.first { $0.key.device == "phone" }?.target != nil)
    #expect(located?.registry?["alice"]?.first { $0.key.device == "old" }?.target == nil)
    #expect(world.nodes[0].machine.statistics.locates[.unknown] == 1)
  }

  @Test func `a silent shared store is waited for 100 ms, and what it says later is kept`() {
    let world = ClusterWorld.running(2)
    world.input(1, .devices([.stored(device("alice"))]))
    world.run(for: .seconds(1))
    world.sharedStore.freeze(until: world.now + .milliseconds(180))
    let (located, took) = world.locate(0, question(1), wait: .milliseconds(400))
    #expect(took == .milliseconds(100))
    #expect(located?.registry == [:])
    world.sharedStore.goDown(at: world.now)
    #expect(world.locate(0, question(2)).located?.registry?["alice"]?.count == 1)
  }

  @Test func `a node that began a moment ago counts: the leases are read once more`() {
    let world = ClusterWorld.running(2)
    let new = world.add()
    world.run(for: .milliseconds(30))
    world.came(new, key("alice"))
    world.run(for: .milliseconds(30))
    #expect(world.locate(0, question(1, mayRedirect: true)).located == .redirect(to: ClusterWorld.sip(new)))
  }

  @Test func `no lease, no steering: a node that was frozen takes the call itself`() {
    let world = ClusterWorld.running(2)
    world.came(1, key("alice"))
    world.run(for: .seconds(1))
    world.freeze(0)
    world.run(for: .seconds(20))
    // The node has handled nothing yet, not even the timer.
    world.input(0, .locate(question(1, mayRedirect: true)))
    world.thaw(0)
    world.run(for: .milliseconds(150))
    let located = world.actions(of: 0).compactMap { if case .located(_, let located) = $0 { located } else { nil } }
    #expect(located.count == 1)
    if case .redirect = located.first { Issue.record("steered without a lease") }
  }

  @Test func `limits of a user are exact by the order in which calls were entered`() {
    for seed in 0..<20 as Range<UInt64> {
      let world = ClusterWorld.running(3, seed: seed)
      for call in 0..<9 { world.input(call % 3, .locate(question(call, mostOfUser: 4))) }
      world.run(for: .seconds(1))
      let answers = world.actions().compactMap { if case .located(_, let located) = $0 { located } else { nil } }
      #expect(answers.count == 9)
      #expect(answers.count { $0.remoteDevices != nil } == 4, "seed \(seed)")
      #expect(answers.count { $0 == .refused(.userLimit) } == 5, "seed \(seed)")
      world.run(for: .seconds(1))
      #expect(world.sharedStore.store.calls["alice"]?.count == 4)
    }
  }

  @Test func `limits of a trunk are exact over all nodes, and a refused call leaves nothing`() {
    for seed in 0..<20 as Range<UInt64> {
      let world = ClusterWorld.running(3, seed: seed)
      for call in 0..<9 { world.input(call % 3, .locate(question(call, users: ["u\(call)"], mostOfTrunk: 4))) }
      world.run(for: .seconds(1))
      let here = world.log.filter { if case .located(_, .here) = $0.action { true } else { false } }
      #expect(here.count == 4, "seed \(seed)")
      #expect(world.sharedStore.store.trunks["carrier"]?.values.reduce(0, +) == 4)
      #expect(world.sharedStore.store.calls.count == 4)
      for logged in here {
        guard case .located(let call, _) = logged.action else { continue }
        world.input(logged.node, .ended(call, over: nil))
      }
      world.run(for: .seconds(1))
      #expect(world.sharedStore.store.trunks["carrier"]?.values.reduce(0, +) ?? 0 == 0)
      #expect(world.sharedStore.store.calls.isEmpty)
    }
  }

  @Test func `a call that is sent on counts once, and one that stays counts`() {
    for seed in 0..<20 as Range<UInt64> {
      let world = ClusterWorld.running(3, seed: seed)
      world.came(1, key("alice"))
      world.run(for: .seconds(1))
      // the trunk's last free call: the other node must be able to use it as soon as the edge redirects
      world.input(0, .locate(question(1, mostOfTrunk: 1, mayRedirect: true)))
      while !world.actions(of: 0).contains(where: { if case .located(_, .redirect) = $0 { true } else { false } }) {
        world.run(for: .microseconds(50))
      }
      #expect(world.locate(1, question(2, mostOfTrunk: 1)).located?.remoteDevices == [], "seed \(seed)")
      let (refused, _) = world.locate(0, question(3, users: ["bob"], mostOfTrunk: 1, mayRedirect: true))
      #expect(refused == .refused(.trunkLimit))
      #expect(world.sharedStore.store.trunks["carrier"]?.values.reduce(0, +) == 1)
      #expect(Set(world.sharedStore.store.calls.keys) == ["alice"])
    }
  }

  @Test func `a call that may be sent on waits no longer for its trunk's limit than others do`() {
    let world = ClusterWorld.running(3)
    world.sharedStore.faults.latency = 0.03...0.03
    let (here, took) = world.locate(0, question(1, mostOfTrunk: 5, mayRedirect: true))
    #expect(here?.remoteDevices == [] && took == .milliseconds(100))
    world.sharedStore.faults.latency = 0.02...0.02
    let (second, short) = world.locate(0, question(2, users: ["bob"], mostOfTrunk: 5, mayRedirect: true))
    #expect(second?.remoteDevices == [] && short == .milliseconds(80))
    world.sharedStore.freeze(until: world.now + .seconds(1))
    let (third, long) = world.locate(0, question(3, users: ["carol"], mostOfTrunk: 6, mayRedirect: true))
    // our share of six is two, and we have two
    #expect(third == .refused(.trunkLimit) && long == .milliseconds(100))
  }

  @Test func `without shared store a trunk's limit is this node's share of it`() {
    let world = ClusterWorld.running(3)
    world.sharedStore.goDown(at: world.now)
    world.run(for: .seconds(1))
    for call in 0..<6 { world.input(0, .locate(question(call, users: ["u\(call)"], mostOfTrunk: 7))) }
    let here = world.actions().count { if case .located(_, .here) = $0 { true } else { false } }
    #expect(here == 3, "7 over 3 nodes, rounded up")
  }
}

@Suite struct ClaimTests {
  private func claim(_ number: Int, _ device: DeviceKey = key("alice"), most: Int = 10, perHour: Int? = nil) -> ClaimQuestion {
    ClaimQuestion(callID(number), device: device, trunk: "carrier", mostOfUser: most, mostPerHour: perHour)
  }

  @Test func `a call start repeated at another node is told where its call is`() {
    let world = ClusterWorld.running(2)
    #expect(world.claim(0, claim(1)) == .granted)
    #expect(world.claim(1, claim(1)) == .atOtherNode("n0", url: "wss://n0/v1/connect"))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.calls["alice"]?.count == 1, "the second one left nothing")
    #expect(world.sharedStore.store.calls["alice"]?[callID(1)]?.incarnation == world.incarnation(0))
    world.kill(0)
    world.run(for: .seconds(20))
    if case .granted = world.claim(1, claim(1)) { Issue.record("a second call, because the first one's node died") }
  }

  @Test func `calls an hour and at a time are counted over all nodes`() {
    let world = ClusterWorld.running(3)
    for call in 0..<3 { #expect(world.claim(call % 3, claim(call, perHour: 3)) == .granted) }
    #expect(world.claim(0, claim(3, perHour: 3)) == .refused(.userRate))
    #expect(world.claim(1, claim(4, most: 3)) == .refused(.userLimit))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.calls["alice"]?.count == 3)
  }

  @Test func `without shared store a call is made within its own node's limits`() {
    let world = ClusterWorld.running(2)
    world.sharedStore.goDown(at: world.now)
    world.run(for: .seconds(1))
    #expect(world.claim(0, claim(1, most: 1)) == .granted)
    #expect(world.claim(0, claim(2, most: 1)) == .refused(.userLimit))
  }

  @Test func `a further trunk of a call is admitted or not, and released`() {
    let world = ClusterWorld.running(2)
    world.input(0, .claim(ClaimQuestion(callID(1), device: key("alice"), trunk: "a", mostOfTrunk: 5, mostOfUser: 9)))
    world.run(for: .seconds(1))
    world.input(0, .admit(callID(1), trunk: "b", most: 1))
    world.run(for: .seconds(1))
    world.input(1, .claim(ClaimQuestion(callID(2), device: key("bob"), trunk: "b", mostOfTrunk: 1, mostOfUser: 9)))
    world.run(for: .seconds(1))
    let admitted = world.actions().contains { if case .admitted(_, "b", true) = $0 { true } else { false } }
    let refused = world.actions().contains { if case .claimed(_, .refused(.trunkLimit)) = $0 { true } else { false } }
    #expect(admitted && refused)
    world.input(0, .released(callID(1), trunk: "b"))
    world.run(for: .seconds(1))
    #expect(world.sharedStore.store.trunks["b"]?.isEmpty == true)
    #expect(world.sharedStore.store.trunks["a"]?.values.reduce(0, +) == 1)
  }

  @Test func `calls that a full trunk refuses one after the other are not counted meanwhile: a slot that becomes free is given`()
  {
    let world = ClusterWorld.running(2)
    func admit(_ node: Int, _ call: Int, after: Int64) {
      world.run(for: .milliseconds(after))
      world.input(node, .admit(callID(call), trunk: "b", most: 2))
    }
    admit(0, 1, after: 0)
    admit(1, 2, after: 0)
    world.run(for: .seconds(1))
    // each way
    world.sharedStore.faults.latency = 0.03...0.03
    for call in 3...5 { admit(0, call, after: 10) }
    world.run(for: .milliseconds(20))
    world.input(1, .ended(callID(2), over: nil))
    // this arrives after the answers to the first of the refused calls have arrived at their node, and before the last one's
    admit(1, 6, after: 25)
    world.run(for: .seconds(1))
    let granted = world.actions().compactMap { if case .admitted(let call, "b", true) = $0 { call } else { nil } }
    #expect(granted == [callID(1), callID(2), callID(6)])
    #expect(world.sharedStore.store.trunks["b"]?.values.sorted() == [1, 1])
  }
}
