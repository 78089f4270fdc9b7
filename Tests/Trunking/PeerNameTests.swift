import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import Trunking

/// Peers that are given by name.
@Suite struct PeerNameTests {
  @Test func `their addresses are told when they are known, and again when they change`() throws {
    var zone = Zone()
    zone.a["pbx.example"] = ["192.0.2.9"]
    var world = World([], zone)
    world.feed(.configure([], peerNames: ["pbx": ["pbx.example"], "other": []]))
    #expect(world.news == [.located(trunk: "pbx", [SocketAddress("192.0.2.9:5060")!])])
    #expect(Set(world.asked.map(\.description)) == ["pbx.example A", "pbx.example AAAA"])
    world.zone.a["pbx.example"] = ["192.0.2.10"]
    world.advance(.seconds(3_600))
    #expect(world.news.last == .located(trunk: "pbx", [SocketAddress("192.0.2.10:5060")!]))
    let count = world.news.count
    world.zone.a["pbx.example"] = []
    world.advance(.seconds(7_200))
    #expect(world.news.count == count, "a name that is gone takes no address away")
  }
}
