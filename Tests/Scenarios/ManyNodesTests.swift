import AppSessions
import CallFlow
import CallModel
import Cluster
import JSONWebToken
import MemorySharedStore
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Three gateways over a shared store in memory: any node accepts the call, and any node may die.
@Suite struct ManyNodesTests {
  @Test func `nodes see each other`() {
    let nodes = ManyNodes()
    for world in nodes.worlds {
      #expect(world.core.cluster?.state == .up && world.core.cluster?.nodes.count { $0.liveness == .living } == 3)
    }
  }

  @Test func `a call at the wrong node is sent to the node of the device, where it rings as ever`() throws {
    let nodes = ManyNodes()
    let phone = nodes.app("phone", at: 1) { $0.answersAfter = .seconds(1) }
    let call = nodes.call(at: 0)
    nodes.run(.seconds(3), following: call)
    #expect(call.hops == [0, 1] && nodes.final(call) == 200 && phone.won.count == 1)
    #expect(nodes.worlds[0].refusals.map(\.reason) == [.steered] && nodes.wakes.isEmpty)
    nodes.worlds[1].carrier.hangUp(call.leg)
    nodes.checkEnd()
    #expect(nodes.records.count == 1)
  }

  @Test func `without a redirect the device is woken through its socket, and has the call at the other node`() throws {
    let nodes = ManyNodes()
    let phone = nodes.app("phone", at: 1) { $0.answersAfter = .seconds(1) }
    // two devices at two nodes: the call stays at the node that got it
    nodes.app("tablet", at: 0)
    let call = nodes.call(at: 0)
    nodes.run(.seconds(3), following: call)
    #expect(call.hops == [0] && nodes.wakes.map(\.device) == ["phone"] && nodes.final(call) == 200)
    #expect(phone.isOpen && phone.offered.isEmpty, "its first socket stays, and heard of no offer")
    #expect(nodes.sockets("phone").count { !$0.won.isEmpty } == 1)
    nodes.worlds[0].carrier.hangUp(call.leg)
    nodes.checkEnd()
  }

  @Test func `a node that was stopped for a minute writes no second record of what others have closed`() {
    for isAnswered in [false, true] {
      let nodes = ManyNodes()
      nodes.app("phone", at: 0) { if isAnswered { $0.answersAfter = .milliseconds(500) } }
      let call = nodes.call(at: 0)
      nodes.run(.seconds(3), following: call)
      nodes.run(.seconds(10))
      nodes.stop(0)
      nodes.run(.seconds(60))
      #expect(nodes.records.count == 1 && nodes.closed.count == 1)
      nodes.resume(0)
      nodes.run(.seconds(15))
      #expect(nodes.records.count == 1, "\(nodes.records.map(\.end))")
      #expect(nodes.worlds[0].journal.isEmpty)
      nodes.check()
    }
  }

  @Test func `a node that was stopped writes the records of its calls when no other node has closed them`() {
    let nodes = ManyNodes()
    nodes.app("phone", at: 0)
    let call = nodes.call(at: 0)
    nodes.run(.seconds(3), following: call)
    // the others are stopped as well: no node is left to close a call
    for index in nodes.worlds.indices { nodes.stop(index) }
    nodes.run(.seconds(60))
    for index in nodes.worlds.indices { nodes.resume(index) }
    nodes.run(.seconds(15))
    #expect(nodes.records.count == 1)
    nodes.checkEnd()
  }

  @Test func `two devices at two nodes answer within a millisecond: one winner`() throws {
    for gap in -3...3 {
      let nodes = ManyNodes(seed: UInt64(10 + gap))
      nodes.app("phone", at: 1) { $0.answersAfter = .seconds(1) + .milliseconds(gap) }
      nodes.app("tablet", at: 0) { $0.answersAfter = .seconds(1) + .milliseconds(30) }
      let call = nodes.call(at: 0)
      nodes.run(.seconds(4), following: call)
      #expect(nodes.final(call) == 200)
      let sockets = nodes.worlds.flatMap(\.apps)
      #expect(sockets.count { !$0.won.isEmpty } == 1, "gap \(gap)")
      nodes.worlds[0].carrier.hangUp(call.leg)
      nodes.checkEnd()
    }
  }

