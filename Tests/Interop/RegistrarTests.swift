import Foundation
import Testing

extension Interop {
  /// Sofia-SIP behind a registrar, which is kamailio with digest: the gateway's trunk is registered there too, and both are
  /// called by their bindings. `ims`: as in a mobile network the trunk registers through a P-CSCF, which adds its Path (RFC
  /// 3327), and the registrar returns a Service-Route (RFC 3608) and P-Associated-URI (RFC 7315).
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Sofia.isInstalled && Surroundings.kamailio != nil),
      "no kamailio or no Sofia-SIP: run Scripts/install test"),
    .serialized)
  struct RegistrarTests {
    enum Way: String, CaseIterable {
      case plain, imsUDP, imsTCP
      var hasProxy: Bool { self != .plain }
      var transport: String { self == .imsTCP ? "tcp" : "udp" }
    }

    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    private struct Site {
      var gateway: GatewayUnderTest
      var registrar: Registrar
      var proxy: Registrar?
      /// The folder of both kamailio processes.
      var folder: String

      func close() async throws {
        try await gateway.finish()
        for server in [registrar, proxy].compactMap(\.self) { await server.stop() }
        try FileManager.default.removeItem(atPath: folder)
      }
    }

    private func site(_ way: Way) async throws -> Site {
      let (server, edge) = (try FreePorts.both(), try FreePorts.both())
      let proxy = way.hasProxy ? "outbound_proxy: \"sip:127.0.0.1:\(edge);transport=\(way.transport)\", " : ""
      let folder = NSTemporaryDirectory() + "trunkline-registrar-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      // both run before the gateway, which registers when it starts
      let registrar = try await Registrar(.registrar(givesRoute: way.hasProxy), port: server, in: folder)
      let first = way.hasProxy ? try await Registrar(.proxy(toward: server), port: edge, in: folder) : nil
      let gateway = try await GatewayUnderTest(
        [
          "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(server)\", \(proxy)auth: { username: trunk, password_file: password }, register: true } ]"
        ], carrier: server)
      try Speech.write(Baresip.short, gateway.folder + "/telephone.wav")
      try Speech.write(Self.said, gateway.folder + "/app.wav")
      let running = gateway.process
      guard await eventually(within: 10, { running.text.contains("registered seconds=") }) else {
        throw Spawned.Failure(description: "the trunk is not registered:\n\(running.text.suffix(3_000))\n\(registrar.text)")
      }
      return Site(gateway: gateway, registrar: registrar, proxy: first, folder: folder)
    }

    /// Registered as +15559990001.
    private func sofia(_ site: Site, _ arguments: [String]) async throws -> Spawned {
      let sofia = try await Sofia.phone(
        site.gateway,
        [
          "--port", "\(try FreePorts.both())", "--media", "\(try FreePorts.row(2))", "--registrar",
          "sip:127.0.0.1:\(site.registrar.port)", "--user", "+15559990001", "--password", "s3cret", "--play", "telephone.wav",
          "--record", "heard.wav",
        ] + arguments)
      _ = try await sofia.event("registered") { $0["code"] as? Int == 200 }
      return sofia
    }

    private func faults(_ site: Site) throws -> [String] {
      try Speech.faults(
        "Sofia-SIP → app", said: Baresip.short, heardIn: site.gateway.folder + "/app-heard.wav", clippedAtMost: 100)
        + Speech.faults("app → Sofia-SIP", said: Self.said, heardIn: site.gateway.folder + "/heard.wav", clippedAtMost: 100)
    }

    @Test(arguments: Way.allCases)
    func `through a registrar Sofia-SIP calls the app at the trunk's binding, and both hear each other`(way: Way) async throws {
      try await expectGoodAudio {
        let site = try await site(way)
        let phone = try await Peers.ownPhone(
          site.gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
        let sofia = try await sofia(
          site, ["--call", "sip:+15551230001@127.0.0.1:\(site.registrar.port)", "--do", "end@5"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(sofia.text)\n\(site.registrar.text.suffix(6_000))")
        #expect(try await sofia.finish(within: 15) == 0, "\(sofia.text)")
        let record = try #require(try await site.gateway.records(1).first)
        #expect(record["to"] as? String == "+15551230001")
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup")
        if let proxy = site.proxy {
          // the binding has the Path, and the dialog its recorded route
          #expect(site.registrar.requests("REGISTER").contains { $0.contains("path <sip:127.0.0.1:\(proxy.port)") })
          for method in ["INVITE", "ACK", "BYE"] { #expect(!proxy.requests(method).isEmpty, "\(method): \(proxy.text)") }
        }
        let faults = try faults(site)
        try await site.close()
        return faults
      }
    }

    @Test(arguments: Way.allCases)
    func `through a registrar the app calls Sofia-SIP by digest and Service-Route, and both hear each other`(way: Way)
      async throws
    {
      try await expectGoodAudio {
        let site = try await site(way)
        let sofia = try await sofia(site, [])
        let phone = try await Peers.ownPhone(
          site.gateway,
          ["--call", "+15559990001", "--play", "app.wav", "--record", "app-heard.wav", "--talk", "5", "--calls", "1"])
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)\n\(sofia.text)\n\(site.registrar.text.suffix(6_000))")
        #expect(try await sofia.finish(within: 15) == 0, "\(sofia.text)")
        let end = try #require(try await site.gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "localEnd")
        let invites = site.registrar.requests("INVITE")
        #expect(invites.count == 2, "one that is challenged, one with the answer: \(invites)")
        if way.hasProxy {
          #expect(invites.allSatisfy { $0.contains("route <sip:orig@127.0.0.1:\(site.registrar.port);lr>") }, "\(invites)")
        }
        let faults = try faults(site)
        try await site.close()
        return faults
      }
    }
  }
}

/// A kamailio that registers, or the proxy before it.
private final class Registrar {
  enum Kind {
    /// The trunk and the telephone have the password s3cret. Numbers of users are the trunk's, all others telephones'.
    case registrar(givesRoute: Bool)
    /// Adds its Path to each REGISTER on the way to the registrar at this port, and records its route.
    case proxy(toward: UInt16)
  }

  let port: UInt16
  private let process: Spawned
  var text: String { process.text }

  init(_ kind: Kind, port: UInt16, in folder: String) async throws {
    self.port = port
    let (name, text) =
      switch kind {
      case .registrar(let givesRoute): ("registrar", Self.registrar(port, givesRoute))
      case .proxy(let server): ("proxy", Self.proxy(port, toward: server))
      }
    try text.write(toFile: folder + "/\(name).cfg", atomically: true, encoding: .utf8)
    process = try Spawned(
      name, Surroundings.kamailio ?? "", ["-f", "\(name).cfg", "-DD", "-E", "-m", "32", "-M", "8"], in: folder)
    let (asked, running) = (try RawTrunk(toward: port), process)
    let isUp = await eventually(within: 15) {
      asked.send(asked.request("OPTIONS").text)
      return asked.receive(within: 100)?.hasPrefix("SIP/2.0 200") == true || !running.isRunning
    }
    guard isUp, process.isRunning else { throw Spawned.Failure(description: process.text) }
  }

  /// The log lines of a method's requests.
  func requests(_ method: String) -> [String] {
    text.split(separator: "\n").map(String.init).filter { $0.contains("request <\(method)> ") }
  }

  deinit {
    process.signal(SIGTERM)
    for _ in 0..<150 where process.isRunning { usleep(20_000) }
  }

  func stop() async { await process.end() }

  private static var modules: String {
    [
      "/usr/lib/x86_64-linux-gnu/kamailio/modules/", "/usr/lib/aarch64-linux-gnu/kamailio/modules/",
      "/usr/lib64/kamailio/modules/",
    ]
    .first { FileManager.default.fileExists(atPath: $0) } ?? "/usr/local/lib/kamailio/modules/"
  }

  /// How both handle requests inside a dialog, and requests that belong to no call.
  private static func start(_ port: UInt16, modules more: [String]) -> String {
    let names = ["tm", "sl", "rr", "pv", "maxfwd", "textops", "siputils", "xlog"] + more
    return """
      #!KAMAILIO
      debug=2
      log_stderror=yes
      children=1
      tcp_children=1
      auto_aliases=no
      listen=udp:127.0.0.1:\(port)
      listen=tcp:127.0.0.1:\(port)
      mpath="\(modules)"
      \(names.map { "loadmodule \"\($0).so\"" }.joined(separator: "\n"))
      \(more.contains("registrar") ? "modparam(\"registrar\", \"use_path\", 1)" : "")
      request_route {
        xlog("L_WARN", "request <$rm> $ru from $proto:$si:$sp path $hdr(Path) route $hdr(Route)\\n");
        if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
        if (is_method("CANCEL")) { if (t_check_trans()) { t_relay(); } exit; }
        if (has_totag()) {
          if (loose_route()) { t_relay(); exit; }
          if (is_method("ACK")) { if (t_check_trans()) { t_relay(); } exit; }
          sl_send_reply("404", "No Route");
          exit;
        }
        if (is_method("ACK")) { if (t_check_trans()) { t_relay(); } exit; }
        if (is_method("OPTIONS")) { sl_send_reply("200", "OK"); exit; }

      """
  }

  /// kamailio's module accepts a Path only from clients that support it (RFC 3327 §5.3).
  private static func registrar(_ port: UInt16, _ givesRoute: Bool) -> String {
    let route = """
      append_to_reply("Service-Route: <sip:orig@127.0.0.1:\(port);lr>\\r\\n");
      append_to_reply("P-Associated-URI: <sip:+15551230001@ims.example>, <tel:+15551230001>\\r\\n");
      """
    return start(port, modules: ["usrloc", "registrar", "auth"]) + """
        if (is_method("REGISTER")) {
          if (!pv_www_authenticate("ims.example", "s3cret", "0")) { www_challenge("ims.example", "1"); exit; }
          \(givesRoute ? route : "")
          save("location");
          exit;
        }
        t_check_trans();
        if (!pv_proxy_authenticate("ims.example", "s3cret", "0")) { proxy_challenge("ims.example", "1"); exit; }
        consume_credentials();
        loose_route();
        record_route();
        if ($rU =~ "^\\+1555123") { $rU = "trunk"; }
        if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
        t_relay();
      }

      """
  }

  private static func proxy(_ port: UInt16, toward server: UInt16) -> String {
    start(port, modules: ["path"]) + """
        t_check_trans();
        if (is_method("REGISTER")) { add_path(); $du = "sip:127.0.0.1:\(server)"; t_relay(); exit; }
        loose_route();
        record_route();
        t_relay();
      }

      """
  }
}
