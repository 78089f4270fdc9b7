import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

@Suite struct RegistrationTests {
  private func world(_ zone: Zone = Zone(), host: String = "192.0.2.1") -> World {
    World([trunk(host, registration: .init(user: "gw", expires: 600))], zone)
  }

  @Test func `it registers at once, and again before the granted time ends`() {
    var world = world()
    #expect(world.requests.map(\.request.method) == [.register])
    #expect(world.requests[0].request.to == "sip:gw@192.0.2.1" && world.requests[0].request.expires == 600)
    #expect(!world.machine.isRegistered("carrier"))
    world.answer(200, expires: 100)
    #expect(world.machine.isRegistered("carrier") && world.news.last == .registered(trunk: "carrier", seconds: 100))
    world.advance(.seconds(74))
    #expect(world.requests.count == 1)
    world.advance(.seconds(12))
    #expect(world.requests.count == 2)
    let (first, second) = (world.requests[0].request, world.requests[1].request)
    #expect(first.callID == second.callID && second.sequence == first.sequence + 1)
  }

  @Test func `Service-Route is replaced by each 200, cleared where it is absent, and ends with the binding`() {
    var world = world()
    func routes() -> [String]? { world.machine.peer("carrier", at: world.now)?.serviceRoutes }
    #expect(routes() == [])
    world.answer(200, expires: 100, serviceRoutes: ["<sip:orig@scscf1.example;lr>", "<sip:edge.example;lr>"])
    #expect(routes() == ["<sip:orig@scscf1.example;lr>", "<sip:edge.example;lr>"])
    world.advance(.seconds(86))
    world.answer(200, expires: 100, serviceRoutes: ["<sip:orig@scscf2.example;lr>"])
    #expect(routes() == ["<sip:orig@scscf2.example;lr>"])
    world.advance(.seconds(86))
    world.answer(503)
    #expect(routes() == ["<sip:orig@scscf2.example;lr>"], "what was granted holds")
    world.advance(.seconds(20))
    #expect(routes() == [])
    world.answer(200, expires: 100, serviceRoutes: ["<sip:orig@scscf3.example;lr>"])
    world.advance(.seconds(86))
    world.answer(200, expires: 100)
    #expect(routes() == [])
  }

  @Test func `calls and probes go to the servers of a Service-Route's name, REGISTER to the trunk's own`() {
    var world = world()
    world.zone.a = ["scscf.example": ["192.0.2.71", "192.0.2.72"]]
    world.answer(200, expires: 100, serviceRoutes: ["<sip:orig@scscf.example:5070;transport=tcp;lr>"])
    #expect(Set(world.targets()) == ["tcp 192.0.2.71:5070", "tcp 192.0.2.72:5070"])
    let isAllowed = world.news.contains {
      if case .located("carrier", let servers) = $0 { servers.contains { "\($0.ip)" == "192.0.2.72" } } else { false }
    }
    #expect(isAllowed, "what comes from there is the trunk's")
    let own = world.requests[0].request.trunk.flow.remote
    world.advance(.seconds(86))
    #expect(world.requests.last?.request.method == .register && world.requests.last?.request.trunk.flow.remote == own)
    // another one, with an unknown name: the trunk's servers, which still have its binding
    world.answer(200, expires: 100, serviceRoutes: ["<sip:unknown.example;lr>"])
    #expect(world.targets().allSatisfy { $0.hasSuffix("\(own)") } && !world.targets().isEmpty)
    world.advance(.seconds(86))
    world.answer(200, expires: 100)
    #expect(world.targets().allSatisfy { $0.hasSuffix("\(own)") })
  }

  @Test(
    arguments: [
      ("<sip:orig@scscf.example:5070;transport=TCP;lr>", "scscf.example", 5070, .tcp, false),
      ("<sip:a.example;lr>", "a.example", nil, nil, false),
      ("\"x\" <sips:[2001:db8::1]:5061;lr>;p=1", "2001:db8::1", 5061, nil, true),
      ("<sip:A.Example;transport=sctp>", "a.example", nil, nil, false),
    ] as [(String, String, UInt16?, TransportProtocol?, Bool)])
  func `a route names a server`(route: String, host: String, port: UInt16?, transport: TransportProtocol?, isSecure: Bool) {
    #expect(ServerURI(route: route) == ServerURI(host: host, port: port, transport: transport, isSecure: isSecure))
    #expect(ServerURI(route: "<tel:+1>") == nil && ServerURI(route: "") == nil && ServerURI(route: "<sip:>") == nil)
  }

  @Test func `a Service-Route that cannot be followed is told once, and calls go without it`() {
    var world = world()
    for _ in 0..<3 {
      world.answer(200, expires: 100, serviceRoutes: nil)
      world.advance(.seconds(86))
    }
    #expect(world.machine.peer("carrier", at: world.now)?.serviceRoutes == [])
    #expect(world.news.count { $0 == .serviceRouteRefused(trunk: "carrier") } == 1)
  }

