import Configuration
import Testing

@Suite struct ConfigurationProblemsTests {
  let key = "auth: { jwt: { key_file: jwt.key } }\n"

  @Test func `one run names every problem with its location`() throws {
    let text = """
      listen:
        sip: { udp: 127.0.0.1:5060, tpc: 127.0.0.1:5060 }
        app: { address: 0.0.0.0:8080 }
        admin: 127.0.0.1:99999
      media: { addresses: [ auto, nonsense ], threads: 0, trunk_ports: 41999-41000 }
      auth: { jwt: { algorithm: none, key_file: missing.key } }
      trunks:
        - { name: carrier, peers: [127.0.0.0/33], uri: "tel:5", codecs: [PCMU, G729], rtp_source: anything }
        - { name: carrier, peers: [10.0.0.0/8] }
        - { peers: [10.0.0.0/8] }
      users:
        - { id: alice, numbers: ["+15551230001", "abc"] }
        - { id: alice, numbers: ["+15551230001"] }
      routes: { inbound: [ { trunk: nobody, to: users } ], outbound: [ { prefix: "+", trunk: carrier }, { prefix: x, trunk: carrier } ] }
      timers: { ring: 45, early180: 2s, media_gate_warm: 100s }
      """
    let expected = [
      "gateway.yaml:2:31: listen.sip.tpc: unknown key; did you mean tcp? known here: udp, tcp, tls",
      "gateway.yaml:3:19: listen.app.address: 0.0.0.0:8080 is not a loopback address, so tls: { cert: FILE, key: FILE } is required",
      "gateway.yaml:4:10: listen.admin: expected an address with a port, such as 127.0.0.1:5060 or [::1]:5060, got \"127.0.0.1:99999\"",
      "gateway.yaml:5:29: media.addresses[1]: expected auto, an address, or { bind: ADDRESS, advertise: ADDRESS }, got \"nonsense\"",
      "gateway.yaml:5:50: media.threads: 0 is outside 1...64",
      "gateway.yaml:5:66: media.trunk_ports: expected a port range such as 20000-21999, got \"41999-41000\"",
      "gateway.yaml:6:27: auth.jwt.algorithm: expected HS256, RS256 or ES256, got \"none\"",
      "gateway.yaml:6:43: auth.jwt.key_file: cannot read DIR/missing.key: No such file or directory",
      "gateway.yaml:8:30: trunks[0].peers[0]: expected any, an address, a network such as 192.0.2.0/24, or a host name, got \"127.0.0.0/33\"",
      "gateway.yaml:8:50: trunks[0].uri: expected a SIP URI such as sip:192.0.2.1:5060;transport=tcp, got \"tel:5\"",
      "gateway.yaml:8:74: trunks[0].codecs[1]: expected opus, PCMU, PCMA, G722 or L16, got \"G729\"",
      "gateway.yaml:8:93: trunks[0].rtp_source: expected signalled_ip, symmetric or strict, got \"anything\"",
      "gateway.yaml:9:13: trunks[1].name: \"carrier\" is given twice",
      "gateway.yaml:10:5: trunks[2]: name is missing",
      "gateway.yaml:12:44: users[0].numbers[1]: expected a number such as \"+15551230001\", got \"abc\"",
      "gateway.yaml:13:11: users[1].id: \"alice\" is given twice",
      "gateway.yaml:13:28: users[1].numbers[0]: +15551230001 already belongs to user \"alice\"",
      "gateway.yaml:14:31: routes.inbound[0].trunk: there is no trunk \"nobody\"",
      "gateway.yaml:14:88: routes.outbound[0].trunk: trunk \"carrier\" has no uri to call",
      "gateway.yaml:14:109: routes.outbound[1].prefix: expected the beginning of a number, got \"x\"",
      "gateway.yaml:14:119: routes.outbound[1].trunk: trunk \"carrier\" has no uri to call",
      "gateway.yaml:15:17: timers.ring: expected a duration such as 45s or 500ms, got \"45\"",
      "gateway.yaml:15:52: timers.media_gate_warm: 100s is outside 500ms...1m",
    ]
    let found = try TemporaryFolder().problems(text)
    for (a, b) in zip(found, expected) { #expect(a == b) }
    #expect(found.count == expected.count)
  }

  @Test(arguments: [
    ("listen: { sip: {} }", "1:16: listen.sip: needs udp, tcp or tls"),
    ("listen: { sip: { udp: 127.0.0.1:0 } }", "1:23: listen.sip.udp: port 0 is outside 1...65535"),
    ("listen: [ 1 ]", "1:9: listen: expected a mapping with sip, app, admin, got a list"),
    (
      "listen: { admin: 192.0.2.1:7060 }",
      "1:18: listen.admin: 192.0.2.1:7060 is not a loopback address, so token_file is required"
    ),
    ("listen: { app: 127.0.0.1:7060 }", "1:9: listen.admin: 127.0.0.1:7060 is also listen.app's address"),
    ("listen: { app: { tls: { cert: jwt.key } } }", "1:23: listen.app.tls: key is missing"),
    (
      "media: { app_port: 20000 }",
      "1:8: media.trunk_ports: 20000-21999 meets the app ports 20000-20001 (app_port, one for each of 2 threads)"
    ),
    ("media: { app_port: 65535 }", "1:20: media.app_port: 2 threads need ports 65535...65536, beyond 65535"),
    (
      "media: { addresses: [ { bind: 10.0.0.1, advertise: 0.0.0.0 } ] }",
      "1:52: media.addresses[0].advertise: must be an address that peers can reach, not 0.0.0.0"
    ),
    (
      "auth: { origins: [ phone.example.com ] }",
      "1:20: auth.origins[0]: expected an origin such as https://phone.example.com, got \"phone.example.com\""
    ),
    (
      "timers: { rang: 4s }",
      "1:11: timers.rang: unknown key; did you mean ring? known here: ring, early180, media_gate_warm, media_gate_cold, "
        + "media_gate_outgoing, longest_call, app_grace, drain"
    ),
    (
      "trunks: [ { name: a, peers: [ 10.0.0.0/8 ] }, { name: b, peers: [ 10.0.0.0/8 ] } ]",
      "1:67: trunks[1].peers[0]: 10.0.0.0/8 already belongs to trunk \"a\""
    ),
    (
      "trunks: [ { name: a, peers: 0.0.0.0/0 } ]",
      "1:29: trunks[0].peers: lets nearly any address call as this trunk, without a password: name the carrier's networks, or write any, with peer_auth: { username: U, password_file: F }"
    ),
    (
      "trunks: [ { name: a, peers: \"2000::/3\" } ]",
      "1:29: trunks[0].peers: lets nearly any address call as this trunk, without a password: name the carrier's networks, or write any, with peer_auth: { username: U, password_file: F }"
    ),
    (
      "trunks: [ { name: a, peers: [ 8.0.0.0/8, 9.0.0.0/8, 11.0.0.0/8, 12.0.0.0/8, 13.0.0.0/8, 14.0.0.0/8, 15.0.0.0/8, 16.0.0.0/8 ] } ]",
      "1:29: trunks[0].peers: lets nearly any address call as this trunk, without a password: name the carrier's networks, or write any, with peer_auth: { username: U, password_file: F }"
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, realm: r } ]",
      "1:46: trunks[0].realm: is of no use without auth or peer_auth"
    ),
    (
      #"trunks: [ { name: a, peers: 10.0.0.1, realm: 'a"b', auth: { username: u, password_file: jwt.key } } ]"#,
      "1:46: trunks[0].realm: expected the realm of the trunk's challenges, of at most 128 characters, got \"a\"b\""
    ),
    (
      "users: [ { id: a, numbers: [], display_name: Bank } ]", "1:46: users[0].display_name: expected true or false, got \"Bank\""
    ),
    ("users: [ { numbers: [] } ]", "1:10: users[0]: id is missing"),
    ("media: { addresses: [ auto, ~ ] }", "1:29: media.addresses[1]: is empty: write a value, or leave the item out"),
    ("users:\n  -\n", "2:4: users[0]: is empty: write a value, or leave the item out"),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ PCMU, ~ ] } ]",
      "1:55: trunks[0].codecs[1]: is empty: write a value, or leave the item out"
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, prefer: wide } ]",
      "1:47: trunks[0].prefer: wide needs opus or G722 in codecs"
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, codecs: [ G722, L16 ], prefer: cheap } ]",
      "1:70: trunks[0].prefer: cheap needs PCMU or PCMA in codecs"
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, prefer: best } ]",
      "1:47: trunks[0].prefer: expected relay, transcode, wide or cheap, got \"best\""
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1 } ]\nroutes: { inbound: { trunk: a, user: zoe } }",
      "2:38: routes.inbound[0].user: there is no user \"zoe\""
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1 } ]\nroutes: { inbound: [ { trunk: a } ] }",
      "2:22: routes.inbound[0]: needs exactly one of to: users or wss://…, user: ID, route: { webhook: URL }"
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, srtp: required } ]",
      "1:45: trunks[0].srtp: its keys go over TLS only: needs listen.sip.tls, or srtp_without_tls: true"
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1, uri: \"sip:10.0.0.1\", srtp: optional } ]",
      "1:66: trunks[0].srtp: its keys go over TLS only: write sips: or ;transport=tls in uri, or srtp_without_tls: true"
    ),
    (
      "verifier: http://verifier.example",
      "1:11: verifier: expected a URL such as https://verifier.example/check (http: for this machine only), got \"http://verifier.example\""
    ),
    ("verifier: { ca: jwt.key }", "1:11: verifier: url is missing"),
    (
      "trunks: [ { name: a, peers: 10.0.0.1 } ]\nroutes: { inbound: [ { trunk: a, to: \"https://bot.example\" } ] }",
      "2:38: routes.inbound[0].to: expected users, or a URL such as wss://bot.example/call (ws: for this machine only), got \"https://bot.example\""
    ),
    (
      "trunks: [ { name: a, peers: 10.0.0.1 } ]\nroutes: { inbound: [ { trunk: a, to: users, format: pcm8 } ] }",
      "2:53: routes.inbound[0].format: goes with to: wss://…"
    ),
    ("recording: { format: mp3 }", "1:22: recording.format: expected wav or ogg, got \"mp3\""),
    ("limits: { calls: many }", "1:18: limits.calls: expected an integer, got \"many\""),
    (
      "nonsense",
      "1:1: expected a mapping with listen, admin, branding, local_networks, dns, media, auth, trunks, users, routes, push, cluster, verifier, turn, events, recording, history, timers, limits, store, records, log, hep, got \"nonsense\""
    ),
  ])
  func `each mistake has one message`(text: String, message: String) throws {
    let whole = text.hasPrefix("auth") || text == "nonsense" ? text : text + "\n" + key
    let problems = try TemporaryFolder().problems(whole).filter { !$0.hasSuffix("key_file is missing") }
    #expect(problems == ["gateway.yaml:" + message])
  }

  @Test func `what is not YAML is named with its location`() throws {
    let folder = try TemporaryFolder()
    #expect(folder.problems("listen: { sip:") == ["gateway.yaml:2:1: not YAML: did not find expected node content"])
    #expect(folder.problems("a: 1\n\tb: 2").count == 1)
    #expect(folder.problems("listen: {}\nlisten: {}").first?.contains("key given twice: listen") == true)
  }

  @Test func `a file that is not there is one problem`() {
    do {
      _ = try ConfigurationFile.load("/nowhere/gateway.yaml")
      Issue.record("accepted")
    } catch {
      #expect("\(error)" == "/nowhere/gateway.yaml: cannot read: No such file or directory")
    }
  }

  @Test func `a key that does not fit the algorithm is refused`() throws {
    let folder = try TemporaryFolder(["jwt.key": "secret", "set.json": "{\"keys\":[]}"])
    #expect(
      folder.problems("auth: { jwt: { algorithm: RS256, key_file: jwt.key } }") == [
        "gateway.yaml:1:44: auth.jwt.key_file: DIR/jwt.key: no usable key: no PEM of a private key, public key or certificate"
      ])
    #expect(
      folder.problems("auth: { jwt: { jwks_file: set.json } }") == [
        "gateway.yaml:1:27: auth.jwt.jwks_file: DIR/set.json: not a JSON Web Key Set: HS256 needs key_file"
      ])
  }

  @Test(arguments: [
    ("jwks_url: https://id.example.com/jwks.json", nil), ("jwks_url: https://10.0.0.7:8443/jwks", nil),
    ("jwks_url: http://127.0.0.1:8080/jwks", nil), ("jwks_url: http://localhost/jwks", nil),
    ("jwks_url: 'http://[::1]:80/'", nil),
    ("jwks_url: http://id.example.com/jwks.json", "expected a URL"),
    ("jwks_url: http://localhost.example.com/", "expected a URL"),
    ("jwks_url: 'http://localhost:80@example.com/'", "expected a URL"), ("jwks_url: ftp://id.example.com/", "expected a URL"),
    ("jwks_url: https://", "expected a URL"), ("jwks_url: 'https://user:secret@id.example.com/'", "expected a URL"),
    ("jwks_url: 'https://id.example.com/ x'", "expected a URL"), ("jwks_ca: set.json, jwks_file: set.json", "goes with jwks_url"),
    ("jwks_url: https://id.example.com/, key_file: jwt.key", "exclude each other"),
    ("jwks_url: https://id.example.com/, jwks_ca: none.pem", "none.pem"),
  ])
  func `keys by URL require https, or http of this machine, and no second source`(text: String, problem: String?) throws {
    let folder = try TemporaryFolder(["jwt.key": "secret", "set.json": "{\"keys\":[]}"])
    let said = folder.problems("auth: { jwt: { algorithm: ES256, \(text) } }").filter { $0.contains("auth.jwt") }
    #expect(said.isEmpty == (problem == nil) && said.first?.contains(problem ?? "") ?? true, "\(said)")
    let hmac = folder.problems("auth: { jwt: { jwks_url: https://id.example.com/ } }")
    #expect(hmac.contains { $0.contains("auth.jwt.jwks_url: HS256 needs key_file") })
  }

  @Test(arguments: [("0123456789abcdef0123456789abcde\n", false), ("0123456789abcdef0123456789abcdef", true)])
  func `a secret for HS256 has 32 bytes, without the newline at the end`(content: String, isTaken: Bool) throws {
    let said = try TemporaryFolder(["jwt.key": content]).problems(key)
    #expect(said.isEmpty == isTaken)
    guard let problem = said.first else { return }
    #expect(problem.hasPrefix("gateway.yaml:1:26: auth.jwt.key_file: HS256 needs a key of 32 bytes or more: "))
    #expect(problem.contains("base64 is not decoded") && problem.contains("head -c 32 /dev/urandom"))
  }

  @Test func `an empty key file is refused`() throws {
    let folder = try TemporaryFolder(["jwt.key": " \n"])
    #expect(folder.problems(key) == ["gateway.yaml:1:26: auth.jwt.key_file: DIR/jwt.key: the key file is empty"])
  }

  @Test(arguments: [
    ("trunk", "trunks"), ("recrods", "records"), ("user", "users"), ("TRUNKS", nil), ("voicemail", nil), ("", nil),
    (String(repeating: "x", count: 10_000), nil),
  ])
  func `a slip of the pen gets the key that it is near to`(written: String, meant: String?) throws {
    let said = try TemporaryFolder().problems(key + "? \"\(written)\"\n: 1\n").first ?? ""
    #expect(said.contains("unknown key") && said.contains("did you mean") == (meant != nil), "\(said.prefix(300))")
    if let meant { #expect(said.contains("did you mean \(meant)?")) }
  }
}
