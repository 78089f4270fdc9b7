import Foundation
import Testing

extension Interop {
  /// Debian's nginx and HAProxy before the app port, by the lines of docs/operate/install.md, and with what people have before they read them.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && WebProxy.nginx != nil && Surroundings.haproxy != nil),
      "no nginx or HAProxy: run Scripts/install test"),
    .serialized)
  struct WebProxyTests {
    private func gateway(path: String? = nil) async throws -> GatewayUnderTest {
      let (sip, app, admin) = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp())
      let below = path.map { ", path: \($0)" } ?? ""
      return try await GatewayUnderTest(
        [
          "listen: { sip: { udp: 127.0.0.1:\(sip), tcp: 127.0.0.1:\(sip) }, app: { address: 127.0.0.1:\(app), proxies: [ 127.0.0.1 ]\(below) }, admin: 127.0.0.1:\(admin) }"
        ], ports: (sip, app, admin))
    }

    /// A call over a proxy, from `call.start` to the end, and the page beside it.
    private func expectCall(_ gateway: GatewayUnderTest, _ proxy: WebProxy, path: String) async throws {
      let token = try await gateway.token("alice", "own")
      let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--answer-after", "0.1", "--talk", "0.5"])
      let phone = try Spawned(
        "own", Surroundings.lab,
        [
          "phone", "--url", "ws://127.0.0.1:\(proxy.port)\(path)/v1/connect", "--token", token, "--device", "own", "--events",
          "--calls", "1", "--call", "+15559990001", "--talk", "0.5",
        ], in: gateway.folder)
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)\n\(gateway.process.text.suffix(6_000))")
      _ = try await trunk.finish(within: 10)
      #expect(try await proxy.get(path + "/").status == 200)
      #expect(try await proxy.get(path + "/phone.js").status == 200)
      #expect(try await gateway.records(1).first?["user"] as? String == "alice")
    }

    @Test func `nginx by the lines of the page carries calls below a path`() async throws {
      let gateway = try await gateway(path: "/phone")
      let proxy = try await WebProxy(nginx: gateway, location: "/phone/", try WebProxy.lines(of: "nginx"))
      try await expectCall(gateway, proxy, path: "/phone")
      // what a page names is relative to its folder
      let bare = try await WebProxy.get(gateway.app, "/phone")
      #expect(bare.status == 308 && bare.text.lowercased().contains("location: /phone/"), "\(bare.text)")
      try await proxy.stop()
      try await gateway.finish()
    }

    @Test func `HAProxy by the lines of the page carries calls`() async throws {
      let gateway = try await gateway()
      let proxy = try await WebProxy(haproxy: gateway, try WebProxy.lines(of: "haproxy"))
      try await expectCall(gateway, proxy, path: "")
      try await proxy.stop()
      try await gateway.finish()
    }

    @Test func `nginx as it is by default loses the upgrade, and answer and log say so`() async throws {
      let gateway = try await gateway()
      let proxy = try await WebProxy(nginx: gateway, location: "/", "proxy_pass http://127.0.0.1:8080;")
      let refused = try await proxy.get("/v1/connect", upgrade: true)
      #expect(refused.status == 426 && refused.text.contains("does not forward Upgrade and Connection"), "\(refused.text)")
      let isSaid = await eventually(within: 5) {
        gateway.process.text.contains("a proxy before the gateway has to forward Upgrade")
      }
      #expect(isSaid, "\(gateway.process.text.suffix(6_000))")
      try await proxy.stop()
      try await gateway.finish()
    }

    @Test func `a wrong path is answered with the right one`() async throws {
      let gateway = try await gateway(path: "/phone")
      for path in ["/v1/connect/", "/connect", "/phone/v1/socket", "/other/v1/connect"] {
        let refused = try await WebProxy.get(gateway.app, path, upgrade: true)
        #expect(refused.status == 404 && refused.text.contains("/phone/v1/connect"), "\(path): \(refused.text)")
      }
      let isSaid = await eventually(within: 5) { gateway.process.text.contains("not a WebSocket path; use /phone/v1/connect") }
      #expect(isSaid)
      // where the proxy takes the path away, nothing is to be set
      #expect(try await WebProxy.get(gateway.app, "/").status == 200)
      try await gateway.finish()
    }
  }
}