  @Test func `over UDP the way back is kept open while the registration holds, at the flow that the registrar knows`() {
    var world = world()
    world.advance(.seconds(100))
    #expect(world.keptAlive.isEmpty, "nothing is registered")
    world.answer(200, expires: 600)
    let start = world.now
    world.advance(.seconds(130))
    #expect(world.keptAlive.map { $0.at - start } == (1...5).map { .seconds(25 * $0) })
    #expect(Set(world.keptAlive.map(\.flow.remote)) == [SocketAddress("192.0.2.1:5060")!])
    world.feed(.unregister)
    world.advance(.seconds(100))
    #expect(world.keptAlive.count == 5)
    for (transport, keepAlive) in [(TransportProtocol.tcp, Duration.seconds(25)), (.udp, .zero)] {
      var quiet = World(
        [trunk("192.0.2.1", transport: transport, registration: .init(user: "gw", expires: 600, keepAlive: keepAlive))])
      quiet.answer(200, expires: 600)
      quiet.advance(.seconds(100))
      #expect(quiet.keptAlive.isEmpty, "\(transport) \(keepAlive)")
    }
  }

  @Test func `of several nodes one registers and probes; the others regard the trunk as reachable`() {
    var world = World(
      [trunk("192.0.2.1", registration: .init(user: "gw", expires: 600), probe: .init(interval: .seconds(30)))],
      sharesDuties: true)
    world.advance(.seconds(100))
    #expect(world.requests.isEmpty && world.machine.isRegistered("carrier") && world.machine.isUsable("carrier", at: world.now))
    world.feed(.duty(trunk: "carrier", true))
    #expect(Set(world.requests.map(\.request.method)) == [.register, .options] && !world.machine.isRegistered("carrier"))
    world.feed(.duty(trunk: "carrier", true))
    #expect(world.requests.count == 2, "once")
    world.feed(.duty(trunk: "carrier", false))
    world.advance(.seconds(1_000))
    #expect(world.requests.count == 2 && world.machine.isRegistered("carrier"))
    world.feed(.unregister)
    #expect(world.requests.count == 2, "another node goes on with the same contact")
  }

  @Test func `at the end Expires 0 goes to where it registered, once, and nothing is refreshed any more`() {
    var world = world()
    world.feed(.unregister)
    #expect(world.requests.count == 1 && !world.machine.isUnregistering, "not registered yet: nothing to take back")
    world = self.world()
    world.answer(200, expires: 100)
    world.feed(.unregister)
    #expect(world.machine.isUnregistering && world.requests.count == 2)
    let (first, last) = (world.requests[0].request, world.requests[1].request)
    #expect(last.expires == 0 && last.callID == first.callID && last.sequence == first.sequence + 1 && last.contactUser == "gw")
    #expect(last.trunk.flow == first.trunk.flow && last.uri == first.uri)
    world.answer(200)
    #expect(!world.machine.isUnregistering)
    world.advance(.seconds(1_000))
    #expect(world.requests.count == 2)
    // while a refresh is under way: the sequence number after the refresh's
    world = self.world()
    world.answer(200, expires: 100)
    world.advance(.seconds(86))
    world.feed(.unregister)
    #expect(world.requests.map(\.request.expires) == [600, 600, 0])
    #expect(world.requests[2].request.sequence == world.requests[1].request.sequence + 1)
  }

  @Test func `423 asks at once for as long as the registrar wants, once`() {
    var world = world()
    world.answer(423, minimum: 1_800)
    #expect(world.requests.count == 2 && world.requests[1].request.expires == 1_800)
    world.answer(423, minimum: 3_600)
    #expect(world.requests.count == 2)
  }

  @Test func `failures are repeated with growing pauses, and Retry-After is kept`() {
    var world = world()
    var pauses: [Int64] = []
    for _ in 0..<6 {
      world.answer(500)
      guard case .registrationFailed(_, 500, let pause)? = world.news.last else { continue }
      pauses.append(pause.milliseconds / 1_000)
      world.advance(pause)
    }
    #expect(pauses.count == 6 && pauses == pauses.sorted() && pauses[0] < 8 && pauses[5] >= 150, "\(pauses)")
    world.answer(503, retry: 1_000)
    guard case .registrationFailed(_, 503, let pause)? = world.news.last else {
      Issue.record("no news")
      return
    }
    #expect(pause >= .seconds(1_000))
  }

  @Test func `a refused password is not tried every few seconds`() {
    var world = world()
    world.answer(403)
    world.advance(.seconds(59))
    #expect(world.requests.count == 1)
  }

  @Test func `a registration outlives a failed refresh until its time is over`() {
    var world = world()
    world.answer(200, expires: 100)
    world.advance(.seconds(86))
    world.answer(503)
    #expect(world.machine.isRegistered("carrier"))
    world.advance(.seconds(30))
    world.answer(503)
    #expect(!world.machine.isRegistered("carrier"))
  }

  @Test func `a silent registrar makes way for the next server at once`() {
    let zone = Zone(a: ["carrier.example": ["192.0.2.1", "192.0.2.2"]])
    var world = World([trunk(port: 5060, registration: .init(user: "gw"))], zone)
    let first = world.requests[0].request.trunk.flow.remote
    world.answer(408)
    #expect(world.requests.count == 2 && world.requests[1].request.trunk.flow.remote != first)
    world.answer(200, expires: 60)
    #expect(world.machine.isRegistered("carrier"))
  }