  @Test func `a device that comes to another node while its user's call rings is woken`() throws {
    let nodes = ManyNodes()
    nodes.app("tablet", at: 0)
    let call = nodes.call(at: 0)
    nodes.run(.seconds(1), following: call)
    nodes.app("phone", at: 2) { $0.answersAfter = .milliseconds(500) }
    nodes.run(.seconds(2), following: call)
    #expect(nodes.wakes.map(\.device) == ["phone"] && nodes.final(call) == 200)
    nodes.worlds[0].carrier.hangUp(call.leg)
    nodes.checkEnd()
  }

  @Test func `the newest session of a device counts: the one before is closed`() {
    let nodes = ManyNodes()
    let first = nodes.app("phone", at: 0)
    let second = nodes.app("phone", at: 1)
    nodes.run(.seconds(1))
    #expect(first.closeCodes == [.replaced] && second.isOpen)
  }

  @Test(arguments: [false, true])
  func `a node dies with a ringing and a connected call: both are closed by another, with one record each`(restarts: Bool) throws
  {
    let nodes = ManyNodes()
    nodes.app("phone", at: 0) { $0.answersAfter = .milliseconds(500) }
    nodes.app("tablet", at: 0)
    let connected = nodes.call(at: 0)
    nodes.run(.seconds(2), following: connected)
    #expect(nodes.final(connected) == 200)
    let ringing = nodes.call(at: 0)
    nodes.run(.milliseconds(300), following: ringing)
    nodes.kill(0)
    if restarts {
      nodes.run(.seconds(1))
      nodes.restart(0)
    }
    nodes.run(.seconds(20))
    #expect(nodes.closed.flatMap { $0.legs.map(\.phase) }.sorted { "\($0)" < "\($1)" } == [.confirmed, .ringing])
    #expect(nodes.records.map(\.end.reason) == [.gatewayRestart, .gatewayRestart])
    #expect(nodes.records.allSatisfy { $0.end.detail == "node lost" })
    nodes.check()
  }

