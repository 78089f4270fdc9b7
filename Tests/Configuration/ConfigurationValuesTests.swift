import Bytes
@testable import Configuration
import Testing

@Suite struct ConfigurationValuesTests {
  let key = "auth: { jwt: { key_file: jwt.key } }\n"

  @Test func `the printed example is valid`() throws {
    let folder = try TemporaryFolder()
    let configuration = try folder.parse(Settings.example)
    #expect(configuration.listen.sipUDP == [SocketAddress("127.0.0.1:5060")])
    #expect(configuration.listen.admin == SocketAddress("127.0.0.1:9090"))
    #expect(configuration.media.addresses == [.automatic])
    #expect(configuration.media.trunkPorts == 20_000...21_999)
    #expect(configuration.auth.key == .keyFile(Redacted(Array("0123456789abcdef0123456789abcdef\n".utf8))))
    #expect(configuration.trunks.map(\.name) == ["carrier"])
    #expect(configuration.trunks.first?.uri?.address == SocketAddress("127.0.0.1:5080"))
    #expect(configuration.users.first?.numbers == ["+15551230001"])
    #expect(configuration.routes.inbound.map(\.target) == [.users])
    #expect(configuration.routes.outbound == [.init(prefix: "+", trunks: [.init(trunk: "carrier", priority: 1, weight: 1)])])
    #expect(configuration.store == folder.path + "/trunkline.db")
  }

  @Test func `a file that only names the key takes every default`() throws {
    let configuration = try TemporaryFolder().parse(key)
    var expected = Settings()
    expected.auth.key = configuration.auth.key
    expected.store = configuration.store
    expected.records = configuration.records
    #expect(configuration == expected)
    #expect(configuration.timers.ring == .seconds(45))
    #expect(configuration.timers.early180 == .seconds(2))
    #expect(configuration.timers.mediaGateWarm == .seconds(10))
    #expect(configuration.timers.mediaGateCold == .seconds(20))
  }

  @Test func `short forms and long forms mean the same`() throws {
    let folder = try TemporaryFolder(["jwt.key": "k", "token": "t \n"])
    let short = try folder.parse(key + "listen: { app: 127.0.0.1:1, admin: 127.0.0.1:2 }\nmedia: { addresses: auto }")
    let long = try folder.parse(
      key + "listen: { app: { address: 127.0.0.1:1 }, admin: { address: 127.0.0.1:2 } }\nmedia: { addresses: [ auto ] }")
    #expect(short == long)
    let token = try folder.parse(key + "listen: { admin: { address: 192.0.2.1:2, token_file: token } }")
    #expect(token.listen.adminToken == Redacted("t"))
  }

  @Test func `media addresses are auto, an address, or a pair to bind and to advertise, of either family`() throws {
    let configuration = try TemporaryFolder().parse(
      key + "media: { addresses: [ auto, 192.0.2.1, { bind: 10.0.0.1, advertise: 198.51.100.7 }, { bind: \"2001:db8::1\" } ] }")
    #expect(
      configuration.media.addresses == [
        .automatic, .fixed(bind: IPAddress(192, 0, 2, 1), advertise: IPAddress(192, 0, 2, 1)),
        .fixed(bind: IPAddress(10, 0, 0, 1), advertise: IPAddress(198, 51, 100, 7)),
        .fixed(bind: try #require(IPAddress("2001:db8::1")), advertise: try #require(IPAddress("2001:db8::1"))),
      ])
  }

  @Test(arguments: [
    ("500ms", Duration.milliseconds(500)), ("2s", .seconds(2)), ("1m", .seconds(60)), ("4h", .seconds(14400)),
  ])
  func `durations carry their unit`(text: String, value: Duration) throws {
    #expect(try TemporaryFolder().parse(key + "timers: { early180: 0ms, app_grace: \(text == "4h" ? "1m" : text) }").timers.early180 == .zero)
    #expect(try TemporaryFolder().parse(key + "timers: { longest_call: \(text == "500ms" ? "1s" : text) }").timers.longestCall
      == (text == "500ms" ? .seconds(1) : value))
  }

  @Test func `early180 may be off`() throws {
    #expect(try TemporaryFolder().parse(key + "timers: { early180: off }").timers.early180 == nil)
  }

  @Test func `trunk credentials and TCP are read`() throws {
    let folder = try TemporaryFolder(["jwt.key": "k", "p": "s3cret\n"])
    let configuration = try folder.parse(
      key + """
        trunks:
          - { name: a, peers: 192.0.2.1, uri: "sip:192.0.2.1;transport=tcp", auth: { username: u, password_file: p }, rtp_source: strict }
        """)
    let trunk = try #require(configuration.trunks.first)
    #expect(trunk.peers == [try #require(IPNetwork("192.0.2.1"))])
    #expect(trunk.uri == .init(domain: "192.0.2.1", host: "192.0.2.1", port: nil, transport: .tcp, isSecure: false))
    #expect(trunk.username == "u")
    #expect(trunk.password == Redacted("s3cret"))
    #expect(trunk.rtpSource == .strict)
    #expect(!"\(configuration)".contains("s3cret"))
  }

  @Test func `a trunk says how its calls behave, and has defaults`() throws {
    let all = key + "trunks: [ { name: t, peers: [192.0.2.1], reliable: required, session_timer: 600, session_minimum: 120, hold: signal, dtmf: info, "
      + "redirects: follow, redirect_hosts: [ Gw2.example ], trust_identity: true, transfers: true, late_offer: true, srtp: required, srtp_without_tls: true, record_private_numbers: true } ]"
    let calls = try #require(try TemporaryFolder().parse(all).trunks.first).calls
    var expected = Settings.Trunk.Calls()
    #expect(expected.reliability == .supported && expected.sessionSeconds == 1_800 && expected.hold == .local && !expected.allowsTransfer)
    (expected.reliability, expected.sessionSeconds, expected.sessionMinimum) = (.required, 600, 120)
    (expected.hold, expected.digits, expected.redirects, expected.redirectHosts) = (.signal, .info, .follow, ["gw2.example"])
    (expected.trustsIdentity, expected.allowsTransfer, expected.offersLate) = (true, true, true)
    (expected.srtp, expected.srtpWithoutTLS) = (.required, true)
    expected.recordsPrivateNumbers = true
    #expect(calls == expected)
    let off = try TemporaryFolder().parse(key + "trunks: [ { name: t, peers: [192.0.2.1], session_timer: off } ]")
    #expect(off.trunks.first?.calls.sessionSeconds == nil)
  }
}
