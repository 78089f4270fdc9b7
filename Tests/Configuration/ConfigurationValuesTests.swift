import Bytes
import Foundation
import Testing

@testable import Configuration

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

  @Test func `a realm is the trunk's, and an app chooses no display name unless its user may`() throws {
    let configuration = try TemporaryFolder().parse(
      key
        + """
        trunks: [ { name: a, peers: 10.0.0.1, auth: { username: u, password_file: jwt.key }, realm: carrier.example }, { name: b, peers: 10.0.0.2 } ]
        users: [ { id: alice, name: Alice }, { id: bob, display_name: true } ]
        """)
    #expect(configuration.trunks.map(\.realm) == ["carrier.example", nil])
    #expect(configuration.users.map(\.name) == ["Alice", nil] && configuration.users.map(\.choosesDisplayName) == [false, true])
  }

  @Test func `a trunk's codecs are the table's, by name in any case`() throws {
    let configuration = try TemporaryFolder().parse(
      key + "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ l16, opus, G722 ] }, { name: b, peers: 10.0.0.2 } ]")
    #expect(configuration.trunks.map(\.codecs) == [[.l16, .opus, .g722], [.pcmu, .pcma]])
    #expect(throws: (any Error).self) {
      try TemporaryFolder().parse(key + "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ L24 ] } ]")
    }
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

  @Test func `the app port may name its proxies, and the admin port may speak TLS`() throws {
    let folder = try TemporaryFolder(["jwt.key": "k", "c.pem": "c", "k.pem": "k"])
    let configuration = try folder.parse(
      key + "listen: { app: { address: 127.0.0.1:1, proxies: [ 10.0.0.0/8, \"2001:db8::1\" ] }, "
        + "admin: { address: 127.0.0.1:2, tls: { cert: c.pem, key: k.pem } } }")
    #expect(configuration.listen.appProxies == ["10.0.0.0/8", "2001:db8::1"].compactMap { IPNetwork($0) })
    #expect(configuration.listen.adminTLS?.certificate.hasSuffix("/c.pem") == true)
    #expect(throws: ConfigurationProblems.self) {
      try folder.parse(key + "listen: { app: { proxies: [ example.com ] }, admin: { tls: { cert: c.pem } } }")
    }
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
    #expect(
      try TemporaryFolder().parse(key + "timers: { early180: 0ms, app_grace: \(text == "4h" ? "1m" : text) }").timers.early180
        == .zero)
    #expect(
      try TemporaryFolder().parse(key + "timers: { longest_call: \(text == "500ms" ? "1s" : text) }").timers.longestCall
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

  /// A RIFF WAVE file of PCM 16 bit, mono.
  private func wave(_ samples: [Int16], rate: UInt32, channels: UInt16 = 1) -> Data {
    func little(_ value: some FixedWidthInteger) -> Data { withUnsafeBytes(of: value.littleEndian) { Data($0) } }
    let body = samples.reduce(into: Data()) { $0 += little($1) }
    return Data("RIFF".utf8) + little(UInt32(36 + body.count)) + Data("WAVEfmt ".utf8) + little(UInt32(16)) + little(UInt16(1))
      + little(channels)
      + little(rate) + little(rate * 2) + little(UInt16(2)) + little(UInt16(16)) + Data("data".utf8) + little(UInt32(body.count))
      + body
  }

  @Test func `hold_audio is noise, silence or a file, 16 kHz made 8`() throws {
    let folder = try TemporaryFolder()
    func audio(_ text: String) throws -> Settings.Trunk.Calls.HoldAudio? {
      try folder.parse(key + "trunks: [ { name: t, peers: [192.0.2.1]\(text) } ]").trunks.first?.calls.holdAudio
    }
    #expect(try audio("") == .noise && audio(", hold_audio: silence") == .silence && audio(", hold_audio: noise") == .noise)
    let narrow = (0..<800).map { Int16($0) }
    try wave(narrow, rate: 8_000).write(to: URL(fileURLWithPath: folder.path + "/a.wav"))
    #expect(try audio(", hold_audio: a.wav") == .clip(narrow))
    // a slow ramp goes through the low-pass as it is, apart from its ends
    try wave((0..<1_600).map { Int16($0 * 4) }, rate: 16_000).write(to: URL(fileURLWithPath: folder.path + "/b.wav"))
    guard case .clip(let halved)? = try audio(", hold_audio: b.wav") else { throw CocoaError(.fileReadCorruptFile) }
    #expect(halved.count == 800 && (10..<790).allSatisfy { abs(Int(halved[$0]) - $0 * 8) <= 1 })
    for bad in [
      wave(narrow, rate: 44_100), wave(narrow, rate: 8_000, channels: 2), wave(Array(narrow.prefix(319)), rate: 8_000),
      Data("RIFF".utf8), Data(),
    ] {
      try bad.write(to: URL(fileURLWithPath: folder.path + "/c.wav"))
      #expect(
        folder.problems(key + "trunks: [ { name: t, peers: [192.0.2.1], hold_audio: c.wav } ]").first?.contains(
          "expected a WAV file") == true)
    }
    #expect(
      folder.problems(key + "trunks: [ { name: t, peers: [192.0.2.1], hold_audio: d.wav } ]").first?.contains("cannot read")
        == true)
  }

  @Test func `a verifier is a URL, or one with its own authority`() throws {
    #expect(try TemporaryFolder().parse(key).verifier == nil)
    #expect(try TemporaryFolder().parse(key + "verifier: https://v.example/x").verifier == .init(url: "https://v.example/x"))
    let folder = try TemporaryFolder()
    #expect(
      try folder.parse(key + "verifier: { url: \"http://127.0.0.1:8000/\", ca: jwt.key }").verifier
        == .init(url: "http://127.0.0.1:8000/", authorities: folder.path + "/jwt.key"))
  }

  @Test func `a trunk says how its calls behave, and has defaults`() throws {
    let all =
      key
      + "trunks: [ { name: t, peers: [192.0.2.1], reliable: required, session_timer: 600, session_minimum: 120, hold: signal, dtmf: info, "
      + "redirects: follow, redirect_hosts: [ Gw2.example ], trust_identity: true, transfers: true, late_offer: true, srtp: required, srtp_without_tls: true, record_private_numbers: true } ]"
    let calls = try #require(try TemporaryFolder().parse(all).trunks.first).calls
    var expected = Settings.Trunk.Calls()
    #expect(
      expected.reliability == .supported && expected.sessionSeconds == 1_800 && expected.hold == .local
        && !expected.allowsTransfer)
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
