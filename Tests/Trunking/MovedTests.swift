import Synchronization
import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

/// What a machine whose addresses change asks its trunks.
@Suite struct MovedTests {
  /// Our address toward every server; nil: there is no way.
  private final class Way: Sendable {
    let local = Mutex<SocketAddress?>(nil)
    init(_ text: String?) { set(text) }
    func set(_ text: String?) { local.withLock { $0 = text.flatMap { SocketAddress($0) } } }
  }
  private func world(_ way: Way, _ settings: TrunkSettings? = nil, _ zone: Zone = Zone()) -> World {
    World([settings ?? trunk("192.0.2.1", registration: .init(user: "gw", expires: 600))], zone) { way.local.withLock { $0 } }
  }

  @Test func `a registration goes out again when its own address is another one, and only then`() {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    world.answer(200, expires: 600)
    world.feed(.networkChanged)
    #expect(world.requests.count == 1, "a route elsewhere")
    way.set(nil)
    world.feed(.networkChanged)
    way.set("198.51.100.9:5060")
    world.feed(.networkChanged)
    #expect(world.requests.count == 1, "gone and back")
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    #expect(world.requests.count == 2)
    let (first, second) = (world.requests[0].request, world.requests[1].request)
    #expect(second.trunk.flow.local == SocketAddress("198.51.100.10:5060") && first.callID == second.callID)
    #expect(second.sequence == first.sequence + 1)
    world.answer(200, expires: 600)
    world.feed(.networkChanged)
    #expect(world.requests.count == 2 && world.machine.isRegistered("carrier"))
  }

