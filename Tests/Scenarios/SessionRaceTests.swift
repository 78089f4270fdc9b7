import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIP
import TrunklineSIPDialogs

/// What a carrier and an app do to a call that runs, at the same time: hold both ways, REFER, BYE, a refresh, an operator.
@Suite struct SessionRaceTests {
  private func world(_ seed: UInt64 = 1) -> World {
    World(seed: seed) { _, routing in
      routing.trunks[0].signalsHold = true
      routing.trunks[0].rules = TrunkRules(reliability: .required, sessionTimer: .init(seconds: 90), allowsTransfer: true)
    }
  }

  private func connected(_ world: World) throws -> (App, LegID, CallID) {
    let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
    let leg = world.carrier.call()
    world.run(.seconds(2))
    let call = try #require(phone.offered.first)
    #expect(world.carrier.final(leg) == 200)
    return (phone, leg, call)
  }

  private func hold(_ phone: App, _ call: CallID, _ on: Bool) { phone.send(.callHold(CallHold(on: on)), call: call) }

  @Test func `hold of the app and hold of the carrier in every step around each other: one call, one record, both heard`() throws
  {
    for gap in stride(from: -40, through: 40, by: 4) {
      let world = world(UInt64(gap + 100))
      let (phone, leg, call) = try connected(world)
      world.carrier.direction = "sendonly"
      world.after(.milliseconds(100)) { self.hold(phone, call, true) }
      world.after(.milliseconds(100 + gap)) { world.carrier.handle(.command(.modify(leg))) }
      world.run(.seconds(12))
      #expect(phone.received(call).contains("call.held remote true"), "gap \(gap): \(phone.received(call))")
      world.carrier.direction = "sendrecv"
      hold(phone, call, false)
      world.carrier.handle(.command(.modify(leg)))
      world.run(.seconds(12))
      #expect(
        phone.received(call).last == "call.held remote false" || phone.received(call).last == "call.held local false",
        "\(phone.received(call))")
      world.carrier.hangUp(leg)
      world.run(.seconds(2))
      Invariants.check(world)
      #expect(world.records.count == 1)
    }
  }

  @Test func `hold, BYE and call-end at once: one end, no half-open leg`() throws {
    for order in permutations(["hold", "bye", "end"]) {
      for gap in [0, 3, 5, 9, 12, 20] {
        let world = world()
        let (phone, leg, call) = try connected(world)
        for (index, name) in order.enumerated() {
          world.after(.milliseconds(index * gap)) {
            switch name {
            case "hold": self.hold(phone, call, true)
            case "bye": world.carrier.hangUp(leg)
            default: phone.send(.callEnd(CallEnd()), call: call)
            }
          }
        }
        world.run(.seconds(40))
        Invariants.check(world)
        #expect(world.records.count == 1)
      }
    }
  }

  @Test func `a REFER during a hold, and a BYE at every step after it: one record, no leg left`() throws {
    for step in stride(from: 0, through: 700, by: 50) {
      let world = world()
      let (phone, leg, call) = try connected(world)
      hold(phone, call, true)
      world.after(.milliseconds(10)) {
        world.carrier.handle(.command(.refer(leg, to: "sip:+15558880000@198.51.100.9", replaces: nil)))
      }
      world.after(.milliseconds(20 + step)) { world.carrier.hangUp(leg) }
      world.run(.seconds(5))
      // the transferred call lives: the app ends it
      phone.send(.callEnd(CallEnd()), call: call)
      world.run(.seconds(40))
      Invariants.check(world)
      #expect(world.records.count == 1, "step \(step)")
    }
  }

  @Test func `an operator and the 200 in every step around each other: 480 or BYE, one record`() throws {
    var finals: Set<Int> = []
    for step in stride(from: 0, through: 300, by: 10) {
      let world = world()
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
      let leg = world.carrier.call()
      world.after(.milliseconds(step)) { if let call = phone.offered.first { world.give(.hangUp(call)) } }
      world.run(.seconds(5))
      if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) }
      world.run(.seconds(40))
      finals.insert(world.carrier.final(leg) ?? 0)
      Invariants.check(world)
      #expect(world.records.count <= 1)
    }
    #expect(finals == [200, 480], "\(finals)")
  }

  @Test func `session refreshes go on for ten minutes, and without them the call ends with its cause`() throws {
    let world = world()
    let (_, leg, _) = try connected(world)
    world.run(.seconds(600))
    #expect(world.records.isEmpty)
    // from here on nothing of the carrier arrives
    world.carrier.loses = { _ in true }
    world.run(.seconds(200))
    #expect(world.records.count == 1 && world.records.first?.end.reason == .trunkLost)
    #expect(world.records.first?.end.detail?.hasPrefix("session") == true, "\(world.records.first?.end.detail ?? "")")
    world.carrier.loses = { _ in false }
    world.carrier.hangUp(leg)
    world.run(.seconds(200))
    Invariants.check(world)
  }

  @Test func `30 percent of the signalling lost both ways, with holds and refreshes: one record each, no duplicate call`() throws
  {
    for seed in 1...12 as ClosedRange<UInt64> {
      let world = world(seed)
      var random = SplitMix64(seed: seed)
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
      world.carrier.loses = { _ in random.next() % 100 < 30 }
      world.loses = { _ in random.next() % 100 < 30 }
      let leg = world.carrier.call()
      world.run(.seconds(20))
      if let call = phone.offered.first {
        for on in [true, false, true] {
          hold(phone, call, on)
          world.run(.seconds(25))
        }
      }
      if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) } else { world.carrier.cancel(leg) }
      world.run(.seconds(120))
      world.carrier.loses = { _ in false }
      world.loses = { _ in false }
      world.run(.seconds(120))
      Invariants.check(world)
      #expect(world.records.count <= 1 && world.records.count == world.machine.statistics.incoming, "seed \(seed)")
    }
  }
}
