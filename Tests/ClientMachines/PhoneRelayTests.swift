import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineTURN

/// `welcome.ice` becomes TURN servers for the media.
@Suite struct PhoneRelayTests {
  private func servers(_ actions: [PhoneMachine.Action]) -> [[TURNServer]] {
    actions.compactMap { if case .relays(let servers) = $0 { servers } else { nil } }
  }
  private func welcome(_ rig: inout PhoneRig, _ ice: [ICEServer]) -> [[TURNServer]] {
    rig.give(.start)
    rig.give(.token("a.b.c"))
    return servers(rig.welcome(ice: ice))
  }

  @Test func `each URL that we have a transport for is a server, with the credentials of its entry`() throws {
    var rig = PhoneRig()
    let urls = [
      "stun:a.example", "turn:a.example", "turns:a.example?transport=udp", "turns:b.example:443?transport=tcp", "nonsense",
    ]
    let told = welcome(&rig, [ICEServer(urls: urls, username: "17:alice", credential: "secret", ttlMs: 1)])
    let expected = ["turn:a.example", "turns:b.example:443"].map { TURNServer(url: $0, username: "17:alice", password: "secret") }
    #expect(told == [expected.compactMap(\.self)] && told.first?.count == 2)
  }

  @Test func `the media hears of servers only where they are others than before`() throws {
    var rig = PhoneRig()
    let ice = [ICEServer(urls: ["turn:a.example"], username: "u", credential: "p")]
    #expect(welcome(&rig, ice).count == 1)
    for (ice, count) in [(ice, 0), ([], 1), ([], 0)] {
      rig.give(.pathChanged)
      #expect(servers(rig.welcome(ice: ice)).count == count)
    }
  }

  @Test func `the answer to auth.refresh brings the servers of calls to come; one without servers leaves them`() throws {
    var rig = PhoneRig()
    _ = welcome(&rig, [ICEServer(urls: ["turn:a.example"], username: "1:alice", credential: "p")])
    rig.give(.token("d.e.f"))
    let next = ICEServer(urls: ["turn:a.example"], username: "2:alice", credential: "q")
    let told = servers(rig.answer("auth.refresh", .ok(Success(ice: [next]))))
    #expect(told == [[TURNServer(url: "turn:a.example", username: "2:alice", password: "q")].compactMap(\.self)])
    rig.give(.token("g.h.i"))
    #expect(servers(rig.answer("auth.refresh", .ok(Success()))).isEmpty)
  }

  @Test func `a gateway without servers, and one with entries that are none, tell nothing`() {
    for ice in [
      [], [ICEServer(urls: [])], [ICEServer(urls: ["turn:a.example"])], [ICEServer(urls: ["x"], username: "u", credential: "p")],
    ] {
      var rig = PhoneRig()
      #expect(welcome(&rig, ice).isEmpty)
    }
  }

  @Test func `more servers than are asked for are not kept`() {
    var rig = PhoneRig()
    let many = (0..<200).map { ICEServer(urls: ["turn:h\($0).example"], username: "u", credential: "p") }
    #expect(welcome(&rig, many).first?.count == 6)
  }
}