/// A web proxy of Debian's before a gateway's app port.
final class WebProxy {
  static let nginx = FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx") ? "/usr/sbin/nginx" : nil
  let process: Spawned
  let port: UInt16

  /// Lines of docs/operate/install.md with this gateway's port instead of 8080.
  init(nginx gateway: GatewayUnderTest, location: String, _ lines: String) async throws {
    port = try FreePorts.tcp()
    let folder = gateway.folder
    let file = """
      daemon off; master_process off; pid \(folder)/nginx.pid; error_log stderr notice;
      events { worker_connections 100; }
      http {
        access_log off;
        client_body_temp_path \(folder)/t1; proxy_temp_path \(folder)/t2; fastcgi_temp_path \(folder)/t3; uwsgi_temp_path \(folder)/t4;
        scgi_temp_path \(folder)/t5;
        server { listen 127.0.0.1:\(port); location \(location) { \(Self.lines(lines, gateway)) } }
      }
      """
    try file.write(toFile: folder + "/nginx.conf", atomically: true, encoding: .utf8)
    process = try Spawned("nginx", Self.nginx ?? "", ["-p", folder, "-e", "stderr", "-c", folder + "/nginx.conf"], in: folder)
    try await waitUntilUp()
  }

  init(haproxy gateway: GatewayUnderTest, _ lines: String) async throws {
    port = try FreePorts.tcp()
    let file = Self.lines(lines, gateway).replacingOccurrences(
      of: "bind :443 ssl crt /etc/haproxy/site.pem", with: "bind 127.0.0.1:\(port)")
    try file.write(toFile: gateway.folder + "/web.cfg", atomically: true, encoding: .utf8)
    process = try Spawned("haproxy", Surroundings.haproxy ?? "", ["-db", "-f", gateway.folder + "/web.cfg"], in: gateway.folder)
    try await waitUntilUp()
  }

  private func waitUntilUp() async throws {
    let (running, port) = (process, port)
    let isUp = await eventually(within: 15) { FreePorts.isTaken(port) || !running.isRunning }
    guard isUp, process.isRunning else { throw Spawned.Failure(description: process.text) }
  }

  private static func lines(_ text: String, _ gateway: GatewayUnderTest) -> String {
    text.replacingOccurrences(of: "127.0.0.1:8080", with: "127.0.0.1:\(gateway.app)")
  }

  /// The block of docs/operate/install.md that is marked so.
  static func lines(of kind: String) throws -> String {
    let page = try String(contentsOfFile: Surroundings.package + "/docs/operate/install.md", encoding: .utf8)
    let block = try #require(page.components(separatedBy: "```" + kind + "\n").dropFirst().first, "no block \(kind)")
    return block.components(separatedBy: "```")[0]
  }

  func stop() async throws {
    process.signal(SIGTERM)
    try await process.finish(within: 10)
  }

  func get(_ path: String, upgrade: Bool = false) async throws -> (status: Int, text: String) {
    try await Self.get(port, path, upgrade: upgrade)
  }

  /// Head and body; `upgrade`: as a browser asks for a WebSocket.
  static func get(_ port: UInt16, _ path: String, upgrade: Bool = false) async throws -> (status: Int, text: String) {
    let asks = [
      "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: trunkline.v1",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    let curl = try Spawned(
      "curl", "/usr/bin/curl",
      ["-s", "-i", "--http1.1", "--max-time", "10"] + (upgrade ? asks.flatMap { ["-H", $0] } : [])
        + ["http://127.0.0.1:\(port)\(path)"], in: FileManager.default.temporaryDirectory.path)
    _ = try await curl.finish(within: 15)
    let status = curl.text.split(separator: "\n").first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return (status, curl.text)
  }
}
