import Foundation
import Glibc
import Testing
import TrunklineBytes

/// A function of glibc that the Glibc module leaves out.
@_silgen_name("setns") private func setns(_ fd: Int32, _ kind: Int32) -> Int32

extension Interop {
  /// Interfaces and addresses that appear, disappear and change while the gateway runs, in the suite's own network.
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

      /// Restores the network that the suite's other tests have; call it at the end, also of a test that failed.
      func remove() async throws {
        try await run("ip link del gnd0; ip link set net0 up; ip route replace default dev net0")
      }

      func up(_ address: String) async throws {
        try await run("ip link set gnd0 up; ip addr add \(address)/24 dev gnd0; ip route replace default dev gnd0")
      }
      func remove(_ address: String) async throws { try await run("ip addr del \(address)/24 dev gnd0") }
      /// Removes and restores the address twenty times in two seconds.
      func flap(_ address: String) async throws {
        try await run(
          """
          for turn in $(seq 20); do
            ip addr del \(address)/24 dev gnd0; sleep 0.05
            ip addr add \(address)/24 dev gnd0; ip route replace default dev gnd0; sleep 0.05
          done
          """)
      }
      private func run(_ script: String) async throws {
        let shell = try Spawned("ip", "/bin/sh", ["-c", "PATH=$PATH:/sbin:/usr/sbin; \(script)"], in: folder)
        #expect(try await shell.finish(within: 20) == 0, "\(shell.text)")
      }
    }

    private func gateway(sip address: String = "0.0.0.0", media: String = "[ auto ]", unready: Set<String> = []) async throws
      -> GatewayUnderTest
    {
      let sip = try FreePorts.both()
      let app = try FreePorts.tcp()
      let admin = try FreePorts.tcp()
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

    /// A call of a trunk on this machine that `alice` answers.
    private func call(_ gateway: GatewayUnderTest, device: String, seconds: Double = 0.3) async throws {
      let phone = try await Peers.phone(
        gateway, device: device, ["--answer-after", "0.1", "--end-after", "\(seconds)", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(gateway.process.text)")
      #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
    }

    @Test func `an interface that appears after the start: not ready until then, and peers get its address`()
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
          lines(gateway, "the machine has usable addresses again") == 1 && lines(gateway, "peers see") > 0
            && gateway.process.text.contains("signalling=\(Self.first):\(gateway.sip)")
        }
        #expect(isTold, "\(gateway.process.text)")
        try await call(gateway, device: "d1")
        try await gateway.finish()
        #expect(lines(gateway, "no usable address") == 1 && lines(gateway, "the machine has usable addresses again") == 1)
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
          try await check.finish(within: 10) == 0 && check.text.contains("\(Self.second) is not an address of this machine"),
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

    @Test func `an address that comes and goes ten times a second: a few lines of log, and a call after it`() async throws {
      let link = try await Link()
      do {
        try await link.up(Self.first)
        let gateway = try await gateway()
        let before = gateway.process.text.split(separator: "\n").count
        try await link.flap(Self.first)
        #expect(await eventually(within: 10) { try reason(gateway) == nil }, "\(gateway.process.text)")
        try await call(gateway, device: "d1")
        let said = gateway.process.text.split(separator: "\n").dropFirst(before).filter { line in
          ["network: ", "peers see", "address"].contains { line.contains($0) }
        }
        // the address disappeared twenty times and returned twenty times
        #expect(said.count <= 20, "\(said.joined(separator: "\n"))")
        try await gateway.finish()
      } catch {
        try await link.remove()
        throw error
      }
      try await link.remove()
    }

    /// The gateway's address toward its peers, which are on another machine, is replaced by another one.
    private final class OtherMachine: PhoneNetwork {
      static let peers = "198.51.100.9"
      override var cables: [String] { ["tllife"] }
      private var hosts: String { "/etc/netns/\(namespace)" }

      func make() async throws {
        try FileManager.default.createDirectory(atPath: hosts, withIntermediateDirectories: true)
        try name(NetworkLifeTests.first)
        try await run(
          """
          set -e
          ip netns add \(namespace); ip -n \(namespace) link set lo up
          ip link add tllife type veth peer name wire netns \(namespace)
          ip addr add \(NetworkLifeTests.first)/24 dev tllife; ip link set tllife up
          ip -n \(namespace) addr add \(Self.peers)/24 dev wire; ip -n \(namespace) link set wire up
          """)
      }

      /// Sets what `gateway.example` resolves to on the other machine, in the same file, which is mounted there.
      private func name(_ address: String) throws {
        try "\(address) gateway.example\n".write(toFile: hosts + "/hosts", atomically: false, encoding: .utf8)
      }

      func replaceAddress() async throws {
        try await run("ip addr del \(NetworkLifeTests.first)/24 dev tllife; ip addr add \(NetworkLifeTests.second)/24 dev tllife")
        try name(NetworkLifeTests.second)
      }

      /// A trunk's socket on the other machine: it stays in the network in which it was opened.
      func trunk(toward sip: UInt16) throws -> RawTrunk {
        let (here, there) = (open("/proc/self/ns/net", O_RDONLY), open("/run/netns/\(namespace)", O_RDONLY))
        defer { for fd in [here, there] { close(fd) } }
        guard setns(there, 0) == 0 else { throw Spawned.Failure(description: "no network \(namespace)") }
        defer { _ = setns(here, 0) }
        return try RawTrunk(toward: sip, at: IPAddress(198, 51, 100, 1), from: IPAddress(198, 51, 100, 9))
      }

      /// `isSecure`: apps on the other machine connect by TLS; else apps on this one. `trunk`: further settings of the trunk.
      func gateway(
        isSecure: Bool, carrier: UInt16 = 5_060, _ trunk: String = "", ports: (sip: UInt16, app: UInt16, admin: UInt16)
      ) async throws -> GatewayUnderTest {
        var app = "127.0.0.1:\(ports.app)"
        if isSecure {
          let certificate = try await OpenSSL.certificate("gateway.example")
          self.certificate = certificate
          app = "0.0.0.0:\(ports.app), tls: { cert: \(certificate)/sip.pem, key: \(certificate)/sip.key }"
        }
        return try await GatewayUnderTest(
          [
            "listen: { sip: { udp: 0.0.0.0:\(ports.sip) }, app: { address: \(app) }, admin: 127.0.0.1:\(ports.admin) }",
            "trunks: [ { name: carrier, peers: [127.0.0.0/8, 198.51.100.0/24], uri: \"sip:\(Self.peers):\(carrier)\"\(trunk) } ]",
          ], media: "[ auto ]", ports: ports)
      }

      static func ports() throws -> (sip: UInt16, app: UInt16, admin: UInt16) {
        let sip = try FreePorts.both()
        let app = try FreePorts.tcp()
        return (sip, app, try FreePorts.tcp())
      }

      deinit { try? FileManager.default.removeItem(atPath: hosts) }
    }

    @Test func `our address is replaced in a call: the app restarts at the new one, under the name that it knows`() async throws {
      let network = OtherMachine()
      try await network.make()
      let gateway = try await network.gateway(isSecure: true, ports: OtherMachine.ports())
      let phone = try await network.phone(gateway, at: "gateway.example", ["--answer", "--calls", "1"])
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "60"])
      _ = try await phone.event("firstAudio", within: 10)
      let before = phone.fields("pair", of: "media").count
      try await network.replaceAddress()
      let isBack = await eventually(within: 40) { phone.fields("pair", of: "media").count > before }
      #expect(isBack, "no new pair\n\(phone.text)\n\(gateway.process.text.suffix(6_000))")
      trunk.signal(SIGTERM)
      _ = try await trunk.finish(within: 10)
      _ = try await phone.finish(within: 20)
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup", "\(record)")
      try await gateway.finish()
    }

    @Test func `our address is replaced in a call: its trunk is told by one re-INVITE, a call at another address hears nothing`()
      async throws
    {
      let network = OtherMachine()
      try await network.make()
      let ports = try OtherMachine.ports()
      let gateway = try await network.gateway(isSecure: false, ports: ports)
      let (moved, other) = (try network.trunk(toward: ports.sip), try RawTrunk(gateway))
      var phones: [Spawned] = []
      for user in ["alice", "bob"] {
        phones.append(try await Peers.phone(gateway, user: user, device: user, ["--answer-after", "0.1", "--calls", "1"]))
      }
      let offer = RawTrunk.offer().replacing("127.0.0.1", with: OtherMachine.peers)
      let (first, second) = (
        moved.request("INVITE", sdp: offer), other.request("INVITE", to: "+15551230002", sdp: RawTrunk.offer())
      )
      let (answer, stays) = (try #require(moved.ask(first)), try #require(other.ask(second)))
      #expect(answer.code == 200 && answer.text.contains("c=IN IP4 \(Self.first)\r\n"), "\(answer.text)")
      #expect(stays.code == 200 && stays.text.contains("c=IN IP4 127.0.0.1\r\n"), "\(stays.text)")
      try await network.replaceAddress()
      let reinvite = try #require(moved.awaited("INVITE"), "\(gateway.process.text.suffix(6_000))")
      #expect(reinvite.contains("c=IN IP4 \(Self.second)\r\n"), "\(reinvite)")
      #expect(reinvite.contains("@\(Self.second):\(ports.sip)>"), "\(reinvite)")
      moved.reply(to: reinvite, "200 OK", sdp: offer, at: SocketAddress(IPAddress(198, 51, 100, 2), ports.sip))
      #expect(moved.awaited("ACK") != nil)
      let received =
        bye(moved, first, answer, to: SocketAddress(IPAddress(198, 51, 100, 2), ports.sip)) + bye(other, second, stays)
      #expect(
        received.count { $0.hasPrefix("SIP/2.0 200") } == 2 && !received.contains { $0.hasPrefix("INVITE ") }, "\(received)")
      let ends = try await gateway.records(2).compactMap { ($0["end"] as? [String: Any])?["reason"] as? String }
      #expect(ends == ["remoteHangup", "remoteHangup"])
      for phone in phones { #expect(try await phone.finish(within: 10) == 0, "\(phone.text)") }
      try await gateway.finish()
    }

    @Test(arguments: [false, true])
    func `our address is replaced before an INVITE of ours is answered: CANCEL comes from the new one, and a call that rang ends`(
      hasRung: Bool
    )
      async throws
    {
      let network = OtherMachine()
      try await network.make()
      let ports = try OtherMachine.ports()
      let trunk = try network.trunk(toward: ports.sip)
      let gateway = try await network.gateway(isSecure: false, carrier: trunk.address.port, ports: ports)
      let phone = try await Peers.ownPhone(gateway, ["--call", "+15559990001", "--calls", "1", "--talk", "1"])
      let invite = try #require(trunk.awaited("INVITE"), "\(phone.text)")
      trunk.reply(to: invite, hasRung ? "180 Ringing" : "100 Trying")
      try await network.replaceAddress()
      let here = SocketAddress(IPAddress(198, 51, 100, 2), ports.sip)
      func field(_ name: String, _ text: String) -> Substring? {
        text.split(separator: "\r\n").first { $0.hasPrefix(name + ":") }
      }
      let cancel = try #require(trunk.awaited("CANCEL"), "\(gateway.process.text.suffix(6_000))")
      #expect(field("Call-ID", cancel) == field("Call-ID", invite) && field("Via", cancel) == field("Via", invite))
      trunk.reply(to: cancel, "200 OK", at: here)
      if hasRung {
        let record = try #require(try await gateway.records(1).first)
        let end = try #require(record["end"] as? [String: Any])
        #expect(
          end["reason"] as? String == "trunkLost" && end["detail"] as? String == "our address changed before an answer", "\(end)")
        #expect(trunk.awaited("INVITE", within: 1) == nil)
        _ = try await phone.finish(within: 20)
      } else {
        let again = try #require(trunk.awaited("INVITE"), "\(gateway.process.text.suffix(6_000))")
        #expect(
          field("Via", again)?.contains(Self.second) == true && field("Call-ID", again) != field("Call-ID", invite), "\(again)")
        trunk.reply(to: again, "200 OK", sdp: RawTrunk.offer().replacing("127.0.0.1", with: OtherMachine.peers), at: here)
        #expect(trunk.awaited("ACK") != nil)
        let bye = try #require(trunk.awaited("BYE"), "\(phone.text)")
        trunk.reply(to: bye, "200 OK", at: here)
        #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
        let record = try #require(try await gateway.records(1).first)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd", "\(record)")
      }
      try await gateway.finish()
    }

    /// Ends a call; returns what arrived before the BYE was answered.
    private func bye(_ trunk: RawTrunk, _ invite: RawTrunk.Request, _ answer: RawTrunk.Answer, to address: SocketAddress? = nil)
      -> [String]
    {
      var received: [String] = []
      trunk.send(Array(trunk.request("BYE", sequence: 2, in: invite, answer).text.utf8), to: address)
      while let text = trunk.receive(within: 5_000) {
        received.append(text)
        if text.contains("2 BYE") { break }
      }
      return received
    }

    @Test func `our address is replaced: the registrar gets the new Contact, and is asked to forget the old one`() async throws {
      let network = OtherMachine()
      try await network.make()
      let ports = try OtherMachine.ports()
      let registrar = try network.trunk(toward: ports.sip)
      let gateway = try await network.gateway(
        isSecure: false, carrier: registrar.address.port, ", register: { user: gw, expires: 60s }", ports: ports)
      func contact(_ address: String) -> String { "Contact: <sip:gw@\(address):\(ports.sip)>" }
      /// The next REGISTER with this Contact, answered; retransmissions of others are skipped.
      func register(_ text: String, _ status: String) -> String? {
        while let request = registrar.awaited("REGISTER") {
          guard request.contains(text + "\r\n") else { continue }
          let isMoved = request.contains("Via: SIP/2.0/UDP \(Self.second):")
          registrar.reply(to: request, status, at: isMoved ? SocketAddress(IPAddress(198, 51, 100, 2), ports.sip) : nil)
          return request
        }
        return nil
      }
      func isRegistered() throws -> Bool { try gateway.metric("trunkline_trunk_registered{trunk=\"carrier\"}") == 1 }
      let before = try #require(register(contact(Self.first), "200 OK"))
      #expect(await eventually(within: 5) { try isRegistered() })
      try await network.replaceAddress()
      #expect(register(contact(Self.second), "200 OK") != nil, "\(gateway.process.text.suffix(4_000))")
      // nothing follows if the registrar refuses the removal
      let removal = try #require(register(contact(Self.first) + ";expires=0", "403 Forbidden"))
      func callID(_ text: String) -> Substring? { text.split(separator: "\r\n").first { $0.hasPrefix("Call-ID:") } }
      #expect(callID(removal) == callID(before))
      #expect(await eventually(within: 5) { gateway.process.text.contains("keeps the binding") })
      #expect(try isRegistered())
      try await gateway.finish()
    }
  }
}
