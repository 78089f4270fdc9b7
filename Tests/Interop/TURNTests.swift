import Foundation
import Glibc
import Testing

extension Interop {
  /// An app whose UDP reaches nobody: aiortc → TCP → coturn → gateway → sipp. Nothing of the TURN side is ours but the credentials.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TURNTests {
    private static let turnserver = "/usr/bin/turnserver"

    private func gateway(_ turn: UInt16, transport: String = "tcp") async throws -> GatewayUnderTest {
      // The key of the login tokens is a line of a file that is there.
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

    @Test(arguments: ["tcp", "udp"])
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
        #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(2_000))")
        #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
        #expect(try await audio.peer.finish(within: 10) == 0)
        #expect(server.text.contains("ALLOCATE processed, success"), "\(server.text.suffix(2_000))")
        #expect(server.text.contains(":alice>"), "the user's id is in the server's log: \(server.text.suffix(2_000))")
        server.signal(SIGTERM)
        _ = await eventually(within: 10) { !server.isRunning }
        let faults =
          try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `a server with another secret takes nobody: the call fails with its reason, and before that rings`() async throws {
      let port = try FreePorts.both()
      let gateway = try await gateway(port)
      let server = try await server(port, secret: "another", in: gateway.folder)
      let phone = try await Peers.phone(gateway, ["--relay", "--answer-after", "0.1"])
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 40) == 0, "\(caller.text.suffix(2_000))")
      #expect(server.text.contains("401") || server.text.contains("credentials"), "\(server.text.suffix(2_000))")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "mediaTimeout", "\(record)")
      for peer in [phone, server] {
        peer.signal(SIGTERM)
        _ = await eventually(within: 10) { !peer.isRunning }
      }
      try await gateway.finish()
    }

    enum App: CaseIterable { case aiortc, chromium, swift }

    @Test(
      .enabled(if: Surroundings.isRequired || (TranslatedNetwork.missing == nil && Surroundings.chromium != nil)),
      arguments: App.allCases)
    func `behind a firewall without UDP there is sound within 3 s of the tap, over TLS on port 443`(app: App) async throws {
      let folder = NSTemporaryDirectory() + "trunkline-office-\(getpid())"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let office = try await OfficeNetwork(in: folder)
      let host = OfficeNetwork.world
      let gateway = try await GatewayUnderTest(
        ["turn: { urls: [ \"turns:\(host):443?transport=tcp\" ], secret_file: jwt.key }"], media: "[ \(host), 127.0.0.1 ]")
      let certificate = try Spawned(
        "openssl", "/usr/bin/openssl",
        [
          "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=turn.test", "-addext",
          "subjectAltName=IP:\(host)",
          "-keyout", "turn.key", "-out", "turn.pem",
        ], in: gateway.folder)
      guard try await certificate.finish(within: 20) == 0 else { throw Spawned.Failure(description: certificate.text) }
      let ports = try FreePorts.row(8)
      let server = try Spawned(
        "turnserver", Self.turnserver,
        [
          "-n", "--listening-ip", host, "--relay-ip", host, "--tls-listening-port", "443", "--listening-port", "3478",
          "--min-port",
          "\(ports)", "--max-port", "\(ports + 7)", "--use-auth-secret", "--static-auth-secret",
          "0123456789abcdef0123456789abcdef",
          "--realm", "turn.test", "--cert", gateway.folder + "/turn.pem", "--pkey", gateway.folder + "/turn.key", "--no-cli",
          "--log-file", "stdout", "--pidfile", gateway.folder + "/turn.pid", "--userdb", gateway.folder + "/turn.db",
        ], in: gateway.folder)
      guard await eventually(within: 10, { FreePorts.isTaken(443) }) else { throw Spawned.Failure(description: server.text) }
      // The app port is on loopback at both ends: there a page needs no TLS to have a microphone.
      let door = try Peers.python(
        "door", "tcp_path.py", ["--listen", "8080", "--address", host, "--to", "\(gateway.app)"], gateway)
      let path = try Peers.python(
        "path", "tcp_path.py", ["--listen", "8080", "--to", "8080", "--host", host], in: office, gateway)
      for peer in [door, path] { _ = try await peer.event("listening", within: 10) }
      try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
      try Speech.write(Speech.app, gateway.folder + "/app.wav")
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
          ], in: office, gateway)
        _ = try await phone.event("welcome", within: 15)
      case .chromium:
        let token = try await gateway.token("alice", "web")
        phone = try Peers.python(
          "browser", "browser_phone.py",
          [
            "--url", "http://127.0.0.1:8080/#token=\(token)", "--any-certificate", "--seconds", "40", "--answer", "--loop",
            "--play",
            "app.wav", "--record", "app-heard.wav", "--hangup-after", "5",
          ], in: office, gateway)
        _ = try await phone.event("line", within: 30) { $0["state"] as? String == "online" }
      case .swift:
        phone = try await office.swiftPhone(
          gateway,
          ["--answer", "--answer-after", "0.2", "--talk", "5", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
      }
      let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(gateway, "call_until_bye", audio: audio.port)
      #expect(try await caller.finish(within: 40) == 0, "\(caller.text.suffix(2_000))\n\(phone.text.suffix(4_000))")
      _ = try await phone.finish(within: 20)
      try await audio.peer.finish(within: 10)
      let record = try #require(try await gateway.records(1).first)
      let times = try #require(record["times"] as? [String: Int])
      let tap = try #require(times["answered"])
      print("\(app) over TURN on TLS: connected \((times["connected"] ?? 0) - tap) ms after the tap")
      #expect(try #require(times["connected"]) - tap < 3_000, "\(times)")
      if app == .swift { #expect(phone.fields("pair", of: "media") == ["relay→host"], "\(phone.text)") }
      for file in ["app", "trunk"] {
        let heard = try Speech.read(gateway.folder + "/\(file)-heard.wav")
        #expect(heard.count { abs(Int($0)) > 500 } > 4_000, "\(file): nothing is heard")
      }
      #expect(try await office.dropped(in: gateway.folder) > 0, "nothing tried to go by UDP")
      for peer in [path, door, server] {
        peer.signal(SIGTERM)
        _ = await eventually(within: 10) { !peer.isRunning }
      }
      try await gateway.finish()
    }
  }
}