  @Test func `a REGISTER under way from an address that went is given up for one from the new address`() {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    let lost = world.requests[0]
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    #expect(world.requests.count == 2 && world.requests[1].request.sequence > lost.request.sequence + 1)
    world.answer(200, expires: 600)
    // its time-out says nothing about the trunk
    world.feed(.requestAnswered(lost.id, RequestOutcome(code: 408, sequence: lost.request.sequence)))
    #expect(
      world.machine.isRegistered("carrier") && !world.news.contains { if case .registrationFailed = $0 { true } else { false } })
  }

  @Test func `a trunk that no way led to is registered and probed as soon as there is one`() {
    let way = Way(nil)
    var world = world(
      way, trunk("192.0.2.1", registration: .init(user: "gw", expires: 600), probe: .init(interval: .seconds(30))))
    world.advance(.seconds(100))
    #expect(world.requests.isEmpty)
    way.set("198.51.100.9:5060")
    world.feed(.networkChanged)
    #expect(Set(world.requests.map(\.request.method)) == [.register, .options])
  }

  @Test func `a password that is wrong is not asked again for each change of the network`() {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    world.answer(403)
    for _ in 1...20 { world.feed(.networkChanged) }
    #expect(world.requests.count == 1)
  }

  @Test func `a probe under way from an address that went is no strike, and the next goes at once`() {
    let way = Way("198.51.100.9:5060")
    var world = world(way, trunk("192.0.2.1", probe: .init(interval: .seconds(30), downAfter: 1)))
    let lost = world.requests[0]
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    #expect(world.requests.count == 2)
    world.feed(.requestAnswered(lost.id, RequestOutcome(code: 408, sequence: lost.request.sequence)))
    world.answer(200)
    world.advance(.seconds(20))
    #expect(
      world.machine.isUsable("carrier", at: world.now) && world.news.allSatisfy { $0 != .probed(trunk: "carrier", isUp: false) })
  }

  /// The registrar grants the last request, whose Contact names the address that it went from, unless `advertised` stands for it.
  private func grant(_ world: inout World, expires: Int = 600, advertised: String? = nil) -> String {
    let local = world.requests.last.map { "\($0.request.trunk.flow.local)" } ?? ""
    let contact = "<sip:gw@\(advertised ?? local)>"
    world.answer(200, expires: expires, contact: contact)
    return contact
  }
  private func removals(_ world: World) -> [OutboundRequest] { world.requests.map(\.request).filter { $0.removedContact != nil } }

  @Test func `the binding of the address before is taken out once the new one is granted, in a request of its own, once`() throws
  {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    let former = grant(&world)
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    #expect(removals(world).isEmpty)
    // without a new binding the old one stays
    world.answer(500)
    #expect(removals(world).isEmpty)
    world.advance(.seconds(10))
    _ = grant(&world)
    let removal = try #require(removals(world).first)
    #expect(removal.removedContact == former && removal.expires == nil && removal.method == .register)
    let register = try #require(world.requests.dropLast().last?.request)
    #expect(removal.callID == register.callID && removal.sequence == register.sequence + 1 && removal.to == register.to)
    #expect(removal.trunk.flow.local == SocketAddress("198.51.100.10:5060"))
    world.answer(200)
    world.advance(.seconds(2_000))
    world.feed(.networkChanged)
    #expect(removals(world).count == 1)
    let refresh = try #require(world.requests.last?.request)
    #expect(refresh.sequence > removal.sequence + 2, "each challenge of the removal may take a number")
    #expect(!world.news.contains { if case .formerContactKept = $0 { true } else { false } })
  }

  @Test(arguments: [200, 403, 408])
  func `a REGISTER whose answer could not come is taken out once another is granted, unless it was refused`(code: Int)
    throws
  {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    let lost = world.requests[0]
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    func end(_ world: inout World) {
      var outcome = RequestOutcome(code: code, sequence: lost.request.sequence)
      (outcome.isResponse, outcome.contact) = (code != 408, "<sip:gw@198.51.100.9:5060>")
      world.feed(.requestAnswered(lost.id, outcome))
    }
    let expected = code == 403 ? [] : ["<sip:gw@198.51.100.9:5060>"]
    // its end before the grant, and behind it
    for isFirst in [true, false] {
      var copy = world
      if isFirst { end(&copy) }
      #expect(removals(copy).isEmpty)
      _ = grant(&copy)
      if !isFirst { end(&copy) }
      #expect(removals(copy).map(\.removedContact) == expected && copy.machine.isRegistered("carrier"))
      copy.advance(.seconds(2_000))
      #expect(removals(copy).count == expected.count)
    }
  }

  @Test
  func `a REGISTER without an answer is in doubt; granted from the same address it is ours, from another one it is taken out`()
    throws
  {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    world.answer(408, contact: "<sip:gw@198.51.100.9:5060>")
    var same = world
    same.advance(.seconds(10))
    _ = grant(&same)
    #expect(same.requests.count == 2 && removals(same).isEmpty)
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    _ = grant(&world)
    #expect(removals(world).map(\.removedContact) == ["<sip:gw@198.51.100.9:5060>"])
    // an address that went again before the removal was answered: it is still in doubt
    way.set("198.51.100.11:5060")
    world.feed(.networkChanged)
    _ = grant(&world)
    #expect(
      removals(world).dropFirst().map(\.removedContact) == ["<sip:gw@198.51.100.9:5060>", "<sip:gw@198.51.100.10:5060>"])
  }

  @Test(arguments: [400, 403, 408, 503]) func `a registrar that does not take the old binding out costs nothing`(code: Int) throws
  {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    let former = grant(&world)
    way.set("198.51.100.10:5060")
    world.feed(.networkChanged)
    _ = grant(&world)
    world.answer(code, byTransport: code == 503)
    #expect(world.news.last == .formerContactKept(trunk: "carrier", contact: former, code: code))
    let status = try #require(world.machine.status("carrier", at: world.now, wallOffset: 0))
    #expect(status.up && status.lastRefusal == nil && status.servers.allSatisfy(\.up))
    #expect(world.machine.isRegistered("carrier") && world.machine.isUsable("carrier", at: world.now))
    world.advance(.seconds(400))
    #expect(world.requests.count == 3, "it is not asked again")
  }

  @Test func `nothing is taken out under the same Contact, and nothing whose time is over`() {
    let way = Way("198.51.100.9:5060")
    var translated = world(way)
    _ = grant(&translated, advertised: "203.0.113.5:5060")
    way.set("198.51.100.10:5060")
    translated.feed(.networkChanged)
    _ = grant(&translated, advertised: "203.0.113.5:5060")
    #expect(translated.requests.count == 2, "our own binding")
    way.set("198.51.100.9:5060")
    var late = world(way)
    _ = grant(&late, expires: 60)
    way.set(nil)
    late.feed(.networkChanged)
    late.advance(.seconds(100))
    way.set("198.51.100.10:5060")
    late.feed(.networkChanged)
    _ = grant(&late)
    #expect(removals(late).isEmpty && late.machine.isRegistered("carrier"))
  }

  @Test func `another user of the trunk takes nothing more out than its own farewell does`() {
    let way = Way("198.51.100.9:5060")
    var world = world(way)
    _ = grant(&world)
    world.feed(.configure([trunk("192.0.2.1", registration: .init(user: "other", expires: 600))]))
    world.answer(200, expires: 600, contact: "<sip:other@198.51.100.9:5060>")
    #expect(removals(world).isEmpty && world.requests.count { $0.request.expires == 0 } == 1)
  }

  @Test func `names that failed without a network are asked for at once with it`() {
    let way = Way(nil)
    var zone = Zone()
    zone.a = ["carrier.example": ["192.0.2.1"]]
    zone.isDead = true
    var world = world(way, trunk("carrier.example", registration: .init(user: "gw", expires: 600)), zone)
    world.advance(.seconds(130))
    world.zone.isDead = false
    way.set("198.51.100.9:5060")
    let asked = world.asked.count
    world.feed(.networkChanged)
    #expect(world.asked.count > asked && world.requests.map(\.request.method) == [.register])
  }
}
