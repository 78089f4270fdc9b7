import Configuration
import Testing
import TrunklineBytes

/// Carriers' habits under one name.
@Suite struct TrunkProfileTests {
  private let files = ["jwt.key": "0123456789abcdef0123456789abcdef\n", "password": "secret\n", "c.pem": "", "k.pem": ""]
  private let key = "\nauth: { jwt: { key_file: jwt.key } }"

  private func parse(_ trunk: String) throws -> Settings {
    try TemporaryFolder(files).parse(
      "listen: { sip: { udp: 127.0.0.1:5060, tcp: 127.0.0.1:5060, tls: { address: 127.0.0.1:5061, cert: c.pem, key: k.pem } } }\n"
        + "trunks: [ { name: a, \(trunk) } ]" + key)
  }

  @Test func `each profile with what it needs is a trunk`() throws {
    let login = "{ username: u, password_file: password }"
    let more: [String: String] = [
      "asterisk": "uri: \"sip:192.0.2.1\"", "plivo": "uri: \"sip:1.zt.plivo.com\", auth: \(login)",
      "sipgate": "auth: \(login), from: { user: u }",
      "teams": "advertise: sbc.example.com",
      "telekom": "auth: \(login), outbound_proxy: \"sip:1.primary.companyflex.de;transport=tcp\"",
      "telnyx": "auth: \(login), register: true", "twilio": "uri: \"sip:a.pstn.twilio.com\"",
      "whatsapp": "auth: \(login), peer_auth: \(login), advertise: sbc.example.com",
    ]
    for profile in TrunkProfile.all {
      let needed = try #require(more[profile.name])
      let trunk = try #require(try parse("profile: \(profile.name), \(needed)").trunks.first?.routing)
      #expect(trunk.settings != nil, "\(profile.name) calls out")
      #expect(TrunkProfile.text.contains("\(profile.name): \(profile.title)"))
    }
    #expect(TrunkProfile.all.map(\.name) == TrunkProfile.all.map(\.name).sorted())
  }

  @Test func `the trunk's own keys count more, also inside of a mapping`() throws {
    let trunk = try #require(
      try parse(
        "profile: sipgate, auth: { username: u, password_file: password }, codecs: [ opus ], from: { user: 1234567t0 }, numbers: { country: \"43\" }"
      )
      .trunks.first?.routing)
    #expect(trunk.codecs == [.opus] && trunk.rules.fromUser == "1234567t0" && trunk.rules.fromDomain == "sipconnect.sipgate.de")
    #expect(trunk.numbers.country?.code == "43" && trunk.numbers.calling("+49211123456") == "49211123456")
    #expect(trunk.settings?.registration?.user == "u")
  }

  @Test func `an unknown profile names those that there are, and a fault of a profile's use stands at the trunk`() throws {
    let problems = try TemporaryFolder(files).problems(
      "trunks: [ { name: a, profile: twillio, uri: \"sip:192.0.2.1\" }, { name: b, profile: teams } ]" + key)
    #expect(
      problems.contains {
        $0.hasSuffix(
          "trunks[0].profile: expected one of asterisk, plivo, sipgate, teams, telekom, telnyx, twilio, whatsapp, got \"twillio\""
        )
      })
    #expect(
      problems.contains {
        $0.hasSuffix("trunks[1].srtp: its keys go over TLS only: needs listen.sip.tls, or srtp_without_tls: true")
      }, "\(problems)")
  }
}
