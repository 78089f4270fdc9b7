import AppProtocol
import AppleStandIn
import Bytes
import CallFlow
import ClientMachines
import PushPolicy
import SIPDialogs
import Testing

/// Every order of what can happen to an incoming call of a telephone, and many calls one after the other.
@Suite struct HandsetOrderTests {
  private enum Event: String, CaseIterable { case push, tap, cancel, mediaUp, drop, kill }

  private static func orders(_ events: [Event]) -> [[Event]] {
    guard events.count > 1 else { return [events] }
    return events.indices.flatMap { index -> [[Event]] in
      var rest = events
      let first = rest.remove(at: index)
      return orders(rest).map { [first] + $0 }
    }
  }

  @Test(arguments: [20, 350])
  func `INV: push, tap, cancel, media, drop and kill in every order: one end, one record, nothing left`(
    milliseconds: Int
  ) {
    for order in Self.orders(Event.allCases) {
      let world = World()
      world.killed("cell")
      let handset = Handset(world, device: "cell")
      handset.launchTime = .milliseconds(100)
      handset.isMediaUp = false
      var content: CallPush?
      world.pushService = { _ in (.milliseconds(1), .accepted, false) }
      world.pushContent = { content = $0 }
      let leg = world.carrier.call()
      world.run(.milliseconds(50))
      for event in order {
        perform(event, handset, world, leg, content)
        world.run(.milliseconds(Int64(milliseconds)))
      }
      if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) } else { world.carrier.cancel(leg) }
      world.run(.seconds(90))
      let isRight = handset.isClean && world.machine.summaries.isEmpty && world.records.count == 1
      #expect(isRight, "\(order.map(\.rawValue)) \(handset.violations) \(handset.shown) \(handset.ends)")
      if !isRight { return }
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  private func perform(_ event: Event, _ handset: Handset, _ world: World, _ leg: LegID, _ content: CallPush?) {
    switch event {
    case .push: if let content { handset.pushArrived(content) }
    case .tap: for call in handset.shown { handset.tap(.answer(call)) }
    case .cancel: if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) } else { world.carrier.cancel(leg) }
    case .mediaUp:
      handset.isMediaUp = true
      for call in handset.shown { handset.mediaIsUp(call, gen: 1) }
    case .drop: handset.drop()
    case .kill: handset.kill()
    }
  }

  /// What goes wrong in a call, at a random moment.
  private enum Fault: CaseIterable { case none, drop, kill, path, mediaFails, cancel, cellular, decline, background }

  @Test func `AUD-6, END-6: a thousand calls with random faults, one after the other: every call after a fault has audio`() {
    var (heard, calls) = (0, 0)
    for seed in UInt64(1)...20 {
      let random = RandomSource.seeded(seed)
      let world = World(seed: seed)
      world.killed("cell")
      let handset = Handset(world, device: "cell")
      for _ in 0..<25 {
        oneCall(Fault.allCases[Int(random.next() % UInt64(Fault.allCases.count))], random, world, handset)
        // and then one in which nothing is wrong
        handset.isMediaUp = true
        let leg = world.carrier.call()
        world.run(.seconds(2))
        if let call = handset.shown.first { handset.tap(.answer(call)) }
        world.run(.seconds(2))
        calls += 2
        if world.carrier.final(leg) == 200, handset.isAudioRunning, handset.listening != nil { heard += 1 }
        world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
        world.run(.seconds(70))
        #expect(handset.shown.isEmpty && !handset.isAudioRunning && handset.audio.last == .release || handset.audio.isEmpty)
      }
      #expect(handset.violations == [])
      Invariants.check(world, abandoned: ["cell"])
    }
    #expect(calls == 1_000 && heard == 500)
  }

  private func oneCall(_ fault: Fault, _ random: RandomSource, _ world: World, _ handset: Handset) {
    let leg = world.carrier.call()
    let when = Duration.milliseconds(Int64(random.next() % 3_000))
    world.after(when) {
      switch fault {
      case .none: break
      case .drop: handset.drop()
      case .kill: handset.kill()
      case .path: handset.moveNetwork()
      case .mediaFails:
        handset.isMediaUp = false
        for call in handset.shown { handset.mediaFails(call) }
      case .cancel: world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
      case .cellular:
        handset.cellular(true)
        handset.cellular(false)
      case .decline: for call in handset.shown { handset.tap(.end(call)) }
      case .background: handset.background()
      }
    }
    world.run(.milliseconds(1_200))
    if let call = handset.shown.first { handset.tap(.answer(call)) }
    world.run(.seconds(4))
    world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
    world.run(.seconds(70))
  }
}
