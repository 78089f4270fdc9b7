import Foundation
import Testing

extension Interop {
  /// baresip as the carrier, our phone as the app. baresip hangs up at the end of its file.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.baresip != nil),
      "no baresip: run Scripts/install test"), .serialized)
  struct BaresipTests {
    @Test func `baresip calls the app and both hear each other (INC-7, ANS-5)`() async throws {
      try await expectGoodAudio { try await incoming() }
    }

    private func incoming() async throws -> [String] {
      let gateway = try await GatewayUnderTest()
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      let phone = try await Peers.ownPhone(
        gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
      let carrier = try Baresip(
        gateway, user: "+15557770001", codec: "PCMU", ["-e", "/dial sip:+15551230001@127.0.0.1:\(gateway.sip)"])
      try await carrier.expectReady()
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(carrier.text)")
      try await carrier.quit()

      let faults =
        try Speech.faults("baresip → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("app → baresip", said: Speech.app, heardIn: try carrier.heard())
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "remoteHangup")
      try await gateway.finish()
      return faults
    }

    @Test(arguments: ["in", "out"]) func `baresip over TCP, both directions: both hear each other`(
      direction: String
    )
      async throws
    {
      try await expectGoodAudio {
        let carrierPort = try FreePorts.both()
        let gateway = try await GatewayUnderTest(
          [
            "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(carrierPort);transport=tcp\" } ]"
          ], carrier: carrierPort)
        let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))
        try Speech.write(said, gateway.folder + "/app.wav")
        let isIncoming = direction == "in"
        let number = isIncoming ? "+15557770001" : "+15559990001"
        let dials = isIncoming ? ["-e", "/dial sip:+15551230001@127.0.0.1:\(gateway.sip);transport=tcp"] : []
        let habit = isIncoming ? ["--answer", "--answer-after", "0.2", "--calls", "1"] : ["--call", number]
        let spoken = ["--play", "app.wav", "--record", "app-heard.wav"]
        // the callee is there before the call
        let waiting = isIncoming ? try await Peers.ownPhone(gateway, habit + spoken) : nil
        let carrier = try Baresip(gateway, user: number, codec: "PCMU", transport: "tcp", says: Baresip.short, dials)
        try await carrier.expectReady()
        let phone = if let waiting { waiting } else { try await Peers.ownPhone(gateway, habit + spoken) }
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(carrier.text)")
        try await carrier.quit()
        let record = try #require(try await gateway.records(1).first)
        #expect((record["codecs"] as? [String: Any])?["trunk"] as? String == "PCMU")
        #expect(try gateway.sum("trunkline_sip_messages_total", #"transport="tcp",kind="INVITE""#) >= (isIncoming ? 1 : 0))
        #expect(try gateway.sum("trunkline_sip_messages_total", #"transport="udp""#) == 0)
        let faults =
          try Speech.faults("baresip → app", said: Baresip.short, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → baresip", said: said, heardIn: try carrier.heard())
        try await gateway.finish()
        return faults
      }
    }

    @Test func `the app calls baresip with A-law and both hear each other (OUT-4)`() async throws {
      try await expectGoodAudio { try await outgoing() }
    }

    private func outgoing() async throws -> [String] {
      let gateway = try await GatewayUnderTest()
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
      let carrier = try Baresip(gateway, user: "+15559990001", codec: "PCMA", [])
      try await carrier.expectReady()
      let phone = try await Peers.ownPhone(
        gateway, ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav"])
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(carrier.text)")
      try await carrier.quit()

      let faults =
        try Speech.faults("baresip → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("app → baresip", said: Speech.app, heardIn: try carrier.heard())
      let record = try #require(try await gateway.records(1).first)
      #expect((record["codecs"] as? [String: Any])?["trunk"] as? String == "PCMA")
      #expect(record["direction"] as? String == "out")
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
      try await gateway.finish()
      return faults
    }
  }
}

/// A baresip with its own configuration: one account that answers by itself, speech from a file, received audio written to a
/// file.
struct Baresip {
  let process: Spawned
  let folder: String
  var text: String { process.text }

  /// The beginning of a sentence, for calls of a few seconds.
  static let short = Array(Speech.fromFirstWord(Speech.telephone).prefix(20_000))
  /// For calls in which `say` chooses the speech: it hangs up at the end of its file.
  static let silence = [Int16](repeating: 0, count: 8_000 * 300)
  /// The port for its commands.
  private let console: UInt16?

  /// `console`: the UDP port of its console, for `say`. `certificate`: adds TLS to UDP and TCP, on the next port, with this
  /// certificate and its key, and SRTP for every call.
  init(
    _ gateway: GatewayUnderTest, user: String, codec: String, certificate: String? = nil, transport: String = "udp",
    host: String = "127.0.0.1", in namespace: String? = nil, says: [Int16] = Speech.telephone, rate: Int = 8_000,
    console: UInt16? = nil, _ arguments: [String]
  ) throws {
    self.console = console
    folder = gateway.folder + "/baresip"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // Silence until the other side has spoken, and a second more.
    let silence = max(0, Speech.app.count - Speech.telephone.count) * rate / 8_000 + rate
    try Speech.write(says + [Int16](repeating: 0, count: silence), folder + "/telephone.wav", rate: rate)
    let rtp = try FreePorts.row(4)
    let configuration = """
      poll_method epoll
      sip_listen \(host):\(gateway.carrier)
      net_interface \(host)
      rtp_ports \(rtp)-\(rtp + 3)
      audio_source aufile,\(folder)/telephone.wav
      audio_player aubridge,heard
      audio_alert aubridge,alert
      ausrc_srate \(rate)
      auplay_srate \(rate)
      ausrc_channels 1
      auplay_channels 1
      module_path \(Self.modules)
      module g711.so
      module g722.so
      module opus.so
      opus_stereo no
      opus_sprop_stereo no
      module aufile.so
      module aubridge.so
      module sndfile.so
      snd_path \(folder)
      module_app account.so
      module_app menu.so
      \(console.map { "module cons.so\ncons_listen \(host):\($0)" } ?? "")
      \(certificate.map { "module srtp.so\nsip_certificate \($0)\nsip_verify_server no" } ?? "")

      """
    try configuration.write(toFile: folder + "/config", atomically: true, encoding: .utf8)
    let way = certificate == nil ? "transport=\(transport)>" : "transport=tls>;mediaenc=srtp-mand"
    try "<sip:\(user)@\(host);\(way);regint=0;answermode=auto;audio_codecs=\(codec)\n".write(
      toFile: folder + "/accounts", atomically: true, encoding: .utf8)
    let words =
      (namespace.map { ["/sbin/ip", "netns", "exec", $0] } ?? []) + [Surroundings.baresip ?? "", "-f", folder] + arguments
    process = try Spawned("baresip", words[0], Array(words.dropFirst()), in: folder)
  }

  /// Debian's multiarch or plain module folder.
  private static var modules: String {
    ["/usr/lib/baresip/modules", "/usr/local/lib/baresip/modules"]
      .first { FileManager.default.fileExists(atPath: $0) } ?? "/usr/lib/baresip/modules"
  }

  func expectReady() async throws {
    let isReady = await eventually(within: 10) { self.process.text.contains("baresip is ready") }
    guard isReady else { throw Spawned.Failure(description: text) }
  }

  /// Speaks from another file with samples at its rate from now on; silence after the file's end, until it hangs up.
  func say(_ path: String) throws {
    guard let console else { throw Spawned.Failure(description: "it has no console") }
    let own = folder + "/said-\(UUID().uuidString.prefix(8)).wav"
    try Speech.write(try Speech.read(path) + Self.silence, own)
    try RawTrunk(toward: console).send("/ausrc aufile,\(own)\n")
  }

  /// Ends it once its call is over and its files are closed. A test runner may have blocked gentler signals for its children.
  func quit() async throws {
    process.signal(SIGKILL)
    try await process.finish(within: 10)
  }

  /// The path of the audio that its decoder wrote.
  func heard() throws -> String {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    guard let name = names.first(where: { $0.hasSuffix("-dec.wav") }) else {
      throw Spawned.Failure(description: "heard nothing:\n\(text)")
    }
    return folder + "/" + name
  }
}
