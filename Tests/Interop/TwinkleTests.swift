import Foundation
import Testing

extension Interop {
  /// Twinkle, a telephone with a stack of its own, as the carrier's side, over UDP and over TCP. What it hears and says are files in place of a sound
  /// card (peers/twinkle_sound.c).
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.twinkle != nil),
      "no twinkle-console: run Scripts/install test"),
    .serialized)
  struct TwinkleTests {
    enum Way: String, CaseIterable {
      case udp, tcp
      /// Over UDP it holds as RFC 3264 says, over TCP by the address 0.0.0.0 of RFC 2543.
      var hold: String { self == .udp ? "rfc3264" : "rfc2543" }
    }

    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    /// Numbers of +155599909 are at `target`, all others at Twinkle.
    private func gateway(_ way: Way, target: UInt16 = 9) async throws -> GatewayUnderTest {
      let carrier = try FreePorts.both()
      let gateway = try await GatewayUnderTest(
        [
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], transfers: true, uri: \"sip:127.0.0.1:\(carrier);transport=\(way.rawValue)\" }, { name: target, uri: \"sip:127.0.0.1:\(target)\" } ]",
          "routes: { inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: \"+155599909\", trunk: target }, { prefix: \"+\", trunk: carrier } ] }",
        ], carrier: carrier)
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      return gateway
    }

    private func faults(_ gateway: GatewayUnderTest, _ twinkle: Twinkle) throws -> [String] {
      try Speech.faults(
        "Twinkle → app", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 100)
        + Speech.faults("app → Twinkle", said: Self.said, heardIn: twinkle.folder + "/heard.wav", clippedAtMost: 100)
    }

    @Test(.tags(.audio), arguments: Way.allCases) func `Twinkle calls the app and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway(way)
        let phone = try await Peers.ownPhone(
          gateway,
          ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "5"])
        let twinkle = try await Twinkle(gateway, transport: way.rawValue)
        twinkle.process.type("call sip:+15551230001@127.0.0.1:\(gateway.sip)")
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(twinkle.text)")
        try await twinkle.expect("far end ended call")
        try await twinkle.quit()
        let record = try #require(try await gateway.records(1).first)
        #expect(record["direction"] as? String == "in")
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        let faults = try faults(gateway, twinkle)
        try await gateway.finish()
        return faults
      }
    }

    @Test(.tags(.audio), arguments: Way.allCases) func `the app calls Twinkle and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let gateway = try await gateway(way)
        let twinkle = try await Twinkle(gateway, transport: way.rawValue)
        twinkle.process.type("auto_answer -a on")
        try await twinkle.expect("Auto answer enabled")
        let phone = try await Peers.ownPhone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "5", "--calls", "1"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(twinkle.text)")
        try await twinkle.expect("far end ended call")
        try await twinkle.quit()
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "localEnd")
        let faults = try faults(gateway, twinkle)
        try await gateway.finish()
        return faults
      }
    }

    @Test(arguments: Way.allCases)
    func `Twinkle holds and retrieves as RFC 3264 and as RFC 2543 say, and digits go both ways`(way: Way) async throws {
      let gateway = try await gateway(way)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let twinkle = try await Twinkle(gateway, transport: way.rawValue, hold: way.hold)
      twinkle.process.type("call sip:+15551230001@127.0.0.1:\(gateway.sip)")
      try await twinkle.expect("far end answered call", within: 15)
      twinkle.process.type("hold")
      _ = try await phone.event("call.held") { $0["on"] as? Bool == true }
      try await twinkle.expect("re-INVITE successful")
      twinkle.process.type("retrieve")
      _ = try await phone.event("call.held") { $0["on"] as? Bool == false }
      try await twinkle.expect("re-INVITE successful", times: 2)
      twinkle.process.type("dtmf 42#")
      for digit in ["4", "2", "#"] { _ = try await phone.event("call.digit") { $0["digit"] as? String == digit } }
      phone.type("dtmf 19*")
      for digit in ["1", "9", "*"] { try await twinkle.expect("DTMF detected: \(digit)") }
      twinkle.process.type("bye")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)\n\(twinkle.text)")
      try await twinkle.quit()
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Any])
      #expect(times["heldByTrunk"] != nil && times["resumedByTrunk"] != nil, "\(record)")
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      try await gateway.finish()
    }

    @Test(arguments: Way.allCases)
    func `Twinkle transfers the app by REFER to PJSIP, and is told each step`(way: Way) async throws {
      let target = try FreePorts.both()
      let gateway = try await gateway(way, target: target)
      let pjsip = try Peers.python(
        "target", "pjsip_phone.py", ["--port", "\(target)", "--media", "\(try FreePorts.row(2))"], gateway)
      _ = try await pjsip.event("listening", within: 15)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let twinkle = try await Twinkle(gateway, transport: way.rawValue)
      twinkle.process.type("call sip:+15551230001@127.0.0.1:\(gateway.sip)")
      try await twinkle.expect("far end answered call", within: 15)
      twinkle.process.type("transfer sip:+15559990901@127.0.0.1:\(gateway.sip)")
      for step in ["Progress: 100 Trying", "Progress: 200 OK", "call successfully referred"] { try await twinkle.expect(step) }
      _ = try await pjsip.event("confirmed")
      phone.type("end")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)\n\(twinkle.text)")
      #expect(try await pjsip.finish(within: 10) == 0, "\(pjsip.text)")
      try await twinkle.quit()
      let record = try #require(try await gateway.records(1).first)
      let transfer = try #require((record["transfers"] as? [[String: Any]])?.first)
      #expect(
        transfer["number"] as? String == "+15559990901" && transfer["by"] as? String == "trunk" && transfer["sip"] as? Int == 200)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
      try await gateway.finish()
    }
  }
}

