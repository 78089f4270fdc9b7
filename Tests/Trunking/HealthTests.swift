import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

@Suite struct HealthTests {
  private func probed() -> World { World([trunk("192.0.2.1", probe: .init(interval: .seconds(30), downAfter: 3, upAfter: 2))]) }

  /// Lets the next probe go out and answers it.
  private func probe(_ world: inout World, _ code: Int) {
    let before = world.requests.count
    while world.requests.count == before { world.advance(.seconds(1)) }
    world.answer(code)
  }

  @Test func `a trunk is down after three silent probes and up after two answers`() {
    var world = probed()
    #expect(world.requests.map(\.request.method) == [.options])
    world.answer(200)
    #expect(world.machine.isUsable("carrier", at: world.now))
    probe(&world, 408)
    probe(&world, 408)
    #expect(world.machine.isUsable("carrier", at: world.now))
    probe(&world, 405)  // any answer is a sign of life
    probe(&world, 408)
    probe(&world, 408)
    probe(&world, 503)
    #expect(!world.machine.isUsable("carrier", at: world.now) && world.news.last == .probed(trunk: "carrier", isUp: false))
    probe(&world, 200)
    #expect(!world.machine.isUsable("carrier", at: world.now))
    probe(&world, 200)
    #expect(world.machine.isUsable("carrier", at: world.now) && world.news.last == .probed(trunk: "carrier", isUp: true))
  }

  @Test func `a trunk that fell silent is down 20 s after its first lost probe; an answer that comes late tells nothing`() {
    var world = probed()
    world.answer(200)
    world.advance(.seconds(30))
    let lost = world.requests.count
    world.advance(.seconds(5))
    #expect(status(world)?.servers.map(\.up) == [false] && status(world)?.why == nil)
    world.advance(.seconds(19))
    #expect(status(world)?.why == nil)
    world.advance(.seconds(1))
    #expect(status(world)?.why == .notAnswering && world.news.last == .probed(trunk: "carrier", isUp: false))
    #expect(world.requests.count == lost + 2)
    for late in world.requests.suffix(3) { world.feed(.requestAnswered(late.id, RequestOutcome(code: 200))) }
    #expect(status(world)?.why == .notAnswering)
    world.advance(.seconds(5))
    world.answer(200)
    world.advance(.seconds(5))
    world.answer(200)
    #expect(status(world)?.up == true)
  }

  @Test func `a trunk without probes is up`() {
    #expect(World([trunk("192.0.2.1")]).machine.isUsable("carrier", at: .s(1)))
    #expect(!World([trunk("192.0.2.1")]).machine.isUsable("other", at: .s(1)))
  }

  @Test func `the breaker opens at the fifth failure in a row, tries one call, and waits twice as long`() {
    var breaker = CircuitBreaker(Limits.breaker)
    func failed(_ second: Int) -> Bool { breaker.failed(at: .s(second)) }
    func succeeded() -> Bool { breaker.succeeded() }
    #expect([failed(1), failed(1), failed(1), failed(1), succeeded()] == [false, false, false, false, false])
    #expect([failed(1), failed(1), failed(1), failed(1), failed(1)] == [false, false, false, false, true])
    #expect(!breaker.allows(at: .s(10)))
    #expect(breaker.allows(at: .s(12)))
    breaker.attempted(at: .s(12))
    #expect(!breaker.allows(at: .s(12)), "one call tries it")
    #expect(failed(13))
    #expect(!breaker.allows(at: .s(32)) && breaker.allows(at: .s(33)))
    breaker.attempted(at: .s(33))
    breaker.undecided(at: .s(34))
    #expect(breaker.allows(at: .s(34)))
    breaker.attempted(at: .s(34))
    #expect(succeeded())
    #expect(breaker.allows(at: .s(34)))
  }

  @Test func `a breaker's changes are told once`() {
    var world = World([trunk("192.0.2.1")])
    var output = TrunkMachine.Output()
    for _ in 0..<9 { world.machine.callFinished("carrier", byFault: true, at: world.now, into: &output) }
    #expect(output.news == [.breaker(trunk: "carrier", isOpen: true)])
    for _ in 0..<2 { world.machine.callFinished("carrier", byFault: false, at: world.now, into: &output) }
    #expect(output.news == [.breaker(trunk: "carrier", isOpen: true), .breaker(trunk: "carrier", isOpen: false)])
  }
}

