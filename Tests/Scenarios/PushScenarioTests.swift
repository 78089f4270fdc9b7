import AppSessions
import CallFlow
import CallModel
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The sequences of a killed app, with the real SIP user agent in front: what the caller hears while a phone is woken.
@Suite struct PushScenarioTests {
  private func progress(_ world: World, _ leg: LegID) -> [Int] {
    world.carrier.events.compactMap { if case .progress(leg, let code, _) = $0 { code } else { nil } }
  }

  @Test func `SRV-6, PERF-1, PERF-2: sequence 2, a cold call through a push, each step measured`() throws {
    let world = World()
    let phone = world.killed("phone") { $0.answersAfter = .milliseconds(800) }
    let began = world.now
    let leg = world.carrier.call()
    // 100 at once, and the push in the same turn as the INVITE
    world.run(.milliseconds(11))
    #expect(progress(world, leg) == [100])
    #expect(world.pushes.map { $0.at - began } == [.milliseconds(5)])
    world.run(.milliseconds(300))
    #expect(progress(world, leg) == [100])
    world.run(.seconds(3))
    #expect(progress(world, leg) == [100, 180])
    #expect(world.carrier.final(leg) == 200)
    let call = try #require(phone.offered.first)
    #expect(phone.received(call) == ["call.connected"], "by the snapshot, without an offer")
    let stages = world.traces.map(\.stage)
    let order: [CallStage] = [
      .start, .pushed, .pushAccepted, .woken, .deviceRinging, .ringing, .prepared, .tap, .answered, .gateOpen, .connected,
    ]
    for (earlier, later) in zip(order, order.dropFirst()) {
      #expect(try #require(stages.firstIndex(of: earlier)) <= #require(stages.firstIndex(of: later)), "\(earlier) after \(later)")
    }
    #expect(world.measurements.contains(.inviteToPush(.zero)))
    // 40 ms to the service, 300 ms to launch, 10 ms to the gateway
    #expect(world.measurements.contains(.pushToConnected(.milliseconds(350))))
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    #expect(phone.received(call).last == "call.ended remoteHangup")
    Invariants.check(world)
  }

  @Test func `ANS-1: sequence 3 through a push, tapped before the app has a socket`() throws {
    let world = World()
    let phone = world.killed("phone") {
      $0.prepares = false
      $0.launchTime = .seconds(2)
    }
    phone.onOffer = { call in
      // ringing and answer together; the tap is 1.5 s old
      phone.send(.callRinging(CallRinging()), call: call)
      phone.tap(call, age: 1_500, timeout: 20_000)
    }
    let leg = world.carrier.call()
    world.run(.seconds(4))
    let call = try #require(phone.offered.first)
    #expect(phone.won == [call] && world.carrier.final(leg) == 200)
    let record = try #require(world.machine.summaries.first)
    #expect(try #require(record.times["answered"]) - #require(record.times["tap"]) == 1_500)
    phone.send(.callEnd(CallEnd()), call: call)
    world.run(.seconds(1))
    #expect(world.carrier.heardBye(leg))
    Invariants.check(world)
  }

