import Foundation
import SpeechScore
import Testing

extension Interop {
  /// Asterisk as the carrier, one process for all calls.
  @Suite(
    .enabled(if: Surroundings.missing == nil && Asterisk.missing == nil, "\(Asterisk.missing ?? Surroundings.missing ?? "")"),
    .serialized)
  struct AsteriskTests {
    private static let endpoints: [Asterisk.Endpoint] = [
      .init(name: "ulaw", address: "127.0.0.2", codecs: "ulaw", more: ["dtmf_mode=rfc4733"]),
      .init(name: "alaw", address: "127.0.0.3", codecs: "alaw", more: ["dtmf_mode=info", "outbound_auth=alaw"]),
      .init(name: "g722", address: "127.0.0.4", codecs: "g722"), .init(name: "opus", address: "127.0.0.5", codecs: "opus"),
      .init(name: "reg", address: "127.0.0.6", codecs: "ulaw", more: ["dtmf_mode=inband"], hasPassword: true),
      .init(name: "secure", address: "127.0.0.7", codecs: "ulaw", more: ["media_encryption=sdes"], isTLS: true),
      .init(name: "near", address: "127.0.0.8", codecs: "ulaw", more: ["dtmf_mode=rfc4733"], sendsMediaDirectly: true),
      .init(name: "far", address: "127.0.0.9", codecs: "ulaw", more: ["dtmf_mode=rfc4733"], sendsMediaDirectly: true),
    ]

    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    private struct Site {
      var gateway: GatewayUnderTest
      var asterisk: Asterisk
      var certificate: String
    }

