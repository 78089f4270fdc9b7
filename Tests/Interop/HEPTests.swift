import Foundation
import Testing

extension Interop {
  /// What a capture server gets, received by sngrep as the capture server: Debian's tshark has no dissector of HEP.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.tshark != nil && Surroundings.sngrep != nil),
      "no tshark or sngrep: run Scripts/install test"), .serialized)
  struct HEPTests {
    private struct Server {
      let port: UInt16
      let folder: String
      private let sngrep: Spawned

      init() async throws {
        let port = try FreePorts.row(1)
        folder = NSTemporaryDirectory() + "hep-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        sngrep = try Spawned(
          "sngrep", Surroundings.sngrep ?? "", ["-F", "-N", "-q", "-L", "udp:127.0.0.1:\(port)", "-O", "captured.pcap"],
          in: folder,
          environment: ["TERM": "dumb", "HOME": folder])
        guard await eventually(within: 10, { FreePorts.isTaken(port) }) else {
          throw Spawned.Failure(description: "sngrep does not listen: \(sngrep.text)")
        }
        self.port = port
      }

      /// Source and destination port, method or status, and user name of Digest, of each message that it took.
      func finish() async throws -> [[String]] {
        sngrep.signal(SIGTERM)
        #expect(try await sngrep.finish(within: 10) == 0, "\(sngrep.text)")
        let fields = [
          "udp.srcport", "udp.dstport", "sip.Method", "sip.Status-Code", "sip.auth.username", "sip.auth.digest.response",
        ]
        let tshark = try Spawned(
          "tshark", Surroundings.tshark ?? "",
          ["-r", "captured.pcap", "-d", "udp.port==1-65535,sip", "-T", "fields", "-E", "separator=|"]
            + fields.flatMap { ["-e", $0] },
          in: folder)
        #expect(try await tshark.finish(within: 30) == 0, "\(tshark.text)")
        let rows = tshark.text.split(separator: "\n").map {
          $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        }
        try FileManager.default.removeItem(atPath: folder)
        return rows.filter { $0.count == fields.count }
      }
    }

    @Test func `a call is captured with its ports, and its secrets are masked`() async throws {
      let server = try await Server()
      let gateway = try await GatewayUnderTest(
        ["hep: { address: 127.0.0.1:\(server.port), capture_id: 77 }"], trunk: "auth: { username: u, password_file: password }")
      let carrier = try await Peers.callee(gateway, "answer_digest")
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.5", "--calls", "1"])
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      // INVITE, 401, ACK, INVITE, 180, 200, ACK, BYE, 200
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_hep_packets_total", "sent") >= 9 })
      let rows = try await server.finish()
      let ours = ["\(gateway.sip)", "\(gateway.carrier)"]
      #expect(rows.count { Array($0.prefix(3)) == ours + ["INVITE"] } == 2, "\(rows)")
      #expect(rows.contains { Array($0.prefix(4)) == ours.reversed() + ["", "401"] }, "\(rows)")
      #expect(rows.contains { Array($0.prefix(3)) == ours + ["BYE"] }, "\(rows)")
      let login = try #require(rows.first { $0[4].contains("u") })
      #expect(login[4] == "\"u\"" || login[4] == "u")
      #expect(login[5].allSatisfy { "\"*x".contains($0) }, "the answer to the challenge is captured: \(login)")
      try await gateway.finish()
    }

    @Test func `a capture server that is away costs no call`() async throws {
      let gateway = try await GatewayUnderTest(["hep: 127.0.0.1:9"])
      let caller = try Peers.caller(gateway, "refused_480")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_hep_packets_total") >= 3 })
      try await gateway.finish()
    }
  }
}