  @Test func `END-2, SRV-3: sequence 4, the caller hangs up at every moment of a wake`() throws {
    for milliseconds in stride(from: 0, through: 700, by: 20) {
      let world = World()
      let phone = world.killed("phone")
      let leg = world.carrier.call()
      world.run(.milliseconds(milliseconds))
      world.carrier.cancel(leg)
      world.run(.seconds(5))
      #expect(world.carrier.final(leg) == 487)
      let call = try #require(phone.offered.first ?? world.records.first?.call)
      #expect(world.pushes.count <= 1)
      if world.pushes.count == 1 {
        #expect(
          ["call.gone callerCancelled", "call.cancel callerCancelled"].contains(phone.received(call).last),
          "\(milliseconds) ms: \(phone.received(call))")
      }
      Invariants.check(world)
    }
  }

  @Test func `SRV-1, INV: sequence 8 with one device connected and one woken, whoever is first`() throws {
    for launch in stride(from: 100, through: 900, by: 100) {
      let world = World()
      let phone = world.killed("phone") {
        $0.launchTime = .milliseconds(launch)
        $0.answersAfter = .milliseconds(100)
      }
      let tablet = world.app("tablet") { $0.answersAfter = .milliseconds(500) }
      let leg = world.carrier.call()
      world.run(.seconds(3))
      let call = try #require(tablet.offered.first)
      #expect(phone.won.union(tablet.won) == [call] && phone.won != tablet.won)
      #expect(world.carrier.final(leg) == 200)
      world.carrier.hangUp(leg)
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }

  @Test
  func `EXC-4: a push service that is slow, silent or down for the whole window: the call has a cause, and a late app wins`()
    throws
  {
    for service in ["silent", "down", "slow"] {
      for comes in [false, true] {
        let world = World()
        let phone = world.killed("phone") { $0.answersAfter = .milliseconds(200) }
        world.pushService = { _ in
          switch service {
          case "silent": nil
          case "down": (.seconds(20), .failed, false)
          default: (.seconds(30), .accepted, true)
          }
        }
        let leg = world.carrier.call()
        if comes { world.after(.seconds(10)) { phone.connect() } }
        world.run(.seconds(60))
        #expect(world.carrier.final(leg) == (comes || service == "slow" ? 200 : 480), "\(service) \(comes)")
        if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) }
        world.run(.seconds(1))
        #expect(world.records.first?.end.reason == (comes || service == "slow" ? .remoteHangup : .unanswered))
        Invariants.check(world)
      }
    }
  }

  @Test func `EXC-2: an interrupted call is held by the app and resumed, or ended by the system; the caller stays or is told`()
    throws
  {
    for ends in [false, true] {
      let world = World { _, routing in routing.trunks[0].signalsHold = true }
      let phone = world.killed("phone") { $0.answersAfter = .milliseconds(100) }
      let leg = world.carrier.call()
      world.run(.seconds(3))
      let call = try #require(phone.offered.first)
      phone.send(.callHold(CallHold(on: true)), call: call)
      world.run(.seconds(60))
      #expect(world.machine.summaries.first?.held == true && !world.carrier.heardBye(leg), "a held call lasts")
      if ends {
        phone.send(.callEnd(CallEnd()), call: call)
      } else {
        phone.send(.callHold(CallHold(on: false)), call: call)
        world.run(.seconds(2))
        #expect(world.machine.summaries.first?.held == false)
        world.carrier.hangUp(leg)
      }
      world.run(.seconds(2))
      #expect(phone.received(call).last == (ends ? "call.ended localEnd" : "call.ended remoteHangup"))
      Invariants.check(world)
    }
  }

  @Test func `INC-9: an app that is woken for two calls at once ends with one and is told of the other`() throws {
    let world = World()
    let phone = world.killed("phone") { $0.rings = false }
    let first = world.carrier.call()
    let second = world.carrier.call()
    world.run(.milliseconds(100))
    world.carrier.cancel(first)
    world.run(.seconds(2))
    #expect(phone.offered.count == 2 && world.pushes.count == 2)
    #expect(phone.received.filter { $0.text == "call.gone callerCancelled" }.map(\.call) == [phone.offered[0]])
    world.carrier.cancel(second)
    world.run(.seconds(1))
    Invariants.check(world)
  }

  @Test func `a clock step of an hour, either way, while an app is woken: it rings all the same`() throws {
    for step in [-3_600_000, 3_600_000] as [Int64] {
      let world = World()
      let phone = world.killed("phone") { $0.answersAfter = .milliseconds(100) }
      let leg = world.carrier.call()
      world.run(.milliseconds(50))
      world.sessions.setWallClock(unixMilliseconds: World.epoch * 1_000 + step, at: world.now)
      world.give(.wallClock(offsetMilliseconds: World.epoch * 1_000 - 1_000 + step))
      world.run(.seconds(3))
      #expect(world.carrier.final(leg) == 200 && phone.won.count == 1)
      world.carrier.hangUp(leg)
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }
}
