import Foundation
import Testing

extension Interop {
  /// sipp on bad lines and with unusual habits.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct SignallingTests {
    @Test func `an INVITE that comes three times and an ACK that comes late are one call`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.2", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_repeated", ["-d", "500", "-nr"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      #expect(try gateway.sum("trunkline_calls_started_total") == 1)
      try await gateway.finish()
    }

    @Test func `ten calls over a path that loses 30 percent of the signalling all get through or end with a cause`() async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, seconds: 120, ["--answer-after", "0.1"])
      let path = try await Peers.lossyPath(gateway, loss: 0.3, seed: 7)
      let caller = try Peers.caller(gateway, "call", toward: path.port, ["-d", "300", "-m", "10", "-l", "1", "-r", "10"])
      let status = try await caller.finish(within: 90)
      path.peer.signal(SIGTERM)
      try await path.peer.finish(within: 5)
      #expect(status == 0, "\(caller.text.suffix(6_000))")
      let records = try await gateway.records(10, within: 40)
      #expect(records.count == 10)
      let ends = records.compactMap { ($0["end"] as? [String: Any])?["reason"] as? String }
      #expect(ends.count == 10 && ends.allSatisfy { $0 == "remoteHangup" }, "\(ends)\n\(gateway.process.text.suffix(8_000))")
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `a call over TCP`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.2", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "500", "-t", "t1"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `a late offer: ours goes in the 200, theirs comes in the ACK, and audio flows`() async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        let phone = try await Peers.phone(gateway, ["--answer-after", "0.2", "--record", "app-heard.wav", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--codec", "8"])
        let caller = try Peers.caller(gateway, "late_offer", audio: audio.port, ["-d", "9500"])
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0)
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `no codec in common is 488`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway)
      let caller = try Peers.caller(gateway, "refused_codec")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      let end = try await gateway.records(1).first?["end"] as? [String: Any]
      #expect(end?["reason"] as? String == "codec")
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `strangers get silence`() async throws {
      let gateway = try await GatewayUnderTest(["trunks: [ { name: carrier, peers: [192.0.2.77], uri: \"sip:127.0.0.1:9\" } ]"])
      let caller = try Peers.caller(gateway, "call")
      #expect(await eventually(within: 10) { try gateway.sum("trunkline_sip_dropped_total", "stranger") >= 2 })
      caller.signal(SIGKILL)
      try await caller.finish(within: 5)
      #expect(try gateway.sum("trunkline_sip_responses_total") == 0)
      #expect(gateway.records.isEmpty)
      try await gateway.finish()
    }

    @Test func `when every port is taken the next call gets 503, and the port comes back`() async throws {
      let ports = try FreePorts.row(8)
      let gateway = try await GatewayUnderTest([
        "media: { addresses: [ 127.0.0.1 ], threads: 1, app_port: \(ports + 6), trunk_ports: \(ports)-\(ports + 1) }"
      ])
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1"])
      let first = try Peers.caller(gateway, "call", ["-d", "3000"])
      _ = try await phone.event("call.connected")
      let second = try Peers.caller(gateway, "refused_503")
      #expect(try await second.finish(within: 20) == 0, "\(second.text.suffix(6_000))")
      #expect(try await first.finish(within: 20) == 0)
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_media_sessions") == 0 })
      let third = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await third.finish(within: 20) == 0)
      phone.type("quit")
      try await phone.finish(within: 10)
      try await gateway.finish()
    }
  }
}
