import Foundation
import Testing

extension Interop {
  /// kamailio as the proxy before the gateways: it records its route, and tries the next gateway when one is down or full.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.kamailio != nil),
      "no kamailio: run Scripts/install test"),
    .serialized)
  struct KamailioTests {
    @Test(.tags(.audio))
    func
      `calls both ways through a proxy that records its route: requests in the dialog take it, UDP on one side, TCP on the other`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        let behind = try FreePorts.both()
        let proxy = try await Kamailio(gateway, carrier: behind, gateways: ["127.0.0.1:\(gateway.sip);transport=tcp"])
        try Speech.write(Speech.app, gateway.folder + "/app.wav")
        let faults = try await incoming(gateway, proxy, behind) + outgoing(gateway, behind)
        let through = proxy.requests
        for method in ["INVITE", "ACK", "BYE"] {
          #expect(through.count { $0 == method } >= 2, "\(method) did not take the route: \(through)")
        }
        let ends = try await gateway.records(2).compactMap { $0["end"] as? [String: Any] }
        #expect(ends.compactMap { $0["reason"] as? String } == ["remoteHangup", "localEnd"])
        await proxy.stop()
        try await gateway.finish()
        return faults
      }
    }

    private func incoming(_ gateway: GatewayUnderTest, _ proxy: Kamailio, _ port: UInt16) async throws -> [String] {
      let phone = try await Peers.ownPhone(
        gateway, ["--answer", "--answer-after", "0.2", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"])
      let carrier = try Self.carrier(
        gateway, port,
        ["--gateway", "127.0.0.1:\(proxy.port)", "--call", "+15551230001", "--talk", "10", "--record", "carrier-heard.wav"])
      #expect(try await carrier.finish(within: 30) == 0, "\(carrier.text)\n\(proxy.process.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      return try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/carrier-heard.wav")
    }

    private func outgoing(_ gateway: GatewayUnderTest, _ port: UInt16) async throws -> [String] {
      let carrier = try Self.carrier(gateway, port, ["--calls", "1"])
      let phone = try await Peers.ownPhone(gateway, ["--call", "+15559990001", "--talk", "1", "--calls", "1"])
      #expect(try await phone.finish(within: 30) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text)")
      return []
    }

    @Test(arguments: ["dead", "draining"]) func `a proxy moves on from a gateway that is dead or drains to the next one`(
      first: String
    ) async throws {
      let gateway = try await GatewayUnderTest()
      let other = first == "draining" ? try await GatewayUnderTest() : nil
      var holding: [Spawned] = []
      if let other {
        // it drains as long as it has a call
        holding.append(try await Peers.phone(other, ["--answer-after", "0.1"]))
        holding.append(try Peers.caller(other, "call", ["-d", "60000"]))
        #expect(await eventually(within: 10) { try other.metric(#"trunkline_calls{state="connected"}"#) == 1 })
        other.process.signal(SIGTERM)
        #expect(await eventually(within: 5) { try other.get("/readyz").status == 503 })
      }
      let behind = try FreePorts.both()
      let dead = try FreePorts.both()
      let proxy = try await Kamailio(
        gateway, carrier: behind, gateways: ["127.0.0.1:\(other?.sip ?? dead)", "127.0.0.1:\(gateway.sip)"])
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let carrier = try Self.carrier(
        gateway, behind, ["--gateway", "127.0.0.1:\(proxy.port)", "--call", "+15551230001", "--talk", "1"])
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text)\n\(proxy.process.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(proxy.process.text.contains("moves on"))
      await proxy.stop()
      try await gateway.finish()
      other?.process.signal(SIGKILL)
      for peer in holding { peer.signal(SIGKILL) }
    }

    @Test(arguments: ["dead", "503"])
    func `behind the proxy the second trunk takes what the first one refuses: one call, whose requests take the route`(
      first: String
    ) async throws {
      let gateway = try await GatewayUnderTest(trunk: "hold: signal")
      let (one, two) = (try FreePorts.both(), try FreePorts.both())
      let proxy = try await Kamailio(gateway, carrier: one, second: two, gateways: ["127.0.0.1:\(gateway.sip)"])
      let route = "<sip:127.0.0.1:\(proxy.port);lr"
      let refusing = first == "503" ? try await Peers.callee(gateway, "unavailable", port: one) : nil
      var script = SippScript.callee(containing: ["Record-Route: \(route)", "Max-Forwards: 69"])
      script.answers(180, proxied: true)
      script.answers(200, sdp: SippScript.sdp(), proxied: true)
      script.awaits("ACK")
      script.awaits("INVITE", containing: ["a=sendonly"])
      script.replies(200, sdp: SippScript.sdp(version: 2, ["a=ptime:20", "a=recvonly"]))
      script.awaits("ACK")
      script.asks("INFO", sdp: "Signal=5\nDuration=160\n", type: "application/dtmf-relay")
      script.response()
      script.awaits("BYE")
      script.replies()
      let taking = try await Peers.callee(gateway, try script.file(gateway, "second-trunk"), port: two)
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--calls", "1"])
      let isConnected = await eventually(within: 8) { phone.events.contains { $0["event"] as? String == "call.connected" } }
      let errors = (try? String(contentsOfFile: gateway.folder + "/sipp-errors.log", encoding: .utf8)) ?? ""
      try #require(isConnected, "running \(taking.isRunning) \(errors)\n\(proxy.process.text.suffix(3_000))")
      phone.type("hold")
      #expect(await eventually(within: 5) { !proxy.routes("INFO").isEmpty })
      phone.type("end")
      for peer in [refusing, taking].compactMap(\.self) {
        #expect(try await peer.finish(within: 15) == 0, "\(peer.text.suffix(6_000))\n\(proxy.process.text.suffix(6_000))")
      }
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(proxy.process.text.contains("second trunk"))
      for (method, count) in [("ACK", 2), ("BYE", 1), ("INFO", 1)] {
        #expect(proxy.routes(method).count { $0.contains(route) } >= count, "\(method): \(proxy.routes(method))")
      }
      #expect(proxy.routes("INVITE").count { $0.contains(route) } == 1, "the re-INVITE alone")
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["localEnd"])
      await proxy.stop()
      try await gateway.finish()
    }

    private static func carrier(_ gateway: GatewayUnderTest, _ port: UInt16, _ arguments: [String]) throws -> Spawned {
      try Spawned(
        "carrier", Surroundings.lab, ["trunk", "--listen", "127.0.0.1:\(port)", "--events"] + arguments, in: gateway.folder)
    }
  }
}

