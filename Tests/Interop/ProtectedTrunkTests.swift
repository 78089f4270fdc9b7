import Foundation
import Testing

extension Interop {
  /// SRTP with keys in the SDP, over TLS, with baresip (`mediaenc=srtp-mand`) as the carrier.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.baresip != nil),
      "no baresip: run Scripts/install test"), .serialized)
  struct ProtectedTrunkTests {
    @Test func `baresip calls over TLS with SRTP and both hear each other`() async throws {
      try await expectGoodAudio {
        let folder = try NameServer.folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (gateway, tls) = try await secured(folder)
        let phone = try await Peers.ownPhone(
          gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let carrier = try Baresip(
          gateway, user: "+15557770001", codec: "PCMU", certificate: gateway.folder + "/both.pem",
          ["-e", "/dial sip:+15551230001@127.0.0.1:\(tls);transport=tls"])
        try await carrier.expectReady()
        return try await heard(gateway, phone, carrier)
      }
    }

    @Test func `the app calls baresip over TLS with SRTP and both hear each other`() async throws {
      try await expectGoodAudio {
        let folder = try NameServer.folder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (gateway, _) = try await secured(folder)
        let carrier = try Baresip(gateway, user: "+15559990001", codec: "PCMU", certificate: gateway.folder + "/both.pem", [])
        try await carrier.expectReady()
        let phone = try await Peers.ownPhone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav"])
        return try await heard(gateway, phone, carrier)
      }
    }

    @Test(arguments: ["required"])
    func `our own carrier with SRTP: both hear each other, record and metrics name the profile of the trunk leg`(rule: String)
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(trunk: "srtp: optional, srtp_without_tls: true")
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let phone = try await Peers.ownPhone(
          gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let carrier = try await Peers.trunk(
          gateway, ["--call", "+15551230001", "--talk", "4", "--srtp", rule, "--record", "carrier-heard.wav"])
        #expect(try await carrier.finish(within: 30) == 0, "\(carrier.text)")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        let profile = rule == "off" ? nil : "SRTP_AEAD_AES_128_GCM"
        let ended = try await carrier.event("ended")["fields"] as? [String: String]
        #expect(ended?["srtp"] == profile ?? "none" && ended?["refused"] == "0")
        let record = try #require(try await gateway.records(1).first)
        #expect(record["trunkSrtp"] as? String == profile)
        #expect((record["srtp"] as? String)?.hasPrefix("SRTP_") == true, "the app's leg")
        #expect(try gateway.metric("trunkline_trunk_media_total{trunk=\"carrier\",profile=\"\(profile ?? "none")\"}") == 1)
        let said = Array(Speech.telephone.prefix(20_000))
        let faults =
          try Speech.faults("carrier → app", said: said, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → carrier", said: Array(Speech.app.prefix(20_000)), heardIn: gateway.folder + "/carrier-heard.wav")
        try await gateway.finish()
        return faults
      }
    }

    /// A gateway with a TLS listener, its certificate in `folder`, and a trunk that takes SRTP only.
    private func secured(_ folder: String) async throws -> (GatewayUnderTest, UInt16) {
      let made = try Spawned(
        "openssl", "/usr/bin/openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", "sip.key",
          "-out",
          "sip.pem", "-subj", "/CN=trunk.example", "-addext", "subjectAltName=IP:127.0.0.1",
        ], in: folder)
      #expect(try await made.finish(within: 20) == 0, "\(made.text)")
      let (sip, tls, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp(), try FreePorts.tcp())
      let carrier = try FreePorts.both()
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), cert: \(folder)/sip.pem, key: \(folder)/sip.key } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(carrier + 1);transport=tls\", tls: { verify: false }, srtp: required } ]",
        ], ports: (sip, app, admin), carrier: carrier)
      let pair =
        try String(contentsOfFile: folder + "/sip.key", encoding: .utf8)
        + String(contentsOfFile: folder + "/sip.pem", encoding: .utf8)
      try pair.write(toFile: gateway.folder + "/both.pem", atomically: true, encoding: .utf8)
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      return (gateway, tls)
    }

    private func heard(_ gateway: GatewayUnderTest, _ phone: Spawned, _ carrier: Baresip) async throws -> [String] {
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(carrier.text)\n\(gateway.process.text.suffix(3_000))")
      try await carrier.quit()
      let faults =
        try Speech.faults("baresip → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("app → baresip", said: Speech.app, heardIn: try carrier.heard())
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "remoteHangup")
      #expect(!gateway.process.text.contains("inline:"), "no key in the log")
      try await gateway.finish()
      return faults
    }
  }
}
