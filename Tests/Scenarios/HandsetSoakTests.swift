import AppleStandIn
import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// Many calls of one telephone, one after the other.
@Suite struct HandsetSoakTests {
  /// What goes wrong in a call, at a random moment.
  private enum Fault: CaseIterable {
    case none, drop, kill, path, mediaFails, cancel, cellular, decline, background, reset, lost
  }

  @Test func `AUD-6, END-6: a thousand calls with random faults: after every one the next call has audio`() {
    var (heard, faults) = (0, 0)
    for seed in UInt64(1)...40 {
      let random = RandomSource.seeded(seed)
      let world = World(seed: seed)
      world.killed("cell")
      let handset = Handset(world, device: "cell")
      for _ in 0..<25 {
        let fault = Fault.allCases[Int(random.next() % UInt64(Fault.allCases.count))]
        oneCall(fault, random, world, handset)
        faults += 1
        // and then one in which nothing is wrong
        handset.isMediaUp = true
        handset.isLinkUp = true
        let leg = world.carrier.call()
        world.run(.seconds(2))
        if let call = handset.shown.first { handset.tap(.answer(call)) }
        world.run(.seconds(2))
        let hasAudio = world.carrier.final(leg) == 200 && handset.isAudioRunning && handset.listening != nil
        if hasAudio { heard += 1 }
        #expect(hasAudio, "seed \(seed): after \(fault)")
        world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
        world.run(.seconds(70))
        let left = handset.leftovers()
        #expect(left.isEmpty, "seed \(seed): after \(fault): \(left)")
      }
      Invariants.check(world, abandoned: ["cell"])
    }
    #expect(faults == 1_000 && heard == 1_000)
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
      case .reset: handset.reset()
      case .lost: handset.isLinkUp = false
      }
    }
    world.run(.milliseconds(1_200))
    if let call = handset.shown.first { handset.tap(.answer(call)) }
    world.run(.seconds(4))
    world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
    world.run(.seconds(70))
  }
}
