import Foundation
import Testing

extension Interop {
  /// pion, the WebRTC stack of many servers in Go, as the app. It answers our ICE-lite offer with `setup:passive`, so that the
  /// gateway is the DTLS client; by option it is the client itself, as browsers are. It is a foreign program.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Pion.isInstalled && Sofia.isInstalled),
      "no pion, no Go or no Sofia-SIP: run Scripts/install test"),
    .serialized)
  struct PionTests {
    /// The DTLS role that its answer states.
    enum Role: String, CaseIterable {
      case passive, active
      var arguments: [String] { self == .active ? ["--active"] : [] }
    }

    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
    /// Seconds of both sides' speech, and a second more.
    private static let talk = Double(Baresip.short.count) / 8_000 + 1

    private func gateway(_ more: [String] = [], telephone: [Int16] = Baresip.short, app: [Int16] = Self.said) async throws
      -> GatewayUnderTest
    {
      let gateway = try await GatewayUnderTest(more)
      try Speech.write(telephone, gateway.folder + "/telephone.wav")
      try Speech.write(app, gateway.folder + "/app.wav")
      return gateway
    }

    private func faults(
      _ gateway: GatewayUnderTest, number: String = "", telephone: [Int16] = Baresip.short, app: [Int16] = Self.said
    ) throws -> [String] {
      try Speech.faults(
        "telephone → pion", said: telephone, heardIn: gateway.folder + "/app-heard\(number).wav", clippedAtMost: 100)
        + Speech.faults(
          "pion → telephone", said: app, heardIn: gateway.folder + "/trunk-heard\(number).wav", clippedAtMost: 100)
    }

    /// Expects what each side's description stated in a generation.
    private func expectSetup(_ pion: Spawned, _ generation: Int, own: String, gateway: String) async throws {
      let setup = try await pion.event("setup") { $0["gen"] as? Int == generation }
      #expect(setup["own"] as? String == own && setup["gateway"] as? String == gateway, "\(setup)")
    }

    @Test(.tags(.audio), arguments: Role.allCases) func `pion answers a call and both hear each other`(role: Role) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let pion = try await Pion.phone(
          gateway, role.arguments + ["--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let trunk = try await Peers.trunk(
          gateway,
          ["--call", "+15551230001", "--talk", "\(Self.talk)", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(pion.text)")
        #expect(try await pion.finish(within: 10) == 0, "\(pion.text)")
        try await expectSetup(pion, 1, own: role.rawValue, gateway: "actpass")
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "remoteHangup")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `pion answers with its description in call.answer, and both hear each other`() async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let pion = try await Pion.phone(
          gateway,
          ["--no-prepare", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let trunk = try await Peers.trunk(
          gateway,
          ["--call", "+15551230001", "--talk", "\(Self.talk)", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(pion.text)")
        #expect(try await pion.finish(within: 10) == 0, "\(pion.text)")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `pion calls a number and both hear each other`() async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let trunk = try await Peers.trunk(
          gateway, ["--calls", "1", "--answer-after", "0.3", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let pion = try await Pion.phone(
          gateway,
          [
            "--call", "+15559990001", "--end-after", "\(Self.talk)", "--calls", "1", "--play", "app.wav", "--record",
            "app-heard.wav",
          ])
        #expect(try await pion.finish(within: 30) == 0, "\(pion.text)\n\(trunk.text)")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        try await expectSetup(pion, 1, own: "actpass", gateway: "passive")
        let record = try #require(try await gateway.records(1).first)
        #expect(record["direction"] as? String == "out")
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `pion answers a second call after the first, with another DTLS association`() async throws {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let pion = try await Pion.phone(
          gateway, ["--answer-after", "0.2", "--calls", "2", "--play", "app.wav", "--record", "app-heard%d.wav"])
        for number in ["1", "2"] {
          let trunk = try await Peers.trunk(
            gateway,
            [
              "--call", "+15551230001", "--talk", "\(Self.talk)", "--play", "telephone.wav", "--record",
              "trunk-heard\(number).wav",
            ])
          #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(pion.text)")
        }
        #expect(try await pion.finish(within: 10) == 0, "\(pion.text)")
        _ = try await gateway.records(2)
        let faults = try faults(gateway, number: "1") + faults(gateway, number: "2")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `Sofia-SIP holds and resumes pion, and digits go both ways, pion's as messages and in its RTP`() async throws {
      let carrier = try FreePorts.both()
      let gateway = try await GatewayUnderTest(
        ["trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(carrier)\" } ]"], carrier: carrier)
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      let pion = try await Pion.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let sofia = try await Sofia.phone(
        gateway,
        [
          "--port", "\(gateway.carrier)", "--media", "\(try FreePorts.row(2))", "--call",
          "sip:+15551230001@127.0.0.1:\(gateway.sip)", "--do", "hold@1.8 resume@2.6 digits:42#@3.6",
        ])
      _ = try await pion.event("call.connected", within: 20)
      pion.type("dtmf 19*")
      for digit in ["1", "9", "*"] { _ = try await sofia.event("digit") { $0["digit"] as? String == digit } }
      _ = try await pion.event("call.held", within: 20) { $0["on"] as? Bool == true }
      _ = try await pion.event("call.held") { $0["on"] as? Bool == false }
      for digit in ["4", "2", "#"] { _ = try await pion.event("call.digit") { $0["digit"] as? String == digit } }
      pion.type("tone 57")
      for digit in ["5", "7"] { _ = try await sofia.event("digit") { $0["digit"] as? String == digit } }
      pion.type("end")
      #expect(try await pion.finish(within: 15) == 0, "\(pion.text)\n\(sofia.text)")
      #expect(try await sofia.finish(within: 10) == 0, "\(sofia.text)")
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Any])
      #expect(times["heldByTrunk"] != nil && times["resumedByTrunk"] != nil, "\(times)")
      try await gateway.finish()
    }

    /// The role stays: the gateway answers the restart's `actpass` with its current role, and there is no new handshake.
    @Test(.tags(.audio), arguments: Role.allCases)
    func `pion restarts ICE in a call that it answered, and both continue to hear each other`(role: Role) async throws {
      // What pion sends and receives while it has no pair is lost, or held back by pion.
      try await expectGoodAudio(loses: true) {
        let (telephone, app) = (Speech.fromFirstWord(Speech.telephone), Speech.fromFirstWord(Speech.app))
        let gateway = try await gateway(telephone: telephone, app: app)
        let pion = try await Pion.phone(
          gateway, role.arguments + ["--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let trunk = try await Peers.trunk(
          gateway,
          [
            "--call", "+15551230001", "--talk", "\(Double(app.count) / 8_000 + 1)", "--play", "telephone.wav", "--record",
            "trunk-heard.wav",
          ])
        try await restart(pion, gatewayIs: role == .passive ? "active" : "passive")
        #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(pion.text)")
        #expect(try await pion.finish(within: 10) == 0, "\(pion.text)")
        #expect(trunk.fields("digits", of: "ended") == ["5"], "heard over the new pair\n\(trunk.text)")
        let faults = try faults(gateway, telephone: telephone, app: app)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio)) func `pion restarts ICE in a call that it made, and both continue to hear each other`() async throws {
      try await expectGoodAudio(loses: true) {
        let (telephone, app) = (Speech.fromFirstWord(Speech.telephone), Speech.fromFirstWord(Speech.app))
        let gateway = try await gateway(telephone: telephone, app: app)
        let trunk = try await Peers.trunk(
          gateway, ["--calls", "1", "--answer-after", "0.3", "--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let pion = try await Pion.phone(
          gateway,
          [
            "--call", "+15559990001", "--end-after", "\(Double(app.count) / 8_000 + 1)", "--calls", "1", "--play", "app.wav",
            "--record", "app-heard.wav",
          ])
        try await restart(pion, gatewayIs: "passive")
        #expect(try await pion.finish(within: 30) == 0, "\(pion.text)\n\(trunk.text)")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        #expect(trunk.fields("digits", of: "ended") == ["5"], "heard over the new pair\n\(trunk.text)")
        let faults = try faults(gateway, telephone: telephone, app: app)
        try await gateway.finish()
        return faults
      }
    }

    /// Restarts ICE twice in the middle of the speech, and sends a digit in the RTP of the last generation.
    private func restart(_ pion: Spawned, gatewayIs role: String) async throws {
      _ = try await pion.event("first_sound", within: 20) { $0["gen"] as? Int == 1 }
      for generation in [2, 3] {
        pion.type("restart")
        let restarted = try await pion.event("restarted") { $0["gen"] as? Int == generation }
        #expect(restarted["ok"] as? Bool == true, "\(restarted)")
        try await expectSetup(pion, generation, own: "actpass", gateway: role)
        _ = try await pion.event("ready") { $0["gen"] as? Int == generation }
        _ = try await pion.event("first_sound") { $0["gen"] as? Int == generation }
      }
      pion.type("tone 5")
    }
  }
}

/// The app of peers/pion_phone.go, built in the folder of the gateway that it logs in to.
enum Pion {
  private static let code = "/usr/share/gocode/src/github.com"
  static let isInstalled =
    Surroundings.program("go") != nil
    && ["/pion/webrtc/peerconnection.go", "/gorilla/websocket/client.go"].allSatisfy {
      FileManager.default.fileExists(atPath: code + $0)
    }

  /// Starts the app; returns when it is online.
  static func phone(_ gateway: GatewayUnderTest, user: String = "alice", device: String = "pion", _ arguments: [String])
    async throws -> Spawned
  {
    try await build(gateway)
    let token = try await gateway.token(user, device)
    let phone = try Spawned(
      "pion-\(device)", gateway.folder + "/pion_phone",
      ["--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token", token, "--device", device, "--seconds", "60"] + arguments,
      in: gateway.folder)
    _ = try await phone.event("welcome", within: 15)
    return phone
  }

  /// Debian's packages are where a GOPATH has them; three of them lack the version that their imports have. What Scripts/install
  /// has compiled is found by the same paths.
  static func build(_ gateway: GatewayUnderTest) async throws {
    guard !FileManager.default.fileExists(atPath: gateway.folder + "/pion_phone") else { return }
    let path = Surroundings.package + "/.build/gopath"
    for (name, version) in ["webrtc": "v3", "sdp": "v3", "transport": "v2"] {
      let folder = path + "/src/github.com/pion/" + name
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      if (try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + version)) == nil {
        try FileManager.default.createSymbolicLink(atPath: folder + "/" + version, withDestinationPath: code + "/pion/" + name)
      }
    }
    let made = try Spawned(
      "go", Surroundings.program("go") ?? "go", ["build", "-o", "pion_phone", Surroundings.sources + "/peers/pion_phone.go"],
      in: gateway.folder,
      environment: [
        "GO111MODULE": "off", "GOFLAGS": "", "GOPATH": path + ":/usr/share/gocode",
        "GOCACHE": Surroundings.package + "/.build/go",
      ])
    guard try await made.finish(within: 240) == 0 else { throw Spawned.Failure(description: made.text) }
  }
}
