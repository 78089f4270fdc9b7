import AppleStandIn
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// What surrounds a call of a handset: background, logout, moving networks, a third call, media that fails.
@Suite struct HandsetSessionTests {
  private func handset(_ world: World, _ rules: SystemRules = .strict) -> Handset {
    world.killed("cell")
    return Handset(world, device: "cell", rules: rules)
  }

  private func active(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing })
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(handset.system.calls[call]?.phase == .active && handset.isAudioRunning && handset.listening == call)
    return (leg, call)
  }

  @Test func `INC-9, END-2: the caller cancels before the socket is there: the screen says so, not that the call failed`() throws
  {
    let world = World()
    let handset = handset(world)
    world.appDelay = .milliseconds(400)
    let leg = world.carrier.call()
    world.run(.milliseconds(500))
    let call = try #require(handset.shown.first)
    world.carrier.cancel(leg)
    world.run(.seconds(5))
    #expect(handset.ends[call] == [.remoteEnded])
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `in the background without a call the socket is let go; a push brings it back`() throws {
    let world = World()
    let handset = handset(world)
    handset.open()
    world.run(.seconds(1))
    #expect(handset.isOnline && handset.state == .online)
    handset.background()
    world.run(.seconds(1))
    #expect(!handset.isOnline && handset.state == .idle)
    let (leg, _) = try active(world, handset)
    #expect(handset.isOnline, "with a call it stays")
    world.run(.seconds(60))
    #expect(handset.isOnline && world.records.isEmpty)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    #expect(!handset.isOnline)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `a third call is busy for this device, and the other device rings on`() throws {
    let world = World()
    let handset = handset(world)
    let (first, _) = try active(world, handset)
    let second = world.carrier.call()
    world.run(.seconds(1))
    let desk = world.app("desk")
    let third = world.carrier.call()
    world.run(.seconds(2))
    #expect(handset.shown.count == 2 && world.carrier.final(third) == nil && desk.offered.count == 2)
    for leg in [second, third] { world.carrier.cancel(leg) }
    world.carrier.hangUp(first)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `declined before the socket is there, it goes by HTTP, and once`() throws {
    let world = World()
    let handset = handset(world)
    world.appDelay = .milliseconds(300)
    let leg = world.carrier.call()
    world.run(.milliseconds(450))
    let call = try #require(handset.shown.first)
    handset.tap(.end(call))
    world.run(.milliseconds(400))
    #expect(handset.posts == 1 && world.carrier.final(leg) == 486, "before the socket could say it")
    world.run(.seconds(5))
    #expect(world.records.count == 1)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `a path change in a call: a new socket, new media, and nobody notices`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    for _ in 0..<3 {
      handset.moveNetwork()
      world.run(.seconds(1))
      #expect(handset.isOnline && handset.state == .online && handset.isAudioRunning)
    }
    handset.tap(.hold(call, true))
    world.run(.seconds(1))
    #expect(world.machine.summaries.first?.held == true, "the session goes on")
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    #expect(handset.audio.count { $0 == .configure } == 1)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `a fresh session at any moment of a call that rings: tapped, it is heard`() throws {
    for milliseconds in stride(from: 300, through: 900, by: 10) {
      let world = World()
      let handset = handset(world)
      let leg = world.carrier.call()
      world.after(.milliseconds(milliseconds)) { handset.drop(.overflow) }
      world.run(.seconds(2))
      let call = try #require(handset.shown.first)
      handset.tap(.answer(call))
      world.run(.seconds(4))
      #expect(world.carrier.final(leg) == 200 && handset.isAudioRunning, "after \(milliseconds) ms")
      world.carrier.hangUp(leg)
      world.run(.seconds(2))
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  @Test func `audio that cannot be configured after the tap: the other side hears the end at once, not silence`() throws {
    let world = World()
    let handset = handset(world)
    handset.isAudioBroken = true
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.milliseconds(100))
    #expect(world.carrier.heardBye(leg) || world.carrier.final(leg) == 480)
    #expect(handset.ends[call] == [.failed] && handset.audio == [.configure, .release])
    #expect(world.records.last?.end.reason == .mediaFailed)
    world.run(.seconds(10))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `a path change while it rings, and while the tap waits`() throws {
    for milliseconds in stride(from: 0, through: 1_000, by: 50) {
      let world = World()
      let handset = handset(world)
      let leg = world.carrier.call()
      world.run(.milliseconds(500))
      let call = try #require(handset.shown.first)
      world.after(.milliseconds(milliseconds)) { handset.moveNetwork() }
      world.run(.milliseconds(300))
      handset.tap(.answer(call))
      world.run(.seconds(4))
      #expect(world.carrier.final(leg) == 200 && handset.isAudioRunning, "after \(milliseconds) ms")
      world.carrier.hangUp(leg)
      world.run(.seconds(2))
      Invariants.check(world, abandoned: ["cell"])
    }
  }

  @Test func `media that fails after the tap is made anew once, and the call is heard`() throws {
    let world = World()
    let handset = handset(world)
    handset.isMediaUp = false
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.seconds(1))
    handset.isMediaUp = true
    handset.mediaFails(call)
    world.run(.seconds(3))
    #expect(world.carrier.final(leg) == 200 && handset.isAudioRunning)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `ANS-2: media that never comes: the action fails, the end is reported as failed, each once, and 480 to the trunk`()
    throws
  {
    let world = World()
    let handset = handset(world)
    handset.isMediaUp = false
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.seconds(1))
    handset.mediaFails(call)
    world.run(.seconds(1))
    handset.mediaFails(call)
    world.run(.seconds(30))
    #expect(world.carrier.final(leg) == 480 && handset.ends[call] == [.failed])
    #expect(handset.completed.count { !$0.isDone } == 1)
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `a push of a call that was over before the session began: the screen says why, and soon`() throws {
    let world = World()
    let handset = handset(world)
    world.pushService = { _ in (.seconds(10), .accepted, true) }
    let leg = world.carrier.call()
    world.run(.seconds(1))
    world.carrier.cancel(leg)
    world.run(.seconds(1))
    handset.open()
    world.run(.milliseconds(8_010))
    let call = try #require(handset.shown.first)
    world.run(.milliseconds(100))
    #expect(handset.shown == [] && handset.ends[call] == [.remoteEnded])
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `TOK-3: a logout leaves the gateway's list before it is told`() throws {
    let world = World()
    let handset = handset(world)
    handset.open()
    handset.pushToken(.init(kind: .apnsVoIP, token: "0a0b", env: "production", topic: "org.example.voip"))
    world.run(.seconds(1))
    handset.logOut()
    world.run(.seconds(1))
    #expect(handset.state == .loggedOut && !handset.isOnline)
    let leg = world.carrier.call()
    world.run(.seconds(2))
    #expect(world.pushes.isEmpty && world.carrier.final(leg) == 480, "no device is left")
    Invariants.check(world)
  }

  @Test func `without a microphone the call is not shown, and rings elsewhere`() throws {
    let world = World()
    let handset = handset(world)
    handset.open()
    world.run(.seconds(1))
    handset.microphone(.denied)
    let desk = world.app("desk") { $0.answersAfter = .seconds(1) }
    let leg = world.carrier.call()
    world.run(.seconds(3))
    #expect(handset.shown.isEmpty && world.carrier.final(leg) == 200 && desk.won.count == 1)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test(arguments: [true, false])
  func `a call given up for want of the gateway's word is rejected for this device once it is reached`(
    hasDesk: Bool
  ) throws {
    let world = World()
    let handset = handset(world)
    if hasDesk { world.app("desk") }
    handset.isLinkUp = false
    let leg = world.carrier.call()
    world.run(.seconds(17))
    let call = try #require(handset.ends.first)
    #expect(handset.shown == [] && call.value == [.failed] && world.carrier.final(leg) == nil)
    handset.isLinkUp = true
    world.run(.seconds(2))
    let devices = try #require(hasDesk ? world.machine.summaries.first?.devices : []).map(\.device)
    #expect(world.carrier.final(leg) == (hasDesk ? nil : 480) && devices == (hasDesk ? ["desk"] : []))
    world.carrier.cancel(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `what a program mutes while the device is away is on its screen when it is back, with a session of its own`() throws
  {
    let world = World()
    let handset = handset(world)
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    handset.tap(.answer(call))
    world.run(.seconds(1))
    for isMuted in [true, false] {
      handset.isLinkUp = false
      handset.drop(.overflow)
      #expect(world.operate { .command(call, .mute(isMuted), $0) } == .done)
      world.run(.milliseconds(500))
      #expect(handset.system.calls[call]?.isMuted == !isMuted, "nobody has told it")
      handset.isLinkUp = true
      world.run(.seconds(5))
      #expect(handset.system.calls[call]?.isMuted == isMuted && handset.infos[call]?.isMuted == isMuted)
      #expect(world.machine.summaries.first?.muted == isMuted && handset.disagreements() == [])
    }
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `what is muted before the call is connected is muted at the gateway when it is`() throws {
    let world = World()
    let handset = handset(world)
    handset.isMediaUp = false
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(handset.shown.first)
    // a ringing call cannot be muted at the gateway
    handset.act(call, .mute(true))
    world.run(.seconds(1))
    handset.tap(.answer(call))
    world.run(.seconds(1))
    handset.isMediaUp = true
    handset.mediaIsUp(call, gen: 1)
    world.run(.seconds(1))
    #expect(handset.system.calls[call]?.isMuted == true && world.machine.summaries.first?.muted == true)
    #expect(handset.disagreements() == [])
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `a hold that the system gave up leaves the call as it was, also at the gateway`() throws {
    let world = World()
    let handset = handset(world)
    let (leg, call) = try active(world, handset)
    handset.isLinkUp = false
    handset.drop()
    handset.tap(.hold(call, true))
    world.run(.seconds(6))
    #expect(handset.system.calls[call]?.isHeld == false && handset.completed.count { $0.isDone } == 1)
    handset.isLinkUp = true
    world.run(.seconds(2))
    #expect(handset.disagreements() == [] && world.machine.summaries.first?.held == false && handset.isAudioRunning)
    world.carrier.hangUp(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test(arguments: [120, 1_000]) func `a reset of the system declines nothing: the other device rings on`(milliseconds: Int)
    throws
  {
    let world = World()
    let handset = handset(world)
    handset.launchTime = .milliseconds(50)
    world.app("desk")
    let leg = world.carrier.call()
    world.run(.milliseconds(milliseconds))
    #expect(handset.shown.count == 1)
    handset.reset()
    world.run(.seconds(2))
    #expect(handset.shown == [] && world.carrier.final(leg) == nil)
    #expect(world.machine.summaries.first?.devices.map(\.device) == ["desk"])
    world.carrier.cancel(leg)
    world.run(.seconds(2))
    Invariants.check(world, abandoned: ["cell"])
  }

  @Test func `MID-1, UI-2: the app's buttons and the system's, in any order: the last one counts, and nothing is done twice`()
    throws
  {
    for seed in UInt64(1)...200 {
      let random = RandomSource.seeded(seed)
      let world = World(seed: seed)
      let handset = handset(world)
      let (leg, call) = try active(world, handset)
      var (muted, held) = (false, false)
      for _ in 0..<8 {
        let isOn = random.next() % 2 == 0
        // what the system has not performed yet the phone cannot know
        var wait: Int64 = 100
        switch random.next() % 4 {
        case 0:
          (muted, _) = (isOn, handset.act(call, .mute(isOn)))
          wait = [0, 10, 400][Int(random.next() % 3)]
        case 1: (muted, _) = (isOn, handset.tap(.mute(call, isOn)))
        case 2:
          (held, _) = (isOn, handset.act(call, .hold(isOn)))
          wait = [0, 10, 400][Int(random.next() % 3)]
        default: (held, _) = (isOn, handset.tap(.hold(call, isOn)))
        }
        world.run(.milliseconds(wait))
      }
      world.run(.seconds(2))
      let screen = handset.system.calls[call]
      #expect(screen?.isMuted == muted && screen?.isHeld == held, "seed \(seed)")
      #expect(handset.infos[call]?.isMuted == muted && handset.infos[call]?.isHeld == held, "seed \(seed)")
      let gateway = world.machine.summaries.first
      #expect(gateway?.muted == muted && gateway?.held == held && handset.isAudioRunning == !held, "seed \(seed)")
      world.carrier.hangUp(leg)
      world.run(.seconds(2))
      Invariants.check(world, abandoned: ["cell"])
    }
  }
}
