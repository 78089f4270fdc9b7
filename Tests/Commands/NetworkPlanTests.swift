import CallFlow
import CallModel
import Configuration
import MediaThreads
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import trunkline

/// The network plan of a configuration on a machine with these addresses: a function of values.
@Suite struct NetworkPlanTests {
  private let loopback = MachineAddresses.Entry(.loopback, prefixLength: 8)
  private func ip(_ text: String) -> IPAddress { IPAddress(text)! }
  private func has(_ texts: String..., running: Bool = true) -> MachineAddresses {
    MachineAddresses([loopback] + texts.map { .init(ip($0), prefixLength: 24, isRunning: running) })
  }

  private func plan(
    _ machine: MachineAddresses, media: [Settings.MediaAddress] = [.automatic(advertise: nil)], sip: [String] = ["0.0.0.0"],
    app: String = "0.0.0.0", names: [String: String] = [:], bindable: Bool = false, _ change: (inout Settings) -> Void = { _ in }
  ) -> NetworkPlan {
    var settings = Settings()
    settings.media.addresses = media
    settings.listen.sipUDP = sip.map { SocketAddress(ip($0), 5060) }
    settings.listen.sipTCP = []
    settings.listen.app = SocketAddress(ip(app), 8080)
    change(&settings)
    let system = NetworkQuestions(
      isBindable: { $0.isLoopback || bindable }, route: { _ in nil },
      find: { name, family in names[name].flatMap { IPAddress($0) }.flatMap { $0.family == family ? $0 : nil } })
    return settings.networkPlan(on: machine, system)
  }

  @Test func `an interface that is late leaves no address for media, and the address that comes is used`() {
    let late = plan(has())
    #expect(late.media.isEmpty && late.reason?.contains("auto finds no address") == true)
    let there = plan(has("192.0.2.7"))
    #expect(there.media == [.init(bind: ip("192.0.2.7"))] && there.reason == nil && there.note == nil)
    #expect(there.own.contains(ip("192.0.2.7")) && there.outside == [ip("192.0.2.7")])
    let without = plan(has("192.0.2.7", running: false))
    #expect(without.media.isEmpty && without.reason != nil, "a bridge without a carrier is none")
  }

  @Test func `loopback is used where all peers of the gateway are on this machine, and nowhere else`() {
    #expect(plan(has(), app: "127.0.0.1").media.map(\.bind) == [.loopback])
    #expect(plan(has(), app: "127.0.0.1").reason == nil)
    let trunk = { (text: String) in { (settings: inout Settings) in settings.trunks = [Self.trunk(text)] } }
    #expect(plan(has(), app: "127.0.0.1", trunk("127.0.0.0/8")).reason == nil)
    let outside = plan(has(), app: "127.0.0.1", trunk("203.0.113.0/24"))
    #expect(outside.media.isEmpty && outside.reason != nil)
    // a proxy for SIP on this machine, and apps outside: its calls may continue, but readiness is not reported
    let proxied = plan(has(), trunk("127.0.0.0/8"))
    #expect(proxied.media.map(\.bind) == [.loopback] && proxied.reason != nil)
    // media at loopback only: remote peers could not be reached, and no address is awaited
    let here = plan(has(), media: [.fixed(bind: .loopback, advertise: nil)], app: "::", trunk("203.0.113.0/24"))
    #expect(here.media.map(\.bind) == [.loopback] && here.reason == nil && here.note == nil)
    #expect(plan(has("192.0.2.7"), trunk("127.0.0.0/8")).media.map(\.bind) == [ip("192.0.2.7"), .loopback])
  }
  private static func trunk(_ peers: String) -> Settings.Trunk {
    var trunk = Settings.Trunk(routing: Routing.Trunk(name: "t"))
    trunk.routing.peers = [IPNetwork(peers)!]
    return trunk
  }

