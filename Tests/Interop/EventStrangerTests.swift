import Foundation
import Testing

extension Interop {
  /// Digits of carriers and apps that keep RFC 4733 in part: on another clock than the audio's, without a beginning or an end, as tones; and a body
  /// that RFC 2046 would not have.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct EventStrangerTests {
    private func digits(_ phone: Spawned) -> String {
      phone.events.filter { $0["event"] as? String == "call.digit" }.map { $0["digit"] as? String ?? "?" }.joined()
    }

    /// After so long the carrier ends the call.
    private func ends(_ script: inout SippScript, after milliseconds: Int) {
      script.pauses(milliseconds)
      script.asks("BYE")
      script.response()
    }

    @Test(arguments: [true, false])
    func `Opus beside telephone-event of 8 kHz alone: the digits of both sides are whole and have their length`(
      theCarrierOffers: Bool
    ) async throws {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ opus, PCMU ]")
      let stranger = try await Peers.stranger(
        gateway, #"[{"type": 111, "law": 96, "ssrc": 1}]"#,
        ["--clock", "48000", "--hear", "102", "--events", #"[{"at": 0.5, "digits": "42#", "type": 102, "ssrc": 1}]"#])
      let formats = SippScript.sdp("111 102", ["a=rtpmap:111 opus/48000/2", "a=rtpmap:102 telephone-event/8000"])
      let phone = try await Peers.phone(gateway, (theCarrierOffers ? ["--answer-after", "0.2"] : []) + ["--calls", "1"])
      let carrier: Spawned
      if theCarrierOffers {
        var script = SippScript.caller(sdp: formats)
        script.isAnswered(containing: ["RTP/AVP 111 102", "a=rtpmap:102 telephone-event/8000"])
        ends(&script, after: 3_000)
        carrier = try Peers.caller(gateway, try script.file(gateway, "offers"), audio: stranger.port)
      } else {
        var script = SippScript.callee(containing: [
          "RTP/AVP 111 0 101 102", "a=rtpmap:101 telephone-event/48000", "a=rtpmap:102 telephone-event/8000",
        ])
        script.answers(200, sdp: formats)
        script.awaits("ACK")
        ends(&script, after: 3_000)
        carrier = try await Peers.callee(gateway, try script.file(gateway, "answers"), audio: stranger.port)
        phone.type("call +15557654321")
      }
      _ = try await phone.event("call.connected")
      _ = try await stranger.peer.event("first_packet")
      phone.type("dtmf 79")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(digits(phone) == "42#", "\(phone.text)")
      let lengths = phone.events.filter { $0["event"] as? String == "call.digit" }.compactMap { $0["durMs"] as? Int }
      #expect(lengths == [160, 160, 160])
      let done = try await stranger.peer.event("done")
      #expect(done["presses"] as? String == "79" && done["whole"] as? Bool == true, "\(done)")
      // Lengths are on the event's clock; timestamps on the audio's, right behind it.
      let pressed = try #require(done["milliseconds"] as? [Int])
      #expect(pressed.allSatisfy { (80...320).contains($0) }, "\(done)")
      let positions = try #require(done["places"] as? [Int])
      #expect(positions.allSatisfy { $0 % 960 == 0 && (960...4_800).contains($0) }, "\(done)")
      try await gateway.finish()
    }

    private static let sevenEnds = (1...7).map { "[\($0 * 20), 40, true, 0]" }.joined(separator: ", ")
    /// Packets of a press: milliseconds after the first, length in ms, whether it is an end, milliseconds that its timestamp is ahead.
    private static let habits = [
      // ends alone, one end alone, an end without a length
      "[[0, 100, true, 0], [20, 100, true, 0], [40, 100, true, 0]]", "[[0, 100, true, 0]]", "[[0, 0, true, 0]]",
      // no end
      "[[0, 20, false, 0], [20, 40, false, 0], [40, 60, false, 0], [60, 80, false, 0]]", "[[0, 20, false, 0]]",
      // one end; ends with moved timestamps; ends alone with moved timestamps
      "[[0, 20, false, 0], [20, 40, false, 0], [40, 60, true, 0]]",
      "[[0, 20, false, 0], [20, 40, false, 0], [40, 60, true, 20], [60, 60, true, 40], [80, 60, true, 60]]",
      "[[0, 100, true, 0], [40, 100, true, 40], [80, 100, true, 80]]",
      // seven ends
      "[[0, 20, false, 0], \(sevenEnds)]",
    ]

    @Test func `an app's presses without a beginning, without an end and with ends that move are one whole event each`()
      async throws
    {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
      let presses = Self.habits.enumerated().map { index, packets in
        #"{"at": \#(0.3 + 0.45 * Double(index)), "digit": "\#(index + 1)", "type": 110, "packets": \#(packets)}"#
      }
      let stranger = try await Peers.stranger(gateway, #"[{"type": 0, "law": 0, "ssrc": 1}]"#)
      let phone = try await Peers.phone(
        gateway, script: "app_stranger.py",
        ["--events", "--presses", "[\(presses.joined(separator: ", "))]", "--calls", "1"])
      var script = SippScript.callee()
      script.answers(200, sdp: SippScript.sdp("0 101"))
      script.awaits("ACK")
      ends(&script, after: 5_000)
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "presses"), audio: stranger.port)
      phone.type("call +15557654321")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let done = try await stranger.peer.event("done")
      #expect(done["presses"] as? String == "123456789" && done["whole"] as? Bool == true, "\(done)")
      try await gateway.finish()
    }

    @Test(arguments: ["", "\n--part"])
    func `a multipart body whose last delimiter is missing or has no end is read`(end: String) async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let body = "--part\nContent-Type: application/sdp\n\n" + SippScript.sdp("0 101") + end
      var script = SippScript.caller(sdp: body, type: "multipart/mixed;boundary=part")
      script.isAnswered(containing: ["m=audio [0-9]+ RTP/AVP 0 101"])
      ends(&script, after: 100)
      let caller = try Peers.caller(gateway, try script.file(gateway, "multipart"))
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      try await gateway.finish()
    }

    @Test func `a carrier that agreed on telephone-event and sends tones alone is named to the operator once`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ PCMU ]")
      // 4, 4, 2, 5: 160 ms each, as long apart
      let keys: [(low: Double, high: Double)] = [(770, 1_209), (770, 1_209), (697, 1_336), (770, 1_336)]
      var said = [Int16](repeating: 0, count: 4_000)
      for key in keys {
        said += (0..<2_560).map { index -> Int16 in
          let turn: Double = 2 * .pi * Double(index) / 8_000
          let sum: Double = sin(turn * key.low) + sin(turn * key.high)
          return index < 1_280 ? Int16(6_000 * sum) : 0
        }
      }
      try Speech.write(said, gateway.folder + "/tones.wav")
      let audio = try await Peers.trunkAudio(gateway, ["--play", "tones.wav", "--silence", "0.7"])
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      var script = SippScript.callee()
      script.answers(200, sdp: SippScript.sdp("0 101"))
      script.awaits("ACK")
      ends(&script, after: 2_500)
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "tones"), audio: audio.port)
      phone.type("call +15557654321")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let lines = gateway.process.text.split(separator: "\n").filter { $0.contains("sends digits as tones alone") }
      #expect(lines.count == 1 && lines[0].contains(#"remedy="dtmf: inband""#), "\(lines)")
      #expect(digits(phone) == "", "\(phone.text)")
      try await gateway.finish()
    }
  }
}
