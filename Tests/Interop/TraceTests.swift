import Foundation
import Testing

extension Interop {
  /// `trunkline trace` against a gateway with calls by UDP, TCP and TLS, read by tshark.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.tshark != nil && Surroundings.sngrep != nil),
      "no tshark or sngrep: run Scripts/install test"),
    .serialized)
  struct TraceTests {
    private let secrets = ["s3cr3tresponse", "s3cr3tnonce", "c3Jjc2VjcmV0a2V5", "eyJhbGciOiJFUzI1NiJ9"]

    @Test func `tshark reads a trunk's calls of UDP, TCP and TLS, and no secret`() async throws {
      let (sip, app, admin, tls) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp(), try FreePorts.tcp())
      let folder = try await OpenSSL.certificate("trace.example")
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tcp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), cert: \(folder)/sip.pem, key: \(folder)/sip.key } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }"
        ], trunk: "auth: { username: u, password_file: password }", ports: (sip, app, admin))
      let whole = try await trace(gateway, ["--trunk", "carrier"], "trunk.pcapng")

      let carrier = try await Peers.callee(gateway, "answer_digest")
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "1.5", "--calls", "1"])
      _ = try await phone.event("call.connected")
      let calls = try JSONSerialization.jsonObject(with: Data(try gateway.get("/v1/calls").body.utf8)) as? [String: Any]
      let call = try #require((calls?["calls"] as? [[String: Any]])?.first)
      let id = try #require(call["call"] as? String), callID = try #require(call["sipCallId"] as? String)
      let single = try await trace(gateway, ["--call", id], "call.pcapng")
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      let tcp = try Peers.caller(gateway, "refused_480", ["-t", "t1"])
      #expect(try await tcp.finish(within: 20) == 0, "\(tcp.text.suffix(6_000))")
      try await askByTLS(tls, folder)
      askWithSecrets(try RawTrunk(gateway), gateway)

      for (number, command) in [whole, single].enumerated() {
        #expect(try HTTP.request("POST", "/v1/traces/\(number + 1)/stop", port: admin).status == 202)
        #expect(try await command.finish(within: 10) == 0, "\(command.text)")
      }
      let all = try await tshark(gateway.folder, "trunk.pcapng")
      let calledBack = all.filter { $0.callID == callID }
      #expect(calledBack.map(\.summary).prefix(4) == ["INVITE", "401", "ACK", "INVITE"])
      #expect(calledBack.contains { $0.summary == "BYE" })
      #expect(calledBack.dropFirst(2).allSatisfy { $0.comment.contains("call \(id)") })
      #expect(all.contains { $0.ports.contains("\(tls)") && $0.summary == "OPTIONS" && $0.comment.hasSuffix("decrypted") })
      #expect(all.contains { $0.ports.contains("\(tls)") && $0.summary == "200" })
      #expect(all.contains { $0.protocols.contains("tcp") && $0.summary == "INVITE" } && all.contains { $0.summary == "480" })
      #expect(all.allSatisfy { $0.summary != "" }, "every packet is a whole message")
      let one = try await tshark(gateway.folder, "call.pcapng")
      #expect(!one.isEmpty && one.allSatisfy { $0.callID == callID })

      try await expectReadable(gateway.folder, messages: all)
      let bytes = String(decoding: try Data(contentsOf: URL(fileURLWithPath: gateway.folder + "/trunk.pcapng")), as: UTF8.self)
      for secret in secrets + ["47364c23432d2e131a5fb210812c"] { #expect(!bytes.contains(secret)) }
      #expect(bytes.contains("Signal=x\r\n") && bytes.contains("inline:xxxx") && bytes.contains("username=\"u\""))
      #expect(bytes.contains("none dropped; it was stopped"))
      try await gateway.finish()
    }

    @Test func `what can not be traced is said, and ends with an error`() async throws {
      let gateway = try await GatewayUnderTest()
      for (arguments, says) in [
        (["--trunk", "nobody"], "no such trunk"), (["--call", "5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11"], "no such call"),
        (["--trunk", "carrier", "--for", "2y"], "--for needs a time"),
      ] {
        let command = try start(gateway, arguments, "none.pcapng")
        #expect(try await command.finish(within: 10) != 0)
        #expect(command.text.contains(says), "\(command.text)")
      }
      try await gateway.finish()
    }

    private func start(_ gateway: GatewayUnderTest, _ arguments: [String], _ file: String) throws -> Spawned {
      try Spawned(
        "trace", Surroundings.trunkline, ["trace", "--admin", "127.0.0.1:\(gateway.admin)", "--out", file] + arguments,
        in: gateway.folder)
    }

    private func trace(_ gateway: GatewayUnderTest, _ arguments: [String], _ file: String) async throws -> Spawned {
      let command = try start(gateway, arguments, file)
      guard await eventually(within: 10, { command.text.contains("tracing") }) else {
        throw Spawned.Failure(description: command.text)
      }
      return command
    }

    private struct Packet {
      var summary: String, callID: String, ports: String, protocols: String, comment: String
    }

    private func tshark(_ folder: String, _ file: String) async throws -> [Packet] {
      let fields = ["sip.Method", "sip.Status-Code", "sip.Call-ID", "tcp.port", "udp.port", "frame.protocols", "frame.comment"]
      let command = try Spawned(
        "tshark", Surroundings.tshark ?? "", ["-r", file, "-T", "fields", "-E", "separator=|"] + fields.flatMap { ["-e", $0] },
        in: folder)
      #expect(try await command.finish(within: 20) == 0, "\(command.text)")
      return command.text.split(separator: "\n").map {
        $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
      }
      .filter { $0.count == fields.count }
      .map {
        Packet(summary: $0[0].isEmpty ? $0[1] : $0[0], callID: $0[2], ports: $0[3] + $0[4], protocols: $0[5], comment: $0[6])
      }
    }

    /// sngrep opens the file, follows its calls and writes their packets out again: all but what belongs to none.
    private func expectReadable(_ folder: String, messages: [Packet]) async throws {
      let command = try Spawned(
        "sngrep", Surroundings.sngrep ?? "", ["-N", "-q", "-I", "trunk.pcapng", "-O", "again.pcap"], in: folder,
        environment: ["TERM": "dumb", "HOME": folder])
      #expect(try await command.finish(within: 20) == 0, "\(command.text)")
      let again = try await tshark(folder, "again.pcap")
      #expect(again.count == messages.count, "\(again.map(\.summary)) of \(messages.map(\.summary))\n\(command.text)")
      #expect(Set(again.map(\.callID)) == Set(messages.map(\.callID)))
    }

    private func askByTLS(_ port: UInt16, _ folder: String) async throws {
      let client = try Spawned(
        "s_client", "/usr/bin/openssl", ["s_client", "-connect", "127.0.0.1:\(port)", "-quiet"], in: folder)
      let lines = [
        "OPTIONS sip:127.0.0.1 SIP/2.0", "Via: SIP/2.0/TLS 127.0.0.1:9;branch=z9hG4bKs;rport", "From: <sip:a@127.0.0.1>;tag=1",
        "To: <sip:127.0.0.1>", "Call-ID: by-tls", "CSeq: 1 OPTIONS", "Max-Forwards: 70", "Identity: \(secrets[3]).e30.c2ln",
        "Content-Length: 0", "",
      ]
      client.type(lines.joined(separator: "\r\n") + "\r")
      #expect(await eventually(within: 5) { client.text.contains("SIP/2.0 200") })
      client.signal(SIGKILL)
      _ = try await client.finish(within: 5)
    }

    private func askWithSecrets(_ raw: RawTrunk, _ gateway: GatewayUnderTest) {
      let credentials = "Digest username=\"u\", realm=\"r\", nonce=\"\(secrets[1])\", uri=\"sip:r\", response=\"\(secrets[0])\""
      let key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\(secrets[2])"
      let invite = raw.request("INVITE", to: "+15550000000", sdp: RawTrunk.offer("0", more: [key])).with(
        "Proxy-Authorization", credentials)
      gateway.note(invites: [invite.callID])
      #expect((raw.ask(invite, within: 5)?.code ?? 0) >= 300)
      var info = raw.request("INFO").with("Content-Type", "application/dtmf-relay")
      info.body = "Signal=7\r\nDuration=160\r\n"
      #expect(raw.ask(info, within: 5)?.code == 481)
    }
  }
}

/// Certificates that sign themselves.
enum OpenSSL {
  /// A new folder with `sip.pem` and `sip.key`.
  static func certificate(_ name: String, alternatives: String? = nil) async throws -> String {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-tls-\(UUID().uuidString.prefix(8))")
      .path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let made = try Spawned(
      "openssl", "/usr/bin/openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", "sip.key",
        "-out",
        "sip.pem", "-subj", "/CN=" + name, "-addext", "subjectAltName=" + (alternatives ?? "DNS:" + name + ",IP:127.0.0.1"),
      ], in: folder)
    guard try await made.finish(within: 20) == 0 else { throw Spawned.Failure(description: made.text) }
    return folder
  }
}
