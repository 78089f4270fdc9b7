import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

@Suite struct IncomingScenarioTests {
  @Test func `sequence 1: a warm call, answered with media up, ended by the caller (INC-2, INC-7, ANS-5, END-2)`() throws {
    let world = World()
    let phone = world.app("phone")
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(phone.offered.first)
    #expect(world.carrier.final(leg) == nil)
    phone.tap(call)
    // one way to the gateway, one to the carrier
    world.run(.milliseconds(15))
    #expect(world.carrier.final(leg) == 200)
    world.run(.seconds(10))
    #expect(phone.received(call) == ["call.offer", "call.connected"])
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    #expect(phone.received(call).last == "call.ended remoteHangup")
    let stages = world.traces.map(\.stage)
    for (earlier, later) in zip(
      [CallStage.start, .offered, .deviceRinging, .tap, .gateOpen, .connected, .acknowledged, .bye],
      [CallStage.offered, .deviceRinging, .tap, .gateOpen, .connected, .acknowledged, .bye, .ended])
    {
      #expect(try #require(stages.firstIndex(of: earlier)) < #require(stages.firstIndex(of: later)), "\(earlier) after \(later)")
    }
    Invariants.check(world)
  }

  @Test func `a socket that is gone for a second turns no caller away: the offer waits in the outbox`() throws {
    for (gone, returns) in [(0, 500), (500, 1_000), (4_500, 4_990), (500, nil), (4_500, nil)] as [(Int, Int?)] {
      let world = World()
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(300) }
      world.run(.seconds(1))
      phone.drop()
      if let returns { world.after(.milliseconds(returns)) { phone.connect(resuming: true) } }
      world.run(.milliseconds(gone))
      let leg = world.carrier.call()
      world.run(.milliseconds(4_980 - gone))
      #expect(world.carrier.final(leg) == (returns.map { $0 < 4_000 } == true ? 200 : nil))
      world.run(.seconds(2))
      #expect(world.carrier.final(leg) == (returns == nil ? 480 : 200))
      if returns != nil {
        #expect(phone.received.map(\.text).prefix(2) == ["call.offer", "call.connected"])
        world.carrier.hangUp(leg)
      }
      world.run(.seconds(2))
      #expect(world.records.count == 1)
      Invariants.check(world)
    }
  }

  @Test func `sequence 1 with a slow network: the gate waits for each part (ANS-1, ANS-5)`() throws {
    for plan in [MediaPlan(ice: .seconds(3)), MediaPlan(dtls: .seconds(3))] {
      let world = World()
      let phone = world.app("phone") {
        $0.media = plan
        $0.answersAfter = .milliseconds(100)
      }
      let leg = world.carrier.call()
      world.run(.seconds(2))
      #expect(world.carrier.final(leg) == nil)
      world.run(.seconds(2))
      #expect(world.carrier.final(leg) == 200)
      phone.send(.callEnd(CallEnd()), call: phone.offered.first)
      world.run(.seconds(1))
      #expect(world.carrier.heardBye(leg))
      Invariants.check(world)
    }
  }

  @Test func `sequence 3: answer before connection; the welcome's snapshot leads to ringing and answer together`() throws {
    let world = World()
    let other = world.app("tablet") { $0.rings = false }
    let leg = world.carrier.call()
    world.run(.seconds(2))
    // the tap came 1.5 s before the socket
    let phone = App(world, device: "phone")
    phone.prepares = false
    phone.onOffer = { call in
      phone.send(.callRinging(CallRinging()), call: call)
      phone.tap(call, age: 1_500)
    }
    world.apps.append(phone)
    phone.connect()
    world.run(.seconds(1))
    let call = try #require(phone.offered.first)
    #expect(phone.won == [call] && phone.received(call) == ["call.connected"])
    #expect(world.carrier.final(leg) == 200)
    #expect(other.received(call) == ["call.offer", "call.cancel answeredElsewhere"])
    world.carrier.hangUp(leg)
    Invariants.check(world)
    let record = try #require(world.records.first)
    #expect(record.times["answered"].map { $0 - record.times["tap", default: 0] } == 1_500)
  }

  @Test func `sequence 5: media fails after the tap: failed, 480 with cause 41 (ANS-2)`() throws {
    for (plan, saysFail, reason) in [
      (MediaPlan(ice: nil), true, "mediaFailed"), (MediaPlan(ice: nil), false, "mediaTimeout"),
      (MediaPlan(failure: .fingerprintMismatch), false, "mediaFailed"),
      (MediaPlan(failure: .dtls("alert")), false, "mediaFailed"),
    ] {
      let world = World()
      let phone = world.app("phone") {
        $0.media = plan
        $0.answersAfter = .seconds(1)
      }
      let leg = world.carrier.call()
      world.run(.seconds(2))
      let call = try #require(phone.offered.first)
      if saysFail { phone.send(.mediaFail(MediaFail(gen: 1, stage: .ice)), call: call) }
      world.run(.seconds(11))
      #expect(phone.received(call).last == "call.ended \(reason)")
      #expect(world.carrier.final(leg) == 480 && world.carrier.cause(leg) == "Q.850;cause=41")
      Invariants.check(world)
    }
  }

  @Test func `sequence 8: several devices ring, one wins, a late one is told on its hello (SRV-1)`() throws {
    let world = World()
    let phone = world.app("phone") { $0.answersAfter = .seconds(1) }
    let tablet = world.app("tablet")
    let leg = world.carrier.call()
    world.run(.seconds(2))
    let call = try #require(phone.offered.first)
    #expect(phone.won == [call])
    #expect(tablet.received(call) == ["call.offer", "call.cancel answeredElsewhere"])
    tablet.tap(call)
    let late = world.app("browser")
    #expect(late.received(call) == ["call.gone answeredElsewhere"])
    #expect(late.welcome?.calls == [])
    world.run(.seconds(1))
    #expect(tablet.errors == [.answeredElsewhere])
    world.carrier.hangUp(leg)
    Invariants.check(world)
  }

  @Test func `every device that is connected rings; no push is needed (INC-7, SRV-1, SRV-6)`() throws {
    let world = World()
    let apps = ["phone", "tablet", "browser"].map { world.app($0) }
    // any of them could be woken
    for app in apps { app.register() }
    world.run(.seconds(1))
    let leg = world.carrier.call()
    world.run(.seconds(1))
    #expect(apps.allSatisfy { $0.offered.count == 1 })
    // parked behind a provisional response until a device decides
    #expect(world.carrier.final(leg) == nil)
    world.run(.seconds(45))
    #expect(world.carrier.final(leg) == 480 && world.carrier.cause(leg) == "Q.850;cause=19")
    #expect(world.pushes.isEmpty)
    Invariants.check(world)
  }

  @Test func `a device in do-not-disturb does not stop the others (INC-6, EXC-1)`() throws {
    let world = World()
    let phone = world.app("phone") { app in app.onOffer = { app.send(.callUnavailable(CallUnavailable(why: .dnd)), call: $0) } }
    let tablet = world.app("tablet") { $0.answersAfter = .milliseconds(500) }
    let leg = world.carrier.call()
    world.run(.seconds(2))
    #expect(world.carrier.final(leg) == 200 && tablet.won.count == 1 && phone.won.isEmpty)
    world.carrier.hangUp(leg)
    Invariants.check(world)
  }

  @Test func `a device that lost its socket hears the end with its next session, whichever kind (END-5)`() throws {
    for resumes in [true, false] {
      let world = World()
      let phone = world.app("phone")
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(phone.offered.first)
      phone.drop()
      world.run(.milliseconds(100))
      world.carrier.cancel(leg)
      world.run(.seconds(1))
      phone.connect(resuming: resumes)
      world.run(.seconds(1))
      #expect(phone.received(call).last == (resumes ? "call.cancel callerCancelled" : "call.gone callerCancelled"))
      #expect(world.carrier.final(leg) == 487)
      Invariants.check(world)
    }
  }

  @Test func `the socket breaks in the call: it goes on, and resumes`() throws {
    let world = World()
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(500) }
    let leg = world.carrier.call()
    world.run(.seconds(2))
    let call = try #require(phone.offered.first)
    phone.drop()
    world.run(.seconds(30))
    phone.connect(resuming: true)
    world.run(.seconds(1))
    #expect(phone.welcome?.resumed == true)
    phone.send(.callEnd(CallEnd()), call: call)
    world.run(.seconds(1))
    #expect(world.carrier.heardBye(leg) && phone.received(call).last == "call.ended localEnd")
    Invariants.check(world)
  }

  @Test func `a page that is loaded again while it rings rings again, and prepares anew`() throws {
    let world = World()
    let phone = world.app("phone")
    let leg = world.carrier.call()
    world.run(.seconds(1))
    let call = try #require(phone.offered.first)
    phone.drop(.normal)
    world.run(.milliseconds(300))
    phone.connect()
    world.run(.seconds(1))
    #expect(phone.welcome?.calls?.map(\.call) == [call])
    phone.tap(call)
    world.run(.seconds(1))
    #expect(world.carrier.final(leg) == 200)
    world.carrier.hangUp(leg)
    Invariants.check(world)
  }

  @Test func `no ACK ever: BYE, and the app hears server`() throws {
    let world = World()
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(500) }
    world.carrier.loses = { String(decoding: $0.prefix(4), as: UTF8.self) == "ACK " }
    world.carrier.call()
    world.run(.seconds(40))
    let call = try #require(phone.offered.first)
    #expect(phone.received(call).last == "call.ended server")
    #expect(world.records.first?.end.reason == .server)
    Invariants.check(world)
  }

  @Test func `what cannot become a call: unknown number, no codec, no device, no port, drain`() throws {
    let world = World()
    let lonely = world.carrier.call()
    world.run(.milliseconds(100))
    world.app("phone")
    let unknown = world.carrier.call("+15559999999")
    let codec = world.carrier.call(sdp: Carrier.sdp("18"))
    world.run(.milliseconds(100))
    world.refusesMedia = true
    let ports = world.carrier.call()
    world.run(.milliseconds(100))
    world.give(.draining)
    let drained = world.carrier.call()
    world.run(.seconds(1))
    #expect(world.carrier.final(lonely) == 480 && world.carrier.cause(lonely) == "Q.850;cause=20")
    #expect(world.carrier.final(unknown) == 404 && world.carrier.final(codec) == 488)
    #expect(world.carrier.final(ports) == 503 && world.carrier.final(drained) == 503)
    #expect(world.records.map(\.end.reason) == [.unanswered, .notFound, .codec])
    #expect(world.refusals.map(\.reason) == [.mediaPorts, .signalling] && world.refusals.last?.detail == "draining")
    Invariants.check(world)
  }
}
