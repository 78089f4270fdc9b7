import AppleStandIn
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// What the source documents require of an app, rule by rule, with the real gateway.
@Suite struct HandsetRequirementTests {
  private func handset(_ world: World, _ rules: SystemRules = .strict) -> Handset {
    world.killed("cell")
    return Handset(world, device: "cell", rules: rules)
  }

  /// A call that rings on the telephone.
  private func ringing(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let leg = world.carrier.call()
    world.run(.seconds(1))
    return (leg, try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing }))
  }

  private func active(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let (leg, call) = try ringing(world, handset)
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(handset.system.calls[call]?.phase == .active && handset.isAudioRunning)
    return (leg, call)
  }

  @Test func `INC-4: no connection after the report: the call ends as failed after 15 s, 20 s from the tap`() throws {
    for isTapped in [false, true] {
      let world = World()
      let handset = handset(world)
      world.appDelay = .seconds(100)
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(handset.shown.first)
      if isTapped { handset.tap(.answer(call)) }
      world.run(.seconds(isTapped ? 19 : 13))
      #expect(handset.shown == [call])
      world.run(.seconds(2))
      #expect(handset.shown == [] && handset.ends[call] == [.failed])
      world.carrier.cancel(leg)
      world.run(.seconds(200))
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  @Test(arguments: [true, false])
  func `INC-5, INC-6, EXC-1: do not disturb and the block list: no screen, no call in the app, others ring on`(
    isBlocked: Bool
  ) throws {
    var rules = SystemRules.strict
    if isBlocked { rules.blocked = ["+15550000042"] } else { rules.doesNotDisturb = true }
    let world = World()
    let handset = handset(world, rules)
    let desk = world.app("desk") { $0.answersAfter = .seconds(2) }
    let leg = world.carrier.call()
    world.run(.seconds(4))
    #expect(handset.shown == [] && handset.infos.values.allSatisfy { $0.state == .ended } && handset.ends.isEmpty)
    #expect(world.carrier.final(leg) == 200 && desk.won.count == 1)
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `INC-7: an app that is open is offered the call over its connection, without a push`() throws {
    let world = World()
    let handset = handset(world)
    handset.open()
    world.run(.seconds(1))
    let (leg, call) = try ringing(world, handset)
    #expect(world.pushes.isEmpty)
    handset.tap(.answer(call))
    world.run(.seconds(1))
    #expect(world.carrier.final(leg) == 200 && handset.presented == [call])
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `UI-1: the app's own screen is shown for a call that connects while the app is in front, and only then`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, _) = try active(world, handset)
    #expect(handset.presented == [], "answered on a locked screen")
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `PUSH-3: a push that need not be reported is reported once the gateway says that the call lives, and not before`()
    throws
  {
    for isOver in [false, true] {
      var rules = SystemRules.strict
      rules.mustReport = .unlessActive
      let world = World()
      let handset = handset(world, rules)
      let (first, call) = try active(world, handset)
      // the second call's offer is late: its push arrives first
      world.appDelay = .milliseconds(700)
      let second = world.carrier.call()
      world.run(.milliseconds(200))
      #expect(handset.shown == [call])
      if isOver { world.carrier.cancel(second) }
      world.run(.seconds(3))
      #expect(handset.shown.count == (isOver ? 1 : 2))
      world.carrier.cancel(second)
      world.carrier.hangUp(first)
      world.run(.seconds(5))
      #expect(handset.violations == [])
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  @Test func `ANS-3: an action for an unknown call is failed, and the end of an unknown call is fulfilled`() {
    var phone = PhoneMachine(.init(device: Hello.Device(id: "cell")), random: .seeded(1))
    let stranger = Identifier(high: 9, low: 9)
    for (request, isDone) in [
      (SystemRequest.answer(stranger), false), (.hold(stranger, true), false), (.mute(stranger, true), false),
      (.digits(stranger, "1"), false),
      (.start(stranger, Handle(k: .phone, h: "1")), false), (.end(stranger), true),
    ] {
      var out: [PhoneMachine.Action] = []
      phone.handle(.perform(.init(1), request), at: .zero, into: &out)
      guard case .complete(.init(1), isDone)? = out.first, out.count == 1 else {
        Issue.record("\(request): \(out)")
        continue
      }
    }
  }

  @Test func `ACT-2: an action that the system has given up is not completed, and the call is cleaned up`() throws {
    var rules = SystemRules.strict
    rules.answerTime = .seconds(4)
    let world = World()
    let handset = handset(world, rules)
    handset.isMediaUp = false
    let (leg, call) = try ringing(world, handset)
    handset.tap(.answer(call))
    world.run(.seconds(30))
    #expect(handset.shown == [] && handset.completed.count { $0.isDone } == 0)
    #expect(world.carrier.final(leg) == 480 && world.records.count == 1)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `END-1, END-3: a hang-up by the app's button goes through the system, ends the call, then gives the audio back`()
    throws
  {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    handset.act(call, .end)
    world.run(.seconds(1))
    #expect(world.carrier.heardBye(leg) && handset.ends[call] == nil && handset.completed.last?.isDone == true)
    #expect(handset.audio == [.configure, .start, .stop, .release])
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test(arguments: [0, 1, 2, 3]) func `END-4, AUD-3: the system's reset ends the call in each state, and gives the audio back`(
    stage: Int
  ) throws {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try ringing(world, handset)
    if stage > 0 { handset.tap(.answer(call)) }
    if stage > 1 { world.run(.seconds(1)) }
    if stage > 2 { handset.tap(.hold(call, true)) }
    if stage > 2 { world.run(.seconds(1)) }
    handset.reset()
    world.run(.seconds(40))
    #expect(handset.phone?.liveCalls == [] && !handset.isAudioRunning)
    #expect(world.carrier.final(leg) == 200 ? world.carrier.heardBye(leg) : world.carrier.final(leg) != nil)
    world.carrier.cancel(leg)
    world.run(.seconds(5))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test
  func `OUT-5: the gateway's switch to a telephone number leaves the audio device alone: configured once, given back once`()
    throws
  {
    let mobile = Diversions.Rule(.number("+15558887777", showsCaller: false))
    let world = World { _, routing in routing.users[0].diversions = Diversions([.mediaFailed: mobile]) }
    let handset = handset(world)
    handset.isMediaUp = false
    let (leg, call) = try ringing(world, handset)
    handset.tap(.answer(call))
    world.run(.seconds(1))
    handset.mediaFails(call)
    world.run(.seconds(1))
    handset.mediaFails(call)
    world.run(.seconds(5))
    // the call continues at the number, without this telephone
    #expect(world.invites.count == 1 && world.carrier.final(leg) == 200 && world.machine.summaries.first?.state == .connected)
    #expect(handset.shown == [] && handset.audio == [.configure, .release] && handset.ends[call] == [.failed])
    // the device is free for the next one
    handset.isMediaUp = true
    let (second, _) = try active(world, handset)
    #expect(handset.audio == [.configure, .release, .configure, .start])
    for leg in [leg, second] { world.carrier.hangUp(leg) }
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `EXC-3: system calls go first: ours is held as long as one is on, and nothing of ours takes the audio back`() throws
  {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    let requests = handset.audio.count
    handset.cellular(true)
    world.run(.seconds(1))
    #expect(handset.system.calls[call]?.isHeld == true && !handset.isAudioRunning && handset.listening == nil)
    // the app's own button asks the system, like any other; an interrupted session is activated for no call
    let second = world.carrier.call()
    world.run(.seconds(20))
    #expect(handset.audio.count == requests + 1 && handset.audio.last == .stop, "\(handset.audio)")
    #expect(
      handset.infos[call]?.isHeld == true && world.machine.summaries.contains { $0.held }, "the trunk hears that it is held")
    world.carrier.cancel(second)
    handset.cellular(false)
    world.run(.seconds(5))
    #expect(!handset.isAudioRunning, "its end resumes nothing")
    handset.act(call, .hold(false))
    world.run(.seconds(2))
    #expect(handset.isAudioRunning && handset.listening == call)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `TOK-1, TOK-2: the token is uploaded at login, at every update and after a wake; an invalidated one is deleted`()
    throws
  {
    let world = World()
    let handset = handset(world)
    handset.open()
    world.run(.seconds(1))
    let (old, new) = (String(repeating: "0a", count: 32), String(repeating: "0b", count: 32))
    func token(_ text: String) -> DevicePut.Push {
      .init(kind: .apnsVoIP, token: text, env: "production", topic: "org.example.voip")
    }
    handset.pushToken(token(old))
    world.run(.seconds(1))
    handset.background()
    world.run(.seconds(1))
    let (leg, call) = try ringing(world, handset)
    #expect(world.pushTargets.last == old)
    handset.pushToken(token(new))
    handset.tap(.end(call))
    world.run(.seconds(3))
    #expect(world.carrier.final(leg) == 486)
    world.carrier.cancel(world.carrier.call())
    world.run(.seconds(3))
    #expect(world.pushTargets.last == new)
    handset.pushToken(nil)
    handset.open()
    world.run(.seconds(2))
    handset.background()
    world.run(.seconds(2))
    let pushes = world.pushes.count
    let last = world.carrier.call()
    world.run(.seconds(2))
    #expect(world.pushes.count == pushes && world.carrier.final(last) != 200)
    world.carrier.cancel(last)
    world.run(.seconds(5))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `ACC-1: a call says which account it belongs to`() throws {
    let world = World { _, routing in routing.users[0].account = "work" }
    world.killed("cell") { $0.accounts = ["work"] }
    let handset = Handset(world, device: "cell")
    handset.accounts = ["work"]
    let (leg, call) = try ringing(world, handset)
    #expect(handset.infos[call]?.account == "work")
    world.carrier.cancel(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `INC-12: a name that the gateway learns later is shown by an update, not by another push`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try ringing(world, handset)
    let pushes = world.pushes.count
    world.give(.callerKnown(call, Handle(k: .phone, h: "+15550000042", n: "Jane Doe")))
    world.run(.seconds(1))
    #expect(handset.updates[call]?.last?.n == "Jane Doe" && handset.system.calls[call]?.caller.name == "Jane Doe")
    #expect(world.pushes.count == pushes)
    world.carrier.cancel(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `PERF-1: the call's record states how long the app took from its push`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, _) = try active(world, handset)
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    let ring = try #require(world.records.last?.ring)
    #expect(try #require(ring.reportMs) <= 2 && (try #require(ring.openMs)) >= 20)
    Invariants.check(world, abandoned: ["cell"])
  }
}
