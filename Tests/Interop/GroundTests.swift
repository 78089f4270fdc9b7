import Foundation
import Testing

extension Interop {
  /// Faults of a gateway's network: name servers that forward some types only, a firewall that refuses this machine's packets,
  /// and one that forgets a connection. In the suite's own network namespace, by nftables.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && TranslatedNetwork.missing == nil), "no root or no nft"),
    .serialized)
  struct GroundTests {
    /// An nftables rule for this network's output: matching packets are dropped, which a UDP socket sees as EPERM.
    struct Firewall {
      let folder: String
      init(dropping rule: String, in folder: String) async throws {
        self.folder = folder
        let rules = "table inet ground {\nchain out {\ntype filter hook output priority 0; policy accept;\n\(rule) drop\n}\n}\n"
        try rules.write(toFile: folder + "/ground.nft", atomically: true, encoding: .utf8)
        try await run(["-f", folder + "/ground.nft"])
      }
      func remove() async throws { try await run(["delete", "table", "inet", "ground"]) }
      private func run(_ arguments: [String]) async throws {
        let nft = try Spawned("nft", "/usr/sbin/nft", arguments, in: folder)
        #expect(try await nft.finish(within: 10) == 0, "\(nft.text)")
      }
    }

    @Test(arguments: ["failing:NAPTR,SRV", "dropping:NAPTR,SRV", "dropping:NAPTR,AAAA", "failing:SRV,AAAA"])
    func `a name server that answers some types only holds no call up, and the log names what it does not answer`(mode: String)
      async throws
    {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (dns, port) = (try FreePorts.udp(), try FreePorts.both())
      let server = try await NameServer(
        ["carrier.example": ["60 A 127.0.0.1"], "_sip._udp.carrier.example": ["60 SRV 1 1 \(port) carrier.example."]], port: dns,
        in: folder)
      server.peer.type(mode)
      _ = try await server.peer.event("mode") { $0["mode"] as? String == mode }
      let gateway = try await GatewayUnderTest([
        "dns: { servers: [ \"127.0.0.1:\(dns)\" ] }",
        "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:carrier.example\" } ]",
      ])
      #expect(await eventually(within: 15) { gateway.process.text.contains("trunk located") }, "\(gateway.process.text)")
      // without SRV it is the default port, which no other process in this network uses
      let carrier = try await Peers.callee(gateway, "answer", port: mode.contains("SRV") ? 5_060 : port)
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.3", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)\n\(gateway.process.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      let isNamed = await eventually(within: 20) {
        gateway.process.text.contains("names: a query has no answer") && gateway.process.text.contains("127.0.0.1:\(dns)")
      }
      #expect(isNamed, "\(gateway.process.text)")
      try await gateway.finish()
      withExtendedLifetime(server) {}
    }

    @Test
    func `resolv.conf that is empty at the start, and then has a name server, and then another: each is asked without a reload`()
      async throws
    {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (resolv, port) = (folder + "/resolv.conf", try FreePorts.both())
      func write(_ text: String) throws { try text.write(toFile: resolv, atomically: false, encoding: .utf8) }
      try write("")
      // not at 127.0.0.1, which is queried if the file names no server (resolv.conf(5))
      let server = try await NameServer(
        ["carrier.example": ["1 A 127.0.0.1"], "_sip._udp.carrier.example": ["1 SRV 1 1 \(port) carrier.example."]],
        address: "127.0.0.2", port: 53, in: folder)
      let gateway = try await GatewayUnderTest(
        ["trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:carrier.example\" } ]"],
        binary: try Surroundings.wrapped(
          "unshare --mount sh -c 'mount --bind \(resolv) /etc/resolv.conf; exec \"$@\"' sh", in: folder))
      #expect(!gateway.process.text.contains("trunk located"))
      try write("nameserver 127.0.0.2\n")
      #expect(await eventually(within: 15) { gateway.process.text.contains("trunk located") }, "\(gateway.process.text)")
      let carrier = try await Peers.callee(gateway, "answer", port: port)
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.3", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)\n\(gateway.process.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      // no server is there: it is queried nevertheless, as the log shows
      try write("nameserver 127.0.0.9\n")
      let isNamed = await eventually(within: 40) {
        gateway.process.text.split(separator: "\n").contains {
          $0.contains("names: a query has no answer") && $0.contains("127.0.0.9")
        }
      }
      #expect(isNamed, "\(gateway.process.text)")
      try await gateway.finish()
      withExtendedLifetime(server) {}
    }

    @Test func `a BYE that this machine's firewall refuses reaches the carrier once it may pass, and the call has one record`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      _ = try await phone.event("call.connected")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_calls", "connected") == 1 })
      let firewall = try await Firewall(dropping: "udp sport \(gateway.sip)", in: gateway.folder)
      phone.type("end")
      #expect(
        await eventually(within: 10) { gateway.process.text.contains("a SIP message was not sent") }, "\(gateway.process.text)")
      try await firewall.remove()
      #expect(try await caller.finish(within: 15) == 0, "the carrier heard no BYE: \(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 15) == 0, "\(phone.text)")
      _ = try await gateway.records(1)
      try await gateway.finish()
      #expect(gateway.records.count == 1)
    }

    @Test func `a connection that a firewall has forgotten costs the next call a new one, and no more`() async throws {
      let gateway = try await GatewayUnderTest([], carrier: FreePorts.both())
      let yaml = gateway.folder + "/gateway.yaml"
      let text = try String(contentsOfFile: yaml, encoding: .utf8)
      try text.replacing("sip:127.0.0.1:\(gateway.carrier)", with: "sip:127.0.0.1:\(gateway.carrier);transport=tcp")
        .write(toFile: yaml, atomically: true, encoding: .utf8)
      gateway.process.signal(SIGHUP)
      #expect(await eventually(within: 5) { gateway.process.text.contains("configuration read again") })
      let carrier = try await Peers.callee(gateway, "answer", ["-t", "t1", "-m", "2"])
      func call() async throws {
        let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--end-after", "0.3", "--calls", "1"])
        #expect(try await phone.finish(within: 40) == 0, "\(phone.text)\n\(gateway.process.text)")
      }
      try await call()
      let connections = try Spawned(
        "ss", "/usr/bin/ss", ["-Htn", "state", "established", "dport", "= :\(gateway.carrier)"], in: gateway.folder)
      #expect(try await connections.finish(within: 5) == 0)
      // columns: …, Send-Q, local address:port, peer
      let local = connections.text.split(separator: "\n").first?.split(separator: " ").dropFirst(2).first
      let port = try #require(local?.split(separator: ":").last.flatMap { UInt16($0) }, "\(connections.text)")
      let firewall = try await Firewall(dropping: "tcp sport \(port)", in: gateway.folder)
      try await call()
      try await firewall.remove()
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await gateway.records(2).count == 2)
      try await gateway.finish()
    }
  }
}
