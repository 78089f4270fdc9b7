import AppSessions
import PhoneNumbers
import PushPolicy
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone

/// A call's named parameters (docs/reference/protocol.md, Parameters).
@Suite struct ParameterTests {
  private func offer(_ world: Surroundings) -> CallOffer? {
    world.messages[phone]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.last
  }

  private func invite(_ world: Surroundings, _ parameters: [String: String]) {
    var invite = InboundInvite(
      trunk: "carrier", source: Surroundings.peer.flow, callID: "one@carrier", from: .init(number: "+15550000042"),
      to: .init(number: "+15551230001"), sdp: Surroundings.trunkSDP())
    invite.parameters = parameters
    world.feed(.sip(.inviteReceived(.inbound(77), invite)))
  }

  @Test func `those of an INVITE are in the offer, and in the snapshot while it rings`() throws {
    let world = Surroundings()
    world.connect(phone)
    invite(world, ["X-Ticket": "4711", "User-to-User": "a=b;encoding=hex"])
    #expect(offer(world)?.parameters?.values == ["X-Ticket": "4711", "User-to-User": "a=b;encoding=hex"])
    #expect(offer(world)?.to.h == "+15551230001")
    let plain = Surroundings()
    plain.connect(phone)
    invite(plain, [:])
    #expect(offer(plain) != nil && offer(plain)?.parameters == nil)
  }

  @Test func `what an INVITE has too much of is left out, and the call comes`() throws {
    let world = Surroundings()
    world.connect(phone)
    invite(world, ["A": "short", "B": String(repeating: "x", count: 10_000), "C": "two\u{9}words", "D": "last"])
    #expect(offer(world)?.parameters?.values == ["A": "short", "D": "last"])
  }

  @Test func `the routing webhook's are added, and stand in place of a field of the same name`() throws {
    let big = ["Big": String(repeating: "x", count: 1_020)]
    for (answered, expected, fault) in [
      (["x-ticket": "9", "Tier": "gold"], ["x-ticket": "9", "Tier": "gold"], ""),
      (
        ["bad name": "1"], ["X-Ticket": "4711"],
        #"; parameters: "bad name" is not a name of a header field of 1 to 64 characters"#
      ),
      (big, big, "; parameters: those of the trunk's INVITE are left out, as both are beyond the limits"),
      ([:], ["X-Ticket": "4711"], ""),
    ] as [([String: String], [String: String], String)] {
      let world = Surroundings { _, routing in
        let hook = Webhook(url: "https://crm.example/route", key: Redacted([1, 2, 3]))
        routing.inbound = [.init(trunk: "carrier", target: .hook(.init(hook, fallback: .users)))]
      }
      world.connect(phone)
      invite(world, ["X-Ticket": "4711"])
      world.feed(.routed(try #require(world.questions.last?.call), RouteAnswer(users: ["alice"], parameters: answered)))
      #expect(offer(world)?.parameters?.values == expected)
      let said = world.actions.compactMap { if case .trace(_, .routed, _, let detail) = $0 { detail } else { nil } }
      #expect(said == ["webhook" + fault])
    }
  }

  private func dial(_ world: Surroundings, _ number: String, _ parameters: CallParameters?) -> Failure? {
    world.connect(phone)
    let start = CallStart(to: Handle(k: .phone, h: number), sdp: Surroundings.appSDP(setup: "actpass"), parameters: parameters)
    guard case .err(let failure)? = world.request(phone, .callStart(start), call: Identifier(high: 9, low: 5)) else { return nil }
    return failure
  }

  private func sent(_ world: Surroundings) -> OutboundInvite? {
    if let remote = world.lastRemote { world.legs[phone] = remote }
    world.openOutgoingGate(Identifier(high: 9, low: 5))
    return world.actions.compactMap { if case .sip(.invite(_, let invite)) = $0 { invite } else { nil } }.first
  }

  @Test func `a webhook is asked with those of the INVITE, and programs see them in lists, events and the record`() throws {
    let world = Surroundings { configuration, routing in
      configuration.events = .init(isOn: true)
      let hook = Webhook(url: "https://crm.example/route", key: Redacted([1, 2, 3]))
      routing.inbound = [.init(trunk: "carrier", target: .hook(.init(hook, fallback: .users)))]
    }
    world.connect(phone)
    invite(world, ["X-Ticket": "4711"])
    let question = try #require(world.questions.last)
    #expect(question.parameters == ["X-Ticket": "4711"])
    #expect(String(decoding: question.body, as: UTF8.self).contains(#""parameters":{"X-Ticket":"4711"}"#))
    world.feed(.routed(question.call, RouteAnswer(users: ["alice"], parameters: ["Tier": "gold"])))
    let all = CallParameters(["X-Ticket": "4711", "Tier": "gold"])
    #expect(world.machine.summaries.map(\.parameters) == [all])
    _ = world.command(question.call, .hangUp(nil))
    let told = world.events.compactMap { event -> CallParameters?? in
      if case .call(let facts) = event.facts { .some(facts.parameters) } else { nil }
    }
    #expect(told.first == .some(CallParameters(["X-Ticket": "4711"])), "\(told)")
    #expect(world.records.last?.parameters == all)
  }

  @Test func `a program's call has them as an app's: in the INVITE, and at the devices that ring`() throws {
    func world(_ listed: [String]) -> Surroundings {
      let world = Surroundings { _, routing in routing.trunks[0].rules.parameters = listed }
      world.connect(phone)
      return world
    }
    let wanted = OriginateRequest(user: "alice", to: "+15557654321", parameters: CallParameters(["X-Ticket": "4711"]))
    let takes = world(["x-ticket"])
    _ = try #require(try takes.originate(wanted)?.get())
    #expect(offer(takes)?.parameters?.values == ["X-Ticket": "4711"])
    #expect(takes.machine.summaries.first?.parameters?.values == ["X-Ticket": "4711"])
    guard case .failure(let failure)? = world([]).originate(wanted) else {
      Issue.record("made")
      return
    }
    #expect(failure.code == .badRequest && failure.msg?.contains("X-Ticket") == true)
  }

  @Test func `an app's go out where a trunk of the route lists them, and are refused by name where none does`() throws {
    func world(_ listed: [String]) -> Surroundings {
      Surroundings { _, routing in
        routing.users[0].country = NumberPlan(country: "CH")
        routing.outbound = [.init(prefix: "", choices: [.init(trunk: "carrier")], allowsEmergency: true)]
        routing.trunks[0].rules.parameters = listed
      }
    }
    let parameters = try #require(CallParameters(["x-ticket": "4711"]))
    let takes = world(["X-Ticket", "User-to-User"])
    #expect(dial(takes, "044 123 45 67", parameters) == nil)
    #expect(sent(takes)?.parameters == ["x-ticket": "4711"])
    let refused = dial(world(["User-to-User"]), "044 123 45 67", parameters)
    #expect(refused?.code == .badRequest && refused?.msg?.contains("x-ticket") == true, "\(String(describing: refused))")
    #expect(dial(world([]), "144", parameters) == nil, "an emergency call goes on without them")
  }
}
