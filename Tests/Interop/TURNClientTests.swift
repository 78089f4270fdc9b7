import Foundation
import Glibc
import Synchronization
import Testing
import TrunklineClient

extension Interop {
  /// The SDK over coturn: in an office whose firewall lets no UDP through, or to the server alone.
  @Suite(
    .tags(.audio), .enabled(if: Surroundings.isRequired || (Surroundings.missing == nil && TranslatedNetwork.missing == nil)),
    .serialized)
  struct TURNClientTests {
    enum Way: String, CaseIterable {
      case udp, tcp, tls
      var url: String {
        self == .tls
          ? "turns:\(OfficeNetwork.world):443?transport=tcp" : "turn:\(OfficeNetwork.world):3478?transport=\(rawValue)"
      }
      func office() async throws -> OfficeUnderTest { try await OfficeUnderTest(url, lettingThrough: self == .udp ? 3_478 : nil) }
    }

    @Test(arguments: Way.allCases)
    func `behind a firewall the SDK has sound both ways within 3 s of the tap`(way: Way) async throws {
      let office = try await way.office()
      let gateway = office.gateway
      // the tap comes with the offer: all that it takes to connect comes after it
      let phone = try await office.phone(["--talk", "5"])
      let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(gateway, "call_until_bye", audio: audio.port)
      #expect(try await caller.finish(within: 40) == 0, "\(caller.text.suffix(6_000))\n\(phone.text)")
      _ = try await phone.finish(within: 20)
      try await audio.peer.finish(within: 10)
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Int])
      let (tap, connected) = (try #require(times["answered"]), try #require(times["connected"]))
      print("the SDK over TURN on \(way): connected \(connected - tap) ms after the tap")
      #expect(connected - tap < 3_000, "\(times)")
      #expect(phone.fields("pair", of: "media") == ["relay→host"], "\(phone.text)")
      try office.expectSound()
      #expect(try await office.network.dropped(in: gateway.folder) > 0, "nothing tried to go without the server")
      try await office.finish()
    }