  @Test func `when its connection is gone it registers again at once`() {
    var world = World([trunk("192.0.2.1", transport: .tcp, registration: .init(user: "gw"))])
    world.answer(200, expires: 600)
    world.feed(.flowLost(world.requests[0].request.trunk.flow))
    #expect(world.requests.count == 2)
  }

  @Test func `a trunk gone from the configuration takes its registration back, once; one that stays is not asked again`() {
    let settings = [trunk("192.0.2.1", registration: .init(user: "gw", expires: 600), probe: .init(interval: .seconds(30)))]
    var world = World(settings)
    let probe = world.requests.removeLast()
    #expect(probe.request.method == .options)
    world.answer(200, expires: 100)
    world.feed(.configure(settings))
    #expect(world.requests.count == 1)
    world.feed(.configure([]))
    let (first, last) = (world.requests[0].request, world.requests[1].request)
    #expect(last.method == .register && last.expires == 0 && last.sequence == first.sequence + 1 && last.callID == first.callID)
    #expect(last.trunk.flow == first.trunk.flow && last.uri == first.uri && last.contactUser == "gw")
    world.answer(200)
    world.advance(.seconds(1_000))
    #expect(world.requests.count == 2 && world.machine.nextDeadline == nil, "no refresh, no probe")
    world.feed(.requestAnswered(probe.id, RequestOutcome(code: 200)))
    #expect(world.requests.count == 2)
  }

  @Test func `a REGISTER that is under way when its trunk goes is taken back once it has been granted`() {
    for (code, taken) in [(200, true), (403, false)] {
      var world = world()
      world.feed(.configure([]))
      #expect(world.requests.count == 1 && world.machine.isUnregistering)
      world.answer(code, expires: 100)
      #expect(world.requests.map(\.request.expires) == (taken ? [600, 0] : [600]))
      if taken { world.answer(200) }
      #expect(!world.machine.isUnregistering && world.news.count == 1, "located, and nothing more")
      world.advance(.seconds(1_000))
      #expect(world.requests.count == (taken ? 2 : 1))
    }
    // a refresh that fails leaves the earlier binding
    var world = world()
    world.answer(200, expires: 100)
    world.advance(.seconds(86))
    world.feed(.configure([]))
    #expect(world.requests.map(\.request.expires) == [600, 600])
    world.answer(503)
    #expect(world.requests.map(\.request.expires) == [600, 600, 0])
  }

  @Test func `another user or server: the old binding is taken back and the new one made; another password makes one anew`() {
    func settings(_ user: String, _ host: String = "192.0.2.1", _ password: String = "a") -> TrunkSettings {
      var out = trunk(host, registration: .init(user: user))
      out.credentials = Credentials(username: "u", password: password)
      return out
    }
    for next in [settings("other"), settings("gw", "192.0.2.2"), settings("gw", "192.0.2.1", "b")] {
      var world = World([settings("gw")])
      world.answer(200, expires: 100)
      world.feed(.configure([next]))
      let last = world.requests.dropFirst().map(\.request)
      let stays = next.registration?.user == "gw" && next.server == settings("gw").server
      #expect(last.map(\.expires) == (stays ? [600] : [0, 600]))
      let first = world.requests[0].request
      if !stays { #expect(last[0].to == first.to && last[0].trunk.flow == first.trunk.flow) }
      let isSameBinding = last.last?.callID == world.requests[0].request.callID
      #expect(isSameBinding == (next.registration?.user == "gw"))
      if isSameBinding { #expect((last.last?.sequence ?? 0) > world.requests[0].request.sequence + 8) }
    }
  }

  @Test func `the other nodes use the report of the node that registers and probes a trunk`() {
    var world = World(
      [trunk("192.0.2.1", registration: .init(user: "gw", expires: 600), probe: .init(interval: .seconds(30)))],
      sharesDuties: true)
    func why() -> TrunkStatus.Trouble? { world.machine.status("carrier", at: world.now, wallOffset: 0)?.why }
    #expect(why() == nil && world.machine.troubles.isEmpty)
    world.feed(.reported(["carrier": .notAnswering]))
    #expect(!world.machine.isUsable("carrier", at: world.now) && why() == .notAnswering)
    world.feed(.reported(["carrier": .notRegistered]))
    #expect(world.machine.isUsable("carrier", at: world.now) && !world.machine.isRegistered("carrier") && why() == .notRegistered)
    world.feed(.reported(["other": .notAnswering]))
    #expect(world.machine.isRegistered("carrier") && why() == nil)
    // its own report counts once it leads
    world.feed(.duty(trunk: "carrier", true))
    #expect(world.machine.troubles == ["carrier": .notRegistered])
    world.feed(.reported(["carrier": .notAnswering]))
    #expect(world.machine.isUsable("carrier", at: world.now))
    world.feed(.duty(trunk: "carrier", false))
    #expect(world.machine.troubles.isEmpty)
  }
}
