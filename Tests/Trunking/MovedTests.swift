import Bytes
import SIPDialogs
import Synchronization
import Testing

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
