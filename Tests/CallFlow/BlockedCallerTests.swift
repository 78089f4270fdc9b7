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
/// As `Surroundings.invite` has it.
private let caller: Int64 = 15_550_000_042

/// Callers that a directory blocks: refused before anything rings, and recorded.
@Suite struct BlockedCallerTests {
  private func world(pushes: Bool = false, _ more: (inout CallConfiguration, inout Routing) -> Void = { _, _ in })
    -> Surroundings
  {
    let world = Surroundings(pushes: pushes, more)
    world.connect(phone)
    return world
  }

  @Test(arguments: [486, 603])
  func `DIR-5: a blocked caller gets decline_code; no device hears of it, no media is reserved, and the record says why`(
    code: Int
  ) {
    let world = world { configuration, _ in configuration.declineCode = code }
    world.feed(.blocked(scope: "user:alice", [12_125_550_000, caller, 49_301_234_567]))
    world.invite()
    #expect(world.trunkReceived == ["\(code)"] && world.received[phone] == nil && world.pushes.isEmpty && world.session == nil)
    world.expectRecord(.blocked, by: .gateway, sip: code)
    #expect(world.records[0].end.detail == "user:alice" && world.records[0].user == "alice" && world.records[0].devices == 0)
    #expect(!world.actions.contains { if case .trace(_, .ringing, _, _) = $0 { true } else { false } })
  }

  @Test func `a neighbour's number, another user's directory and a directory that was emptied block nobody`() {
    let world = world()
    world.feed(.blocked(scope: "user:alice", [caller - 1, caller + 1]))
    world.feed(.blocked(scope: "user:bob", [caller]))
    world.feed(.blocked(scope: "account:default", [caller]))
    world.feed(.blocked(scope: "account:default", []))
    world.invite()
    #expect(world.received[phone] == ["call.offer"] && world.records.isEmpty)
  }

  @Test func `an account's directory blocks for its calls only`() {
    for (account, isBlocked) in [(nil, false), ("work", true), ("home", false)] as [(String?, Bool)] {
      let world = world { _, routing in routing.users[0].account = account }
      let info = DeviceInfo(caps: ["media.active"], accounts: ["work", "home", "default"])
      world.feed(.app(.connected(DeviceKey(user: "alice", device: "laptop"), SessionID("laptop"), info, resumed: false)))
      world.feed(.blocked(scope: "account:work", [caller]))
      world.invite()
      #expect((world.records.first?.end.reason == .blocked) == isBlocked, "\(account ?? "none")")
    }
  }

  @Test func `a withheld number is compared with nothing, and so is what is no number`() {
    let world = world()
    world.feed(.blocked(scope: "user:alice", [caller]))
    world.invite(isPrivate: true)
    #expect(world.received[phone] == ["call.offer"])
    for text in ["", "+", "anonymous", "0155500042", "+1555000004212345678", "1555#", "\u{661}\u{662}\u{663}1234567", "155500"] {
      #expect(BlockedCallers.number(text) == nil, "\(text)")
    }
    for text in ["+15550000042", "15550000042", "0015550000042"] { #expect(BlockedCallers.number(text) == caller, "\(text)") }
  }

  @Test func `of several users whom a webhook names, those who block the caller do not ring; if all do, it is refused`() throws {
    for blocking in [["alice"], ["alice", "bob"]] {
      let world = world { _, routing in
        routing.inbound = [
          .init(trunk: "carrier", target: .hook(.init(Webhook(url: "https://crm.example/route", key: Redacted([1])))))
        ]
      }
      world.connect(bob)
      for user in blocking { world.feed(.blocked(scope: "user:" + user, [caller])) }
      world.invite()
      world.feed(.routed(try #require(world.questions.last?.call), RouteAnswer(users: ["alice", "bob"])))
      #expect(world.received[phone] == nil)
      #expect((world.received[bob] == ["call.offer"]) == (blocking.count == 1))
      if blocking.count == 2 { world.expectRecord(.blocked, by: .gateway, sip: 486) }
    }
  }

  @Test func `a call is not diverted to a user who blocks its caller`() throws {
    let world = world { _, routing in routing.users[0].diversions = Diversions([.declined: .init(.user("bob"))]) }
    world.connect(bob)
    world.feed(.blocked(scope: "user:bob", [caller]))
    let (_, call) = try world.ringing()
    world.request(phone, .callReject(CallReject(scope: .all, reason: .declined)), call: call)
    #expect(world.received[bob] == nil)
    world.expectRecord(.declined)
    #expect(world.records[0].end.detail == "diversion: bob blocks the caller")
  }

  @Test func `each of many is found, and none between them`() {
    var blocked = BlockedCallers()
    let numbers = (0..<10_000).map { 15_550_000_000 + Int64($0) * 3 }
    blocked.replace("user:alice", with: numbers)
    #expect(blocked.count == 10_000)
    for number in numbers {
      #expect(blocked.scope(blocking: number, user: "alice", account: nil) == "user:alice")
      #expect(blocked.scope(blocking: number + 1, user: "alice", account: nil) == nil)
    }
  }
}
