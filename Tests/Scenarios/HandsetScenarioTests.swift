import AppleStandIn
import CallFlow
import CallModel
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// The SDK's machine on the stand-in's, with the real gateway, all on virtual time.
@Suite struct HandsetScenarioTests {
  /// A device that has registered, whose app was killed and whose telephone is locked.
  private func handset(_ world: World, _ rules: SystemRules = .strict) -> Handset {
    world.killed("cell")
    return Handset(world, device: "cell", rules: rules)
  }

  @Test(arguments: [true, false])
  func `INC-1, INC-8, PUSH-2, AUD-5, AUD-7: a killed app is woken by a push, rings, is answered, heard, and hung up`(
    hasToken: Bool
  )
    throws
  {
    let world = World()
    let handset = handset(world)
    handset.hasToken = hasToken  // before the first unlock there is none
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    #expect(handset.system.calls[call]?.phase == .ringing && handset.audio == [])
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(world.carrier.final(leg) == 200 && handset.system.calls[call]?.phase == .active)
    #expect(handset.isAudioRunning && handset.audio == [.configure, .start])
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    #expect(handset.ends[call] == [.remoteEnded] && handset.audio == [.configure, .start, .stop, .release])
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `ANS-1: a tap before the socket is kept, with its age`() throws {
    let world = World()
    let handset = handset(world)
    world.appDelay = .milliseconds(700)
    let leg = world.carrier.call()
    world.run(.milliseconds(500))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.seconds(10))
    #expect(world.carrier.final(leg) == 200 && handset.isAudioRunning)
    let times = try #require(world.machine.summaries.first?.times)
    #expect(try #require(times["answered"]) - #require(times["tap"]) > 1_000)
    handset.tap(.end(call))
    world.run(.seconds(5))
    #expect(world.carrier.heardBye(leg) && handset.ends[call] == nil, "the user ended it on the screen")
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `END-5: the caller gives up at any moment of a wake: nothing is left on the screen`() {
    for milliseconds in stride(from: 0, through: 900, by: 20) {
      let world = World()
      let handset = handset(world)
      let leg = world.carrier.call()
      world.run(.milliseconds(milliseconds))
      world.carrier.cancel(leg)
      world.run(.seconds(25))
      #expect(world.carrier.final(leg) == 487 && handset.shown == [], "after \(milliseconds) ms")
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  @Test func `declined in a killed app, at any moment: the caller hears it`() throws {
    for milliseconds in stride(from: 400, through: 900, by: 20) {
      let world = World()
      let handset = handset(world)
      let leg = world.carrier.call()
      world.run(.milliseconds(milliseconds))
      let call = try #require(handset.shown.first)
      handset.tap(.end(call))
      world.run(.seconds(5))
      #expect(world.carrier.final(leg) == 486, "after \(milliseconds) ms")
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  @Test
  func
    `OUT-2, OUT-3: an outgoing call: audio is configured in the action, connecting and connected are reported once, on real events`()
    throws
  {
    let world = World()
    let handset = handset(world)
    handset.open()
    world.run(.seconds(1))
    let call = Identifier(high: 4, low: 2)
    handset.dial(call, "+15557654321")
    world.run(.milliseconds(25))
    #expect(handset.audio == [.configure] && handset.outgoing == [])
    world.run(.seconds(3))
    #expect(handset.system.calls[call]?.isOutgoing == true && handset.system.calls[call]?.phase == .active)
    #expect(handset.outgoing == ["connecting", "connected at true"] && handset.isAudioRunning)
    handset.tap(.end(call))
    world.run(.seconds(3))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test(arguments: [true, false]) func `an app that is started to dial, from Recents, dials as soon as it has its login`(
    hasPush: Bool
  ) throws {
    let world = World()
    let handset = handset(world)
    handset.tokenTime = .seconds(1)
    // the session of a push is up first: it may not dial
    let leg = hasPush ? world.carrier.call() : nil
    if hasPush { world.run(.milliseconds(500)) }
    handset.open()
    let call = Identifier(high: 4, low: 2)
    handset.dial(call, "+15557654321")
    world.run(.milliseconds(hasPush ? 100 : 900))
    #expect(handset.shown.contains(call) && world.sentINVITEs.isEmpty)
    if let leg { world.carrier.cancel(leg) }
    world.run(.seconds(4))
    #expect(handset.system.calls[call]?.phase == .active && handset.isAudioRunning)
    handset.tap(.end(call))
    world.run(.seconds(3))
    Invariants.check(world, abandoned: ["cell"])
  }

  /// A call that is answered and heard.
  private func active(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing })
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(handset.system.calls[call]?.phase == .active && handset.isAudioRunning)
    return (leg, call)
  }

  @Test(arguments: [true, false]) func `AUD-2, MID-2: hold and unhold on the screen, with didActivate and without (R9)`(
    activates: Bool
  ) throws {
    let world = World()
    var rules = SystemRules.strict
    rules.activatesAfterUnhold = activates
    let handset = handset(world, rules)
    let (leg, call) = try active(world, handset)
    handset.tap(.hold(call, true))
    world.run(.seconds(1))
    #expect(!handset.isAudioRunning && world.machine.summaries.first?.held == true)
    handset.tap(.hold(call, false))
    world.run(.seconds(2))
    #expect(handset.isAudioRunning && world.machine.summaries.first?.held == false)
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `MID-1: the app resumes a call, answers one, or dials while another talks: the other is held first`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, first) = try active(world, handset)
    let second = world.carrier.call()
    world.run(.seconds(1))
    let ringing = try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing })
    handset.act(ringing, .answer)
    world.run(.seconds(2))
    #expect(handset.listening == ringing && handset.system.calls[first]?.isHeld == true)
    handset.act(first, .hold(false))
    world.run(.seconds(2))
    #expect(handset.listening == first && handset.system.calls[ringing]?.isHeld == true)
    #expect(handset.system.calls[first]?.isHeld == false)
    world.carrier.hangUp(second)
    world.run(.seconds(1))
    handset.dial(CallID(high: 9, low: 9), "+15557770009")
    world.run(.seconds(1))
    #expect(handset.system.calls[first]?.isHeld == true)
    handset.tap(.end(CallID(high: 9, low: 9)))
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test
  func `a call without a path lives for as long as the gateway waits, and its media restarts once the gateway is reachable`()
    throws
  {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    handset.isLinkUp = false
    handset.drop()
    world.run(.seconds(5))
    handset.mediaFails(call)
    world.run(.seconds(30))
    #expect(handset.restarts == 0)
    #expect(handset.system.calls[call]?.phase == .active, "the phone gave it up by itself")
    handset.isLinkUp = true
    world.run(.seconds(8))
    #expect(handset.restarts == 1 && handset.system.calls[call]?.phase == .active)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  /// R28: the unit is recreated once the route has its rate.
  @Test func `AUD-2: a route of another sample rate, and a reset of the media services, restart the audio unit once`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    handset.route(.bluetooth)
    world.run(.milliseconds(200))
    #expect(handset.audio.filter { $0 == .restart }.count == 1 && handset.isAudioRunning)
    handset.tap(.hold(call, true))
    world.run(.seconds(1))
    handset.route(.receiver)
    world.run(.seconds(1))
    #expect(handset.audio.filter { $0 == .restart }.count == 1, "nothing runs that could be restarted")
    handset.tap(.hold(call, false))
    world.run(.seconds(2))
    handset.resetMediaServices()
    world.run(.seconds(1))
    #expect(handset.audio.suffix(2) == [.configure, .restart] && handset.isAudioRunning, "\(handset.audio)")
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `EXC-2: a cellular call holds ours; its end resumes nothing, the user does`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    handset.cellular(true)
    world.run(.seconds(1))
    #expect(!handset.isAudioRunning && handset.system.calls[call]?.isHeld == true)
    handset.cellular(false)
    world.run(.seconds(5))
    #expect(!handset.isAudioRunning)
    handset.tap(.hold(call, false))
    world.run(.seconds(2))
    #expect(handset.isAudioRunning)
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test(arguments: [true, false]) func `a second call: Hold & Accept, End & Accept`(holds: Bool) throws {
    let world = World()
    let handset = handset(world)
    let (first, call) = try active(world, handset)
    let second = world.carrier.call()
    world.run(.seconds(1))
    let other = try #require(handset.shown.first { $0 != call })
    handset.tap(holds ? .holdAndAnswer(other) : .endAndAnswer(other))
    world.run(.seconds(2))
    #expect(world.carrier.final(second) == 200 && handset.isAudioRunning)
    #expect(handset.system.calls[call]?.phase == (holds ? .active : .ended) && handset.system.calls[call]?.isHeld == holds)
    #expect(world.carrier.heardBye(first) == !holds)
    world.carrier.hangUp(second)
    world.run(.seconds(1))
    if holds {
      handset.tap(.hold(call, false))
      world.run(.seconds(2))
      #expect(handset.isAudioRunning)
      world.carrier.hangUp(first)
      world.run(.seconds(1))
    }
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `an app that was killed in its call gives it up when it is back`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, _) = try active(world, handset)
    handset.kill()
    world.run(.seconds(2))
    handset.open()
    world.run(.seconds(2))
    #expect(world.carrier.heardBye(leg) && world.records.last?.end.reason == .appRestart)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test(arguments: [true, false])
  func `a late push of the call that the app was killed in: the call is given up, and does not ring`(
    hasToken: Bool
  ) throws {
    let world = World()
    let handset = handset(world)
    var content: CallPush?
    world.pushContent = { content = $0 }
    let (leg, _) = try active(world, handset)
    handset.kill()
    handset.hasToken = hasToken
    world.run(.seconds(1))
    handset.pushArrived(try #require(content))
    world.run(.seconds(1))
    #expect(handset.shown == [] && world.carrier.heardBye(leg) && world.records.last?.end.reason == .appRestart)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `answered elsewhere at any moment: one winner, and the screen says why`() throws {
    for milliseconds in stride(from: 360, through: 800, by: 20) {
      let world = World()
      let handset = handset(world)
      let desk = world.app("desk") { $0.answersAfter = .milliseconds(milliseconds) }
      let leg = world.carrier.call()
      world.run(.milliseconds(500))
      if let call = handset.shown.first { handset.tap(.answer(call)) }
      world.run(.seconds(5))
      let call = try #require(desk.offered.first)
      #expect(desk.won.contains(call) != handset.isAudioRunning, "after \(milliseconds) ms")
      #expect(world.carrier.final(leg) == 200)
      if desk.won.contains(call) { #expect(handset.ends[call] == [.answeredElsewhere]) }
      world.carrier.hangUp(leg)
      world.run(.seconds(2))
      Invariants.check(world, abandoned: ["cell"])
    }
  }
}
