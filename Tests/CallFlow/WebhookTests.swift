import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let bob = DeviceKey(user: "bob", device: "desk")

/// `route: { webhook: … }`: the call exists while the webhook is queried for its users.
@Suite struct WebhookTests {
  private func world(_ fallback: Routing.Hook.Fallback = .users, pushes: Bool = false) -> Surroundings {
    let world = Surroundings(pushes: pushes) { _, routing in
      routing.inbound = [
        .init(
          trunk: "carrier",
          target: .hook(.init(Webhook(url: "https://crm.example/route", key: Redacted([1, 2, 3])), fallback: fallback)))
      ]
    }
    world.connect(phone)
    world.connect(bob)
    return world
  }
  private func answer(_ world: Surroundings, _ answer: RouteAnswer?) throws {
    world.feed(.routed(try #require(world.questions.last?.call), answer))
  }

  @Test func `the webhook gets all that is known, and its users ring at once; the first to answer has the call`()
    throws
  {
    let world = world()
    let leg = world.invite()
    #expect(world.received[phone] == nil && world.received[bob] == nil && world.trunkReceived.isEmpty)
    let question = try #require(world.questions.first)
    #expect(
      question.from == "+15550000042" && question.name == "Carol" && question.to == "+15551230001" && question.trunk == "carrier")
    #expect(question.sipCallId == "call-2@carrier")
    #expect(world.machine.summaries.first?.state == .parked)
    world.pass(.milliseconds(900))
    try answer(world, RouteAnswer(users: ["bob", "alice", "bob", "nobody"], name: "Carol of Accounts"))
    for key in [phone, bob] {
      let offer = world.messages[key]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.first
      #expect(offer?.from.n == "Carol of Accounts" && offer?.from.h == "+15550000042")
      #expect(world.received[key] == ["call.offer"])
    }
    world.warm(bob, question.call)
    #expect(world.isOK(world.request(bob, .callAnswer(CallAnswer()), call: question.call)))
    #expect(world.received[phone]?.last == "call.cancel answeredElsewhere" && world.trunkReceived == ["200"])
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup)
    #expect(world.records[0].user == "bob")
  }

  @Test func `without an answer in 1 s, or with none, the fallback rule holds`() throws {
    for isSilent in [true, false] {
      for (fallback, received) in [(Routing.Hook.Fallback.users, phone), (.user("bob"), bob)] {
        let world = world(fallback)
        world.invite()
        if isSilent { world.pass(.milliseconds(999)) }
        #expect(world.received.isEmpty)
        if isSilent { world.pass(.milliseconds(1)) } else { try answer(world, nil) }
        #expect(world.received == [received: ["call.offer"]])
      }
      let world = world(.code(503))
      world.invite()
      if isSilent { world.pass(.seconds(1)) } else { try answer(world, nil) }
      #expect(world.trunkReceived == ["503"])
      world.expectRecord(.overload, sip: 503)
    }
  }

  @Test func `unknown users leave the fallback rule; a number without a user is 404; a code refuses`() throws {
    let unknown = world()
    unknown.invite()
    try answer(unknown, RouteAnswer(users: ["mallory"]))
    #expect(unknown.received == [phone: ["call.offer"]])
    let unrouted = world()
    unrouted.invite(to: "+19995550000")
    try answer(unrouted, RouteAnswer(users: []))
    #expect(unrouted.trunkReceived == ["404 Q.850;cause=1"])
    unrouted.expectRecord(.notFound)
    let refused = world()
    refused.invite()
    try answer(refused, RouteAnswer(users: ["alice"], code: 603))
    #expect(refused.trunkReceived == ["603"] && refused.received.isEmpty)
    refused.expectRecord(.declined, sip: 603)
  }

  @Test func `INC-12: a name that comes after its second goes to the devices as call.update, once, and never by another push`()
    throws
  {
    let world = world(pushes: true)
    world.invite()
    world.pass(.seconds(1))
    world.pass(.seconds(3))
    try answer(world, RouteAnswer(users: ["bob"], name: "Carol of Accounts"))
    #expect(world.received[phone] == ["call.offer", "call.update"] && world.received[bob] == nil && world.pushes.isEmpty)
    guard case .callUpdate(let update)? = world.messages[phone]?.last else { return }
    #expect(update.from?.n == "Carol of Accounts")
    try answer(world, RouteAnswer(users: ["bob"], name: "Carol of Accounts"))
    #expect(world.received[phone]?.count == 2)
  }

  @Test func `the caller gives up while the webhook is asked: one record, and its answer rings no device`() throws {
    let world = world()
    let leg = world.invite()
    world.feed(.sip(.cancelled(leg, nil)))
    try answer(world, RouteAnswer(users: ["bob"]))
    #expect(world.received.isEmpty)
    world.expectRecord(.callerCancelled)
    try answer(world, RouteAnswer(users: ["bob"]))
  }

  @Test func `a withheld number is not sent to the webhook, and stays withheld`() throws {
    let world = world()
    world.invite(isPrivate: true)
    #expect(world.questions.first?.from == nil && world.questions.first?.name == nil)
    try answer(world, RouteAnswer(users: ["alice"], from: "+15550000042"))
    let offer = world.messages[phone]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.first
    #expect(offer?.from.h == "anonymous")
  }

  @Test func `no device of the webhook's users, no media port, draining: each ends with its cause`() throws {
    let quiet = world()
    quiet.disconnect(bob, forGood: true)
    quiet.invite()
    try answer(quiet, RouteAnswer(users: ["bob"]))
    #expect(quiet.trunkReceived == ["480 Q.850;cause=20"])
    quiet.expectRecord(.unanswered)
    let full = world()
    full.invite()
    full.mediaRefusal = "no port"
    try answer(full, RouteAnswer(users: ["bob"]))
    #expect(full.trunkReceived == ["503"])
    full.expectRecord(.overload)
  }
}
