import Foundation
import SpeechScore
import Testing

extension Interop {
  /// A gateway behind an address translator, its carrier and its apps in the world outside: no peer there reaches its own
  /// addresses.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.baresip != nil && TranslatedNetwork.missing == nil),
      "\(TranslatedNetwork.missing ?? "no baresip: run Scripts/install test")"), .serialized)
  struct TranslationTests {
    /// Ports of the gateway in its own network; none of the test's is in the way.
    private static let (sip, tls, app, admin): (UInt16, UInt16, UInt16, UInt16) = (5060, 5061, 8443, 7060)

    enum Translation: CaseIterable { case oneToOne, publishedPorts, rewritten }

    private struct Site {
      var network: TranslatedNetwork
      var gateway: GatewayUnderTest
      /// The path of a folder.
      var certificate: String

      func close() async throws {
        try await gateway.finish()
        try FileManager.default.removeItem(atPath: certificate)
      }
    }

    /// Where the translator rewrites SIP, the gateway states its own address.
    private func site(_ translation: Translation, trunk: String = "", uri: String? = nil, carrier: UInt16? = nil) async throws
      -> Site
    {
      let certificate = try await OpenSSL.certificate("gateway.example", alternatives: "IP:\(TranslatedNetwork.outside)")
      let both =
        try String(contentsOfFile: certificate + "/sip.pem", encoding: .utf8)
        + String(contentsOfFile: certificate + "/sip.key", encoding: .utf8)
      try both.write(toFile: certificate + "/both.pem", atomically: true, encoding: .utf8)
      try (TranslatedNetwork.token + "\n").write(toFile: certificate + "/admin.token", atomically: true, encoding: .utf8)
      let carrier = try carrier ?? FreePorts.both()
      let published = [Self.sip...Self.tls, Self.app...Self.app, Self.admin...Self.admin, 20_000...40_001]
      let kind: TranslatedNetwork.Kind =
        switch translation {
        case .oneToOne: .oneToOne
        case .publishedPorts: .publishedPorts(published)
        case .rewritten: .rewritten(published, signalling: [Self.sip, carrier])
        }
      let advertise = translation == .rewritten ? "" : ", advertise: \(TranslatedNetwork.outside)"
      let network = try await TranslatedNetwork(kind)
      let own = TranslatedNetwork.gateway
      let files = "cert: \(certificate)/sip.pem, key: \(certificate)/sip.key"
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: { address: 0.0.0.0:\(Self.sip)\(advertise) }, tcp: { address: \(own):\(Self.sip), advertise: \(TranslatedNetwork.outside) }, tls: { address: \(own):\(Self.tls), advertise: \(TranslatedNetwork.outside), \(files) } }, app: { address: 0.0.0.0:\(Self.app), tls: { \(files) } }, admin: { address: 0.0.0.0:\(Self.admin), token_file: \(certificate)/admin.token } }",
          "media: { addresses: [ { bind: auto, advertise: \(TranslatedNetwork.outside) } ] }",
          "routes: { inbound: [ { trunk: carrier, to: users }, { trunk: pbx, to: users } ], outbound: [ { prefix: \"+\", trunk: carrier } ] }",
          "trunks: [ { name: pbx, peers: \(TranslatedNetwork.pbx) }, { name: carrier, uri: \"\(uri ?? "sip:\(TranslatedNetwork.world):\(carrier)")\"\(trunk.isEmpty ? "" : ", " + trunk.replacing("FOLDER", with: certificate)) } ]",
        ], ports: (Self.sip, Self.app, Self.admin), carrier: carrier, network: network)
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      return Site(network: network, gateway: gateway, certificate: certificate)
    }

    /// aiortc in the world outside.
    private func phone(_ gateway: GatewayUnderTest, _ more: [String]) async throws -> Spawned {
      let phone = try Peers.python(
        "phone", "app_phone.py",
        [
          "--url", "wss://\(gateway.host):\(gateway.app)/v1/connect", "--insecure", "--token",
          try await gateway.token("alice", "phone"),
          "--device", "phone", "--host", TranslatedNetwork.world, "--calls", "1", "--play", "app.wav", "--record",
          "app-heard.wav",
        ] + more, gateway)
      _ = try await phone.event("welcome", within: 15)
      return phone
    }

    @Test(arguments: Translation.allCases) func `baresip calls an app on aiortc, both hear each other, and baresip ends it`(
      translation: Translation
    ) async throws {
      let site = try await site(translation)
      let gateway = site.gateway
      #expect(gateway.process.text.contains("peers see"))
      try await expectGoodAudio {
        let phone = try await phone(gateway, ["--answer-after", "0.2"])
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

    @Test(arguments: Translation.allCases) func `an app calls baresip, holds, resumes and ends it; over TLS the trunk is SRTP`(
      translation: Translation
    ) async throws {
      let carrierPort = try FreePorts.both()
      let isTLS = translation == .oneToOne
      let uri = "sip:\(TranslatedNetwork.world):\(isTLS ? carrierPort + 1 : carrierPort)" + (isTLS ? ";transport=tls" : "")
      let protection = isTLS ? ", tls: { verify: false }, srtp: required" : ""
      let site = try await site(translation, trunk: "hold: signal" + protection, uri: uri, carrier: carrierPort)
      let gateway = site.gateway
      let carrier = try Baresip(
        gateway, user: "+15559990001", codec: "PCMU", certificate: isTLS ? site.certificate + "/both.pem" : nil,
        host: TranslatedNetwork.world, ["-v"])
      try await carrier.expectReady()
      let phone = try await phone(gateway, ["--call", "+15559990001"])
      _ = try await phone.event("call.connected")
      for (count, word) in [(1, "hold"), (2, "resume")] {
        phone.type(word)
        let came = await eventually(within: 5) { carrier.text.components(separatedBy: "got re-INVITE").count == count + 1 }
        #expect(came, "\(word): \(carrier.text.suffix(3_000))")
      }
      phone.type("end")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(await eventually(within: 5) { carrier.text.contains("session closed") }, "\(carrier.text.suffix(6_000))")
      try await carrier.quit()
      let record = try #require(try await gateway.records(1).first)
      for direction in ["fromTrunk", "fromApp"] {
        #expect((record[direction] as? [String: Any])?["packets"] as? Int ?? 0 > 0, "\(direction): \(record)")
      }
      #expect(gateway.endReasons.last == "localEnd")
      try await site.close()
    }

    @Test(arguments: Translation.allCases)
    func `the registered contact is what the world reaches, and is registered again in time`(
      translation: Translation
    ) async throws {
      let site = try await site(
        translation, trunk: "auth: { username: u, password_file: password }, register: { expires: 10s }")
      let gateway = site.gateway
      let scenario = try String(contentsOfFile: Surroundings.sources + "/sipp/register.xml", encoding: .utf8)
        .replacing("expires=60", with: "expires=10")
      let file = gateway.folder + "/register_often.xml"
      try scenario.write(toFile: file, atomically: true, encoding: .utf8)
      let registrar = try await Peers.callee(
        gateway, file, host: TranslatedNetwork.world,
        ["-m", "2", "-deadcall_wait", "0", "-trace_msg", "-message_file", gateway.folder + "/messages.log"])
      #expect(try await registrar.finish(within: 30) == 0, "\(registrar.text.suffix(6_000))")
      let messages = try String(contentsOfFile: gateway.folder + "/messages.log", encoding: .utf8)
      let contacts = messages.split(separator: "\r\n").filter { $0.hasPrefix("Contact:") }
      // a router that rewrites SIP states its own port that leads in
      let contact = "<sip:u@\(TranslatedNetwork.outside):" + (translation == .rewritten ? "" : "\(Self.sip)>")
      #expect(contacts.count >= 4 && contacts.allSatisfy { $0.contains(contact) }, "\(contacts)")
      #expect(!messages.contains(TranslatedNetwork.gateway), "nothing names an address that is not reached")
      try await site.close()
    }

    @Test func `a PBX in the gateway's own network gets the address there, the carrier outside the public one`() async throws {
      let site = try await site(.oneToOne)
      let gateway = site.gateway
      #expect(gateway.process.text.contains("signalling=\(TranslatedNetwork.outside):5060 trunk=carrier"))
      #expect(
        gateway.process.text.contains("signalling=\(TranslatedNetwork.gateway):5060 trunk=pbx"),
        "\(gateway.process.text.suffix(6_000))")
      try await expectGoodAudio {
        let phone = try await phone(gateway, ["--answer-after", "0.2"])
        let pbx = try Baresip(
          gateway, user: "+15557770002", codec: "PCMU", host: TranslatedNetwork.pbx, in: site.network.router,
          ["-e", "/dial sip:+15551230001@\(TranslatedNetwork.gateway):\(Self.sip)"])
        try await pbx.expectReady()
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(pbx.text)\n\(gateway.process.text.suffix(3_000))")
        try await pbx.quit()
        return try Speech.faults("PBX → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → PBX", said: Speech.app, heardIn: try pbx.heard())
      }
      #expect(gateway.records.last?["trunk"] as? String == "pbx")
      try await site.close()
    }
  }
}