    @Test(arguments: [Way.udp, .tls])
    func `a server that is killed in a call and comes back has the call again, on the same call`(way: Way) async throws {
      let office = try await way.office()
      let phone = try await office.phone([])
      let audio = try await Peers.trunkAudio(office.gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(office.gateway, "call_until_bye", audio: audio.port)
      _ = try await phone.event("firstAudio", within: 20)
      await office.killServer()
      let killedAt = ContinuousClock.now
      try await office.restartServer()
      let isBack = await eventually(within: 25) { phone.fields("pair", of: "media").count == 2 }
      print("the SDK over TURN on \(way): a new path \(ContinuousClock.now - killedAt) after the server was killed")
      #expect(isBack, "no new path\n\(phone.text)")
      phone.signal(SIGTERM)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))\n\(phone.text)")
      _ = try await phone.finish(within: 10)
      try await audio.peer.finish(within: 10)
      #expect(phone.fields("reason", of: "ended") == ["localEnd"], "\(phone.text)")
      #expect(phone.fields("pair", of: "media") == ["relay→host", "relay→host"])
      try await office.finish()
    }

    @Test func `a server that is killed in a call and stays away ends it with a cause, on both sides`() async throws {
      let office = try await Way.tls.office()
      let phone = try await office.phone([])
      let audio = try await Peers.trunkAudio(office.gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(office.gateway, "call_until_bye", audio: audio.port)
      _ = try await phone.event("firstAudio", within: 20)
      await office.killServer()
      #expect(try await caller.finish(within: 90) == 0, "\(caller.text.suffix(6_000))\n\(phone.text)")
      _ = try await phone.finish(within: 20)
      try await audio.peer.finish(within: 10)
      let record = try #require(try await office.gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "networkLost", "\(record)")
      #expect(phone.fields("reason", of: "ended") == ["networkLost"], "\(phone.text)")
      try await office.finish()
    }

    @Test(arguments: Way.allCases)
    func `the preflight test says which TURN server is there, and why one is not`(way: Way) async throws {
      let office = try await way.office()
      let phone = try await office.command(["--preflight", "--log"])
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)")
      #expect(phone.fields("ready", of: "preflight") == ["true"], "\(phone.text)")
      #expect(phone.fields("good", of: "server") == ["true"] && phone.fields("failure", of: "server") == [""], "\(phone.text)")
      #expect(phone.fields("rttMs", of: "preflight").first.flatMap(Double.init).map { $0 > 0 } == true, "\(phone.text)")
      #expect(phone.text.contains(" info preflight-finished network=good microphone=good servers=1/1 call=good"), "\(phone.text)")
      await office.killServer()
      let again = try await office.command(["--preflight"])
      // gateway and microphone are there, but without a relay no audio gets out of this office: the test call finds it
      #expect(try await again.finish(within: 60) != 0, "\(again.text)")
      #expect(again.fields("rttMs", of: "preflight").first.flatMap(Double.init) != nil, "\(again.text)")
      #expect(again.fields("good", of: "testCall") == ["false"], "\(again.text)")
      #expect(again.fields("error", of: "testCall").first?.contains("no audio passed") == true, "\(again.text)")
      #expect(again.fields("good", of: "server") == ["false"], "\(again.text)")
      #expect(again.fields("failure", of: "server").first?.isEmpty == false, "\(again.text)")
      try await office.finish()
    }

    // MARK: connections

    private final class Events: Sendable {
      private let texts = Mutex<[String]>([])
      func take(_ event: RelayEvent) {
        let text =
          switch event {
          case .opened: "opened"
          case .received(let bytes): "received \(bytes.count)"
          case .closed(let why): "closed: \(why)"
          }
        texts.withLock { $0.append(text) }
      }
      var all: [String] { texts.withLock { $0 } }
    }

    @Test func `TLS opens for a certificate of the host that is trusted, and says why not for any other`() async throws {
      let folder = try await OpenSSL.certificate("turn.example")
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let port = try FreePorts.tcp()
      let server = try Spawned(
        "s_server", "/usr/bin/openssl",
        ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", "sip.pem", "-key", "sip.key", "-quiet"], in: folder)
      #expect(await eventually(within: 10) { FreePorts.isTaken(port) })
      let trusting = WebSockets(authorities: folder + "/sip.pem")
      let cases: [(sockets: WebSockets, host: String, name: String, expected: String)] = [
        (trusting, "127.0.0.1", "127.0.0.1", "opened"), (trusting, "127.0.0.1", "turn.example", "opened"),
        (trusting, "localhost", "turn.example", "opened"),
        (trusting, "127.0.0.1", "other.example", "closed: TLS: hostname mismatch"),
        (trusting, "127.0.0.1", "127.0.0.2", "closed: TLS: IP address mismatch"),
        (WebSockets(), "127.0.0.1", "turn.example", "closed: TLS: self-signed certificate"),
        (WebSockets(isInsecure: true), "127.0.0.1", "other.example", "opened"),
        (WebSockets(authorities: folder + "/none.pem"), "127.0.0.1", "turn.example", "closed: no certificates in"),
        (trusting, "nowhere.invalid", "turn.example", "closed: nowhere.invalid: "),
      ]
      for (sockets, host, name, expected) in cases {
        let events = Events()
        let address = RelayAddress(host: host, port: port, transport: .tls, certificateHost: name)
        let relay = try #require(sockets.openRelay(address) { events.take($0) })
        #expect(await eventually(within: 20) { !events.all.isEmpty }, "\(host), \(name): nothing is said")
        #expect(events.all.first?.hasPrefix(expected) == true, "\(host), \(name): \(events.all)")
        relay.close()
        #expect(await eventually(within: 5) { events.all.last?.hasPrefix("closed") == true }, "\(host), \(name): \(events.all)")
      }
      server.signal(SIGTERM)
      _ = await eventually(within: 10) { !server.isRunning }
    }

    @Test(arguments: RelayAddress.Transport.allCases)
    func `a port where nobody is refuses at once`(transport: RelayAddress.Transport) async throws {
      let events = Events()
      let port = transport == .udp ? try FreePorts.udp() : try FreePorts.tcp()
      let address = RelayAddress(host: "127.0.0.1", port: port, transport: transport)
      let relay = try #require(WebSockets().openRelay(address) { events.take($0) })
      relay.send([0])
      if transport == .udp {
        #expect(await eventually(within: 5) { events.all.first == "opened" })
        relay.send([0])
      }
      #expect(await eventually(within: 5) { events.all.last == "closed: Connection refused" }, "\(events.all)")
    }
  }
}
