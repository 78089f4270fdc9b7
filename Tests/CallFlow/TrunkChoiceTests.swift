import AppSessions
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let call = Identifier(high: 5, low: 5)

/// Which trunk an outgoing call takes, and what a user may dial.
@Suite struct TrunkChoiceTests {
  private static let network = TrunkMachine.Network(transports: [.udp], families: [.v4]) { transport, remote in
    transport == .udp ? Flow(transport: .udp, local: SocketAddress(.loopback, 5060), remote: remote) : nil
  }

  private func trunk(_ name: String, _ address: String, _ change: (inout Routing.Trunk) -> Void = { _ in }) -> Routing.Trunk {
    var trunk = Routing.Trunk(name: name)
    trunk.settings = TrunkSettings(name: name, domain: address, server: ServerURI(host: address))
    change(&trunk)
    return trunk
  }

  private func world(
    _ choices: [Routing.TrunkChoice] = [.init(trunk: "a"), .init(trunk: "b", priority: 2)],
    _ change: @escaping (inout Routing) -> Void = { _ in }
  ) -> Surroundings {
    Surroundings(network: Self.network) { _, routing in
      routing.trunks = [trunk("a", "192.0.2.1"), trunk("b", "192.0.2.2"), trunk("c", "192.0.2.3")]
      routing.outbound = [.init(prefix: "+", choices: choices)]
      routing.inbound = [.init(trunk: "a", target: .users)]
      change(&routing)
    }
  }

  private func invites(_ world: Surroundings) -> [OutboundInvite] {
    world.actions.compactMap { if case .sip(.invite(_, let invite)) = $0 { invite } else { nil } }
  }

  /// North America alone, over a trunk that takes national numbers.
  private func american(_ allow: [String]?, second: Bool = false) -> Surroundings {
    world(second ? [.init(trunk: "a"), .init(trunk: "b", priority: 2)] : [.init(trunk: "a")]) { routing in
      routing.trunks[0].numbers.outgoing = [.init(prefix: "+1", strip: 2)]
      routing.users[0].allowance.prefixes = allow
    }
  }
  private func started(_ world: Surroundings, _ number: String) -> RequestAnswer? {
    world.connect(phone)
    let start = CallStart(to: Handle(k: .phone, h: number), sdp: Surroundings.appSDP(setup: "actpass"))
    return world.request(phone, .callStart(start), call: call)
  }

  @Test(arguments: ["+1004930123456", "+1011493012345", "+1+4930123456", "+1911", "+1112", "+10044201234", "+10114930123"])
  func `a number that a trunk's rule turns into another is held to what the user may dial`(number: String) throws {
    let world = american(["+1"])
    #expect(world.isOK(started(world, number)) == false && world.invites.isEmpty, "\(number)")
    #expect(world.isOK(started(american(["+1"]), "+12125551234")))
  }

  @Test func `who may dial the other number as well may dial it so; another trunk of the route that says it whole is taken`()
    throws
  {
    #expect(american(["+1", "+49"]).isOK(started(american(["+1", "+49"]), "+10049301234")))
    let world = american(["+1"], second: true)
    #expect(world.isOK(started(world, "+10049301234")))
    if let lastRemote = world.lastRemote { world.legs[phone] = lastRemote }
    world.openOutgoingGate(call)
    #expect(invites(world).map(\.to) == ["+10049301234"] && invites(world).map(\.trunk.name) == ["b"])
  }

  @Test func `devices that are loaded before the start take no trunk's first question away`() {
    let routing = Routing(trunks: [trunk("a", "carrier.example")])
    var machine = CallMachine(routing: routing, random: .seeded(1), network: Self.network)
    var output = CallMachine.Output()
    machine.handle(.devices(.loaded([])), at: .zero, into: &output)
    #expect(!output.actions.contains { if case .lookUp = $0 { true } else { false } })
    output.removeAll()
    machine.handle(.wallClock(offsetMilliseconds: 0), at: .zero, into: &output)
    #expect(output.actions.contains { if case .lookUp = $0 { true } else { false } })
  }