/// A kamailio between a carrier and gateways, on the port that the gateway's trunk points to. Calls to users' numbers go to the
/// gateways in turn; all others go to the carrier, and to the second carrier if that fails.
private final class Kamailio {
  let process: Spawned
  let port: UInt16

  init(_ gateway: GatewayUnderTest, carrier: UInt16, second: UInt16? = nil, gateways: [String]) async throws {
    port = gateway.carrier
    let next = gateways.count > 1 ? gateways[1] : gateways[0]
    let text = """
      #!KAMAILIO
      debug=2
      log_stderror=yes
      children=1
      tcp_children=1
      auto_aliases=no
      listen=udp:127.0.0.1:\(port)
      listen=tcp:127.0.0.1:\(port)
      mpath="\(Self.modules)"
      loadmodule "tm.so"
      loadmodule "sl.so"
      loadmodule "rr.so"
      loadmodule "pv.so"
      loadmodule "maxfwd.so"
      loadmodule "textops.so"
      loadmodule "siputils.so"
      loadmodule "xlog.so"
      modparam("tm", "fr_timer", 1000)
      modparam("tm", "fr_inv_timer", 30000)
      request_route {
        xlog("L_WARN", "request <$rm> $ru from $proto:$si:$sp route $hdr(Route)\\n");
        if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
        if (is_method("CANCEL")) { if (t_check_trans()) { t_relay(); } exit; }
        if (has_totag()) {
          if (loose_route()) { t_relay(); exit; }
          if (is_method("ACK")) { if (t_check_trans()) { t_relay(); } exit; }
          sl_send_reply("404", "No Route");
          exit;
        }
        if (is_method("OPTIONS")) { sl_send_reply("200", "OK"); exit; }
        t_check_trans();
        record_route();
        if ($rU =~ "^\\+1555123") {
          $du = "sip:\(gateways[0])";
          t_on_failure("NEXT");
        } else {
          $du = "sip:127.0.0.1:\(carrier)";
          t_on_failure("TRUNK");
        }
        if (!t_relay()) { sl_reply_error(); }
      }
      failure_route[NEXT] {
        if (t_is_canceled()) { exit; }
        if (t_branch_timeout() || t_check_status("408|500|503")) {
          xlog("L_WARN", "moves on\\n");
          $du = "sip:\(next)";
          t_relay();
        }
      }
      failure_route[TRUNK] {
        if (t_is_canceled()) { exit; }
        if (t_branch_timeout() || t_check_status("408|500|503")) {
          xlog("L_WARN", "second trunk\\n");
          $du = "sip:127.0.0.1:\(second ?? carrier)";
          t_relay();
        }
      }

      """
    try text.write(toFile: gateway.folder + "/kamailio.cfg", atomically: true, encoding: .utf8)
    process = try Spawned(
      "kamailio", Surroundings.kamailio ?? "", ["-f", "kamailio.cfg", "-DD", "-E", "-m", "32", "-M", "8"], in: gateway.folder)
    let asked = try RawTrunk(gateway)
    let running = process
    let proxy = port
    let isUp = await eventually(within: 15) {
      asked.send(Array(asked.request("OPTIONS").text.utf8), to: .init(.loopback, proxy))
      return asked.receive(within: 100)?.hasPrefix("SIP/2.0 200") == true || !running.isRunning
    }
    guard isUp, process.isRunning else { throw Spawned.Failure(description: process.text) }
  }

  private static var modules: String {
    [
      "/usr/lib/x86_64-linux-gnu/kamailio/modules/", "/usr/lib/aarch64-linux-gnu/kamailio/modules/",
      "/usr/lib64/kamailio/modules/",
    ]
    .first { FileManager.default.fileExists(atPath: $0) } ?? "/usr/local/lib/kamailio/modules/"
  }

  /// The methods of the requests that passed.
  var requests: [String] {
    process.text.split(separator: "\n").compactMap { line in
      guard let start = line.range(of: "request <"), let end = line.range(of: "> ") else { return nil }
      return start.upperBound < end.lowerBound ? String(line[start.upperBound..<end.lowerBound]) : nil
    }
  }

  /// The Route headers of a method's requests; empty for a request without.
  func routes(_ method: String) -> [String] {
    process.text.split(separator: "\n").filter { $0.contains("request <\(method)> ") }.map {
      $0.components(separatedBy: " route ").dropFirst().joined()
    }
  }

  deinit {
    process.signal(SIGTERM)
    for _ in 0..<150 where process.isRunning { usleep(20_000) }
  }

  func stop() async { await process.end() }
}
