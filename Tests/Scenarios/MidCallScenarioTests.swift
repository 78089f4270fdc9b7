import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@Suite struct MidCallScenarioTests {
  /// A call that is connected for a second.
  private func connected(_ world: World) throws -> (App, LegID, CallID, MediaSessionID) {
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(200) }
    let leg = world.carrier.call()
    world.run(.seconds(2))
    let call = try #require(phone.offered.first)
    #expect(world.carrier.final(leg) == 200)
    return (phone, leg, call, try #require(world.media.calls.first { $0.value == call }?.key))
  }

  @Test func `a trunk that is silent but answers OPTIONS keeps its call; one that is gone is trunkLost within 45 s`() throws {
    for isAlive in [true, false] {
      let world = World()
      let (phone, leg, call, session) = try connected(world)
      if !isAlive { world.carrier.loses = { _ in true } }
      world.give(.media(.trunkSilent(session)))
      world.run(.seconds(25))
      #expect((phone.received(call).last == "call.ended trunkLost") == !isAlive)
      world.give(.media(.trunkBack(session)))
      world.carrier.loses = { _ in false }
      if isAlive { world.carrier.hangUp(leg) }
      world.run(.seconds(40))
      Invariants.check(world)
    }
  }

  @Test func `an app that vanishes: 30 s after its leg fell silent the trunk is free (ANS-2)`() throws {
    let world = World()
    let (phone, leg, call, session) = try connected(world)
    phone.drop()
    let winner = try #require(world.media.locked[session])
    world.give(.media(.appLegSilent(session, winner)))
    world.run(.milliseconds(30_100))
    #expect(world.carrier.heardBye(leg))
    #expect(world.records.first?.end.reason == .networkLost)
    // it comes back to the reason
    phone.connect()
    world.run(.seconds(1))
    #expect(phone.received(call).last == "call.gone networkLost")
    Invariants.check(world)
  }

  @Test func `a path change: restart and answer, the trunk is not touched`() throws {
    let world = World()
    let (phone, leg, call, _) = try connected(world)
    let before = world.finals
    phone.send(.mediaRestart(MediaRestart(sdp: phone.sdp(setup: "actpass"), gen: 2, cause: .net)), call: call)
    world.run(.seconds(1))
    #expect(phone.received(call).last == "media.answer")
    phone.send(.mediaRestart(MediaRestart(sdp: phone.sdp(setup: "actpass"), gen: 2, cause: .net)), call: call)
    world.run(.seconds(1))
    #expect(phone.errors == [.staleGen])
    #expect(world.finals == before)
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world)
  }

  @Test func `drain: the live call stays, its session closes after it, new calls get 503`() throws {
    let world = World()
    let (phone, leg, call, _) = try connected(world)
    let idle = world.app("tablet")
    world.tell(.command(.drain))
    world.give(.draining)
    world.run(.seconds(1))
    #expect(idle.closeCodes == [.draining] && phone.closeCodes == [])
    let refused = world.carrier.call()
    world.run(.seconds(1))
    #expect(world.carrier.final(refused) == 503)
    #expect(phone.received(call).last == "call.connected")
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    #expect(phone.received(call).last == "call.ended remoteHangup" && phone.closeCodes == [.draining])
    Invariants.check(world)
  }

  @Test func `the second call 0.3 s after the first, on the same session, 20 times`() throws {
    let world = World()
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
    for round in 0..<20 {
      let leg = world.carrier.call()
      world.run(.seconds(1))
      #expect(world.carrier.final(leg) == 200, "round \(round)")
      world.carrier.hangUp(leg)
      world.run(.milliseconds(300))
    }
    #expect(phone.offered.count == 20 && phone.won.count == 20)
    Invariants.check(world)
  }

  @Test func `50 calls at once for several devices: every one ends with its cause`() throws {
    let world = World { configuration, _ in configuration.bounds.callsPerUser = 100 }
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(700) }
    world.app("tablet")
    let legs = (0..<50).map { _ in world.carrier.call() }
    world.run(.milliseconds(500))
    for leg in legs.prefix(20) { world.carrier.cancel(leg) }
    world.run(.seconds(3))
    #expect(phone.won.count == 30)
    for leg in legs.dropFirst(20) { world.carrier.hangUp(leg) }
    world.run(.seconds(2))
    #expect(world.records.count { $0.end.reason == .callerCancelled } == 20)
    #expect(world.records.count { $0.end.reason == .remoteHangup } == 30)
    Invariants.check(world)
  }
}
