import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone

/// Slots in trunks that all nodes share.
extension ClusterTests {
  private static func trunk(_ name: String, most: Int? = 5) -> Routing.Trunk {
    var trunk = Routing.Trunk(name: name, peer: Surroundings.peer)
    trunk.maximumCalls = most
    return trunk
  }

  @Test func `the next trunk of a route is called only with a slot among those of all nodes`() throws {
    let world = world { routing in
      routing.trunks = [Self.trunk("a"), Self.trunk("b"), Self.trunk("c"), Self.trunk("d", most: nil)]
      routing.inbound = [.init(trunk: "a", target: .users)]
      routing.outbound = [.init(prefix: "+", choices: ["a", "b", "c", "d"].enumerated().map { .init(trunk: $1, priority: $0) })]
    }
    world.connect(phone)
    let call = CallID(random: .seeded(1))
    _ = ask(world, call)
    world.feed(.claimed(call, .granted))
    world.legs[phone] = world.lastRemote
    world.openOutgoingGate(call)
    let first = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(first, code: 503, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(first)))
    #expect(world.seats == ["admit b 5"] && world.invites.count == 1)
    world.feed(.admitted(call, trunk: "b", false))
    #expect(world.seats.last == "admit c 5" && world.invites.count == 1)
    world.feed(.admitted(call, trunk: "c", true))
    #expect(world.invites.count == 2 && world.seats.last == "released a" && world.records.isEmpty)
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(second, code: 503, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(second)))
    #expect(world.invites.count == 3 && world.seats == ["admit b 5", "admit c 5", "released a", "released c"], "d has no limit")
    world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 503, cause: nil, byTransport: false)))
    world.pass(.seconds(2))
    world.expectRecord(.trunkFailed, by: .trunk, sip: 503)
    #expect(world.machine.trunksWithCalls.isEmpty)
  }

  @Test(arguments: [true, false]) func `without a slot on any trunk the call fails with the first one's answer`(endsBefore: Bool)
    throws
  {
    let world = world { routing in
      routing.trunks = [Self.trunk("a"), Self.trunk("b")]
      routing.outbound = [.init(prefix: "+", choices: [.init(trunk: "a"), .init(trunk: "b", priority: 2)])]
    }
    world.connect(phone)
    let call = CallID(random: .seeded(1))
    _ = ask(world, call)
    world.feed(.claimed(call, .granted))
    world.legs[phone] = world.lastRemote
    world.openOutgoingGate(call)
    let first = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(first, code: 503, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(first)))
    if endsBefore { world.request(phone, .callEnd(CallEnd()), call: call) }
    world.feed(.admitted(call, trunk: "b", endsBefore))
    world.pass(.seconds(2))
    #expect(world.invites.count == 1 && world.records.count == 1)
    #expect(world.records.first?.end.reason == (endsBefore ? .localEnd : .trunkFailed))
  }

  @Test(arguments: [true, false]) func `a diversion to a number waits for a slot on its trunk`(isAdmitted: Bool) throws {
    let world = world { routing in
      routing.trunks = [Self.trunk("carrier")]
      routing.users[0].diversions = Diversions([.noAnswer: .init(.number("+491701234567", showsCaller: false))])
    }
    world.connect(phone)
    world.invite()
    let call = try located(world)
    world.notify(phone, .callRinging(CallRinging()), call: call)
    world.pass(.seconds(45))
    #expect(world.seats == ["admit carrier 5"] && world.invites.isEmpty)
    #expect(!world.isOK(world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)))
    world.feed(.admitted(call, trunk: "carrier", isAdmitted))
    world.pass(.seconds(2))
    #expect(world.invites.count == (isAdmitted ? 1 : 0) && world.records.count == (isAdmitted ? 0 : 1))
    if !isAdmitted { #expect(world.records.first?.end.detail == "diversion: trunkLimit") }
  }

  @Test func `a device is not pushed to while a diversion waits for its slot, and no timer stops`() throws {
    let world = world { routing in
      routing.trunks = [Self.trunk("carrier")]
      routing.users[0].diversions = Diversions([.declined: .init(.number("+491701234567", showsCaller: false))])
    }
    world.register([Surroundings.tablet])
    world.connect(Surroundings.tablet)
    world.connect(phone)
    world.invite()
    let call = try located(world)
    #expect(world.isOK(world.request(phone, .callReject(CallReject()), call: call)) && world.seats == ["admit carrier 5"])
    world.pass(.seconds(5))
    #expect(world.pushes.isEmpty && world.records.isEmpty)
    world.feed(.admitted(call, trunk: "carrier", true))
    #expect(world.invites.count == 1)
  }

  @Test func `calls a second are shared by the nodes that take calls`() {
    let world = world { $0.trunks[0].callsPerSecond = 9 }
    world.feed(.nodes(3))
    for _ in 0..<5 { world.invite(to: "+19") }
    #expect(world.refusals.count { $0.reason == .trunkRate } == 2)
    world.pass(.seconds(5))
    world.feed(.nodes(100))
    for _ in 0..<5 { world.invite(to: "+19") }
    #expect(world.refusals.count { $0.reason == .trunkRate } == 6, "one a second at least")
  }
}
