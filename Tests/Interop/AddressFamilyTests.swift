import Foundation
import Testing

extension Interop {
  /// Trunks by IPv6, and by the weights of their SRV records.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct AddressFamilyTests {
    @Test(.tags(.audio)) func `a trunk over ::1 calls the app on 127.0.0.1, and both hear each other`() async throws {
      try await expectGoodAudio {
        let (sip, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp())
        let carrier = try FreePorts.both()
        let gateway = try await GatewayUnderTest(
          [
            "listen: { sip: { udp: [ 127.0.0.1:\(sip), \"[::1]:\(sip)\" ], tcp: \"[::1]:\(sip)\" }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
            "trunks: [ { name: carrier, peers: [ \"::1/128\" ], uri: \"sip:[::1]:\(carrier)\" } ]",
          ], media: "[ 127.0.0.1, \"::1\" ]", ports: (sip, app, admin), carrier: carrier)
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let phone = try await Peers.ownPhone(
          gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let trunk = try Spawned(
          "trunk6", Surroundings.lab,
          [
            "trunk", "--gateway", "[::1]:\(sip)", "--listen", "[::1]:\(carrier)", "--events", "--call", "+15551230001", "--calls",
            "1", "--talk",
            "9", "--record", "trunk-heard.wav",
          ], in: gateway.folder)
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(trunk.text)")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
        #expect(try await gateway.records(1).first?["direction"] as? String == "in")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `servers of one SRV priority get calls by their weights, and the lower priority none`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (dns, heavy, light, last) = (try FreePorts.udp(), try FreePorts.both(), try FreePorts.both(), try FreePorts.both())
      let server = try await NameServer(
        [
          "carrier.example": ["60 NAPTR 10 10 \"s\" \"SIP+D2U\" \"\" _sip._udp.carrier.example."],
          "_sip._udp.carrier.example": [
            "60 SRV 10 95 \(heavy) a.example.", "60 SRV 10 5 \(light) a.example.", "60 SRV 20 1000 \(last) a.example.",
          ], "a.example": ["60 A 127.0.0.1"],
        ], port: dns, in: folder)
      let gateway = try await GatewayUnderTest([
        "dns: { servers: [ \"127.0.0.1:\(dns)\" ] }",
        "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:carrier.example\" } ]",
      ])
      let carriers = try [heavy, light, last].map { port in
        try Spawned(
          "trunk-\(port)", Surroundings.lab,
          ["trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(port)", "--events", "--refuse", "486"],
          in: gateway.folder)
      }
      for carrier in carriers { _ = try await carrier.event("listening") }
      for number in 0..<10 {
        let phone = try await Peers.ownPhone(gateway, device: "d\(number)", ["--call", "+15559990001", "--calls", "1"])
        _ = try await phone.finish(within: 15)
      }
      #expect(try await gateway.records(10).allSatisfy { ($0["end"] as? [String: Any])?["reason"] as? String == "busy" })
      // 7 of 10 or more with a chance of 0.95 each: wrong once in 1,000 runs
      let counts = carriers.map { $0.events.count { $0["event"] as? String == "invited" } }
      #expect(counts[0] >= 7 && counts[0] + counts[1] == 10 && counts[2] == 0, "\(counts)\n\(carriers[0].text)")
      for carrier in carriers { carrier.signal(SIGTERM) }
      try await gateway.finish()
      withExtendedLifetime(server) {}
    }
  }
}
