import AppSessions
import PhoneNumbers
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone

/// Emergency numbers by the user's region, and what stands in no such call's way.
@Suite struct EmergencyTests {
  private func world(
    _ country: String?, route: Bool = false, _ change: @escaping (inout CallConfiguration, inout Routing) -> Void = { _, _ in }
  ) -> Surroundings {
    Surroundings { configuration, routing in
      routing.users[0].country = country.flatMap { NumberPlan(country: $0) }
      routing.outbound = [.init(prefix: "", trunk: "carrier")]
      if route { routing.outbound.append(.init(prefix: "", choices: [.init(trunk: "carrier")], allowsEmergency: true)) }
      change(&configuration, &routing)
    }
  }

  private func dial(_ world: Surroundings, _ number: String, _ low: UInt64 = 5, location: String? = nil) -> Failure? {
    world.connect(phone)
    let start = CallStart(
      to: Handle(k: .phone, h: number), sdp: Surroundings.appSDP(setup: "actpass"), location: location)
    guard case .err(let failure)? = world.request(phone, .callStart(start), call: Identifier(high: 9, low: low)) else {
      return nil
    }
    return failure
  }

  private func open(_ world: Surroundings) {
    if let remote = world.lastRemote { world.legs[phone] = remote }
    world.openOutgoingGate(Identifier(high: 9, low: 5))
  }

  /// Each had gone out on the trunk: only eight numbers were known, the same in the whole world.
  @Test(arguments: [
    ("CH", "144"), ("CH", "117"), ("AT", "133"), ("FR", "15"), ("FR", "17"), ("IT", "113"), ("CN", "120"), ("DE", "112"),
  ])
  func `the region's emergency numbers are refused with what to do, unless a route is for them`(country: String, number: String) {
    let refused = dial(world(country), number)
    #expect(refused?.code == .emergency && refused?.msg?.contains("call this number from a mobile or fixed telephone") == true)
    #expect(dial(world(country, route: true), number) == nil)
  }

  @Test func `those of another region are ordinary numbers, those that the operator adds are not`() {
    #expect(dial(world("DE"), "911") == nil && dial(world("DE"), "144") == nil && dial(world("CH"), "999") == nil)
    let added = world("DE") { $1.emergencyNumbers = ["1122"] }
    #expect(dial(added, "1122")?.code == .emergency && dial(added, "112", 6)?.code == .emergency)
    let unknown = world(nil)
    #expect(dial(unknown, "911")?.code == .emergency && dial(unknown, "144", 6) == nil)
    #expect(dial(world(nil) { $1.emergencyNumbers = ["144"] }, "144")?.code == .emergency)
  }

  @Test func `a user without a country is where the trunks are, of two countries in both`() {
    func trunks(_ countries: String...) -> Surroundings {
      world(nil) { _, routing in
        routing.trunks = countries.enumerated().map { index, country in
          var trunk = routing.trunks[0]
          (trunk.name, trunk.numbers.country) = ("\(index)", NumberPlan(country: country))
          return trunk
        }
        routing.outbound = [.init(prefix: "", choices: countries.indices.map { .init(trunk: "\($0)") })]
      }
    }
    #expect(dial(trunks("CH"), "144")?.code == .emergency && dial(trunks("CH", "CH"), "144")?.code == .emergency)
    let both = trunks("DE", "CH")
    #expect(dial(both, "144")?.code == .emergency && dial(both, "110", 6)?.code == .emergency)
    let national = dial(both, "030 1234567", 7)
    #expect(national?.code == .notFound && national?.msg?.contains("of which country?") == true)
    #expect(dial(both, "+49 30 1234567", 8) == nil)
  }