private func status(_ world: World) -> TrunkStatus? { world.machine.status("carrier", at: world.now, wallOffset: 0) }

@Suite struct StatusTests {
  @Test func `a trunk that is asked for nothing is up as soon as it is located`() {
    let name = trunk()
    #expect(status(World([trunk("192.0.2.1")]))?.up == true)
    #expect(status(World([name]))?.why == .notLocated)
    #expect(status(World([name], Zone(a: ["carrier.example": ["192.0.2.1"]])))?.servers.map(\.address) == ["192.0.2.1:5060"])
    #expect(World([name]).machine.status("other", at: .zero, wallOffset: 0) == nil)
  }

  @Test(arguments: [
    trunk("192.0.2.1", transport: .tls), trunk("192.0.2.1", transport: .tcp, registration: .init(user: "gw")),
    trunk("2001:db8::1"),
    trunk("2001:db8::1", probe: .init()),
  ])
  func `a trunk that no listener reaches is down with that reason, and the log has it once`(settings: TrunkSettings) {
    var world = World([settings], transports: [.udp], families: [.v4])
    #expect(status(world)?.up == false && status(world)?.why?.rawValue == "no listener reaches it")
    #expect(status(world)?.servers.map(\.up) == [false])
    world.advance(.seconds(60))
    #expect(world.news.map { "\($0)" }.filter { $0.hasPrefix("unreached") }.count == 1 && world.requests.isEmpty)
    // the same trunk, as it is to be
    world.feed(.configure([trunk("192.0.2.1")]))
    #expect(status(world)?.up == true)
    world.feed(.configure([settings]))
    #expect(world.news.map { "\($0)" }.filter { $0.hasPrefix("unreached") }.count == 2)
  }

  @Test func `one server that a listener reaches is enough`() {
    let zone = Zone(a: ["carrier.example": ["192.0.2.1"]], aaaa: ["carrier.example": ["2001:db8::1"]])
    let world = World([trunk()], zone, families: [.v6])
    #expect(status(world)?.up == true && world.targets() == ["udp [2001:db8::1]:5060"])
  }

  @Test func `a server is down from its first silent probe, its trunk from the third, and an answer brings it back`() {
    var world = World([trunk("192.0.2.1", probe: .init(interval: .seconds(10), downAfter: 3, upAfter: 1))])
    for silence in 1...3 {
      world.answer(408)
      #expect(status(world)?.servers.map(\.up) == [false])
      #expect(status(world)?.why == (silence == 3 ? .notAnswering : nil))
      #expect(status(world)?.lastRefusal == .init(method: "OPTIONS", failure: .timeout, at: world.now.nanoseconds / 1_000_000))
      #expect(status(world)?.nextProbe == world.now.nanoseconds / 1_000_000 + 5_000)
      world.advance(.seconds(5))
    }
    world.answer(200)
    #expect(status(world)?.up == true && status(world)?.servers.map(\.up) == [true])
  }

  @Test func `a failed refresh is seen at once, and the trunk is down when what was granted ends`() {
    var world = World([trunk("192.0.2.1", registration: .init(user: "gw"))])
    #expect(status(world)?.registration == .init(registered: false, expires: nil) && status(world)?.why == .notRegistered)
    world.answer(200, expires: 100)
    #expect(status(world)?.registration == .init(registered: true, expires: 101_000) && status(world)?.up == true)
    world.advance(.seconds(86))
    world.answer(403)
    #expect(status(world)?.registration == .init(registered: false, expires: 101_000) && status(world)?.up == true)
    #expect(status(world)?.lastRefusal?.method == "REGISTER" && status(world)?.lastRefusal?.code == 403)
    world.advance(.seconds(14))
    #expect(status(world)?.why == .notRegistered)
    world.advance(.seconds(100))
    world.answer(200, expires: 100)
    #expect(status(world)?.registration?.registered == true && status(world)?.up == true)
  }