  @Test func `an address that the operator named is waited for; others serve meanwhile`() {
    let media: [Settings.MediaAddress] = [
      .fixed(bind: ip("192.0.2.7"), advertise: nil), .fixed(bind: ip("192.0.2.8"), advertise: nil),
    ]
    let half = plan(has("192.0.2.7"), media: media)
    #expect(half.media.map(\.bind) == [ip("192.0.2.7")] && half.reason == nil && half.note?.contains("192.0.2.8") == true)
    let none = plan(has("192.0.2.9"), media: media)
    #expect(none.media.isEmpty && none.reason?.contains("192.0.2.7") == true && none.waits.allSatisfy(\.isNamed))
    #expect(plan(has("192.0.2.9"), media: media, bindable: true).media.count == 2, "the machine allows others")
    #expect(plan(has("192.0.2.7", "192.0.2.8"), media: media).note == nil)
    let unplugged = plan(has("192.0.2.7", running: false), media: [media[0]], bindable: true)
    #expect(unplugged.media.isEmpty && unplugged.reason != nil)
  }

  @Test func `a listener whose address is missing is known; without any for SIP no call can come`() {
    let one = plan(has("192.0.2.7"), sip: ["192.0.2.7", "192.0.2.8"])
    #expect(one.absent == [ip("192.0.2.8")] && one.reason == nil)
    #expect(one.note == "listen.sip.udp: 192.0.2.8 is at no interface that is up and has a carrier")
    #expect(plan(has("192.0.2.7"), sip: ["192.0.2.8"]).reason?.contains("listen.sip.udp: 192.0.2.8") == true)
    #expect(plan(has("192.0.2.7"), app: "192.0.2.8").reason?.contains("listen.app: 192.0.2.8") == true)
    let admin = plan(has("192.0.2.7")) { $0.listen.admin = SocketAddress(IPAddress(192, 0, 2, 8), 9090) }
    #expect(admin.reason == nil && admin.note?.contains("listen.admin") == true)
  }

  @Test func `a name that DNS does not have yet is waited for, and its address is told once it has one`() throws {
    let host = try #require(AdvertisedHost("gw.example"))
    let fixed: [Settings.MediaAddress] = [.fixed(bind: ip("10.0.0.5"), advertise: host)]
    let before = plan(has("10.0.0.5"), media: fixed)
    #expect(before.media.isEmpty && before.reason?.contains("gw.example has no IPv4 address in DNS") == true)
    let after = plan(has("10.0.0.5"), media: fixed, names: ["gw.example": "198.51.100.7"])
    #expect(after.media == [.init(bind: ip("10.0.0.5"), advertise: ip("198.51.100.7"))] && after.reason == nil)
    let automatic: [Settings.MediaAddress] = [.automatic(advertise: host)]
    #expect(plan(has("10.0.0.5"), media: automatic).media.isEmpty)
    #expect(plan(has("10.0.0.5"), media: automatic, names: ["gw.example": "198.51.100.7"]).media == after.media)
    #expect(plan(has("10.0.0.5"), media: automatic, names: ["gw.example": "2001:db8::7"]).reason != nil, "of another family")
  }

  @Test func `an address that is there twice is offered once, and as it is advertised`() throws {
    #expect(plan(has("192.0.2.7", "192.0.2.7")).media.count == 1)
    let host = try #require(AdvertisedHost("198.51.100.7"))
    let both: [Settings.MediaAddress] = [.automatic(advertise: nil), .fixed(bind: ip("10.0.0.5"), advertise: host)]
    #expect(plan(has("10.0.0.5"), media: both).media == [.init(bind: ip("10.0.0.5"), advertise: ip("198.51.100.7"))])
  }

  @Test func `the networks around are those of now`() {
    let around = { (settings: inout Settings) in settings.localNetworks = [.interfaces] }
    #expect(!plan(has(), around).localNetworks.contains(ip("192.0.2.99")))
    #expect(plan(has("192.0.2.7"), around).localNetworks.contains(ip("192.0.2.99")))
  }
}
