import Foundation
import Testing

extension Interop {
  /// The npm package of `Sources/Client/WebClient`: its own tests, its types, in Node, in a bare page, by push, and installed
  /// from its tarball.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.chromium != nil && Surroundings.node != nil && Surroundings.npm != nil
          && Surroundings.typeScript != nil && Surroundings.esbuild != nil),
      "no chromium, node, npm, tsc, esbuild or .venv: run Scripts/install test"), .serialized)
  struct WebClientTests {
    private static let package = Surroundings.package + "/Sources/Client/WebClient"

    @Test func `node --test: the client vectors, calls and bad input on a virtual clock`() async throws {
      let folder = try Folder()
      let tests = try [
        "vectors", "calls", "bad-input", "worker", "groups", "silence", "devices", "clocks", "unreachable", "endings", "details",
        "warnings",
        "preflight", "test-call", "further", "words", "token-samples", "package",
      ].map { name in
        try Spawned(
          name, #require(Surroundings.node), ["--test", Surroundings.package + "/Tests/WebClient/\(name).test.mjs"],
          in: folder.path)
      }
      for test in tests { #expect(try await test.finish(within: 120) == 0, "\(test.text.suffix(4_000))") }
      let counts = tests.map { $0.text.firstMatch(of: /(?:#|ℹ) pass (\d+)/).flatMap { Int($0.1) } ?? 0 }
      #expect(counts[0] >= 7 && counts[1] >= 17 && counts[2] >= 39 && counts[3] >= 3, "\(counts)")
    }

    @Test func `tsc --strict accepts the types and an app that uses them, and refuses what is wrong`() async throws {
      let folder = try Folder()
      try folder.write("package.json", "{ \"type\": \"module\" }")
      try FileManager.default.createDirectory(atPath: folder.path + "/node_modules", withIntermediateDirectories: true)
      try FileManager.default.copyItem(atPath: Self.package, toPath: folder.path + "/node_modules/trunkline")
      let consumer = try String(contentsOfFile: Surroundings.package + "/Tests/WebClient/consumer.ts", encoding: .utf8)
      let arguments = [
        "--strict", "--noEmit", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16", "--lib",
        "es2022,dom,dom.iterable", "consumer.ts",
      ]
      try folder.write("consumer.ts", consumer)
      let right = try Spawned("tsc", #require(Surroundings.typeScript), arguments, in: folder.path)
      #expect(try await right.finish(within: 120) == 0, "\(right.text)")
      // each line that must be refused is, once the comment above it is removed
      try folder.write("consumer.ts", consumer.replacing("// @ts-expect-error", with: "//"))
      let wrong = try Spawned("tsc", #require(Surroundings.typeScript), arguments, in: folder.path)
      #expect(try await wrong.finish(within: 120) != 0)
      #expect(wrong.text.split(separator: "\n").count { $0.contains("error TS") } == 5, "\(wrong.text)")
    }

    @Test func `in Node: login, a call declined, one that gives up, a socket that breaks, a call without media, logout`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Self.node(gateway)
      let declined = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "5"])
      _ = try await phone.event("incoming") { $0["from"] as? String == "+15557770001" }
      _ = try await declined.event("progress") { ($0["fields"] as? [String: String])?["code"] == "180" }
      phone.type("decline")
      _ = try await phone.event("call") { $0["state"] as? String == "ended" && $0["reason"] as? String == "localEnd" }
      #expect(try await declined.finish(within: 10) != 0)
      #expect(declined.text.contains("486"), "\(declined.text)")

      phone.type("drop")
      _ = try await phone.event("phone") { $0["state"] as? String == "online" && $0["sockets"] as? Int == 2 }
      let short = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "5"])
      _ = try await phone.event("incoming")
      _ = try await short.event("progress") { ($0["fields"] as? [String: String])?["code"] == "180" }
      short.signal(SIGINT)
      _ = try await phone.event("call") { $0["reason"] as? String == "callerCancelled" && $0["text"] as? String == "missed" }
      try await short.finish(within: 10)

      // no callee answers into silence: without media no INVITE is sent
      phone.type("call +15559990001")
      _ = try await phone.event("call", within: 10) { $0["reason"] as? String == "mediaFailed" }
      phone.type("call 12")
      _ = try await phone.event("call") { $0["state"] as? String == "ended" && $0["reason"] as? String == "notFound" }
      phone.type("logout")
      _ = try await phone.event("loggedOut")
      phone.type("quit")
      #expect(try await phone.finish(within: 10) == 0, "nothing keeps Node alive: \(phone.text)")
      try await gateway.finish()
    }

    @Test func `in a bare page: dialled, heard both ways, held, the microphone changed, another path, hung up`() async throws {
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest(media: "[ auto ]")
        let page = try await BarePage(gateway)
        let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--answer-after", "0.3", "--record", "trunk-heard.wav"])
        try await page.open(gateway, token: try await gateway.token("alice", "web"))
        try await page.evaluate("follow(phone.call('+15559990001'))")
        try await page.wait("states.includes('connected') && call.isPlaying && call.isCapturing")
        let talked = Double(Speech.telephone.count) / 8_000
        try await page.wait("call.statistics?.packets > 50 && call.statistics.codec === 'opus' && call.statistics.loss === 0")
        try await page.wait("call.seconds >= \(Int(talked) + 1)", within: Int(talked) + 10)
        try await page.evaluate("call.hold(true)")
        try await page.wait("call.state === 'held' && !call.isPlaying && !call.isCapturing")
        try await page.evaluate("call.hold(false)")
        try await page.wait("call.state === 'connected' && call.isPlaying && call.isCapturing")
        try await page.evaluate("(async () => phone.useMicrophone((await phone.microphones())[1].deviceId))()")
        try await page.evaluate("window.before = call.peerConnection; dispatchEvent(new Event('online'))")
        try await page.wait(
          "call.peerConnection !== before && call.peerConnection.connectionState === 'connected' && phone.isOnline")
        try await page.evaluate("window.packets = call.statistics.packets")
        try await page.wait("call.statistics.packets > 20 && call.isPlaying")
        let text = try await page.evaluate("states.join() + ' ' + (call.end(), call.state)")
        #expect(text as? String == "connecting,calling,connected,held,connected ended")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
        #expect(end["reason"] as? String == "localEnd" && end["by"] as? String == "app")
        let faults = try Speech.faults("telephone → page", said: Speech.telephone, heardIn: try await page.heard(gateway))
        try await page.close()
        try await gateway.finish()
        return faults
      }
    }

    @Test
    func
      `a push rings while no page is open; the caller gives up, the user declines, the user answers, and a page that is open rings itself`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway(over: .webPush, media: "[ auto ]")
      let subscription = try String(contentsOfFile: service.folder + "/subscription.json", encoding: .utf8)
      let registered = try await service.killedApp(gateway, device: "web", token: subscription, ["--push-kind", "webpush"])
      registered.signal(SIGTERM)
      _ = try? await registered.finish(within: 10)
      let page = try await BarePage(gateway)
      try await page.open(gateway, token: nil)
      try await page.registerWorker()
      try await page.closePage()

      // the caller hears ringback, and the notification disappears with the call
      let first = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "5"])
      try await page.deliver(try await service.nextPush(), gateway, until: ["+15557770001 is calling"])
      _ = try await first.event("progress") { ($0["fields"] as? [String: String])?["code"] == "180" }
      first.signal(SIGINT)
      try await first.finish(within: 10)
      try await page.waitForNotifications([])
      var records = try await gateway.records(1)
      #expect((records[0]["end"] as? [String: Any])?["reason"] as? String == "callerCancelled")
      #expect((records[0]["times"] as? [String: Any])?["deviceRinging"] != nil, "\(records)")

      // by HTTP; and by the socket if a gateway of another origin does not allow the page that request
      for isHTTP in [true, false] {
        let second = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "5"])
        try await page.deliver(try await service.nextPush(), gateway, until: ["+15557770001 is calling"])
        if !isHTTP { try await page.refuseHTTP() }
        try await page.click("decline")
        #expect(try await second.finish(within: 10) != 0)
        #expect(second.text.contains("486"), "\(second.text)")
        try await page.waitForNotifications([])
        records = try await gateway.records(isHTTP ? 2 : 3)
        #expect((records.last?["end"] as? [String: Any])?["reason"] as? String == "declined", "\(records)")
      }

      let third = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "2"])
      try await page.deliver(try await service.nextPush(), gateway, until: ["+15557770001 is calling"])
      let opened = try #require(try await page.click("answer"))
      #expect(opened.hasPrefix("http://127.0.0.1:\(gateway.app)/#push="), "\(opened)")
      try await page.open(gateway, token: nil, hash: String(opened.drop { $0 != "#" }))
      try await page.wait("states.includes('connected') && call.isPlaying")
      #expect(try await third.finish(within: 20) == 0, "\(third.text)")
      try await page.wait("call.endReason === 'remoteHangup'")

      // logged in, with a slow socket: the worker notifies the page, and opens no socket itself
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      // no browser vendor's service is reachable here; the worker's message to the page does not need it
      try await page.evaluate(
        "PushManager.prototype.subscribe = async () => { throw new DOMException('no service', 'AbortError'); }; 1")
      let enabling = "navigator.serviceWorker.ready.then((one) => phone.enablePush(one)).catch((error) => error.code)"
      #expect(try await page.evaluate(enabling) as? String == "pushUnsupported")
      let fourth = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "1"])
      try await page.wait("window.call?.state === 'ringing'")
      let id = try #require(try await page.evaluate("call.id") as? String)
      let late: [String: Any] = [
        "v": 1, "t": "call", "call": id, "wake": "w", "gw": "ws://127.0.0.1:\(gateway.app)/v1/connect",
        "exp": Date().timeIntervalSince1970 + 40, "from": ["k": "phone", "h": "+15557770001"],
      ]
      try await page.deliver(late, gateway)
      try await page.waitForNotifications(["+15557770001 is calling"])
      #expect(try await page.evaluate("phone.state") as? String == "online", "nobody took its line")
      try await page.evaluate("call.answer()")
      #expect(try await fourth.finish(within: 20) == 0, "\(fourth.text)")
      try await page.waitForNotifications([])
      try await page.close()
      gateway.note(invites: try await gateway.records(5).compactMap { $0["sipCallId"] as? String })
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `a push without a valid call, or of a later version, is shown and rings nowhere`() async throws {
      let gateway = try await GatewayUnderTest()
      let page = try await BarePage(gateway)
      try await page.open(gateway, token: nil)
      try await page.registerWorker()
      try await page.closePage()
      for text in ["", "no JSON", "{}", "{\"v\":2,\"t\":\"call\",\"call\":\"x\",\"wake\":\"w\",\"gw\":\"ws://x\"}"] {
        try await page.deliver(text, gateway, until: ["Call"])
      }
      let past: [String: Any] = ["v": 1, "t": "call", "call": "c", "wake": "w", "gw": "ws://127.0.0.1:9", "exp": 1]
      try await page.deliver(past, gateway, until: ["Call", "Missed call"])
      try await page.close()
      try await gateway.finish()
    }

    @Test func `the exported tarball, installed into an empty project, offline: the README's ten lines make a call`() async throws
    {
      let folder = try await Self.installed()
      let port = try FreePorts.tcp()
      let gateway = try await GatewayUnderTest(
        ["auth: { jwt: { key_file: jwt.key }, origins: [ \"http://127.0.0.1:\(port)\" ] }"], media: "[ auto ]")
      let readme = try String(contentsOfFile: folder.path + "/app/node_modules/trunkline/README.md", encoding: .utf8)
      let html = try #require(readme.firstMatch(of: /```html\n([^`]*)```/)).1
      #expect(html.split(separator: "\n").count == 10)
      try folder.write(
        "app/index.html",
        "<!doctype html><meta charset=utf-8>\n"
          + html.replacing("wss://phone.example.com/v1/connect", with: "ws://127.0.0.1:\(gateway.app)/v1/connect"))
      try folder.write("app/phone-token", try await gateway.token("alice", "web"))
      let server = try await Self.serve(folder.path + "/app", port)
      let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--answer-after", "0.3", "--talk", "2"])
      let page = try await BarePage(gateway)
      try await page.go("http://127.0.0.1:\(port)/")
      try await page.wait("document.getElementById('call').onclick")
      try await page.evaluate("document.getElementById('call').click()")
      try await page.wait("document.getElementById('state').value === 'connected'")
      try await page.wait("document.getElementById('state').value === 'ended'", within: 20)
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      try await page.close()
      server.signal(SIGTERM)
      try await server.finish(within: 10)
      try await gateway.finish()
    }

    @Test func `the exported tarball, bundled by esbuild as docs/apps/web.md says: a call with speech both ways`() async throws {
      try await expectGoodAudio {
        let folder = try await Self.installed()
        let port = try FreePorts.tcp()
        let gateway = try await GatewayUnderTest(
          ["auth: { jwt: { key_file: jwt.key }, origins: [ \"http://127.0.0.1:\(port)\" ] }"], media: "[ auto ]")
        try await Self.bundle(folder, gateway)
        let server = try await Self.serve(folder.path + "/app/web", port)

        // The fake microphone starts its file when the page opens it, before the call is connected. Silence in front, so that no
        // word is said before, and behind, so that the file does not begin again during the call.
        let silence = [Int16](repeating: 0, count: 32_000)
        let spoken = silence + Speech.app + silence + silence
        let page = try await BarePage(gateway, says: spoken)
        let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--answer-after", "0.3", "--record", "trunk-heard.wav"])
        try await page.open(app: "http://127.0.0.1:\(port)/")
        try await page.evaluate(
          "{ const call = phone.call.bind(phone); phone.call = (number) => { const made = call(number); follow(made); return made; }; } 1"
        )
        try await page.evaluate("document.querySelector('#call').click()")
        try await page.wait("states.includes('connected') && call.isPlaying && call.isCapturing")
        let talked = max(silence.count + Speech.app.count, Speech.telephone.count) / 8_000 + 1
        try await page.wait("call.seconds >= \(talked)", within: talked + 10)
        try await page.evaluate("call.end()")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
        let faults =
          try Speech.faults("telephone → page", said: Speech.telephone, heardIn: try await page.heard(gateway))
          + Speech.faults(
            "page → telephone", said: silence + Speech.app, heardIn: gateway.folder + "/trunk-heard.wav", clippedAtMost: 300)

        // what is loaded on request is in chunks of its own; the bundled worker has kept its listeners
        try await page.registerWorker()
        let enabling = "navigator.serviceWorker.ready.then((one) => phone.enablePush(one)).catch((error) => error.code)"
        #expect(try await page.evaluate(enabling) as? String == "pushUnsupported", "this gateway has no Web Push")
        try await page.close()
        server.signal(SIGTERM)
        try await server.finish(within: 10)
        try await gateway.finish()
        return faults
      }
    }

    /// A folder with an empty project, `app`, that has installed the exported package.
    private static func installed() async throws -> Folder {
      let folder = try Folder()
      let program = Surroundings.package + "/Tests/WebClient/exported.mjs"
      let exported = try Spawned("export", #require(Surroundings.node), [program, folder.path], in: folder.path)
      #expect(try await exported.finish(within: 60) == 0, "\(exported.text)")
      let tarball = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).first { $0.hasSuffix(".tgz") })
      try FileManager.default.createDirectory(atPath: folder.path + "/app/src", withIntermediateDirectories: true)
      try folder.write("app/package.json", "{ \"private\": true }")
      let npm = ["npm_config_cache": folder.path + "/cache", "npm_config_update_notifier": "false"]
      let installed = try Spawned(
        "install", #require(Surroundings.npm), ["install", "--offline", "--no-audit", "--no-fund", "../" + tarball],
        in: folder.path + "/app", environment: npm)
      #expect(try await installed.finish(within: 60) == 0, "\(installed.text)")
      return folder
    }

    /// Makes `app/web` by the files and the commands of docs/apps/web.md.
    private static func bundle(_ folder: Folder, _ gateway: GatewayUnderTest) async throws {
      let text = try String(contentsOfFile: Surroundings.package + "/docs/apps/web.md", encoding: .utf8)
      let blocks = text.matches(of: /```(js|sh|html)\n([^`]*)```/).map { String($0.2) }
      try #require(blocks.count == 4)
      let app = blocks[0].replacing("wss://phone.example.com/v1/connect", with: "ws://127.0.0.1:\(gateway.app)/v1/connect")
      try folder.write("app/src/app.js", app + "window.phone = phone;\n")
      try folder.write("app/src/service-worker.js", blocks[1])
      let bundled = try Spawned("esbuild", "/bin/sh", ["-ec", blocks[2]], in: folder.path + "/app")
      #expect(try await bundled.finish(within: 60) == 0, "\(bundled.text)")
      try folder.write("app/web/index.html", blocks[3])
      try folder.write("app/web/phone-token", try await gateway.token("alice", "web"))
    }

    /// Serves a folder as the app's own server does.
    private static func serve(_ folder: String, _ port: UInt16) async throws -> Spawned {
      let server = try Spawned(
        "server", #require(Surroundings.python), ["-m", "http.server", "\(port)", "--bind", "127.0.0.1"], in: folder)
      #expect(await eventually(within: 10) { FreePorts.isTaken(port) }, "\(server.text)")
      return server
    }

    private static func node(_ gateway: GatewayUnderTest) async throws -> Spawned {
      let phone = try Spawned(
        "node", #require(Surroundings.node),
        [
          Surroundings.sources + "/peers/node_phone.mjs", package + "/trunkline.js", "ws://127.0.0.1:\(gateway.app)/v1/connect",
          try await gateway.token("alice", "node"),
        ], in: gateway.folder)
      _ = try await phone.event("phone") { $0["state"] as? String == "online" && $0["user"] as? String == "alice" }
      return phone
    }
  }
}

/// A test's folder, removed with this value.
final class Folder {
  let path: String
  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(atPath: path) }
  func write(_ name: String, _ text: String) throws {
    try text.write(toFile: path + "/" + name, atomically: true, encoding: .utf8)
  }
}
