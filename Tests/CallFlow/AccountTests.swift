import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet
private let bob = DeviceKey(user: "bob", device: "desk")

/// Incoming calls of an account: its number, its user or its route say which.
@Suite struct AccountTests {
  private func world(
    pushes: Bool = false, _ configure: @escaping (inout Routing) -> Void
  ) -> Surroundings { Surroundings(pushes: pushes) { configure(&$1) } }

  private func connect(_ world: Surroundings, _ key: DeviceKey, _ accounts: [String]) {
    world.feed(
      .app(.connected(key, SessionID(key.device), DeviceInfo(caps: ["media.active"], accounts: accounts), resumed: false)))
  }

  private func offered(_ world: Surroundings, _ key: DeviceKey) -> [String] {
    (world.messages[key] ?? []).compactMap { if case .callOffer(let offer) = $0 { offer.acct } else { nil } }
  }

  @Test func `ACC-1: the number's account before the user's, the user's before the route's, else default`() {
    let rows: [(String?, String?, String?, String)] = [
      ("work", "home", "trunk", "work"), (nil, "home", "trunk", "home"), (nil, nil, "trunk", "trunk"), (nil, nil, nil, "default"),
    ]
    for (number, user, route, expected) in rows {
      let world = world { routing in
        routing.users[0].numberAccounts = number.map { ["+15551230001": $0] } ?? [:]
        routing.users[0].account = user
        routing.inbound[0].account = route
      }
      connect(world, phone, ["work", "home", "trunk"])
      world.invite(to: "0015551230001")
      #expect(offered(world, phone) == [expected])
    }
  }

  @Test func `ACC-1: two accounts on one device: each call says whose it is, in offer, push and snapshot`() throws {
    let world = world(pushes: true) { $0.users[0].numberAccounts = ["+15551230001": "home", "+15551230002": "work"] }
    connect(world, phone, ["home", "work"])
    world.request(phone, .devicePut(Surroundings.put(phone)), call: nil)
    for number in ["+15551230002", "+15551230001"] { world.invite(to: number) }
    #expect(offered(world, phone) == ["work", "home"])
    world.disconnect(phone)
    world.pass(.seconds(2))
    #expect(world.pushes.map(\.content.account) == ["work", "home"])
    let call = try #require(world.pushes.first?.key.call)
    world.connect(phone, "woken", wake: call)
    #expect(world.welcomes[SessionID("woken")]?.calls.filter { $0.call == call }.map(\.acct) == ["work"])
  }

  @Test func `ACC-1: a call of an account rings and wakes only devices that are logged in to it, also those that come late`()
    throws
  {
    let world = world(pushes: true) { $0.users[0].account = "work" }
    for (key, accounts) in [(phone, ["home"]), (tablet, ["work"])] {
      connect(world, key, accounts)
      world.request(key, .devicePut(Surroundings.put(key)), call: nil)
      world.disconnect(key, forGood: true)
    }
    world.invite()
    #expect(world.pushes.map(\.key.device) == ["tablet"] && world.pushes.first?.content.account == "work")
    connect(world, phone, ["home"])
    #expect(world.welcomes[SessionID("phone")]?.calls == [])
    connect(world, Surroundings.browser, ["work"])
    #expect(world.welcomes[SessionID("browser")]?.calls.map(\.acct) == ["work"])
  }

  @Test func `no user is logged in to the account: 480, and the record says so`() {
    let world = world { $0.users[0].account = "work" }
    connect(world, phone, ["default"])
    world.invite()
    #expect(world.trunkReceived.last?.hasPrefix("480") == true && offered(world, phone).isEmpty)
    #expect(world.records.first?.end.detail == "no device is logged in to account work")
  }

  @Test func `a device that was woken keeps the accounts of its login: the next call wakes it again`() throws {
    let world = world(pushes: true) { $0.users[0].account = "work" }
    connect(world, phone, ["work"])
    world.request(phone, .devicePut(Surroundings.put(phone)), call: nil)
    world.disconnect(phone, forGood: true)
    let leg = world.invite()
    world.pushed()
    world.connect(phone, "woken", wake: try #require(world.pushes.last?.key.call))
    world.feed(.sip(.cancelled(leg, nil)))
    world.disconnect(phone, "woken", forGood: true)
    world.invite()
    #expect(world.pushes.map(\.content.account) == ["work", "work"])
  }

  @Test func `a call for several users, and one that goes to another user, is of each one's own account`() throws {
    let both = world { routing in
      routing.users[0].account = "home"
      routing.users[1].account = "desk"
      routing.inbound = [.init(trunk: "carrier", target: .hook(.init(Webhook(url: "https://crm.example", key: Redacted([1])))))]
    }
    connect(both, phone, ["home"])
    connect(both, bob, ["desk"])
    both.invite()
    both.feed(.routed(try #require(both.questions.last?.call), RouteAnswer(users: ["alice", "bob"])))
    #expect(offered(both, phone) == ["home"] && offered(both, bob) == ["desk"])

    let diverted = world { routing in
      routing.users[0].diversions = Diversions([.unreached: .init(.user("bob"))])
      routing.users[0].account = "home"
      routing.users[1].account = "desk"
    }
    connect(diverted, phone, ["desk"])
    connect(diverted, bob, ["desk"])
    diverted.invite()
    #expect(offered(diverted, phone).isEmpty && offered(diverted, bob) == ["desk"])
  }

  @Test func `an outgoing call without a number of its own shows the first of its account`() throws {
    let world = world { $0.users[0].numberAccounts = ["+15551230002": "work"] }
    connect(world, phone, ["home", "work"])
    for (account, number) in [("work", "+15551230002"), ("home", "+15551230001")] {
      let call = Identifier(high: 5, low: account == "work" ? 1 : 2)
      let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), acct: account, sdp: Surroundings.appSDP(setup: "actpass"))
      world.request(phone, .callStart(start), call: call)
      if let lastRemote = world.lastRemote { world.legs[phone] = lastRemote }
      world.openOutgoingGate(call)
      #expect(world.invites.last?.from == number)
    }
  }
}
