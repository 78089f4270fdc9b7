import Foundation
import Testing

extension Interop {
  /// PJSIP, the stack of most telephones and of Asterisk, as the carrier's side: by pjsua2, over UDP, over TCP, and behind the B2BUA of sippy, which
  /// makes two calls of one. Both are foreign programs.
  @Suite(
    .enabled(if: Surroundings.isRequired || Surroundings.missing == nil, "no .venv: run Scripts/install test"),
    .serialized)
  struct PJSIPTests {
    enum Way: String, CaseIterable {
      case udp, tcp, sippy
      var transport: String { self == .tcp ? "tcp" : "udp" }
    }

    private func gateway(_ way: Way) async throws -> GatewayUnderTest {
      let carrier = try FreePorts.both()
      let gateway = try await GatewayUnderTest(
        [
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], transfers: true, uri: \"sip:127.0.0.1:\(carrier);transport=\(way.transport)\" } ]"
        ], carrier: carrier)
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      try Speech.write(Array(Speech.fromFirstWord(Speech.app).prefix(20_000)), gateway.folder + "/app.wav")
      return gateway
    }

    /// The phone, and what stands before it. `calls`: it calls the user's number; otherwise it waits to be called.
    private struct Phone {
      var pjsip: Spawned
      var sippy: Spawned?
      var text: String { pjsip.text + (sippy?.text.suffix(4_000) ?? "") }
      func finish() async throws {
        #expect(try await pjsip.finish(within: 10) == 0, "\(text)")
        guard let sippy else { return }
        sippy.signal(SIGKILL)
        try await sippy.finish(within: 10)
      }
    }

    private func pjsip(_ gateway: GatewayUnderTest, _ way: Way, calls: Bool, _ arguments: [String]) async throws -> Phone {
      let port = way == .sippy ? try FreePorts.both() : gateway.carrier
      var sippy: Spawned?
      if way == .sippy {
        let python = try #require(Surroundings.python)
        let next = calls ? gateway.sip : port
        sippy = try Spawned(
          "sippy", (python as NSString).deletingLastPathComponent + "/b2bua_simple",
          ["-f", "-l", "127.0.0.1", "-p", "\(gateway.carrier)", "-n", "127.0.0.1:\(next)"], in: gateway.folder)
        guard await eventually(within: 15, { FreePorts.isTaken(gateway.carrier) }) else {
          throw Spawned.Failure(description: "sippy does not listen: \(sippy?.text.suffix(500) ?? "")")
        }
      }
      let first = way == .sippy ? gateway.carrier : gateway.sip
      let pjsip = try Peers.python(
        "pjsip", "pjsip_phone.py",
        ["--port", "\(port)", "--media", "\(try FreePorts.row(2))", "--transport", way.transport]
          + (calls ? ["--call", "sip:+15551230001@127.0.0.1:\(first)"] : []) + arguments, gateway)
      _ = try await pjsip.event("listening", within: 15)
      return Phone(pjsip: pjsip, sippy: sippy)
    }

    private func faults(_ gateway: GatewayUnderTest) throws -> [String] {
      let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
      // when its player starts is its own affair
      return try Speech.faults(
        "PJSIP → app", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100)
        + Speech.faults("app → PJSIP", said: said, heardIn: gateway.folder + "/heard.wav", clippedAtMost: 100)
    }

    @Test(.tags(.audio), arguments: Way.allCases) func `PJSIP calls the app and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway(way)
        let phone = try await Peers.ownPhone(
          gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let pjsip = try await pjsip(
          gateway, way, calls: true, ["--play", "telephone.wav", "--record", "heard.wav", "--do", "end@5"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(pjsip.text)")
        try await pjsip.finish()
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "remoteHangup")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio), arguments: Way.allCases) func `the app calls PJSIP and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway(way)
        let pjsip = try await pjsip(gateway, way, calls: false, ["--play", "telephone.wav", "--record", "heard.wav"])
        let phone = try await Peers.ownPhone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "5", "--calls", "1"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(pjsip.text)")
        try await pjsip.finish()
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "localEnd")
        let faults = try faults(gateway)
        try await gateway.finish()
        return faults
      }
    }

    @Test(arguments: Way.allCases)
    func `PJSIP holds and resumes, sends an UPDATE and a re-INVITE, and digits go both ways`(way: Way) async throws {
      let gateway = try await gateway(way)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let pjsip = try await pjsip(
        gateway, way, calls: true, ["--do", "hold@0.6 resume@1.4 digits:42#@2.4 update@3.6 reinvite@4"])
      _ = try await phone.event("call.held", within: 20) { $0["on"] as? Bool == true }
      _ = try await phone.event("call.held") { $0["on"] as? Bool == false }
      for digit in ["4", "2", "#"] { _ = try await phone.event("call.digit") { $0["digit"] as? String == digit } }
      _ = try await pjsip.pjsip.event("do") { $0["what"] as? String == "reinvite" }
      phone.type("dtmf 19*")
      for digit in ["1", "9", "*"] { _ = try await pjsip.pjsip.event("digit") { $0["digit"] as? String == digit } }
      phone.type("end")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)\n\(pjsip.text)")
      try await pjsip.finish()
      #expect(!pjsip.pjsip.text.contains("\"refused\"") && !pjsip.text.contains("\"fault\""), "\(pjsip.text)")
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Any])
      #expect(times["heldByTrunk"] != nil && times["resumedByTrunk"] != nil, "\(record)")
      try await gateway.finish()
    }

    @Test(arguments: [Way.udp, .tcp]) func `PJSIP transfers the app by REFER, and is told that it was done`(way: Way) async throws
    {
      let gateway = try await gateway(way)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let pjsip = try await pjsip(
        gateway, way, calls: true, ["--calls", "2", "--do", "refer:sip:+15559990901@127.0.0.1:\(gateway.sip)@0.6"])
      _ = try await pjsip.pjsip.event("transfer", within: 20) { $0["code"] as? Int == 200 }
      _ = try await pjsip.pjsip.event("over") { $0["call"] as? Int == 1 }
      phone.type("end")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)\n\(pjsip.text)")
      try await pjsip.finish()
      let record = try #require(try await gateway.records(1).first)
      let transfer = try #require((record["transfers"] as? [[String: Any]])?.first)
      #expect(
        transfer["number"] as? String == "+15559990901" && transfer["by"] as? String == "trunk" && transfer["sip"] as? Int == 200)
      try await gateway.finish()
    }
  }
}