  @Test func `no allowance, quota or limit of users and trunks stands in its way`() {
    let world = world("CH", route: true) { configuration, routing in
      configuration.bounds.callsPerUser = 0
      routing.users[0].allowance = UserAllowance(prefixes: [], calls: 0, callsPerHour: 0)
      for index in routing.trunks.indices { (routing.trunks[index].maximumCalls, routing.trunks[index].callsPerSecond) = (0, 1) }
    }
    for low in 1...3 as ClosedRange<UInt64> { #expect(dial(world, "144", low) == nil) }
    #expect(dial(world, "+41441234567", 9)?.code == .tooMany)
  }

  @Test func `a number that a trunk's rule writes as an emergency number of the region is refused`() {
    let world = world("CH") { _, routing in routing.trunks[0].numbers.outgoing = [.init(prefix: "+4144", strip: 12, add: "144")] }
    #expect(dial(world, "+41 44 123 45 67")?.code == .forbidden)
    #expect(dial(world, "+41 31 123 45 67", 6) == nil)
  }

  // MARK: location

  private let document = "<?xml version=\"1.0\"?><presence><gp:geopriv/></presence>"

  private static let unusable: [(String?, [String])] = [
    ("+15550000000", []), (nil, ["no passport"]), (nil, [String](repeating: "a", count: 100)),
  ]

  @Test(arguments: unusable)
  func `a caller number or an identity that an app may not give keeps no emergency call back`(
    from: String?, identity: [String]
  ) throws {
    func start(_ number: String) -> CallStart {
      CallStart(
        from: from.map { Handle(k: .phone, h: $0) }, to: Handle(k: .phone, h: number),
        sdp: Surroundings.appSDP(setup: "actpass"), identity: identity)
    }
    let world = world("CH", route: true)
    world.connect(phone)
    let answer = world.request(phone, .callStart(start("144")), call: Identifier(high: 9, low: 5))
    if case .err(let failure)? = answer { Issue.record("refused: \(failure)") }
    open(world)
    let invite = try #require(
      world.actions.compactMap { if case .sip(.invite(_, let invite)) = $0 { invite } else { nil } }.first)
    #expect(invite.from == "+15551230001", "the user's own number")
    let other = self.world("CH", route: true)
    other.connect(phone)
    guard case .err? = other.request(phone, .callStart(start("044 123 45 67")), call: Identifier(high: 9, low: 5)) else {
      Issue.record("another call is refused")
      return
    }
  }

  @Test func `an emergency call's location goes to a trunk that takes it, and no other call's`() throws {
    func invite(_ number: String, takes: Bool) throws -> OutboundInvite {
      let world = world("CH", route: true) { _, routing in routing.trunks[0].sendsLocation = takes }
      #expect(dial(world, number, location: document) == nil)
      open(world)
      return try #require(world.actions.compactMap { if case .sip(.invite(_, let invite)) = $0 { invite } else { nil } }.first)
    }
    #expect(try invite("144", takes: true).location == document)
    #expect(try invite("144", takes: false).location == nil)
    #expect(try invite("044 123 45 67", takes: true).location == nil)
  }

  @Test(arguments: ["", "here", "<a\u{0}>", "<" + String(repeating: "a", count: 8_192)])
  func `what is no location is left out of an emergency call, and refused to others`(text: String) throws {
    let world = world("CH", route: true) { _, routing in routing.trunks[0].sendsLocation = true }
    #expect(dial(world, "144", location: text) == nil)
    open(world)
    let invite = try #require(
      world.actions.compactMap { if case .sip(.invite(_, let invite)) = $0 { invite } else { nil } }.first)
    #expect(invite.location == nil)
    let said = world.actions.compactMap { if case .trace(_, .start, _, let detail) = $0 { detail } else { nil } }
    #expect(said.contains { $0.contains("without its location") }, "\(said)")
    #expect(dial(self.world("CH", route: true), "044 123 45 67", location: text)?.code == .badRequest)
  }

  // MARK: numbers that can never ring

  @Test(arguments: [
    ("+999 123456", "no region has this country code"), ("030 12345678901234567", "too long"), ("+1 253 0000", "a local number"),
    ("030 ABCDEF", "letters"), ("tel:030-1234567;isub=1", "subaddress"), ("++49301234567", "a character"),
  ])
  func `what can never ring is refused with the reason`(number: String, reason: String) {
    let refused = dial(world("DE"), number)
    #expect(refused?.code == .notFound && refused?.msg?.contains(reason) == true, "\(refused?.msg ?? "taken")")
  }

  @Test func `every spelling of a number is held to allow as one, and one spelling is sent`() throws {
    for text in ["030/123 45 67", "+49 (0)30 1234567", "0049301234567", "０３０１２３４５６７", "030 1234567 ext. 12"] {
      let world = world("DE") { _, routing in routing.users[0].allowance = UserAllowance(prefixes: ["+4930"]) }
      #expect(dial(world, text) == nil, "\(text)")
      open(world)
      #expect(world.trunkReceived.contains("INVITE +49301234567"), "\(text): \(world.trunkReceived)")
      #expect(dial(world, "089 1234567", 6)?.code == .forbidden)
    }
  }
}
