import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

/// After a timer at `now` the next deadline is later than `now`: one that stays in the past stops or spins the thread that waits for it.
@Suite struct DeadlineTests {
  @Test func `a name that is not found does not keep another trunk from its probes, and is asked for again`() {
    var lost = trunk("nowhere.example", registration: .init(user: "u", expires: 600))
    lost.name = "lost"
    let probed = trunk("192.0.2.1", probe: .init(interval: .seconds(2), downAfter: 3, upAfter: 2))
    var zone = Zone()
    zone.isDead = true
    var world = World([lost, probed], zone)
    for _ in 0..<24 {
      world.answer(200)
      world.advance(.seconds(1))
    }
    #expect(world.requests.map(\.request.method) == Array(repeating: .options, count: 13))
    let questions = world.asked.filter { $0.name == "nowhere.example" && $0.kind == .naptr }
    #expect(questions.count == 4, "at once, and 2, 4 and 8 s after the failures before")
    world.zone.isDead = false
    world.zone.a["nowhere.example"] = ["192.0.2.7"]
    world.advance(.seconds(60))
    #expect(world.requests.contains { $0.request.method == .register })
  }

  @Test func `a trunk that no listener reaches is looked at again, at a bounded rate`() {
    let server = trunk(
      "192.0.2.1", transport: .tls, registration: .init(user: "u", expires: 600),
      probe: .init(interval: .seconds(2), downAfter: 3, upAfter: 2))
    var world = World([server], transports: [.udp])
    var turns = 0
    while let due = world.machine.nextDeadline, due <= .s(61) {
      world.now = max(world.now, due)
      world.feed(.timer)
      turns += 1
    }
    #expect(world.requests.isEmpty)
    #expect((1...26).contains(turns), "twice in 5 s at most")
  }

  @Test(arguments: 0..<40) func `a deadline is later than the timer that was handled, whatever came before`(seed: UInt64) throws {
    let random = RandomSource.seeded(seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    func settings() -> [TrunkSettings] {
      (0..<4).filter { _ in pick(4) > 0 }.map { index in
        let host = ["192.0.2.1", "good.example", "bad.example", "[2001:db8::1]"][pick(4)]
        var one = trunk(
          host, transport: [nil, .udp, .tcp, .tls][pick(4)],
          registration: pick(2) == 0 ? nil : .init(user: "u\(pick(2))", expires: 60),
          probe: pick(2) == 0 ? nil : .init(interval: .seconds(2 + pick(20)), downAfter: 3, upAfter: 2))
        one.name = "trunk\(index)"
        return one
      }
    }
    var zone = Zone()
    zone.timeToLive = .seconds(pick(3))
    zone.a["good.example"] = ["192.0.2.9"]
    var world = World(
      settings(), zone, seed: seed, transports: pick(2) == 0 ? [.udp] : [.udp, .tcp, .tls], sharesDuties: pick(3) == 0)
    for _ in 0..<200 {
      switch pick(12) {
      case 0: world.feed(.configure(settings()))
      case 1: world.zone.isDead.toggle()
      case 2: world.feed(.duty(trunk: "trunk\(pick(4))", pick(2) == 0))
      case 3: world.requests.last.map { world.feed(.flowLost($0.request.trunk.target.flow)) }
      case 4, 5: world.answer([200, 401, 403, 408, 423, 500, 503][pick(7)], expires: 60, minimum: 120, byTransport: pick(4) == 0)
      case 6: if pick(20) == 0 { world.feed(.unregister) }
      default: world.now = world.now + .milliseconds(pick(8_000))
      }
      if let due = world.machine.nextDeadline, pick(2) == 0 { world.now = max(world.now, due) }
      world.feed(.timer)
      if let next = world.machine.nextDeadline {
        try #require(next > world.now, "seed \(seed): a deadline of \(next) after a timer at \(world.now)")
      }
    }
  }
}
