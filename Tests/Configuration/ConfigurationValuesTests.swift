import CallFlow
import CallModel
import Foundation
import JSONWebToken
import PhoneNumbers
import Testing
import Trunking
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSIPDialogs

@testable import Configuration

@Suite struct ConfigurationValuesTests {
  let key = "auth: { jwt: { key_file: jwt.key } }\n"

  @Test func `the printed example is valid`() throws {
    let folder = try TemporaryFolder()
    let configuration = try folder.parse(Settings.example)
    #expect(configuration.listen.sipUDP == [SocketAddress("127.0.0.1:5060")])
    #expect(configuration.listen.admin == SocketAddress("127.0.0.1:7060"))
    #expect(configuration.media.addresses == [.automatic(advertise: nil)])
    #expect(configuration.media.trunkPorts == 20_000...21_999)
    #expect(configuration.auth.key == .keyFile(Redacted(Array("0123456789abcdef0123456789abcdef\n".utf8))))
    #expect(configuration.trunks.map(\.name) == ["carrier"])
    #expect(configuration.trunks.first?.serverAddress == SocketAddress("127.0.0.1:5080"))
    #expect(configuration.users.first?.numbers == ["+15551230001"])
    #expect(configuration.routes.inbound.map(\.target) == [.users])
    #expect(
      configuration.routes.outbound.map(\.prefix) == ["+"]
        && configuration.routes.outbound[0].choices == [.init(trunk: "carrier")])
    #expect(configuration.store == folder.path + "/trunkline.db")
  }

  @Test func `the printed example can be read through: 150 lines at most, and each fits`() {
    let lines = Settings.example.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 150 && lines.allSatisfy { $0.count <= 190 })
  }

  @Test func `a file that only names the key takes every default`() throws {
    let configuration = try TemporaryFolder().parse(key)
    var expected = Settings()
    expected.auth.key = configuration.auth.key
    expected.store = configuration.store
    expected.records = configuration.records
    #expect(content(configuration) == content(expected))
    #expect(configuration.calls.timers.ring == .seconds(45))
    #expect(configuration.calls.timers.early180 == .seconds(2))
    #expect(configuration.calls.timers.mediaGateWarm == .seconds(10))
    #expect(configuration.calls.timers.mediaGateCold == .seconds(20))
  }

  @Test func `a realm is the trunk's, and an app chooses no display name unless its user may`() throws {
    let configuration = try TemporaryFolder().parse(
      key
        + """
        trunks: [ { name: a, peers: 10.0.0.1, auth: { username: u, password_file: jwt.key }, realm: carrier.example }, { name: b, peers: 10.0.0.2 } ]
        users: [ { id: alice, name: Alice }, { id: bob, display_name: true } ]
        """)
    #expect(configuration.trunks.map(\.routing.rules.realm) == ["carrier.example", nil])
    #expect(configuration.users.map(\.name) == ["Alice", nil] && configuration.users.map(\.choosesName) == [false, true])
  }

  @Test func `a trunk's codecs are the table's, by name in any case`() throws {
    let configuration = try TemporaryFolder().parse(
      key + "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ l16, opus, G722 ] }, { name: b, peers: 10.0.0.2 } ]")
    #expect(configuration.trunks.map(\.routing.codecs) == [[.l16, .opus, .g722], [.pcmu, .pcma]])
    #expect(throws: (any Error).self) {
      try TemporaryFolder().parse(key + "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ L24 ] } ]")
    }
  }

  @Test func `prefer puts wide codecs or G.711 first and keeps the order else`() throws {
    for (prefer, codecs) in [
      ("wide", [.g722, .opus, .pcma, .l16, .pcmu]), ("cheap", [.pcma, .pcmu, .g722, .l16, .opus]),
      ("transcode", [.pcma, .g722, .l16, .opus, .pcmu]), ("relay", [.pcma, .g722, .l16, .opus, .pcmu]),
    ] as [(String, [AudioEncoding])] {
      let configuration = try TemporaryFolder().parse(
        key + "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ PCMA, G722, L16, opus, PCMU ], prefer: \(prefer) } ]")
      #expect(configuration.trunks.map(\.routing.codecs) == [codecs])
      #expect(configuration.trunks.map(\.routing.prefersRelay) == [prefer == "relay"])
    }
  }

  @Test func `short forms and long forms mean the same`() throws {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "token": "t \n"])
    let short = try folder.parse(key + "listen: { app: 127.0.0.1:1, admin: 127.0.0.1:2 }\nmedia: { addresses: auto }")
    let long = try folder.parse(
      key + "listen: { app: { address: 127.0.0.1:1 }, admin: { address: 127.0.0.1:2 } }\nmedia: { addresses: [ auto ] }")
    #expect(content(short) == content(long))
    let token = try folder.parse(key + "listen: { admin: { address: 192.0.2.1:2, token_file: token } }")
    #expect(token.listen.adminToken == Redacted("t"))
  }

  @Test func `tokens of the admin API have a name, scopes and a rate; two lines are two secrets`() throws {
    let folder = try TemporaryFolder([
      "jwt.key": TemporaryFolder.key, "one": "0123456789abcdef\n", "two": "abcdefghijklmnop\r\nponmlkjihgfedcba\n",
    ])
    let configuration = try folder.parse(
      key
        + "admin: { tokens: [ { name: a, token_file: one, scopes: [ read, calls ] }, { name: b, token_file: two, scopes: admin, per_second: 5 } ] }"
    )
    func secret(_ text: String) -> Redacted<[UInt8]> { Redacted(Array(text.utf8)) }
    #expect(
      configuration.admin.tokens == [
        APIToken(name: "a", secrets: [secret("0123456789abcdef")], scopes: [.read, .calls], perSecond: 20),
        APIToken(name: "b", secrets: [secret("abcdefghijklmnop"), secret("ponmlkjihgfedcba")], scopes: [.admin], perSecond: 5),
      ])
    // off loopback one of them is enough
    _ = try folder.parse(key + "listen: { admin: 192.0.2.1:7060 }\nadmin: { tokens: { name: a, token_file: one, scopes: read } }")
  }

  @Test func `tokens of the admin API that cannot be told apart, or guessed, are refused`() throws {
    let folder = try TemporaryFolder([
      "jwt.key": TemporaryFolder.key, "one": "0123456789abcdef\n", "same": "abcdefghijklmnop\n0123456789abcdef\n",
      "short": "0123456789abcde\n",
      "three": "0123456789abcdef\n1123456789abcdef\n2123456789abcdef\n", "spaced": "0123456789 abcdefg\n",
    ])
    func problems(_ tokens: String) -> [String] { folder.problems(key + "admin: { tokens: [ \(tokens) ] }") }
    let one = "{ name: a, token_file: one, scopes: read }"
    #expect(problems(one) == [])
    #expect(problems("\(one), { name: a, token_file: same, scopes: read }").count == 2)
    #expect(problems("\(one), { name: b, token_file: same, scopes: read }").allSatisfy { $0.contains("has a token of a") })
    for file in ["short", "three", "spaced"] {
      #expect(problems("{ name: a, token_file: \(file), scopes: read }").count == 1, "\(file)")
    }
    #expect(
      problems("{ name: a, token_file: one, scopes: [ read, write ] }").first?.contains("expected read, calls, users or admin")
        == true)
  }

  @Test func `the app port may name its proxies, and the admin port may speak TLS`() throws {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "c.pem": "c", "k.pem": "k"])
    let configuration = try folder.parse(
      key + "listen: { app: { address: 127.0.0.1:1, proxies: [ 10.0.0.0/8, \"2001:db8::1\" ] }, "
        + "admin: { address: 127.0.0.1:2, tls: { cert: c.pem, key: k.pem } } }")
    #expect(configuration.listen.appProxies == ["10.0.0.0/8", "2001:db8::1"].compactMap { IPNetwork($0) })
    #expect(configuration.listen.adminTLS?.certificate?.hasSuffix("/c.pem") == true)
    #expect(throws: ConfigurationProblems.self) {
      try folder.parse(key + "listen: { app: { proxies: [ example.com ] }, admin: { tls: { cert: c.pem } } }")
    }
  }

  @Test func `the SIP listener has certificates for further names, and a trunk says what its own is for`() throws {
    let folder = try TemporaryFolder([
      "jwt.key": TemporaryFolder.key, "a.pem": "a", "a.key": "a", "b.pem": "b", "b.key": "b", "ca.pem": "c",
    ])
    let listen =
      "listen: { sip: { tls: { address: 127.0.0.1:5061, cert: a.pem, key: a.key, ca: ca.pem, certificates: [ { cert: b.pem, key: b.key } ] } } }\n"
    let auth = "auth: { jwt: { key_file: jwt.key } }\n"
    func trunk(_ name: String, _ more: String = "") -> String {
      auth + listen + "trunks: [ { name: t, uri: \"sip:a.example;transport=tls\", tls: { name: \(name)\(more) } } ]"
    }
    let server = try #require(try folder.parse(auth + listen).listen.sipServer)
    #expect(server.others.map(\.certificate) == [folder.path + "/b.pem"] && server.others.map(\.authorities) == [nil])
    #expect(
      try folder.parse(auth + "listen: { sip: { tls: { address: 127.0.0.1:5061, cert: a.pem, key: a.key } } }").listen.sipServer?
        .others == [])
    #expect(try folder.parse(trunk("\"*.Carrier.example\"")).trunks[0].expectedNames.map(\.description) == ["*.carrier.example"])
    #expect(
      try folder.parse(trunk("[ b.example, c.example ]")).trunks[0].expectedNames.map(\.description) == [
        "b.example", "c.example",
      ])
    #expect(try folder.parse(trunk("b.example", ", verify: false")).warnings.map(\.path) == ["trunks[0].tls.name"])
    for wrong in ["a.*.example", "\"*\"", "s*.example", "192.0.2.1", "\"a b\"", "\"*.*.example\""] {
      #expect(
        folder.problems(trunk(wrong)).contains { $0.contains("trunks[0].tls.name") && $0.contains("expected a host name") },
        "\(wrong)")
    }
    #expect(
      folder.problems(auth + listen.replacing(", key: b.key }", with: " }")).contains {
        $0.contains("listen.sip.tls.certificates[0]: key is missing")
      })
  }

  @Test func `media addresses are auto, an address, or a pair to bind and to advertise, of either family`() throws {
    let configuration = try TemporaryFolder().parse(
      key + "media: { addresses: [ auto, 192.0.2.1, { bind: 10.0.0.1, advertise: 198.51.100.7 }, { bind: \"2001:db8::1\" } ] }")
    #expect(
      configuration.media.addresses == [
        .automatic(advertise: nil), .fixed(bind: IPAddress(192, 0, 2, 1), advertise: nil),
        .fixed(bind: IPAddress(10, 0, 0, 1), advertise: AdvertisedHost("198.51.100.7")),
        .fixed(bind: try #require(IPAddress("2001:db8::1")), advertise: nil),
      ])
  }

  @Test(arguments: [
    ("500ms", Duration.milliseconds(500)), ("2s", .seconds(2)), ("1m", .seconds(60)), ("4h", .seconds(14400)),
  ])
  func `durations carry their unit`(text: String, value: Duration) throws {
    #expect(
      try TemporaryFolder().parse(key + "timers: { early180: 0ms, app_grace: \(text == "4h" ? "1m" : text) }").calls.timers
        .early180
        == .zero)
    #expect(
      try TemporaryFolder().parse(key + "timers: { longest_call: \(text == "500ms" ? "1s" : text) }").calls.timers.longestCall
        == (text == "500ms" ? .seconds(1) : value))
  }

  @Test func `early180 may be off`() throws {
    #expect(try TemporaryFolder().parse(key + "timers: { early180: off }").calls.timers.early180 == nil)
  }

  @Test func `trunk credentials and TCP are read`() throws {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "p": "s3cret\n"])
    let configuration = try folder.parse(
      key + """
        trunks:
          - { name: a, peers: 192.0.2.1, uri: "sip:192.0.2.1;transport=tcp", auth: { username: u, password_file: p }, rtp_source: strict }
        """)
    let trunk = try #require(configuration.trunks.first)
    #expect(trunk.peers == [try #require(IPNetwork("192.0.2.1"))])
    #expect(
      trunk.routing.settings
        == TrunkSettings(
          name: "a", domain: "192.0.2.1", server: ServerURI(host: "192.0.2.1", transport: .tcp),
          credentials: Credentials(username: "u", password: "s3cret")))
    #expect(trunk.routing.sourcePolicy == .strict)
    #expect(!"\(configuration)".contains("s3cret"))
  }

  @Test func `registration, probe and number rules are read in short and in long form`() throws {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "p": "s3cret"])
    func trunk(_ rows: String) throws -> Routing.Trunk {
      let text = key + "trunks: [ { name: a, peers: 192.0.2.1, uri: \"sip:Carrier.example:5070\", \(rows) } ]"
      return try #require(try folder.parse(text).trunks.first).routing
    }
    let short = try trunk("auth: { username: u, password_file: p }, register: true, probe: 10s, numbers: { country: \"49\" }")
    #expect(short.settings?.server == ServerURI(host: "carrier.example", port: 5070))
    #expect(short.settings?.domain == "Carrier.example:5070")
    #expect(short.settings?.registration == .init(user: "u", expires: 600))
    #expect(short.settings?.probe == .init(interval: .seconds(10)))
    #expect(short.numbers == NumberRules(country: .init(country: "49")))
    let long = try trunk(
      "register: { user: r, expires: 2m }, probe: { interval: 1m, down_after: 5, up_after: 4 }, "
        + "numbers: { country: \"1\", international: \"011\", national: \"1\", outbound: [ { prefix: \"+1\", strip: 2, add: \"9\" } ] }"
    )
    #expect(long.settings?.credentials == nil && long.settings?.registration == .init(user: "r", expires: 120))
    #expect(long.settings?.probe == .init(interval: .seconds(60), downAfter: 5, upAfter: 4))
    var america = try #require(NumberPlan(country: "US"))
    (america.international, america.national) = ("011", "1")
    #expect(long.numbers == NumberRules(outgoing: [.init(prefix: "+1", strip: 2, add: "9")], country: america))
  }

  @Test func `credentials of peers count where any may be one`() throws {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "p": "s3cret"])
    let rows = ["a, peers: any", "b, peers: 192.0.2.1"].map { "{ name: \($0), peer_auth: { username: u, password_file: p } }" }
    let trunks = try folder.parse(key + "trunks: [ \(rows.joined(separator: ", ")) ]").trunks
    #expect(trunks.map(\.acceptsAnyPeer) == [true, false])
    #expect(trunks.map(\.routing.rules.peerCredentials) == [Credentials(username: "u", password: "s3cret"), nil])
  }

  @Test func `hold_audio is noise, silence or a file of 40 ms at least`() throws {
    let folder = try TemporaryFolder()
    func audio(_ text: String) throws -> HoldAudio? {
      try folder.parse(key + "trunks: [ { name: t, peers: [192.0.2.1]\(text) } ]").trunks.first?.routing.holdAudio
    }
    func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: folder.path + "/a.wav")) }
    guard case .noise? = try audio(""), case .noise? = try audio(", hold_audio: noise"),
      case .silence? = try audio(", hold_audio: silence")
    else { throw CocoaError(.fileReadCorruptFile) }
    try write(WAVFile.bytes(of: [Int16](repeating: 7, count: 800)))
    guard case .clip(let clip)? = try audio(", hold_audio: a.wav") else { throw CocoaError(.fileReadCorruptFile) }
    #expect(clip.count == 800)
    for (bad, said) in [
      (WAVFile.bytes(of: [Int16](repeating: 7, count: 319)), "is shorter than 40 ms"),
      (Array("RIFF".utf8), "not a RIFF WAVE file"),
      ([], "not a RIFF WAVE file"),
    ] {
      try write(bad)
      let problems = folder.problems(key + "trunks: [ { name: t, peers: [192.0.2.1], hold_audio: a.wav } ]")
      #expect(problems.count == 1 && problems[0].contains(said), "\(problems)")
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
    let trunk = try #require(try TemporaryFolder().parse(all).trunks.first).routing
    let rules = TrunkRules(
      reliability: .required, sessionTimer: .init(seconds: 600, minimumSeconds: 120), redirects: .follow(hosts: ["gw2.example"]),
      trustsIdentity: true, allowsTransfer: true)
    #expect(trunk.rules == rules)
    #expect(trunk.signalsHold && trunk.sendsDigitsByInfo && trunk.digits == .rfc4733 && trunk.offersLate)
    #expect(trunk.srtp == .required && trunk.sendsKeysInClear && trunk.recordsPrivateNumbers)
    let plain = try #require(try TemporaryFolder().parse(key + "trunks: [ { name: t, peers: [192.0.2.1] } ]").trunks.first)
      .routing
    var expected = Routing.Trunk(name: "t")
    expected.peers = [try #require(IPNetwork("192.0.2.1"))]
    #expect(content(plain) == content(expected) && plain.digits == .auto && !plain.sendsDigitsByInfo)
    let off = try TemporaryFolder().parse(key + "trunks: [ { name: t, peers: [192.0.2.1], session_timer: off } ]")
    #expect(off.trunks.first?.routing.rules.sessionTimer == nil)
  }
}