  @Test func `the shared store is away: users here ring, calls go on, and it all comes back`() throws {
    let nodes = ManyNodes()
    nodes.app("phone", at: 0) { $0.answersAfter = .milliseconds(500) }
    let first = nodes.call(at: 0)
    nodes.run(.seconds(2), following: first)
    #expect(nodes.final(first) == 200)
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(30))
    #expect(nodes.worlds[0].machine.summaries.map(\.state) == [.connected], "no call ends of it")
    let second = nodes.call(at: 0)
    nodes.run(.seconds(2), following: second)
    #expect(nodes.final(second) == 200, "users here ring")
    nodes.sharedStore.comeUp(isFlushed: true, at: nodes.now)
    nodes.run(.seconds(30))
    #expect(nodes.worlds[0].core.cluster?.state == .up && nodes.closed.isEmpty)
    for call in [first, second] { nodes.worlds[0].carrier.hangUp(call.leg) }
    nodes.checkEnd()
    #expect(nodes.records.count == 2)
  }

  @Test
  func
    `the shared store is silent: an INVITE at a node without devices goes to the next node, and rings where the device is`()
  {
    let nodes = ManyNodes()
    let phone = nodes.app("phone", at: 1) { $0.answersAfter = .milliseconds(500) }
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(5))
    let first = nodes.call(at: 0)
    nodes.run(.seconds(2), following: first)
    #expect(nodes.final(first) == 503 && nodes.worlds[0].refusals.map(\.reason) == [.unlocated])
    // as an edge does with a 503
    let second = nodes.call(at: 1)
    nodes.run(.seconds(2), following: second)
    #expect(nodes.final(second) == 200 && phone.won.count == 1)
    nodes.worlds[1].carrier.hangUp(second.leg)
    nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now)
    nodes.checkEnd()
    #expect(nodes.records.count == 1 && nodes.sharedStore.store.calls.isEmpty)
  }

  @Test
  func
    `a number of another node's user is 503 while the shared store is away, rings once it is back, and is 404 where no user has it`()
  {
    let nodes = ManyNodes { routing in
      routing.users = []
      routing.directory = UserDirectory(
        [], anyone: Routing.User(id: "", numbers: []), grantRules: GrantRules(numbers: ["+"], maxNumbers: 10))
    }
    func code(at node: Int) -> Int? {
      let call = nodes.call(at: node)
      nodes.run(.seconds(1), following: call)
      return nodes.final(call)
    }
    #expect((0..<3).map(code) == [404, 404, 404])
    nodes.sharedStore.goDown(at: nodes.now)
    nodes.run(.seconds(2))
    let alice = DeviceKey(user: "alice", device: "phone")
    nodes.worlds[0].now = nodes.now
    nodes.worlds[0].give(
      .app(.granted(alice, SessionID("s"), TokenGrant(numbers: [World.number], issuedAt: 1_700_000_000_000))))
    nodes.worlds[0].give(.app(.connected(alice, SessionID("s"), DeviceInfo(), resumed: false)))
    nodes.run(.seconds(1))
    nodes.worlds[0].now = nodes.now
    nodes.worlds[0].give(.app(.disconnected(alice, SessionID("s"))))
    nodes.worlds[0].give(.app(.ended(alice, SessionID("s"))))
    // her number is known at her node, where she has no device; an edge tries the next one after a 503
    #expect((0..<3).map(code) == [503, 503, 503])
    #expect(nodes.worlds.suffix(2).allSatisfy { $0.refusals.last?.reason == .unlocated })
    nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now)
    nodes.run(.seconds(20))
    #expect((0..<3).map(code) == [480, 480, 480], "her number is known, and she has no device")
    nodes.worlds[1].now = nodes.now
    nodes.worlds[1].operate { .devices(.forget(user: "alice", $0)) }
    nodes.run(.seconds(1))
    #expect((0..<3).map(code) == [404, 404, 404])
  }

  @Test func `a call.start repeated at another node makes no second call`() throws {
    let nodes = ManyNodes()
    let here = nodes.app("phone", at: 0)
    let call = CallID(random: .seeded(5))
    here.start(call)
    nodes.run(.milliseconds(200))
    let there = nodes.app("phone", at: 1)
    there.start(call)
    nodes.run(.seconds(3))
    #expect(there.errors == [.overload])
    #expect(nodes.worlds.map { $0.machine.statistics.outgoing } == [1, 0, 0])
    nodes.run(.seconds(100))
    nodes.check()
  }

  @Test(arguments: [false, true])
  func `a device that its push leads to another node after the call and its node ended is notified how it ended`(isRinging: Bool)
    throws
  {
    let nodes = ManyNodes()
    nodes.worlds[0].killed("cell")
    nodes.worlds[0].pushService = { _ in (.milliseconds(40), .accepted, false) }
    var pushes: [CallPush] = []
    nodes.worlds[0].pushContent = { pushes.append($0) }
    nodes.app("tablet", at: 0) { $0.answersAfter = isRinging ? nil : .milliseconds(500) }
    let call = nodes.call(at: 0)
    nodes.run(.seconds(2), following: call)
    if !isRinging { nodes.worlds[0].carrier.hangUp(call.leg) }
    nodes.run(.seconds(1))
    nodes.kill(0)
    nodes.run(.seconds(15))
    let push = try #require(pushes.first)
    let reason = isRinging ? "call.gone gatewayRestart" : "call.gone answeredElsewhere"
    let cell = nodes.launched("cell", by: push, at: 2)
    #expect(cell.terminals[push.call] == [reason])
    // the session of a connected device receives it, and the new socket closes
    let desk = nodes.app("desk", at: 1) { $0.offered = [push.call] }
    #expect(
      desk.isOpen && desk.terminals.isEmpty == !isRinging, "of a call that was closed for a dead node all its user's devices hear"
    )
    cell.drop(.normal)
    let liveness = nodes.app("cell", at: 1)
    let second = nodes.launched("cell", by: push, at: 1)
    #expect(second.closeCodes == [.replaced] && liveness.terminals[push.call] == [reason] && liveness.isOpen)
    nodes.check()
  }

  @Test func `the report of the node that probes a trunk, and slots of a call's further trunk, go from machine to machine`() {
    let nodes = ManyNodes()
    nodes.worlds[0].give(cluster: .troubles(["carrier": "not registered"]))
    nodes.run(.seconds(2))
    #expect(nodes.worlds[1].core.cluster?.nodes.first { $0.lease.incarnation.node == "n0" }?.lease.troubles.count == 1)
    let call = CallID(random: .seeded(5))
    nodes.worlds[1].give(cluster: .admit(call, trunk: "b", most: 1))
    nodes.worlds[2].give(cluster: .admit(call, trunk: "b", most: 1))
    nodes.run(.milliseconds(100))
    #expect(nodes.sharedStore.store.trunks["b"]?.values.reduce(0, +) == 1)
  }

  private enum Step: CaseIterable {
    case invite, phoneAtB, tabletAtC, phoneAtA, phoneAnswers, tabletAnswers, cancel, deathOfA, returnOfA, sharedStoreAway,
      sharedStoreBack,
      faults, slow, failover, flush
  }

  /// Every seed is another order of events, with other gaps: INVITE, hello at B and at C, wake, push, answer, second answer,
  /// CANCEL, death, the lease's end, reaping, return, and a shared store that stops and returns, loses, delays, fails over and is
  /// flushed.
  @Test(arguments: 0..<5)
  func `INV: whatever happens at three nodes in whatever order: one winner, one record, one final response`(_ part: UInt64) {
    for seed in (part * 8)..<(part * 8 + 8) {
      let random = RandomSource.seeded(seed &+ 900)
      func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
      let nodes = ManyNodes(seed: seed &+ 100)
      nodes.sharedStore.replicationLag = pick(2) == 0 ? .milliseconds(300) : nil
      nodes.worlds[0].killed("cell")
      var steps = Step.allCases
      for index in steps.indices.reversed() { steps.swapAt(index, pick(index + 1)) }
      if pick(2) == 0 { steps.removeAll { [.deathOfA, .returnOfA].contains($0) } }
      var call: ManyNodes.EdgeCall?
      for step in steps {
        switch step {
        case .invite: if call == nil { call = nodes.call(at: nodes.isAlive(0) ? 0 : 1) }
        case .phoneAtB: nodes.app("phone", at: 1)
        case .tabletAtC: nodes.app("tablet", at: 2)
        case .phoneAtA: if nodes.isAlive(0), pick(3) == 0 { nodes.app("phone", at: 0) }
        case .phoneAnswers: nodes.answer("phone")
        case .tabletAnswers: nodes.answer("tablet")
        case .cancel:
          if let call, nodes.isAlive(call.node), pick(3) == 0 { nodes.worlds[call.node].carrier.cancel(call.leg) }
        case .deathOfA: nodes.kill(0)
        case .returnOfA: if !nodes.isAlive(0) { nodes.restart(0) }
        case .sharedStoreAway: if pick(2) == 0 { nodes.sharedStore.goDown(at: nodes.now) }
        case .sharedStoreBack: if nodes.sharedStore.isDown { nodes.sharedStore.comeUp(isFlushed: pick(2) == 0, at: nodes.now) }
        case .faults:
          (nodes.sharedStore.faults.losesReplies, nodes.sharedStore.faults.losesRequests) = (
            pick(2) == 0 ? 0.2 : 0, pick(2) == 0 ? 0.1 : 0
          )
          nodes.sharedStore.faults.losesMessages = pick(2) == 0 ? 0.3 : 0
        case .slow: if pick(2) == 0 { nodes.sharedStore.faults.latency = 0.000_3...0.150 }
        case .failover: if pick(2) == 0 { nodes.sharedStore.failOver(at: nodes.now) }
        case .flush: if pick(3) == 0 { nodes.sharedStore.flush(keepsConnections: pick(2) == 0, at: nodes.now) }
        }
        let gap = Duration.milliseconds([0, 1, 5, 30, 400, 2_500][pick(6)])
        if let call { nodes.run(gap, following: call) } else { nodes.run(gap) }
      }
      if nodes.sharedStore.isDown { nodes.sharedStore.comeUp(isFlushed: false, at: nodes.now) }
      nodes.sharedStore.faults = MemorySharedStore.Faults()
      if let call { nodes.run(.seconds(50), following: call) }
      for call in [call].compactMap(\.self) where nodes.isAlive(call.node) {
        nodes.worlds[call.node].carrier.hangUp(call.leg)
      }
      nodes.run(.seconds(46))
      nodes.check()
      nodes.checkNoDeviceShows(seed)
      for index in nodes.worlds.indices where nodes.isAlive(index) {
        #expect(nodes.worlds[index].machine.summaries.isEmpty, "seed \(seed), \(steps): calls are left at \(index)")
      }
      let missing = nodes.unrecorded
      #expect(missing.isEmpty, "seed \(seed), \(steps): no record of \(missing)")
    }
  }
}