  @Test(arguments: [(503, false), (500, false), (408, true), (503, true)])
  func `the next trunk takes the call when the first fails by its own fault, in one record`(code: Int, byTransport: Bool) throws {
    let world = world()
    try world.started(call)
    world.openOutgoingGate(call)
    let first = try #require(world.outgoingLeg)
    #expect(invites(world).map(\.trunk.name) == ["a"] && invites(world)[0].failsOverOnSilence)
    world.feed(.sip(.progress(first, code: 100, sdp: nil)))
    world.feed(.sip(.failed(first, code: code, cause: nil, byTransport: byTransport)))
    world.feed(.sip(.legClosed(first)))
    let second = try #require(world.outgoingLeg)
    #expect(second != first && invites(world).map(\.trunk.name) == ["a", "b"] && !invites(world)[1].failsOverOnSilence)
    #expect(invites(world)[0].callID != invites(world)[1].callID)
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
    world.request(phone, .callEnd(CallEnd()), call: call)
    world.feed(.sip(.legClosed(second)))
    world.expectRecord(.localEnd, by: .app, sip: 200)
    #expect(world.records.first?.trunk == "b" && world.machine.trunksWithCalls.isEmpty)
  }

  @Test(arguments: [false, true], [false, true])
  func `an address of ours that goes before an answer is no fault of the trunk: it is asked again unless it rang, then the next`(
    hasRung: Bool, hasNext: Bool
  ) throws {
    let world = hasNext ? world() : world([.init(trunk: "a")])
    try world.started(call)
    world.openOutgoingGate(call)
    let first = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(first, code: hasRung ? 180 : 100, sdp: nil)))
    func lose(_ leg: LegID) {
      world.feed(.sip(.addressLost(leg)))
      world.feed(.sip(.failed(leg, code: 408, cause: nil, byTransport: true)))
      world.feed(.sip(.legClosed(leg)))
    }
    lose(first)
    if hasRung, !hasNext {
      world.expectRecord(.trunkLost, by: .trunk)
      #expect(world.records.first?.end.detail == "our address changed before an answer")
      return
    }
    #expect(invites(world).map(\.trunk.name) == ["a", hasRung ? "b" : "a"])
    // more often than a trunk may fail
    if !hasRung { for _ in 1...8 { lose(try #require(world.outgoingLeg)) } }
    #expect(invites(world).last?.trunk.name == (hasRung ? "b" : "a"))
    let last = try #require(world.outgoingLeg)
    world.feed(.sip(.answered(last, sdp: Surroundings.trunkSDP())))
    world.request(phone, .callEnd(CallEnd()), call: call)
    world.feed(.sip(.legClosed(last)))
    world.expectRecord(.localEnd, by: .app, sip: 200)
    #expect(world.machine.trunksWithCalls.isEmpty)
  }

  @Test(arguments: [486, 404, 603, 480, 487]) func `what the called party says is final`(code: Int) throws {
    let world = world()
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(leg, code: code, cause: nil, byTransport: false)))
    #expect(invites(world).count == 1 && world.records.count == 1)
  }

  @Test func `after the last trunk the call fails with its last answer`() throws {
    let world = world()
    try world.started(call)
    world.openOutgoingGate(call)
    for _ in 0..<2 { world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 503, cause: nil, byTransport: false))) }
    #expect(world.received[phone]?.last == "call.ended trunkFailed")
    world.expectRecord(.trunkFailed, by: .trunk, sip: 503)
  }

  @Test func `an app that hangs up between two trunks calls no further one`() throws {
    let world = world()
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.request(phone, .callEnd(CallEnd()), call: call)
    world.feed(.sip(.failed(leg, code: 503, cause: nil, byTransport: true)))
    #expect(invites(world).count == 1)
    world.expectRecord(.localEnd, by: .app)
  }

  @Test func `a full trunk makes way for the next; when all are full the app hears overload`() throws {
    let world = world { routing in
      routing.trunks[0].maximumCalls = 0
      routing.trunks[1].callsPerSecond = 1
    }
    try world.started(call)
    world.openOutgoingGate(call)
    #expect(invites(world).map(\.trunk.name) == ["b"])
    let other = Identifier(high: 5, low: 6)
    let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
    #expect(world.code(world.request(phone, .callStart(start), call: other)) == .overload)
    #expect(world.refusals.last?.reason == .trunkLimit)
    world.pass(.seconds(1))
    #expect(world.isOK(world.request(phone, .callStart(start), call: other)))
  }

  @Test func `weights share the calls of one priority`() {
    let world = world([
      .init(trunk: "a", priority: 1, weight: 3), .init(trunk: "b", priority: 1, weight: 1), .init(trunk: "c", priority: 2),
    ])
    var first: [String: Int] = [:]
    for _ in 0..<1_000 {
      guard let rule = world.machine.routing.outbound.first, case .trunks(let order) = world.machine.trunks(of: rule, world.now)
      else {
        Issue.record("no trunks")
        return
      }
      #expect(order.count == 3 && order[2].name == "c")
      first[order[0].name, default: 0] += 1
    }
    #expect((700...800).contains(first["a"] ?? 0), "seed 7: \(first)")
  }

  @Test func `a trunk that is left alone after failures takes no calls until it is tried again`() throws {
    let world = world()
    for number in 0..<6 {
      let id = Identifier(high: 6, low: UInt64(number))
      try world.started(id)
      world.openOutgoingGate(id)
      let leg = try #require(world.outgoingLeg)
      world.feed(.sip(.failed(leg, code: 503, cause: nil, byTransport: true)))
      let next = try #require(world.outgoingLeg)
      if next != leg { world.feed(.sip(.failed(next, code: 486, cause: nil, byTransport: false))) }
    }
    #expect(world.news.contains(.breaker(trunk: "a", isOpen: true)))
    #expect(invites(world).suffix(1).map(\.trunk.name) == ["b"])
    world.pass(.seconds(11))
    try world.started(call)
    world.openOutgoingGate(call)
    #expect(invites(world).last?.trunk.name == "a")
  }

  @Test func `a call that gets no media is not the one that tries a trunk again`() throws {
    let world = world()
    for number in 0..<6 {
      let id = Identifier(high: 6, low: UInt64(number))
      try world.started(id)
      world.openOutgoingGate(id)
      let leg = try #require(world.outgoingLeg)
      world.feed(.sip(.failed(leg, code: 503, cause: nil, byTransport: true)))
      let next = try #require(world.outgoingLeg)
      if next != leg { world.feed(.sip(.failed(next, code: 486, cause: nil, byTransport: false))) }
    }
    world.pass(.seconds(11))
    world.mediaRefusal = "no ports"
    let refused = Identifier(high: 7, low: 7)
    let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
    #expect(!world.isOK(world.request(phone, .callStart(start), call: refused)))
    world.mediaRefusal = nil
    try world.started(call)
    world.openOutgoingGate(call)
    #expect(invites(world).last?.trunk.name == "a")
  }

  @Test func `numbers are written as the trunk wants them, and read as the gateway does`() throws {
    let world = world { routing in
      routing.trunks[0].numbers = NumberRules(
        outgoing: [.init(prefix: "+", strip: 1, add: "00")], caller: [.init(prefix: "+", strip: 1)],
        country: .init(country: "1"))
    }
    try world.started(call)
    world.openOutgoingGate(call)
    let invite = try #require(invites(world).first)
    #expect(invite.to == "0015557654321" && invite.from == "15551230001")
    world.invite(to: "5551230001", trunk: "a")
    let offered = world.messages[phone]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.last
    #expect(offered?.to.h == "+15551230001")
    world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 486, cause: nil, byTransport: false)))
    #expect(world.records.first?.to == "+15557654321")
  }

  @Test func `incoming calls over the trunk's rate get 503`() {
    let world = world { $0.trunks[0].callsPerSecond = 2 }
    for _ in 0..<3 { world.invite(trunk: "a") }
    #expect(world.trunkReceived.last == "503" && world.refusals.map(\.reason) == [.trunkRate])
    world.pass(.seconds(1))
    world.invite(trunk: "a")
    #expect(world.refusals.count == 1)
  }

  // MARK: what a user may dial

  private func dial(_ world: Surroundings, _ number: String, _ low: UInt64 = 5) -> ErrorCode? {
    world.connect(phone)
    let start = CallStart(to: Handle(k: .phone, h: number), sdp: Surroundings.appSDP(setup: "actpass"))
    return world.code(world.request(phone, .callStart(start), call: Identifier(high: 9, low: low)))
  }

  @Test func `a number is dialled as in the user's country, else as in the trunks', and takes the route of its E 164 form`()
    throws
  {
    let world = world { routing in
      for index in routing.trunks.indices { routing.trunks[index].numbers.country = .init(country: "1") }
      routing.users[0].allowance = UserAllowance(prefixes: ["+1555", "+4930"])
    }
    #expect(dial(world, "(555) 765-4321", 1) == nil && dial(world, "011 49 30 123456", 2) == nil)
    #expect(dial(world, "0301234567", 3) == .forbidden, "no number of North America")
    let german = self.world { routing in
      for index in routing.trunks.indices { routing.trunks[index].numbers.country = .init(country: "1") }
      routing.users[0].country = .init(country: "49")
      routing.users[0].allowance = UserAllowance(prefixes: ["+4930"])
    }
    #expect(
      dial(german, "030 1234567", 1) == nil && dial(german, "0049301234567", 2) == nil
        && dial(german, "5557654321", 3) == .forbidden)
  }

  @Test func `only allowed beginnings, so many at a time, so many an hour`() {
    let world = world { $0.users[0].allowance = UserAllowance(prefixes: ["+1555"], calls: 2, callsPerHour: 3) }
    #expect(dial(world, "+19005551234") == .forbidden && world.refusals.last?.reason == .userPrefix)
    #expect(dial(world, "+15557654321", 1) == nil && dial(world, "+15557654321", 2) == nil)
    #expect(dial(world, "+15557654321", 3) == .tooMany && world.refusals.last?.reason == .userLimit)
    world.pass(.seconds(10))  // both fail for want of media
    #expect(dial(world, "+15557654321", 4) == nil)
    world.pass(.seconds(10))
    #expect(dial(world, "+15557654321", 5) == .tooMany && world.refusals.last?.reason == .userRate)
    world.pass(.seconds(3_600))
    #expect(dial(world, "+15557654321", 6) == nil)
  }

  @Test func `the user's own number is no target`() {
    let world = world()
    #expect(dial(world, "+1 555 123 0001") == .forbidden && world.refusals.last?.reason == .ownNumber)
    #expect(dial(world, "0015551230002") == .forbidden)
  }

  @Test func `emergency numbers are refused unless a route is for them`() {
    let refused = world()
    for number in ["112", "911", "+112", "1-1-2"] { #expect(dial(refused, number) == .emergency, "\(number)") }
    let allowed = world {
      $0.outbound.append(.init(prefix: "112", choices: [.init(trunk: "b")], allowsEmergency: true))
      $0.users[0].allowance = UserAllowance(prefixes: ["+1555"], callsPerHour: 0)
    }
    #expect(dial(allowed, "112") == nil && dial(allowed, "911", 6) == .emergency)
  }

  @Test func `a disabled trunk takes no new calls either way, its calls go on, and it can be taken back`() throws {
    let world = world([.init(trunk: "a")])
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    world.feed(.setTrunk("a", isDisabled: true))
    let status = try #require(world.machine.trunkStatuses(at: world.now).first)
    #expect(status.trunk == "a" && status.why == .disabled && !status.up && status.calls == 1)
    #expect(world.machine.summaries.count == 1)
    world.invite(trunk: "a")
    #expect(world.trunkReceived.last == "503" && world.refusals.last?.reason == .trunkDisabled)
    guard case .refused(.trunkDisabled) = world.machine.trunks(of: world.machine.routing.outbound[0], world.now) else {
      Issue.record("an outgoing call takes it")
      return
    }
    world.feed(.setTrunk("a", isDisabled: false))
    #expect(world.machine.trunkStatuses(at: world.now).first?.up == true)
    world.feed(.setTrunk("nobody", isDisabled: true))
    #expect(!world.machine.trunkCapacity.isDisabled("nobody"))
  }
}
