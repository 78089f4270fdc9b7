import Foundation
import Glibc
import Testing

extension Interop {
  /// An app without UDP: aiortc → TCP → coturn → gateway → sipp. On the TURN side only the credentials are ours.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct TURNTests {
    private static let turnserver = "/usr/bin/turnserver"

    private func gateway(_ turn: UInt16, transport: String = "tcp") async throws -> GatewayUnderTest {
      // The secret is a line of a file that exists: the key of the login tokens.
      try await GatewayUnderTest([
        "turn: { urls: [ \"turn:127.0.0.1:\(turn)?transport=\(transport)\" ], secret_file: jwt.key, ttl: 10m }"
      ])
    }

    private func server(_ port: UInt16, secret: String = "0123456789abcdef0123456789abcdef", in folder: String) async throws
      -> Spawned
    {
      let ports = try FreePorts.row(8)
      let server = try Spawned(
        "turnserver", Self.turnserver,
        [
          "-n", "--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1", "--listening-port", "\(port)", "--min-port", "\(ports)",
          "--max-port", "\(ports + 7)", "--use-auth-secret", "--static-auth-secret", secret, "--realm", "turn.test",
          "--allow-loopback-peers", "--no-tls", "--no-dtls", "--no-cli", "--log-file", "stdout", "--pidfile",
          folder + "/turn.pid",
          "--userdb", folder + "/turn.db", "--simple-log", "--verbose",
        ], in: folder)
      guard await eventually(within: 10, { FreePorts.isTaken(port) }) else { throw Spawned.Failure(description: server.text) }
      return server
    }

    @Test(.tags(.audio), arguments: ["tcp", "udp"])
    func `a call over a TURN server, with the credentials of welcome, has sound both ways`(transport: String) async throws {
      try #require(FileManager.default.isExecutableFile(atPath: Self.turnserver), "no coturn: run Scripts/install test")
      try await expectGoodAudio {
        let port = try FreePorts.both()
        let gateway = try await gateway(port, transport: transport)
        let server = try await server(port, in: gateway.folder)
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let phone = try await Peers.phone(
          gateway, ["--relay", "--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.5", "--calls", "1"])
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "10000"])
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        #expect(try await audio.peer.finish(within: 10) == 0)
        #expect(server.text.contains("ALLOCATE processed, success"), "\(server.text.suffix(6_000))")
        #expect(server.text.contains(":alice>"), "the user's id is in the server's log: \(server.text.suffix(6_000))")
        server.signal(SIGTERM)
        _ = await eventually(within: 10) { !server.isRunning }
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `a call of a later hour goes by the credentials that auth.refresh brought`() async throws {
      try #require(FileManager.default.isExecutableFile(atPath: Self.turnserver), "no coturn: run Scripts/install test")
      let port = try FreePorts.both()
      let gateway = try await gateway(port)
      let server = try await server(port, in: gateway.folder)
      let phone = try await Peers.phone(gateway, ["--relay", "--answer-after", "0.5", "--calls", "1"])
      phone.type("refresh")
      let refreshed = try await phone.event("refreshed")
      let user = try #require((refreshed["users"] as? [String])?.first, "\(refreshed)")
      let caller = try Peers.caller(gateway, "call", ["-d", "1000"])
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let isAllocated = server.text.contains("<\(user)>") && server.text.contains("ALLOCATE processed, success")
      #expect(isAllocated, "\(user): \(server.text.suffix(6_000))")
      server.signal(SIGTERM)
      _ = await eventually(within: 10) { !server.isRunning }
      try await gateway.finish()
    }

    @Test func `a server with another secret accepts no client: the call rings, and then fails with its reason`() async throws {
      let port = try FreePorts.both()
      let gateway = try await gateway(port)
      let server = try await server(port, secret: "another", in: gateway.folder)
      let phone = try await Peers.phone(gateway, ["--relay", "--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 40) == 0, "\(caller.text.suffix(6_000))")
      #expect(server.text.contains("401") || server.text.contains("credentials"), "\(server.text.suffix(6_000))")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "mediaTimeout", "\(record)")
      for peer in [phone, server] {
        peer.signal(SIGTERM)
        _ = await eventually(within: 10) { !peer.isRunning }
      }
      try await gateway.finish()
    }

    enum App: CaseIterable { case aiortc, chromium }

    @Test(
      .tags(.audio),
      .enabled(if: Surroundings.isRequired || (TranslatedNetwork.missing == nil && Surroundings.chromium != nil)),
      arguments: App.allCases)
    func `behind a firewall without UDP there is sound within 3 s of the tap, over TLS on port 443`(app: App) async throws {
      let office = try await OfficeUnderTest("turns:\(OfficeNetwork.world):443?transport=tcp")
      let gateway = office.gateway
      let phone: Spawned
      switch app {
      case .aiortc:
        let token = try await gateway.token("alice", "d1")
        phone = try Peers.python(
          "phone", "app_phone.py",
          [
            "--url", "ws://127.0.0.1:8080/v1/connect", "--token", token, "--device", "d1", "--turn", "--play", "app.wav",
            "--record",
            "app-heard.wav", "--answer-after", "0.2", "--end-after", "5", "--calls", "1",
          ], in: office.network, gateway)
        _ = try await phone.event("welcome", within: 15)
      case .chromium:
        let token = try await gateway.token("alice", "web")
        phone = try Peers.python(
          "browser", "browser_phone.py",
          [
            "--url", "http://127.0.0.1:8080/#token=\(token)", "--any-certificate", "--seconds", "40", "--answer", "--loop",
            "--play",
            "app.wav", "--record", "app-heard.wav", "--hangup-after", "5",
          ], in: office.network, gateway)
        _ = try await phone.event("line", within: 30) { $0["state"] as? String == "online" }
      }
      let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(gateway, "call_until_bye", audio: audio.port)
      #expect(try await caller.finish(within: 40) == 0, "\(caller.text.suffix(6_000))\n\(phone.text.suffix(4_000))")
      _ = try await phone.finish(within: 20)
      try await audio.peer.finish(within: 10)
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Int])
      let tap = try #require(times["answered"])
      print("\(app) over TURN on TLS: connected \((times["connected"] ?? 0) - tap) ms after the tap")
      #expect(try #require(times["connected"]) - tap < 3_000, "\(times)")
      try office.expectSound()
      #expect(try await office.network.dropped(in: gateway.folder) > 0, "nothing tried to go by UDP")
      try await office.finish()
    }
  }
}