extension Surroundings {
  static let twinkle = program("twinkle-console")
}

/// A twinkle-console with a home of its own, driven by commands.
struct Twinkle {
  let process: Spawned
  let folder: String
  var text: String { process.text }

  /// `hold`: its `hold_variant`.
  init(_ gateway: GatewayUnderTest, transport: String, hold: String = "rfc3264", says: [Int16] = Baresip.short) async throws {
    folder = gateway.folder + "/twinkle"
    try FileManager.default.createDirectory(atPath: folder + "/.twinkle", withIntermediateDirectories: true)
    let source = Surroundings.sources + "/peers/twinkle_sound.c"
    let made = try Spawned(
      "cc", "/usr/bin/env", ["cc", "-shared", "-fPIC", "-O1", "-o", "sound.so", source, "-pthread"], in: folder)
    guard try await made.finish(within: 30) == 0 else { throw Spawned.Failure(description: made.text) }
    try Speech.write(says, folder + "/telephone.wav")
    // Of its voice processing nothing: a gain of its own would be heard.
    let profile = """
      user_name=+15559990001
      user_domain=127.0.0.1:\(gateway.carrier)
      user_display=Twinkle
      register_at_startup=no
      codecs=g711u
      ptime=20
      hold_variant=\(hold)
      sip_transport=\(transport)
      dtmf_transport=rfc2833
      dtmf_payload_type=101
      allow_refer=yes
      speex_dsp_vad=no
      speex_dsp_agc=no
      speex_dsp_aec=no
      speex_dsp_nrd=no

      """
    try profile.write(toFile: folder + "/.twinkle/twinkle.cfg", atomically: true, encoding: .utf8)
    let system = """
      sip_port=\(gateway.carrier)
      rtp_port=\(try FreePorts.row(8))
      dev_ringtone=alsa:null
      dev_speaker=alsa:null
      dev_mic=alsa:null
      validate_audio_dev=no
      play_ringtone=no
      play_ringback=no

      """
    try system.write(toFile: folder + "/.twinkle/twinkle.sys", atomically: true, encoding: .utf8)
    process = try Spawned(
      "twinkle", Surroundings.twinkle ?? "", [], in: folder,
      environment: [
        "HOME": folder, "LD_PRELOAD": folder + "/sound.so", "TWINKLE_PLAY": folder + "/telephone.wav",
        "TWINKLE_RECORD": folder + "/heard.wav",
      ])
    try await expect("Twinkle>", within: 15)
  }

  /// Waits until it has said so, as often as that.
  func expect(_ words: String, times: Int = 1, within seconds: Double = 10) async throws {
    let running = process
    guard await eventually(within: seconds, { running.text.components(separatedBy: words).count > times }) else {
      throw Spawned.Failure(description: "Twinkle did not say \(words):\n\(text.suffix(4_000))")
    }
  }

  /// Its call is over and its files are closed.
  func quit() async throws {
    process.type("quit")
    try await process.finish(within: 10)
  }
}
