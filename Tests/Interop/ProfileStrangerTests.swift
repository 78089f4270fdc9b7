import Foundation
import Testing

extension Interop {
  /// The trunk profiles that require TLS and SRTP, with baresip as the carrier: beside the profile only the peer and how it is
  /// trusted are set. IMS is in `RegistrarTests`, all profiles with Asterisk in `OperatorTests`.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.baresip != nil),
      "no baresip: run Scripts/install test"), .serialized)
  struct ProfileStrangerTests {
    enum Profile: String, CaseIterable {
      case teams, whatsapp
      var codec: String { self == .teams ? "PCMU" : "opus" }
      var rate: Int { self == .teams ? 8_000 : 48_000 }
    }

    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    @Test(arguments: Profile.allCases)
    func `with the profile of a carrier that wants TLS and SRTP the app calls baresip, and both hear each other`(
      profile: Profile
    ) async throws {
      try await expectGoodAudio {
        let certificate = try await OpenSSL.certificate("sbc.example")
        defer { try? FileManager.default.removeItem(atPath: certificate) }
        let gateway = try await gateway(profile, certificate)
        // silence to the end of what the app says: baresip hangs up when its file has ended
        let words = Baresip.short.flatMap { [Int16](repeating: $0, count: profile.rate / 8_000) }
        let carrier = try Baresip(
          gateway, user: "+15559990001", codec: profile.codec, certificate: gateway.folder + "/both.pem", says: words,
          rate: profile.rate, [])
        try await carrier.expectReady()
        let phone = try await Peers.ownPhone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(carrier.text)\n\(gateway.process.text.suffix(3_000))")
        try await carrier.quit()
        let record = try #require(try await gateway.records(1).first)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
        #expect((record["codecs"] as? [String: Any])?["trunk"] as? String == profile.codec)
        #expect((record["trunkSrtp"] as? String)?.isEmpty == false, "\(record)")
        #expect(!gateway.process.text.contains("inline:"), "no key in the log")
        let heard = try Speech.read(try carrier.heard())
        let narrow = stride(from: 0, to: heard.count, by: profile.rate / 8_000).map { heard[$0] }
        try Speech.write(narrow, gateway.folder + "/heard.wav")
        let faults =
          try Speech.faults(
            "baresip → app, \(profile)", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100)
          + Speech.faults(
            "app → baresip, \(profile)", said: Self.said, heardIn: gateway.folder + "/heard.wav", clippedAtMost: 100)
        try await gateway.finish()
        return faults
      }
    }

    /// A gateway with the settings that each profile requires, and baresip's addresses as the carrier's.
    private func gateway(_ profile: Profile, _ certificate: String) async throws -> GatewayUnderTest {
      let (sip, tls, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp(), try FreePorts.tcp())
      let carrier = try FreePorts.both()
      let own =
        profile == .teams
        ? "from: { domain: sbc.example }, peers: [127.0.0.0/8], media_peers: [127.0.0.0/8]"
        : "auth: { username: \"+15551230001\", password_file: password }, peer_auth: { username: \"+15551230001\", password_file: password }"
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), cert: \(certificate)/sip.pem, key: \(certificate)/sip.key } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
          "trunks: [ { name: carrier, profile: \(profile.rawValue), uri: \"sip:127.0.0.1:\(carrier + 1);transport=tls\", tls: { ca: \(certificate)/sip.pem }, \(own) } ]",
        ], ports: (sip, app, admin), carrier: carrier)
      let pair =
        try String(contentsOfFile: certificate + "/sip.key", encoding: .utf8)
        + String(contentsOfFile: certificate + "/sip.pem", encoding: .utf8)
      try pair.write(toFile: gateway.folder + "/both.pem", atomically: true, encoding: .utf8)
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      return gateway
    }
  }
}
