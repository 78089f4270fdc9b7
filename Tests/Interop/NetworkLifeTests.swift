import Bytes
import Foundation
import Testing

extension Interop {
  /// Interfaces and addresses that come, go and change while the gateway runs, in the suite's own network.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && TranslatedNetwork.missing == nil), "no root or no ip"),
    .serialized)
  struct NetworkLifeTests {
    private static let (first, second) = ("198.51.100.1", "198.51.100.2")

    /// The one interface beside loopback: down at first, and without an address.
    private final class Link {
      private let folder = NSTemporaryDirectory()

      init() async throws {
        try await run("ip link set net0 down; ip link add gnd0 type veth peer name gnd1; ip link set gnd1 up")
      }

      /// Back to what the suite's other tests have; to be called at the end, also of a test that failed.
      func remove() async throws {
        try await run("ip link del gnd0; ip link set net0 up; ip route replace default dev net0")
      }

      func up(_ address: String) async throws {
        try await run("ip link set gnd0 up; ip addr add \(address)/24 dev gnd0; ip route replace default dev gnd0")
      }
      func remove(_ address: String) async throws { try await run("ip addr del \(address)/24 dev gnd0") }
      private func run(_ script: String) async throws {
        let shell = try Spawned("ip", "/bin/sh", ["-c", "PATH=$PATH:/sbin:/usr/sbin; \(script)"], in: folder)
        #expect(try await shell.finish(within: 20) == 0, "\(shell.text)")
      }
    }

    private func gateway(sip address: String = "0.0.0.0", media: String = "[ auto ]", unready: Set<String> = []) async throws
      -> GatewayUnderTest
    {
      let sip = try FreePorts.both()
      let app = try FreePorts.tcp(beside: [sip])
      let admin = try FreePorts.tcp(beside: [sip, app])
      return try await GatewayUnderTest(
        [
          "listen: { sip: { udp: \"\(address):\(sip)\" }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
          "trunks: [ { name: carrier, peers: [127.0.0.0/8, 198.51.100.0/24], uri: \"sip:203.0.113.9:5060\" } ]",
        ], media: media, ports: (sip, app, admin), unready: unready)
    }

    /// Why the component is not ready; nil if it is.
    private func reason(_ gateway: GatewayUnderTest) throws -> String? {
      let page = try JSONSerialization.jsonObject(with: Data(try gateway.get("/readyz").body.utf8)) as? [String: Any]
      let rows = try #require(page?["components"] as? [[String: Any]])
      return try #require(rows.first { $0["name"] as? String == "addresses" })["reason"] as? String
    }

    private func lines(_ gateway: GatewayUnderTest, _ text: String) -> Int {
      gateway.process.text.split(separator: "\n").count { $0.contains(text) }
    }

    /// A call of a trunk on this machine that `alice` takes.
    private func call(_ gateway: GatewayUnderTest, device: String, seconds: Double = 0.3) async throws {
      let phone = try await Peers.phone(
        gateway, device: device, ["--answer-after", "0.1", "--end-after", "\(seconds)", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(gateway.process.text)")
      #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(2_000))")
    }

    @Test func `an interface that comes after the start: not ready until then, and peers are told its address`()
      async throws
    {
      let link = try await Link()
      do {
        let gateway = try await gateway(unready: ["addresses"])
        let why = try #require(try reason(gateway))
        #expect(why.contains("auto finds no address"), "\(why)")
        #expect(try gateway.get("/readyz").status == 503)
        #expect(lines(gateway, "no usable address") == 1, "\(gateway.process.text)")
        let check = try Spawned(
          "check", Surroundings.trunkline, ["serve", "--check", "--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
        #expect(try await check.finish(within: 10) == 0 && check.text.contains("auto finds no address"), "\(check.text)")
        try await link.up(Self.first)
        #expect(await eventually(within: 10) { try reason(gateway) == nil }, "\(gateway.process.text)")
        let isTold = await eventually(within: 5) {
          lines(gateway, "usable addresses again") == 1 && lines(gateway, "peers see") > 0
            && gateway.process.text.contains("signalling=\(Self.first):\(gateway.sip)")
        }
        #expect(isTold, "\(gateway.process.text)")
        try await call(gateway, device: "d1")
        try await gateway.finish()
        #expect(lines(gateway, "no usable address") == 1 && lines(gateway, "usable addresses again") == 1)
      } catch {
        try await link.remove()
        throw error
      }
      try await link.remove()
    }

    @Test func `a listener whose address comes after the start is waited for, and answers from then on`() async throws {
      let link = try await Link()
      do {
        let gateway = try await gateway(sip: Self.second, media: "[ 198.51.100.2 ]", unready: ["addresses"])
        let why = try #require(try reason(gateway))
        #expect(why.contains("listen.sip.udp: \(Self.second)") && why.contains("media.addresses: \(Self.second)"), "\(why)")
        let check = try Spawned(
          "check", Surroundings.trunkline, ["serve", "--check", "--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
        #expect(
          try await check.finish(within: 10) == 0 && check.text.contains("\(Self.second) is no address of this machine"),
          "\(check.text)")
        try await link.up(Self.first)
        try await link.up(Self.second)
        #expect(await eventually(within: 10) { try reason(gateway) == nil }, "\(gateway.process.text)")
        let trunk = try RawTrunk(toward: gateway.sip, at: IPAddress(198, 51, 100, 2), from: IPAddress(198, 51, 100, 1))
        trunk.send(
          """
          OPTIONS sip:gw@\(Self.second) SIP/2.0\r\nVia: SIP/2.0/UDP \(trunk.address);branch=z9hG4bKlife\r\nMax-Forwards: 70\r\n\
          From: <sip:a@\(Self.first)>;tag=1\r\nTo: <sip:gw@\(Self.second)>\r\nCall-ID: life\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n
          """)
        #expect(trunk.receive(within: 5_000)?.hasPrefix("SIP/2.0 200") == true, "\(gateway.process.text)")
        try await link.remove(Self.second)
        #expect(await eventually(within: 10) { try reason(gateway)?.contains(Self.second) == true })
        #expect(try gateway.get("/readyz").status == 503)
        try await gateway.finish()
      } catch {
        try await link.remove()
        throw error
      }
      try await link.remove()
    }
  }
}
