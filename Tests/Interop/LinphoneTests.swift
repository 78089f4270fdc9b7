import Foundation
import Testing

extension Interop {
  /// linphone as the carrier, our phone as the app; files in place of a sound card. It names an address of the machine in its
  /// descriptions, also on loopback: such a peer needs `rtp_source: symmetric`.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.linphone != nil),
      "no linphone: run Scripts/install test"),
    .serialized)
  struct LinphoneTests {
    @Test(.tags(.audio)) func `the app calls linphone over TCP and both hear each other`() async throws {
      try await expectGoodAudio {
        let port = try FreePorts.both()
        let gateway = try await GatewayUnderTest([
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], rtp_source: symmetric, uri: \"sip:127.0.0.1:\(port);transport=tcp\" } ]"
        ])
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let linphone = try await Linphone(gateway, port: port)
        let phone = try await Peers.ownPhone(
          gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "11", "--calls", "1"])
        #expect(try await phone.finish(within: 40) == 0, "\(phone.text)\n\(linphone.text.suffix(3_000))")
        try await linphone.quit()
        let faults = try linphone.faults(gateway)
        let record = try #require(try await gateway.records(1).first)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `the app calls linphone over UDP, which holds, resumes and hangs up`() async throws {
      let port = try FreePorts.both()
      let gateway = try await GatewayUnderTest([
        "trunks: [ { name: carrier, peers: [127.0.0.0/8], rtp_source: symmetric, uri: \"sip:127.0.0.1:\(port);transport=udp\" } ]"
      ])
      let linphone = try await Linphone(gateway, port: port)
      let phone = try await Peers.phone(gateway, ["--call", "+15559990001", "--calls", "1"])
      _ = try await phone.event("call.connected", within: 20)
      _ = try await phone.event("first_sound", within: 10)
      linphone.process.type("pause 1")
      _ = try await phone.event("call.held")
      let running = linphone.process
      #expect(await eventually(within: 5) { running.text.contains("paused") }, "\(running.text.suffix(6_000))")
      linphone.process.type("resume 1")
      _ = try await phone.event("call.held") { $0["on"] as? Bool == false }
      linphone.process.type("terminate all")
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)\n\(linphone.text.suffix(3_000))")
      try await linphone.quit()
      #expect(try gateway.sum("trunkline_sip_messages_total", #"transport="tcp""#) == 0)
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Any])
      #expect(times["heldByTrunk"] != nil && times["resumedByTrunk"] != nil)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      try await gateway.finish()
    }

    @Test(.tags(.audio)) func `linphone calls the app over TLS and both hear each other`() async throws {
      try await expectGoodAudio {
        let (sip, app, admin, tls) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp(), try FreePorts.tcp())
        let certificate = try await OpenSSL.certificate("localhost")
        defer { try? FileManager.default.removeItem(atPath: certificate) }
        let gateway = try await GatewayUnderTest(
          [
            "listen: { sip: { udp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), cert: \(certificate)/sip.pem, key: \(certificate)/sip.key } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }"
          ], trunk: "rtp_source: symmetric", ports: (sip, app, admin))
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let phone = try await Peers.ownPhone(
          gateway,
          ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "11"])
        let linphone = try await Linphone(gateway, port: try FreePorts.both(), authorities: certificate + "/sip.pem")
        linphone.process.type("call sip:+15551230001@localhost:\(tls);transport=tls")
        #expect(try await phone.finish(within: 40) == 0, "\(phone.text)\n\(linphone.text.suffix(3_000))")
        try await linphone.quit()
        #expect(try gateway.sum("trunkline_sip_messages_total", #"transport="tls",kind="INVITE""#) >= 1)
        let faults = try linphone.faults(gateway)
        try await gateway.finish()
        return faults
      }
    }
  }
}

/// A linphonec with a home of its own, which answers by itself, plays a file and records what it hears.
struct Linphone {
  let process: Spawned
  let folder: String
  var text: String { process.text }

  init(
    _ gateway: GatewayUnderTest, port: UInt16, authorities: String? = nil, codecs: [String] = ["PCMU", "PCMA"],
    says: [Int16] = Speech.telephone, rate: Int = 8_000
  ) async throws {
    folder = gateway.folder + "/linphone"
    for path in ["/.local/share/linphone", "/.config/linphone"] {
      try FileManager.default.createDirectory(atPath: folder + path, withIntermediateDirectories: true)
    }
    try Speech.write(says + [Int16](repeating: 0, count: 10 * rate), folder + "/telephone.wav", rate: rate)
    let formats = codecs.enumerated().map { index, name in
      "[audio_codec_\(index)]\nmime=\(name)\nrate=\(name == "opus" ? 48_000 : 8_000)\nchannels=\(name == "opus" ? 2 : 1)\nenabled=1"
    }
    let configuration = """
      [sip]
      sip_port=\(port)
      sip_tcp_port=\(port)
      sip_tls_port=-1
      use_ipv6=0
      default_proxy=-1
      auto_net_state_mon=0
      guess_hostname=0
      \(authorities.map { "root_ca=\($0)" } ?? "")
      [rtp]
      audio_rtp_port=\(try FreePorts.row(2))
      \(formats.joined(separator: "\n"))
      [sound]
      echocancellation=0

      """
    try configuration.write(toFile: folder + "/linphonerc", atomically: true, encoding: .utf8)
    process = try Spawned(
      "linphone", Surroundings.linphone ?? "", ["-c", "linphonerc", "-a", "-d", "0"], in: folder, environment: ["HOME": folder])
    let running = process
    guard await eventually(within: 15, { running.text.contains("linphonec>") }) else {
      throw Spawned.Failure(description: process.text)
    }
    for command in ["ipv6 disable", "soundcard use files", "play telephone.wav", "record heard.wav"] { process.type(command) }
    guard await eventually(within: 10, { running.text.contains("Using wav files") }) else {
      throw Spawned.Failure(description: process.text)
    }
  }

  /// Its call is over and its files are closed.
  func quit() async throws {
    process.type("quit")
    try await process.finish(within: 10)
  }

  /// When its player starts is its own affair: what counts is that speech is heard.
  func faults(_ gateway: GatewayUnderTest) throws -> [String] {
    try Speech.faults(
      "linphone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav", clippedAtMost: 400,
      delayWithin: -12_000...12_000)
      + Speech.faults(
        "app → linphone", said: Speech.app, heardIn: folder + "/heard.wav", clippedAtMost: 400, delayWithin: -12_000...12_000)
  }
}
