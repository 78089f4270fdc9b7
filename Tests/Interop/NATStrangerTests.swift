import Foundation
import Testing

extension Interop {
  /// Telephones behind an address translator without SIP support, and the gateway in the world outside: their Contact and their
  /// SDP have addresses that no process here reaches. Nothing is configured for them but `rtp_source: symmetric`;
  /// `rewrite_contact` is `auto`.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Sofia.isInstalled && TranslatedNetwork.missing == nil),
      "\(TranslatedNetwork.missing ?? "no Sofia-SIP: run Scripts/install test")"), .serialized)
  struct NATStrangerTests {
    enum Stranger: String, CaseIterable { case sofia, pjsip }
    enum Way: String, CaseIterable { case udp, tcp }

    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    private struct Site {
      var network: TranslatedNetwork
      var gateway: GatewayUnderTest

      /// The gateway ends before its network.
      func close() async throws {
        try await gateway.finish()
        withExtendedLifetime(network) {}
      }
    }

    /// The router admits replies only. No process listens on the published port.
    private func site() async throws -> Site {
      let network = try await TranslatedNetwork(.publishedPorts([1...1]))
      let (sip, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp())
      let world = TranslatedNetwork.world
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: \(world):\(sip), tcp: \(world):\(sip) }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
          "trunks: [ { name: carrier, peers: [\(TranslatedNetwork.outside)], rtp_source: symmetric } ]",
          "routes: { inbound: [ { trunk: carrier, to: users } ] }",
        ], media: "[ \(world), 127.0.0.1 ]", ports: (sip, app, admin))
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      return Site(network: network, gateway: gateway)
    }

    /// The telephone in the inner network, which calls the user's number until it receives a BYE.
    private func call(_ stranger: Stranger, _ way: Way, _ site: Site) async throws -> Spawned {
      let arguments = [
        "--address", TranslatedNetwork.gateway, "--port", "5070", "--media", "30000", "--transport", way.rawValue, "--call",
        "sip:+15551230001@\(TranslatedNetwork.world):\(site.gateway.sip)", "--play", "telephone.wav", "--record", "heard.wav",
      ]
      if stranger == .sofia { return try await Sofia.phone(site.gateway, in: site.network.inside, arguments) }
      let python = try #require(Surroundings.python)
      let script = Surroundings.sources + "/peers/pjsip_phone.py"
      return try Spawned(
        "pjsip", "/sbin/ip", ["netns", "exec", site.network.inside, python, "-B", script] + arguments, in: site.gateway.folder)
    }

    @Test(arguments: Stranger.allCases, Way.allCases)
    func `a telephone behind NAT calls the app, both hear each other, and our BYE reaches it`(stranger: Stranger, way: Way)
      async throws
    {
      try await expectGoodAudio {
        let site = try await site()
        let gateway = site.gateway
        let phone = try await Peers.ownPhone(
          gateway,
          ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "5"])
        let telephone = try await call(stranger, way, site)
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(telephone.text)")
        // the telephone never hangs up by itself
        _ = try await telephone.event("over") { $0["call"] as? Int == 1 }
        #expect(try await telephone.finish(within: 10) == 0, "\(telephone.text)")
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "localEnd" && end["sip"] as? Int == 200, "\(end)")
        let faults =
          try Speech.faults(
            "\(stranger) → app", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100)
          + Speech.faults("app → \(stranger)", said: Self.said, heardIn: gateway.folder + "/heard.wav", clippedAtMost: 100)
        try await site.close()
        return faults
      }
    }
  }
}
