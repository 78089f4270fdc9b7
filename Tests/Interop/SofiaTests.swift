import Foundation
import Testing

extension Interop {
  /// Sofia-SIP, the stack of FreeSWITCH, as the carrier's side: its NUA with its SOA, over UDP and over TCP. It is a foreign program.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Sofia.isInstalled),
      "no Sofia-SIP: run Scripts/install test"),
    .serialized)
  struct SofiaTests {
    enum Way: String, CaseIterable { case udp, tcp }

    private func gateway(_ way: Way) async throws -> GatewayUnderTest {
      let carrier = try FreePorts.both()
      let gateway = try await GatewayUnderTest(
        [
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], transfers: true, uri: \"sip:127.0.0.1:\(carrier);transport=\(way.rawValue)\" } ]"
        ], carrier: carrier)
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      try Speech.write(Array(Speech.fromFirstWord(Speech.app).prefix(20_000)), gateway.folder + "/app.wav")
      return gateway
    }

    /// `calls`: it calls the user's number; otherwise it waits to be called.
    private func sofia(_ gateway: GatewayUnderTest, _ way: Way, calls: Bool, _ arguments: [String]) async throws -> Spawned {
      try await Sofia.phone(
        gateway,
        ["--port", "\(gateway.carrier)", "--media", "\(try FreePorts.row(2))", "--transport", way.rawValue]
          + (calls ? ["--call", "sip:+15551230001@127.0.0.1:\(gateway.sip)"] : []) + arguments)
    }

    private func faults(_ gateway: GatewayUnderTest) throws -> [String] {
      let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
      return try Speech.faults(
        "Sofia-SIP → app", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100)
        + Speech.faults("app → Sofia-SIP", said: said, heardIn: gateway.folder + "/heard.wav", clippedAtMost: 100)
    }

    @Test(.tags(.audio), arguments: Way.allCases) func `Sofia-SIP calls the app and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway(way)
        let phone = try await Peers.ownPhone(
          gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let sofia = try await sofia(
          gateway, way, calls: true, ["--play", "telephone.wav", "--record", "heard.wav", "--do", "end@5"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(sofia.text)")
        #expect(try await sofia.finish(within: 10) == 0, "\(sofia.text)")
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "remoteHangup")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio), arguments: Way.allCases) func `the app calls Sofia-SIP and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway(way)
        let sofia = try await sofia(gateway, way, calls: false, ["--play", "telephone.wav", "--record", "heard.wav"])
        let phone = try await Peers.ownPhone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "5", "--calls", "1"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(sofia.text)")
        #expect(try await sofia.finish(within: 10) == 0, "\(sofia.text)")
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "localEnd")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(arguments: Way.allCases)
    func `Sofia-SIP holds and resumes, sends an UPDATE and a re-INVITE, and digits go both ways`(way: Way) async throws {
      let gateway = try await gateway(way)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let sofia = try await sofia(
        gateway, way, calls: true, ["--do", "hold@0.6 resume@1.4 digits:42#@2.4 update@3.6 reinvite@4"])
      _ = try await phone.event("call.held", within: 20) { $0["on"] as? Bool == true }
      _ = try await phone.event("call.held") { $0["on"] as? Bool == false }
      for digit in ["4", "2", "#"] { _ = try await phone.event("call.digit") { $0["digit"] as? String == digit } }
      _ = try await sofia.event("do") { $0["what"] as? String == "reinvite" }
      phone.type("dtmf 19*")
      for digit in ["1", "9", "*"] { _ = try await sofia.event("digit") { $0["digit"] as? String == digit } }
      phone.type("end")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)\n\(sofia.text)")
      #expect(try await sofia.finish(within: 10) == 0, "\(sofia.text)")
      #expect(!sofia.text.contains("\"refused\"") && !sofia.text.contains("\"fault\""), "\(sofia.text)")
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Any])
      #expect(times["heldByTrunk"] != nil && times["resumedByTrunk"] != nil, "\(record)")
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
      try await gateway.finish()
    }

    @Test(arguments: Way.allCases)
    func `Sofia-SIP transfers the app by REFER, and is told that it was done`(way: Way) async throws {
      let gateway = try await gateway(way)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let sofia = try await sofia(
        gateway, way, calls: true, ["--calls", "2", "--do", "refer:sip:+15559990901@127.0.0.1:\(gateway.sip)@0.6"])
      _ = try await sofia.event("transfer", within: 20) { $0["code"] as? Int == 200 && $0["final"] as? Bool == true }
      _ = try await sofia.event("over") { $0["call"] as? Int == 1 }
      phone.type("end")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)\n\(sofia.text)")
      #expect(try await sofia.finish(within: 10) == 0, "\(sofia.text)")
      let record = try #require(try await gateway.records(1).first)
      let transfer = try #require((record["transfers"] as? [[String: Any]])?.first)
      #expect(
        transfer["number"] as? String == "+15559990901" && transfer["by"] as? String == "trunk" && transfer["sip"] as? Int == 200)
      try await gateway.finish()
    }
  }
}

/// The telephone of peers/sofia_phone.c, which is compiled in the folder of the gateway that it calls.
enum Sofia {
  static let isInstalled = FileManager.default.fileExists(atPath: "/usr/include/sofia-sip-1.12/sofia-sip/nua.h")

  /// - Parameter namespace: the network that it runs in; nil: the test's own.
  static func phone(_ gateway: GatewayUnderTest, in namespace: String? = nil, _ arguments: [String]) async throws -> Spawned {
    let program = gateway.folder + "/sofia_phone"
    if !FileManager.default.fileExists(atPath: program) {
      let source = Surroundings.sources + "/peers/sofia_phone.c"
      let command = "cc -O1 -o sofia_phone '\(source)' $(pkg-config --cflags --libs sofia-sip-ua) -pthread"
      let made = try Spawned("cc", "/bin/sh", ["-c", command], in: gateway.folder)
      guard try await made.finish(within: 30) == 0 else { throw Spawned.Failure(description: made.text) }
    }
    let words = (namespace.map { ["/sbin/ip", "netns", "exec", $0] } ?? []) + [program] + arguments
    let phone = try Spawned("sofia", words[0], Array(words.dropFirst()), in: gateway.folder)
    _ = try await phone.event("listening", within: 15)
    return phone
  }
}