    private func site() async throws -> Site {
      let certificate = try await OpenSSL.certificate("asterisk.example", alternatives: "IP:127.0.0.7")
      let ports = (sip: try FreePorts.both(), app: try FreePorts.tcp(), admin: try FreePorts.tcp())
      let (port, tls) = (try FreePorts.both(), try FreePorts.tcp())
      let codecs = ["ulaw": "PCMU", "alaw": "PCMA", "g722": "G722", "opus": "opus", "reg": "PCMU"]
      let trunks = Self.endpoints.map { endpoint in
        var keys = [
          "name: \(endpoint.name)", "from: { user: \(endpoint.name) }", "codecs: [ \(codecs[endpoint.name] ?? "PCMU") ]",
          "transfers: true",
        ]
        keys.append("uri: \"sip:\(endpoint.address):\(port)\(endpoint.isTLS ? ";transport=tls" : "")\"")
        if endpoint.name == "opus" { keys.append("profile: asterisk") }
        if endpoint.name == "alaw" {
          keys += ["dtmf: info", "peer_auth: { username: alaw, password_file: password }"]
        }
        if endpoint.sendsMediaDirectly { keys.append("hold: signal") }
        if endpoint.name == "reg" { keys += ["dtmf: inband", "called: p_called_party_id"] }
        if endpoint.hasPassword {
          keys.append("auth: { username: \(endpoint.name), password_file: password }, register: { expires: 60s }")
        }
        if endpoint.isTLS { keys.append("srtp: required, tls: { ca: \(certificate)/sip.pem }") }
        return "{ \(keys.joined(separator: ", ")) }"
      }
      let inbound = Self.endpoints.map { "{ trunk: \($0.name), to: users }" }
      // the last digit but one of a number says which trunk it takes
      let outbound = Self.endpoints.enumerated().flatMap { index, endpoint in
        ["+155599900\(index)", "+155588800\(index)"].map { "{ prefix: \"\($0)\", trunk: \(endpoint.name) }" }
      }
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 0.0.0.0:\(ports.sip), tls: { address: 0.0.0.0:\(tls), cert: \(certificate)/sip.pem, key: \(certificate)/sip.key } }, app: { address: 127.0.0.1:\(ports.app) }, admin: 127.0.0.1:\(ports.admin) }",
          "trunks: [ \(trunks.joined(separator: ", ")) ]",
          "routes: { inbound: [ \(inbound.joined(separator: ", ")) ], outbound: [ \(outbound.joined(separator: ", ")), { prefix: \"+155599909\", trunk: ulaw }, { prefix: \"+1555777\", trunk: near } ] }",
        ], ports: ports)
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      let asterisk = try await Asterisk(Self.endpoints, gateway: gateway, port: port, tls: (tls, certificate))
      return Site(gateway: gateway, asterisk: asterisk, certificate: certificate)
    }

    private func close(_ site: Site) async throws {
      try await site.gateway.finish()
      try await site.asterisk.stop()
      try FileManager.default.removeItem(atPath: site.certificate)
    }

    @Test(.tags(.audio)) func `an app calls Asterisk with each codec, by digest and by TLS with SRTP: both hear each other`()
      async throws
    {
      let site = try await site()
      for (index, endpoint) in Self.endpoints.enumerated() where !endpoint.sendsMediaDirectly {
        try await expectGoodAudio {
          let number = "+155599900\(index)1"
          let phone = try await Peers.ownPhone(
            site.gateway, ["--call", number, "--play", "app.wav", "--record", "app-heard.wav"])
          #expect(
            try await phone.finish(within: 40) == 0,
            "\(endpoint.name): \(phone.text)\n\(site.asterisk.log.suffix(2_000))\n\(site.gateway.process.text.suffix(6_000))")
          return try Speech.faults(
            "Asterisk → app, \(endpoint.name)", said: Baresip.short, heardIn: site.gateway.folder + "/app-heard.wav")
            + Speech.faults("app → Asterisk, \(endpoint.name)", said: Self.said, heardIn: site.asterisk.heard(number))
        }
        let record = try #require(site.gateway.records.last)
        #expect(
          record["trunk"] as? String == endpoint.name && (record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup"
        )
        #expect((record["trunkSrtp"] != nil) == endpoint.isTLS)
      }
      try await close(site)
    }

    @Test(.tags(.audio)) func `Asterisk calls an app with each codec, the registered contact among them: both hear each other`()
      async throws
    {
      let site = try await site()
      #expect(await eventually(within: 30) { try site.asterisk.said("pjsip show contacts").contains("reg/sip:reg@") })
      for (index, endpoint) in Self.endpoints.enumerated() where !endpoint.sendsMediaDirectly {
        let number = "+1555999001\(index)"
        try await expectGoodAudio {
          let phone = try await Peers.ownPhone(
            site.gateway, ["--answer", "--answer-after", "0.1", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
          // the carrier that we registered with puts our contact into the Request-URI, and the number elsewhere
          let leg = endpoint.hasPassword ? "Local/registered@calls" : "PJSIP/+15551230001@\(endpoint.name)"
          _ = try site.asterisk.said("channel originate \(leg) extension \(number)@calls")
          #expect(
            try await phone.finish(within: 40) == 0,
            "\(endpoint.name): \(phone.text)\n\(site.asterisk.log.suffix(3_000))\n\(site.gateway.process.text.suffix(6_000))")
          return try Speech.faults(
            "Asterisk → app, \(endpoint.name)", said: Baresip.short, heardIn: site.gateway.folder + "/app-heard.wav")
            + Speech.faults("app → Asterisk, \(endpoint.name)", said: Self.said, heardIn: site.asterisk.heard(number))
        }
        #expect(site.gateway.records.last?["trunk"] as? String == endpoint.name)
        #expect(site.gateway.records.last?["to"] as? String == "+15551230001")
      }
      try await close(site)
    }

    @Test func `digits go to Asterisk as telephone-event, by INFO and as tones`() async throws {
      let site = try await site()
      for (index, name) in [(0, "ulaw"), (1, "alaw"), (4, "reg")] {
        let phone = try await Peers.ownPhone(site.gateway, ["--call", "+155588800\(index)1", "--digits", "1259"])
        #expect(
          await eventually(within: 20) { site.asterisk.log.contains("got \(name) 1259") },
          "\(name): \(site.asterisk.log.suffix(1_500))")
        _ = try await phone.finish(within: 20)
      }
      try await close(site)
    }

    @Test(.tags(.audio)) func `digits come from Asterisk as telephone-event, by INFO and as tones`() async throws {
      let site = try await site()
      #expect(await eventually(within: 30) { try site.asterisk.said("pjsip show contacts").contains("reg/sip:reg@") })
      for (name, leg) in [
        ("ulaw", "PJSIP/+15551230001@ulaw"), ("alaw", "PJSIP/+15551230001@alaw"), ("reg", "Local/registered@calls"),
      ] {
        let phone = try await Peers.ownPhone(site.gateway, ["--answer", "--calls", "1", "--record", "app-heard.wav"])
        _ = try site.asterisk.said("channel originate \(leg) extension digits@calls")
        _ = try await phone.finish(within: 30)
        let tones = try Self.tones(Speech.read(site.gateway.folder + "/app-heard.wav"))
        let events = phone.fields("digits", of: "ended") + [phone.fields("digit", of: "digit").joined()]
        // tones are not taken out of the audio; telephone-events are played by the app, if it wants
        #expect(name == "reg" ? tones == "1259" : events.contains("1259"), "\(name): \(tones) \(events) \(phone.text)")
      }
      try await close(site)
    }

    /// The digits that are heard in a recording at 8 kHz: frames of 20 ms in which two tones of ITU-T Q.23 have most of the power.
    private static func tones(_ samples: [Int16]) -> String {
      let (rows, columns) = ([697.0, 770, 852, 941], [1209.0, 1336, 1477, 1633])
      func power(_ frame: ArraySlice<Int16>, _ hertz: Double) -> Double {
        let turn = 2 * Double.pi * hertz / 8_000
        let (re, im) = frame.enumerated().reduce((0.0, 0.0)) { sum, row in
          (
            sum.0 + Double(row.element) * cos(turn * Double(row.offset)),
            sum.1 + Double(row.element) * sin(turn * Double(row.offset))
          )
        }
        return 2 * (re * re + im * im) / Double(frame.count)
      }
      var (out, last, quiet) = ("", Character(" "), 0)
      for start in stride(from: 0, to: samples.count - 160, by: 160) {
        let frame = samples[start..<start + 160]
        let all = frame.reduce(0.0) { $0 + Double($1) * Double($1) }
        let (row, column) = (rows.map { power(frame, $0) }, columns.map { power(frame, $0) })
        guard all > 160e4, let (r, low) = row.enumerated().max(by: { $0.1 < $1.1 }),
          let (c, high) = column.enumerated().max(by: { $0.1 < $1.1 }), low + high > 0.8 * all, low > 0.1 * all, high > 0.1 * all
        else {
          quiet += 1
          if quiet == 3 { last = " " }  // a pause, and not a frame that was lost
          continue
        }
        let digit = Array("123A456B789C*0#D")[r * 4 + c]
        if digit != last { out.append(digit) }
        (last, quiet) = (digit, 0)
      }
      return out
    }

    /// Asterisk is between two apps: its legs are both the gateway's.
    @Test(.tags(.audio))
    func `Asterisk bridges two apps and sends media directly: both hear each other, and a hold goes through it`()
      async throws
    {
      let site = try await site()
      try await expectGoodAudio {
        let bob = try await Peers.ownPhone(
          site.gateway, user: "bob", device: "far",
          ["--answer", "--calls", "1", "--play", "app.wav", "--record", "bob-heard.wav"])
        let alice = try await Peers.ownPhone(
          site.gateway, ["--call", "+15557771002", "--talk", "8", "--play", "app.wav", "--record", "alice-heard.wav"])
        #expect(try await alice.finish(within: 40) == 0, "\(alice.text)\n\(site.asterisk.log.suffix(3_000))")
        #expect(try await bob.finish(within: 10) == 0, "\(bob.text)")
        return try Speech.faults("alice → bob", said: Self.said, heardIn: site.gateway.folder + "/bob-heard.wav")
          + Speech.faults("bob → alice", said: Self.said, heardIn: site.gateway.folder + "/alice-heard.wav")
      }
      #expect(site.asterisk.log.contains("Remotely bridged"), "\(site.asterisk.log.suffix(3_000))")

      let bob = try await Peers.ownPhone(site.gateway, user: "bob", device: "far", ["--answer", "--calls", "1"])
      let alice = try await Peers.phone(site.gateway, ["--call", "+15557771002", "--calls", "1"])
      _ = try await alice.event("call.connected")
      func marks(_ stage: String, _ direction: String) throws -> Bool {
        let calls =
          try JSONSerialization.jsonObject(with: Data(site.gateway.get("/v1/calls").body.utf8)) as? [String: [[String: Any]]]
        return calls?["calls"]?.contains {
          $0["direction"] as? String == direction && ($0["times"] as? [String: Int])?[stage] != nil
        } == true
      }
      alice.type("hold")
      #expect(
        await eventually(within: 10) { try marks("heldByApp", "out") && marks("heldByTrunk", "in") },
        "\(site.asterisk.log.suffix(3_000))")
      alice.type("resume")
      #expect(await eventually(within: 10) { try marks("resumedByApp", "out") && marks("resumedByTrunk", "in") })
      alice.type("end")
      _ = try await alice.finish(within: 10)
      #expect(try await bob.finish(within: 10) == 0, "\(bob.text)")
      try await close(site)
    }

    @Test(.tags(.audio)) func `an app transfers its call by REFER: Asterisk connects the other with whom it names`() async throws
    {
      let site = try await site()
      let bob = try await Peers.ownPhone(
        site.gateway, user: "bob", device: "far", ["--answer", "--calls", "1", "--record", "bob-heard.wav"])
      let alice = try await Peers.phone(site.gateway, ["--call", "+15557771002", "--calls", "1"])
      _ = try await bob.event("connected")
      _ = try await alice.event("call.connected")
      alice.type("transfer +15559990901")
      _ = try await alice.event("call.ended")
      _ = try await alice.finish(within: 10)
      #expect(try await bob.finish(within: 30) == 0, "\(bob.text)\n\(site.asterisk.log.suffix(3_000))")
      let faults = try Speech.faults(
        "the new leg → bob", said: Baresip.short, heardIn: site.gateway.folder + "/bob-heard.wav", clippedAtMost: 200,
        delayWithin: -2_000...8_000)
      #expect(faults.isEmpty, "\(faults)")
      let record = try #require(try await site.gateway.records(2).first { $0["direction"] as? String == "out" })
      let transfer = try #require((record["transfers"] as? [[String: Any]])?.first)
      #expect(transfer["number"] as? String == "+15559990901" && transfer["by"] as? String == "app", "\(record)")
      try await close(site)
    }

    @Test(.tags(.audio)) func `Asterisk transfers a call by REFER: the app talks to whom it names`() async throws {
      let site = try await site()
      let phone = try await Peers.ownPhone(
        site.gateway, ["--answer", "--answer-after", "0.1", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
      _ = try site.asterisk.said("channel originate PJSIP/+15551230001@ulaw extension transfer@calls")
      #expect(
        try await phone.finish(within: 40) == 0,
        "\(phone.text)\n\(site.asterisk.log.suffix(3_000))\n\(site.gateway.process.text.suffix(6_000))")
      let record = try #require(try await site.gateway.records(1).first)
      let transfer = try #require((record["transfers"] as? [[String: Any]])?.first)
      #expect(
        transfer["number"] as? String == "+15559990901" && transfer["by"] as? String == "trunk" && transfer["sip"] as? Int == 200)
      let faults = try Speech.faults(
        "the new leg → app", said: Baresip.short, heardIn: site.gateway.folder + "/app-heard.wav", clippedAtMost: 200,
        delayWithin: -2_000...2_000)
      #expect(faults.isEmpty, "\(faults)")
      try await close(site)
    }
  }
}
