import Foundation
import Testing

extension Interop {
  /// What a carrier may send by what both sides listed, under whose numbers, and from how many sources (RFC 3264 §5.1, §6.1, §7).
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct PayloadTypeTests {
    /// Our offer is answered with this; the app presses keys, and after `milliseconds` the carrier ends the call.
    private func call(
      _ gateway: GatewayUnderTest, _ stranger: (peer: Spawned, port: UInt16), answer: String, milliseconds: Int = 3_000,
      presses: String? = nil
    ) async throws -> (phone: Spawned, done: [String: Any]) {
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      var script = SippScript.callee()
      script.answers(200, sdp: answer)
      script.awaits("ACK")
      script.pauses(milliseconds)
      script.asks("BYE")
      script.response()
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "answer"), audio: stranger.port)
      phone.type("call +15557654321")
      _ = try await phone.event("call.connected", within: 10)
      if let presses { phone.type("dtmf \(presses)") }
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      return (phone, try await stranger.peer.event("done", within: 10))
    }

    private func digits(_ phone: Spawned) -> String {
      phone.events.filter { $0["event"] as? String == "call.digit" }
        .map { ($0["payload"] as? [String: Any])?["digit"] as? String ?? $0["digit"] as? String ?? "?" }.joined()
    }

    @Test func `an answer with other numbers and a peer that sends by ours: speech and digits are heard both ways`() async throws
    {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU, PCMA ]")
      let stranger = try await Peers.stranger(
        gateway, #"[{"type": 0, "law": 0, "ssrc": 1}]"#,
        ["--events", #"[{"at": 0.5, "digits": "42#", "type": 101, "ssrc": 1}]"#, "--hear", "100"])
      let (phone, done) = try await call(
        gateway, stranger, answer: SippScript.sdp("8 0 100", ["a=rtpmap:100 telephone-event/8000", "a=sendrecv"]), presses: "79")
      #expect(phone.events.contains { $0["event"] as? String == "first_sound" }, "\(phone.text)")
      #expect(digits(phone) == "42#", "\(phone.text)")
      #expect(done["presses"] as? String == "79" && done["whole"] as? Bool == true, "\(done)")
      let record = try #require(try await gateway.records(1).first)
      let received = try #require(record["fromTrunk"] as? [String: Any])
      #expect(
        received["unheard"] == nil && received["dropped"] as? Int == 0 && received["mos"] as? Double ?? 0 > 4, "\(received)")
      try await gateway.finish()
    }

    @Test func `a stream of a type that was not agreed on is named in log and record, and has no opinion score`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU, PCMA ]")
      let stranger = try await Peers.stranger(gateway, #"[{"type": 18, "law": null, "ssrc": 77}]"#)
      let (phone, _) = try await call(gateway, stranger, answer: SippScript.sdp("0 101"))
      #expect(!phone.events.contains { $0["event"] as? String == "first_sound" })
      let received = try #require(try await gateway.records(1).first?["fromTrunk"] as? [String: Any])
      let unheard = try #require(received["unheard"] as? [String: Any])
      #expect(unheard["payloadType"] as? Int == 18 && unheard["packets"] as? Int ?? 0 > 50, "\(received)")
      #expect(received["mos"] == nil)
      let lines = gateway.process.text.split(separator: "\n").filter { $0.contains("that was not agreed on is dropped") }
      #expect(lines.count == 1 && lines[0].contains("18"), "\(lines)")
      try await gateway.finish()
    }

    @Test func `a music server beside a telephone, and digits of a third source: one is heard whole, each press once`()
      async throws
    {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
      let stranger = try await Peers.stranger(
        gateway, #"[{"type": 0, "law": 0, "ssrc": 1}, {"type": 0, "law": 0, "ssrc": 2, "hertz": 1500, "from": 0.5}]"#,
        ["--events", #"[{"at": 0.5, "digits": "123", "type": 101, "ssrc": 9}]"#])
      let (phone, _) = try await call(gateway, stranger, answer: SippScript.sdp("0 101"))
      #expect(digits(phone) == "123", "\(phone.text)")
      let received = try #require(try await gateway.records(1).first?["fromTrunk"] as? [String: Any])
      #expect((received["unheard"] as? [String: Any])?["otherSources"] as? Int ?? 0 > 80, "\(received)")
      #expect(received["lost"] as? Int ?? 1 == 0 && received["concealedMs"] as? Int ?? 1_000 < 200, "\(received)")
      try await gateway.finish()
    }

    /// The NAT before the carrier gives its stream another port.
    @Test(arguments: ["signalled_ip", "symmetric"]) func `RTP that moves to another port is heard again within two seconds`(
      policy: String
    ) async throws {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ], rtp_source: \(policy)")
      let moved = try FreePorts.row(2)
      let streams = """
        [{"type": 0, "law": 0, "ssrc": 1, "to": 1}, {"type": 0, "law": 0, "ssrc": 1, "from": 1, "port": \(moved)}]
        """
      let stranger = try await Peers.stranger(gateway, streams)
      let (_, done) = try await call(gateway, stranger, answer: SippScript.sdp("0 101"), milliseconds: 5_000)
      let received = try #require(try await gateway.records(1).first?["fromTrunk"] as? [String: Any])
      // 1 s before, a little more than 1 s of silence, the rest after
      let (sent, packets) = (done["sent"] as? Int ?? 0, received["packets"] as? Int ?? 0)
      #expect(packets > sent - 90 && packets < sent, "\(packets) of \(sent)")
      #expect(try gateway.sum("trunkline_media_trunk_source_takeovers_total") == 1)
      try await gateway.finish()
    }
  }
}
