import AppleStandIn
import CallFlow
import CallModel
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// The twelve classes of complaints about calling SDKs (Twilio's, Linphone's, Element's, CallKeep's and others'), each as a run
/// of the whole stack that would show it: SDK, the system's rules, gateway, push service.
@Suite struct ComplaintTests {
  /// A device that has registered, whose app was killed and whose telephone is locked.
  private func killed(_ world: World, _ rules: SystemRules = .strict) -> Handset {
    world.killed("cell")
    let handset = Handset(world, device: "cell", rules: rules)
    handset.lock()
    return handset
  }

  private func active(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing })
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(handset.system.calls[call]?.phase == .active && handset.isAudioRunning)
    return (leg, call)
  }

  private func end(_ world: World, _ legs: LegID...) {
    for leg in legs { world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg) }
    world.run(.seconds(5))
    Invariants.check(world, abandoned: ["cell", "desk", "old"])
  }

  @Test func `killed, push never reported; delivery later stops`() throws {
    let world = World()
    let handset = killed(world)
    // unreadable payloads, then calls that end before the app runs
    for _ in 0..<4 {
      handset.unreadablePushArrived()
      world.run(.seconds(2))
    }
    for _ in 0..<4 {
      handset.kill()
      let leg = world.carrier.call()
      world.run(.milliseconds(100))
      world.carrier.cancel(leg)
      world.run(.seconds(5))
    }
    #expect(handset.violations == [] && handset.system.kills == 0 && handset.shown == [])
    let (leg, _) = try active(world, handset)
    end(world, leg)
  }

  private enum Ghost: CaseIterable { case killed, open, offline }

  @Test(arguments: Ghost.allCases) private func `push after hangup, ghost ringing`(app: Ghost) throws {
    let world = World()
    let handset = killed(world)
    world.pushService = { _ in (.seconds(20), .accepted, true) }
    let leg = world.carrier.call()
    world.run(.seconds(5))
    world.carrier.cancel(leg)
    world.run(.seconds(5))
    // its session began after the call, and does not contain it
    if app == .open { handset.open() }
    world.run(.milliseconds(app == .open ? 10_010 : 10_305))
    let call = try #require(handset.shown.first, "the system wants to see every push")
    if app == .offline { handset.isLinkUp = false }
    world.run(app == .offline ? .seconds(15) : .milliseconds(300))
    #expect(handset.shown == [] && handset.ends[call] == [app == .offline ? .failed : .remoteEnded])
    end(world)
  }

  @Test func `double ringing, duplicate call`() throws {
    let world = World()
    let handset = killed(world)
    handset.open()
    world.run(.seconds(1))
    // the push token changes, and is registered twice
    for digit in ["0a", "0b", "0b"] {
      handset.pushToken(
        .init(kind: .apnsVoIP, token: String(repeating: digit, count: 32), env: "production", topic: "org.example.voip"))
      world.run(.milliseconds(200))
    }
    // the offer is so late that the gateway pushes too, and the push arrives twice
    handset.isLinkUp = false
    var content: CallPush?
    world.pushContent = { content = $0 }
    let leg = world.carrier.call()
    world.run(.seconds(3))
    if let content { handset.pushArrived(content) }
    handset.isLinkUp = true
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    #expect(world.pushes.count == 1 && handset.shown.count == 1 && handset.accepted == [call: 1])
    handset.tap(.answer(call))
    world.run(.seconds(1))
    #expect(world.carrier.final(leg) == 200 && handset.isAudioRunning && handset.infos.count == 1)
    end(world, leg)
  }

  private enum Elsewhere: CaseIterable { case answered, declined, answeredWhileOffline }

  @Test(arguments: Elsewhere.allCases) private func `answered or declined elsewhere keeps ringing`(how: Elsewhere) throws {
    let world = World()
    let handset = killed(world)
    let desk = world.app("desk")
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    if how == .answeredWhileOffline { handset.isLinkUp = false }
    if how == .answeredWhileOffline { handset.drop() }
    if how == .declined {
      desk.send(.callReject(CallReject(reason: .declined)), call: call)
    } else {
      desk.tap(call)
    }
    world.run(.milliseconds(500))
    #expect(world.carrier.final(leg) == (how == .declined ? 486 : 200))
    handset.isLinkUp = true
    world.run(.milliseconds(500))
    #expect(handset.shown == [] && handset.ends[call] == [how == .declined ? .declinedElsewhere : .answeredElsewhere])
    end(world, leg)
  }

  private enum Obstacle: CaseIterable { case slow, drop, none }

  @Test(arguments: Obstacle.allCases) private func `answer before connection, stuck connecting, lost event`(obstacle: Obstacle)
    throws
  {
    let world = World()
    let handset = killed(world)
    if obstacle == .slow { world.appDelay = .milliseconds(700) }
    if obstacle == .none { handset.isLinkUp = false }
    let leg = world.carrier.call()
    world.run(.milliseconds(400))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.milliseconds(30))
    if obstacle == .drop { handset.drop() }
    world.run(.seconds(10))
    if obstacle == .none {
      #expect(handset.system.calls[call]?.phase == .answering, "it connects")
      world.run(.seconds(10))
      #expect(handset.shown == [] && handset.ends[call] == [.failed] && handset.completed.map(\.isDone) == [false])
      handset.isLinkUp = true
    } else {
      #expect(world.carrier.final(leg) == 200 && handset.completed.map(\.isDone) == [true] && handset.isAudioRunning)
      #expect(handset.infos[call]?.state == .connected)
    }
    end(world, leg)
  }

  @Test(arguments: [50, 600, nil] as [Int?]) func `no or one-way audio, lock screen`(milliseconds: Int?) throws {
    var rules = SystemRules.strict
    rules.activationTime = milliseconds.map { .milliseconds($0) }
    let world = World()
    let handset = killed(world, rules)
    for _ in 0..<2 {
      let (leg, call) = try active(world, handset)
      #expect(handset.listening == call && handset.system.isAudioActive == (milliseconds != nil))
      #expect(
        world.traces.contains { $0.call == call && $0.stage == .mediaActive }, "the gateway keeps the first words until then")
      world.carrier.hangUp(leg)
      world.run(.seconds(2))
      #expect(handset.audio.last == .release && handset.violations == [])
    }
    end(world)
  }

  @Test func `hold and mute out of sync`() throws {
    var rules = SystemRules.strict
    (rules.muteBursts, rules.unmutesOnConnect, rules.activatesAfterUnhold) = (2, true, false)
    let world = World()
    let handset = killed(world, rules)
    let (leg, call) = try active(world, handset)
    func agree(muted: Bool, held: Bool) {
      world.run(.milliseconds(1_500))
      let (screen, app, gateway) = (handset.system.calls[call], handset.infos[call], world.machine.summaries.first)
      #expect(screen?.isMuted == muted && app?.isMuted == muted && gateway?.muted == muted)
      #expect(screen?.isHeld == held && app?.isHeld == held && gateway?.held == held && handset.isAudioRunning == !held)
    }
    agree(muted: false, held: false)
    handset.act(call, .mute(true))
    agree(muted: true, held: false)
    handset.tap(.hold(call, true))
    agree(muted: true, held: true)
    handset.open()  // the system's burst
    handset.tap(.mute(call, false))
    handset.act(call, .hold(false))
    agree(muted: false, held: false)
    handset.cellular(true)
    agree(muted: false, held: true)
    handset.cellular(false)
    agree(muted: false, held: true)
    handset.act(call, .hold(false))
    agree(muted: false, held: false)
    end(world, leg)
  }

  @Test(arguments: [true, false]) func `decline not signalled`(hasToken: Bool) throws {
    for milliseconds in stride(from: 350, through: 1_400, by: 50) {
      let world = World()
      let handset = killed(world)
      handset.hasToken = hasToken
      world.appDelay = .milliseconds(200)
      let leg = world.carrier.call()
      world.run(.milliseconds(milliseconds))
      let call = try #require(handset.shown.first)
      handset.tap(.end(call))
      world.run(.seconds(1))
      #expect(world.carrier.final(leg) == 486, "after \(milliseconds) ms")
      end(world)
    }
  }

  @Test func `stale or foreign token, calls after logout or reinstall`() throws {
    let world = World()
    let token = DevicePut.Push(
      kind: .apnsVoIP, token: String(repeating: "0c", count: 32), env: "production", topic: "org.example.voip")
    // the app that was installed before had the same push token, under another device id
    let old = world.app("old")
    old.send(.devicePut(DevicePut(push: token)))
    world.run(.seconds(1))
    old.kill()
    world.run(.seconds(6))
    let handset = Handset(world, device: "cell")
    handset.open()
    handset.pushToken(token)
    world.run(.seconds(1))
    handset.background()
    world.run(.seconds(6))
    var content: CallPush?
    world.pushContent = { content = $0 }
    func push() -> Int {
      let before = world.pushes.count
      let leg = world.carrier.call()
      world.run(.seconds(2))
      world.carrier.cancel(leg)
      world.run(.seconds(7))
      return world.pushes.count - before
    }
    #expect(push() == 1 && world.pushes.last?.key.device == "cell", "one telephone, one push")
    handset.open()
    world.run(.seconds(1))
    handset.logOut()
    world.run(.seconds(1))
    #expect(handset.state == .loggedOut && push() == 0, "nobody is logged in there")
    // a push that was under way
    if let content { handset.pushArrived(content) }
    world.run(.milliseconds(100))
    #expect(handset.shown == [] && handset.violations == [] && handset.callers.last?.n == nil)
    #expect(handset.callers.last?.h == "Unknown")
    // 410: the app was removed from a telephone
    let gone = world.app("gone")
    gone.register()
    world.run(.seconds(1))
    gone.kill()
    world.run(.seconds(6))
    world.pushService = { _ in (.milliseconds(40), .unregistered(before: nil), false) }
    #expect(push() == 1 && push() == 0)
    Invariants.check(world, abandoned: ["cell", "old", "gone"])
  }

  @Test func `wrong durations, outgoing shown cancelled, stuck call`() throws {
    let world = World()
    let handset = killed(world)
    func stage(_ call: CallID, _ stage: CallStage) -> Int64? {
      (world.machine.summaries.first { $0.call == call }?.times ?? world.records.first { $0.call == call }?.times)?[
        stage.rawValue]
    }
    let (leg, incoming) = try active(world, handset)
    #expect(try #require(handset.infos[incoming]?.connectedAt) == stage(incoming, .connected))
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    handset.open()
    world.run(.seconds(1))
    world.carrier.answers = [(.milliseconds(500), 180), (.seconds(3), 200)]
    let outgoing = Identifier(high: 4, low: 2)
    handset.dial(outgoing, "+15557654321")
    world.run(.seconds(2))
    #expect(handset.system.calls[outgoing]?.phase == .connecting && handset.outgoing == ["connecting"], "it rings there")
    world.run(.seconds(3))
    #expect(handset.system.calls[outgoing]?.phase == .active && handset.outgoing == ["connecting", "connected at true"])
    #expect(try #require(handset.infos[outgoing]?.connectedAt) == stage(outgoing, .connected))
    world.carrier.hangUp(try #require(world.carrier.inboundLeg))
    world.run(.seconds(1))
    #expect(handset.system.calls[outgoing]?.ended == .remoteEnded && handset.shown == [])
    // busy at the called party: the call was not cancelled here
    world.carrier.answers = [(.milliseconds(500), 486)]
    let busy = Identifier(high: 4, low: 3)
    handset.dial(busy, "+15557654321")
    world.run(.seconds(3))
    #expect(handset.system.calls[busy]?.ended == .unanswered && handset.infos[busy]?.reason == .busy && handset.shown == [])
    end(world)
  }

  @Test func `handover loses audio`() throws {
    let world = World()
    let handset = killed(world)
    let (leg, call) = try active(world, handset)
    let events = world.carrier.events.count
    for generation in 2...4 {
      handset.moveNetwork()
      // the old pair serves meanwhile
      #expect(handset.isAudioRunning && handset.listening == call)
      world.run(.seconds(1))
      #expect(handset.described[call] == generation && handset.ready[call] == generation, "media is made anew")
      #expect(world.media.up.values.allSatisfy { !$0.isEmpty } && handset.state == .online)
    }
    #expect(handset.audio == [.configure, .start], "the device never noticed")
    #expect(world.carrier.events.count == events && handset.system.calls[call]?.phase == .active, "nor did the trunk")
    end(world, leg)
  }

  @Test func `provider token churn`() throws {
    let world = World()
    let handset = killed(world)
    let service = try ScriptedAPNs(world)
    // two calls every ten minutes, for half a day
    for _ in 0..<72 {
      for _ in 0..<2 {
        let leg = world.carrier.call()
        world.run(.seconds(2))
        world.carrier.cancel(leg)
        world.run(.seconds(5))
        handset.kill()
        world.run(.seconds(5))
      }
      world.run(.seconds(576))
    }
    #expect(service.tokens.count == 144)
    let issued = service.issued
    #expect(issued.count == 15, "one every fifty minutes")
    for (earlier, later) in zip(issued, issued.dropFirst()) { #expect(later - earlier >= 20 * 60 && later - earlier <= 60 * 60) }
    #expect(service.connections.count == 1)
    end(world)
  }
}
