import Foundation
import Testing

extension Interop {
  /// TLS toward trunks with `openssl` at the other end: which peers are accepted, and which certificates.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TLSTrunkTests {
    @Test func `mutual TLS: openssl is heard with TLS 1.2 and 1.3 and a certificate of the right authority, and not without`()
      async throws
    {
      let folders = [
        try await OpenSSL.certificate("gateway.example"), try await OpenSSL.certificate("client.example"),
        try await OpenSSL.certificate("stranger.example"),
      ]
      defer { for folder in folders { try? FileManager.default.removeItem(atPath: folder) } }
      let (own, client, stranger) = (folders[0], folders[1], folders[2])
      let (sip, tls, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp(), try FreePorts.tcp())
      let files = "cert: \(own)/sip.pem, key: \(own)/sip.key, ca: \(client)/sip.pem, clients: required"
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), \(files) } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }"
        ], ports: (sip, app, admin))
      let theirs = ["-cert", client + "/sip.pem", "-key", client + "/sip.key"]
      for (arguments, isAnswered) in [
        (["-tls1_2"] + theirs, true), (["-tls1_3"] + theirs, true), (["-tls1_2"], false), (["-tls1_3"], false),
        (["-tls1_2", "-cert", stranger + "/sip.pem", "-key", stranger + "/sip.key"], false),
        (["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"] + theirs, false),
        (["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"] + theirs, true),
        (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA"] + theirs, false),
      ] {
        let answered = try await asks(tls, arguments, in: own)
        #expect(answered == isAnswered, "\(arguments)")
      }
      // The certificate is valid for two days, which the metric reports.
      let expires = try gateway.sum("trunkline_certificate_expires_seconds", "use=\"sip\"")
      #expect((1...2 * 86_400 + 60).contains(expires - Date().timeIntervalSince1970))
      let warnings = gateway.process.text.split(separator: "\n").filter { $0.contains("a certificate expires soon") }
      #expect(warnings.count == 1 && warnings[0].contains("\(own)/sip.pem"), "\(warnings)")
      try await gateway.finish()
    }

    private func asks(_ port: UInt16, _ arguments: [String], in folder: String) async throws -> Bool {
      let client = try Spawned(
        "s_client", "/usr/bin/openssl", ["s_client", "-connect", "127.0.0.1:\(port)", "-quiet"] + arguments, in: folder)
      let lines = [
        "OPTIONS sip:127.0.0.1 SIP/2.0", "Via: SIP/2.0/TLS 127.0.0.1:9;branch=z9hG4bKs;rport", "From: <sip:a@127.0.0.1>;tag=1",
        "To: <sip:127.0.0.1>", "Call-ID: mutual", "CSeq: 1 OPTIONS", "Max-Forwards: 70", "Content-Length: 0", "",
      ]
      client.type(lines.joined(separator: "\r\n") + "\r")
      _ = await eventually(within: 5) { client.text.contains("SIP/2.0 200") || !client.isRunning }
      client.signal(SIGKILL)
      _ = try? await client.finish(within: 5)
      return client.text.contains("SIP/2.0 200")
    }

    @Test(arguments: [("127.0.0.1", true), ("elsewhere.example", false)])
    func `outbound the name is verified: a probe goes to whom the certificate is for, and to nobody else`(
      name: String, isGood: Bool
    ) async throws {
      let folder = try await OpenSSL.certificate(name, alternatives: isGood ? "IP:127.0.0.1" : "DNS:" + name)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (sip, tls, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp(), try FreePorts.tcp())
      let port = try FreePorts.tcp()
      let server = try Spawned(
        "s_server", "/usr/bin/openssl",
        ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", "sip.pem", "-key", "sip.key", "-naccept", "3"], in: folder)
      #expect(await eventually(within: 10) { FreePorts.isTaken(port) })
      let gateway = try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tls: { address: 127.0.0.1:\(tls), cert: \(folder)/sip.pem, key: \(folder)/sip.key } }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
          "trunks: [ { name: carrier, peers: [127.0.0.1], uri: \"sip:127.0.0.1:\(port);transport=tls\", tls: { ca: \(folder)/sip.pem }, probe: 1s } ]",
        ], ports: (sip, app, admin))
      if isGood {
        #expect(await eventually(within: 10) { server.text.contains("OPTIONS sip:127.0.0.1") }, "\(server.text.suffix(6_000))")
      } else {
        #expect(await eventually(within: 10) { server.text.contains("ERROR") || server.text.contains("alert") })
        #expect(!server.text.contains("OPTIONS"), "\(server.text.suffix(6_000))")
      }
      server.signal(SIGKILL)
      _ = try? await server.finish(within: 5)
      try await gateway.finish()
    }
  }
}
