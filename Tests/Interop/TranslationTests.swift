import Foundation
import SpeechScore
import Testing

extension Interop {
  /// A gateway behind an address translator, its carrier and its apps in the world outside: nobody there reaches its own addresses.
  @Suite(
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.baresip != nil && TranslatedNetwork.missing == nil),
      "\(TranslatedNetwork.missing ?? "no baresip: run Scripts/install test")"), .serialized)
  struct TranslationTests {
    /// Ports of the gateway in its own network; none of the test's is in the way.
    private static let (sip, tls, app, admin): (UInt16, UInt16, UInt16, UInt16) = (5060, 5061, 8443, 9090)

    private struct Site {
      var network: TranslatedNetwork
      var gateway: GatewayUnderTest
      var certificates: [String]

      func close() async throws {
        try await gateway.finish()
        for folder in certificates { try FileManager.default.removeItem(atPath: folder) }
      }
    }

    /// `isPublished`: as in a container, else 1:1.
    private func site(isPublished: Bool, trunk: String = "", uri: String? = nil) async throws -> Site {
      let certificate = try await OpenSSL.certificate("gateway.example", alternatives: "IP:\(TranslatedNetwork.outside)")
      try FileManager.default.copyItem(atPath: certificate + "/sip.pem", toPath: certificate + "/both.pem")
      let both = try String(contentsOfFile: certificate + "/sip.pem", encoding: .utf8) + String(contentsOfFile: certificate + "/sip.key", encoding: .utf8)
      try both.write(toFile: certificate + "/both.pem", atomically: true, encoding: .utf8)
      try (TranslatedNetwork.token + "\n").write(toFile: certificate + "/admin.token", atomically: true, encoding: .utf8)
      let carrier = try FreePorts.both()
      let kind: TranslatedNetwork.Kind =
        isPublished ? .publishedPorts([Self.sip...Self.tls, Self.app...Self.app, Self.admin...Self.admin, 20_000...40_001]) : .oneToOne
      let network = try await TranslatedNetwork(kind)
      let own = TranslatedNetwork.gateway
      let files = "cert: \(certificate)/sip.pem, key: \(certificate)/sip.key"
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: { address: 0.0.0.0:\(Self.sip), advertise: \(TranslatedNetwork.outside) }, tcp: { address: \(own):\(Self.sip), advertise: \(TranslatedNetwork.outside) }, tls: { address: \(own):\(Self.tls), advertise: \(TranslatedNetwork.outside), \(files) } }, app: { address: 0.0.0.0:\(Self.app), tls: { \(files) } }, admin: { address: 0.0.0.0:\(Self.admin), token_file: \(certificate)/admin.token } }",
          "media: { addresses: [ { bind: auto, advertise: \(TranslatedNetwork.outside) } ] }",
          "trunks: [ { name: carrier, uri: \"\(uri ?? "sip:\(TranslatedNetwork.world):\(carrier)")\"\(trunk.isEmpty ? "" : ", " + trunk.replacing("FOLDER", with: certificate)) } ]",
        ], ports: (Self.sip, Self.app, Self.admin), carrier: carrier, network: network)
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      return Site(network: network, gateway: gateway, certificates: [certificate])
    }

    private func url(_ gateway: GatewayUnderTest) -> String { "wss://\(gateway.host):\(gateway.app)/v1/connect" }

    @Test(arguments: [false, true]) func `baresip calls an app on aiortc, both hear each other, and baresip ends it`(
      isPublished: Bool
    ) async throws {
      let site = try await site(isPublished: isPublished)
      let gateway = site.gateway
      #expect(gateway.process.text.contains("peers see"))
      try await expectGoodAudio {
        let token = try await gateway.token("alice", "phone")
        let phone = try Peers.python(
          "phone", "app_phone.py",
          ["--url", url(gateway), "--insecure", "--token", token, "--device", "phone", "--host", TranslatedNetwork.world,
            "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"], gateway)
        _ = try await phone.event("welcome", within: 15)
        let carrier = try Baresip(
          gateway, user: "+15557770001", codec: "PCMU", host: TranslatedNetwork.world,
          ["-e", "/dial sip:+15551230001@\(gateway.host):\(Self.sip)"])
        try await carrier.expectReady()
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(carrier.text)\n\(gateway.process.text.suffix(3_000))")
        try await carrier.quit()
        return try Speech.faults("baresip → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → baresip", said: Speech.app, heardIn: try carrier.heard())
      }
      #expect(gateway.endReasons.last == "remoteHangup")
      try await site.close()
    }
  }
}