  @Test(
    arguments: [
      (UserAgent.PeerFailure.refused, LocalFailure.connectionRefused), (.noRoute, .noRoute), (.noTLS, .noTLS), (nil, .notSent),
    ] as [(UserAgent.PeerFailure?, LocalFailure)])
  func `our own failures have names and no code of the carrier's`(peer: UserAgent.PeerFailure?, failure: LocalFailure) throws {
    var world = World([trunk("192.0.2.1", registration: .init(user: "gw"))])
    let (id, request) = try #require(world.requests.last)
    var outcome = RequestOutcome(code: 503, sequence: request.sequence)
    (outcome.byTransport, outcome.peer) = (true, peer)
    world.feed(.requestAnswered(id, outcome))
    #expect(status(world)?.lastRefusal == .init(method: "REGISTER", failure: failure, at: 1_000))
    #expect(status(world)?.unanswered == [.init(method: "REGISTER", failure: failure, count: 1)])
    world.machine.requestUnanswered("carrier", method: "INVITE", .timeout, at: world.now)
    #expect(status(world)?.lastRefusal?.failure == .timeout && status(world)?.unanswered?.count == 2)
    // a 503 that the carrier has sent is the carrier's
    world.advance(.seconds(10))
    let (again, second) = try #require(world.requests.last)
    var sent = RequestOutcome(code: 503, sequence: second.sequence)
    sent.isResponse = true
    world.feed(.requestAnswered(again, sent))
    #expect(status(world)?.lastRefusal?.code == 503 && status(world)?.lastRefusal?.failure == nil)
  }

  @Test func `an open breaker and the last refused call are seen`() {
    var world = World([trunk("192.0.2.1")])
    var output = TrunkMachine.Output()
    for _ in 0..<5 { world.machine.callFinished("carrier", byFault: true, at: world.now, into: &output) }
    world.machine.callRefused("carrier", code: 503, at: world.now)
    #expect(status(world)?.breakerOpen == true)
    #expect(status(world)?.lastRefusal == .init(method: "INVITE", code: 503, at: 1_000))
  }
}

@Suite struct AllowanceTests {
  @Test func `numbers are stripped, extended and made E 164`() {
    let rules = NumberRules(
      incoming: [.init(prefix: "9", strip: 1)],
      outgoing: [.init(prefix: "+49", strip: 3, add: "0"), .init(prefix: "+", strip: 1, add: "00")],
      caller: [.init(prefix: "+", strip: 1)], country: .init(country: "49"))
    #expect(rules.called("+4930123456") == "030123456" && rules.called("+1555") == "001555" && rules.called("110") == "110")
    #expect(rules.calling("+4930123456") == "4930123456")
    for text in ["004930123456", "030123456", "4930123456", "+4930123456", "9004930123456"] {
      #expect(rules.received(text) == "+4930123456", "\(text)")
    }
    #expect(
      rules.received("110") == "110" && rules.received("anonymous") == "anonymous"
        && NumberRules().received("030123456") == "030123456")
    let america = NumberRules(country: .init(country: "1"))
    #expect(america.received("5551230001") == "+15551230001" && america.received("15551230001") == "+15551230001")
    #expect(america.received("011493012345") == "+493012345")
    let denmark = NumberRules(country: .init(country: "DK"))
    #expect(denmark.received("45123456") == "+4545123456" && denmark.received("4545123456") == "+4545123456")
    #expect(NumberRules(outgoing: [.init(prefix: "", strip: 99)]).called("12") == "")
  }

  @Test func `a user calls allowed beginnings, and so often an hour`() {
    #expect(UserAllowance(prefixes: ["+49", "+1555"]).allows("+15551") && !UserAllowance(prefixes: ["+49"]).allows("+1900"))
    #expect(UserAllowance().allows("+1900") && !UserAllowance(prefixes: []).allows("+1"))
    var quota = UserQuota()
    func take(_ user: String, _ most: Int?, _ second: Int) -> Bool { quota.consume(user, most: most, at: .s(second)) }
    #expect([take("a", 2, 0), take("a", 2, 1), take("a", 2, 2)] == [true, true, false])
    #expect([take("b", 2, 3), take("a", nil, 3)] == [true, true])
    #expect([take("a", 2, 3_601), take("a", 0, 9_999)] == [true, false], "the first is an hour ago")
  }
}
