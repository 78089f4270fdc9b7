import Bytes
import Foundation
import Platform
import Testing

extension Interop {
  /// What a capture server gets, read by tshark's dissector.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.tshark != nil),
      "no tshark: run Scripts/install test"), .serialized)
  struct HEPTests {
    /// Datagrams as tshark reads them from a text of hexadecimal octets.
    private func fields(_ datagrams: [[UInt8]], in folder: String) async throws -> [[String]] {
      let text = datagrams.map { bytes in
        "0000 " + bytes.map { String(format: "%02x", $0) }.joined(separator: " ") + "\n"
      }.joined(separator: "\n")
      try text.write(toFile: folder + "/hep.txt", atomically: true, encoding: .utf8)
      let made = try Spawned("text2pcap", "/usr/bin/text2pcap", ["-q", "-u", "4000,9060", "hep.txt", "hep.pcap"], in: folder)
      #expect(try await made.finish(within: 20) == 0, "\(made.text)")
      let tshark = try Spawned(
        "tshark", Surroundings.tshark ?? "",
        [
          "-n", "-r", "hep.pcap", "-d", "udp.port==9060,hep", "-T", "fields", "-e", "hep.src_port", "-e", "hep.dst_port", "-e",
          "hep.capture_id", "-e", "sip.Method", "-e", "sip.Status-Code",
        ],
        in: folder)
      #expect(try await tshark.finish(within: 60) == 0, "\(tshark.text)")
      return tshark.text.split(separator: "\n").filter { $0.contains("\t") }.map {
        $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      }
    }

    @Test func `a call is captured with its ports and agent, secrets are masked, and a server that is away costs nothing`()
      async throws
    {
      let server = try UDPSocket(bind: SocketAddress(.loopback, 0), receiveBufferBytes: 1 << 20)
      let gateway = try await GatewayUnderTest(
        ["hep: { address: \(server.localAddress), capture_id: 77 }"], trunk: "auth: { username: u, password_file: password }")
      let carrier = try await Peers.callee(gateway, "answer_digest")
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.5", "--calls", "1"])
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(2_000))")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_hep_packets_total", "sent") >= 8 })
      var datagrams: [[UInt8]] = []
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while let (count, _) = try buffer.withUnsafeMutableBytes({ try server.receive(into: $0) }) {
        datagrams.append(Array(buffer.prefix(count)))
      }
      let rows = try await fields(datagrams, in: gateway.folder)
      #expect(rows.count == datagrams.count && rows.allSatisfy { $0.count == 5 && $0[2] == "77" }, "\(rows)")
      #expect(rows.contains { $0[0] == "\(gateway.sip)" && $0[1] == "\(gateway.carrier)" && $0[3] == "INVITE" }, "\(rows)")
      #expect(rows.contains { $0[0] == "\(gateway.carrier)" && $0[1] == "\(gateway.sip)" && $0[4] == "401" })
      #expect(rows.contains { $0[3] == "BYE" } && rows.contains { $0[4] == "200" })
      let all = datagrams.map { String(decoding: $0, as: UTF8.self) }.joined()
      #expect(all.contains("username=\"u\"") && !all.contains("47364c23432d2e131a5fb210812c"))
      try await gateway.finish()

      let away = try await GatewayUnderTest(["hep: 127.0.0.1:9"])
      let caller = try Peers.caller(away, "refused_480")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(2_000))")
      #expect(await eventually(within: 5) { try away.sum("trunkline_hep_packets_total") >= 3 })
      try await away.finish()
    }
  }
}
