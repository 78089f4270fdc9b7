import Foundation
import Testing

extension Interop {
  /// States of the web phone that a person has to resolve, and its looks in every state.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct WebPhoneStateTests {
    /// Over a stand-in of the package, without a gateway. With `TRUNKLINE_SCREENSHOTS` each state is kept as a picture of each
    /// screen.
    @Test func `every state can be read and tapped on every screen, in light and dark`() async throws {
      let gateway = try await GatewayUnderTest()
      let shots = ProcessInfo.processInfo.environment["TRUNKLINE_SCREENSHOTS"].map { ["--shots", $0] } ?? []
      let states = try Peers.python("states", "phone_states.py", shots, gateway)
      #expect(try await states.finish(within: 600) == 0, "\(states.text.suffix(6_000))")
      let looked = states.events.filter { $0["event"] as? String == "state" }
      for look in looked where (look["faults"] as? [String])?.isEmpty != true {
        Issue.record("\(look["state"] ?? "") at \(look["look"] ?? ""): \(look["faults"] ?? "no answer")")
      }
      #expect(
        Set(looked.compactMap { $0["state"] as? String }).count >= 44
          && Set(looked.compactMap { $0["look"] as? String }).count == 4)
      try await gateway.finish()
    }

    @Test func `a second login takes the line: the first page says so and takes it back`() async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let token = try await gateway.token("alice", "web")
      let (first, second) = (try await WebPage(gateway), try await WebPage(gateway))
      try await first.open(gateway, token: token)
      try await second.open(gateway, token: token)
      try await first.waitFor("open in another tab or browser", in: "away-words")
      try await first.waitFor("Open elsewhere", in: "status")
      #expect(try await first.isShown("dialer") == false)
      #expect(try await first.focus() == "take-back")
      #expect(try await first.faults() == [])
      try await first.press("Enter")
      try await first.waitFor("alice · online", in: "status")
      #expect(try await first.isShown("dialer"))
      #expect(try await first.isShown("away") == false)
      try await second.wait("document.getElementById('away').checkVisibility()")

      try await first.close()
      try await second.close()
      try await gateway.finish()
    }

    @Test func `a logout lasts, and a login that is kept is valid in the next window`() async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      try await page.click("open-settings")
      try await page.click("stay-on")
      try await page.click("dnd")
      try await page.waitFor("do not disturb", in: "status")
      try await page.evaluate("sessionStorage.clear()")
      try await page.send("Page.reload")
      try await page.waitFor("alice · online · do not disturb", in: "status")
      try await page.click("open-settings")
      try await page.click("log-out")
      try await page.waitFor("Not logged in", in: "status")
      #expect(
        try await page.evaluate(
          "[...Object.keys(localStorage), ...Object.keys(sessionStorage)].filter((k) => k.includes('token'))") as? [String] == [])
      try await page.send("Page.reload")
      try await page.waitFor("Not logged in", in: "status")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `a part of the page that does not load is reported, and the page loads again by itself`() async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.send("Network.enable")
      try await page.send("Network.setBlockedURLs", ["urls": ["*page.js"]])
      let link = "http://127.0.0.1:\(gateway.app)/#token=\(try await gateway.token("alice", "web"))"
      try await page.send("Page.navigate", ["url": link])
      try await page.waitFor("Trying again", in: "status")
      try await page.send("Network.setBlockedURLs", ["urls": [String]()])
      try await page.waitFor("alice · online", in: "status")
      #expect(try await page.evaluate("location.hash + history.state") as? String == "null")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `a user turned away by an operator sees that, after the call and at each login, and nothing else`() async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      let token = try await gateway.token("alice", "web")
      try await page.open(gateway, token: token)
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "2"])
      try await page.click("answer")
      try await page.wait("call.state === 'connected'")
      let revoked = try HTTP.request("POST", "/v1/devices/revoke?user=alice&device=web", port: gateway.admin)
      #expect(revoked.status == 200, "\(revoked.body)")
      #expect(try await trunk.finish(within: 10) == 0, "the call goes on: \(trunk.text)")
      for _ in 0..<2 {
        try await page.waitFor("logged out by an operator", in: "notice")
        #expect(try await page.isShown("login"))
        #expect(try await page.text("status") == "Not connected")
        #expect(try await page.text("announce").contains("logged out by an operator"))
        #expect(try await page.faults() == [])
        try await page.send("Page.navigate", ["url": "about:blank"])
        try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.app)/#token=" + token])
      }
      try await page.close()
      try await gateway.finish()
    }

    @Test func `no WebRTC, denied storage, an invalid token: each is reported, and what still works continues`()
      async throws
    {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let token = try await gateway.token("alice", "web")
      let page = try await WebPage(gateway)
      try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.app)/#token=a.b.c"])
      try await page.waitFor("not a login token", in: "notice")
      try await page.hook(
        "for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get() { throw new DOMException('no', 'SecurityError'); } });"
      )
      // a change behind # alone loads nothing
      try await page.send("Page.navigate", ["url": "about:blank"])
      try await page.open(gateway, token: token)
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "1"])
      try await page.click("answer")
      try await page.waitFor("They hung up", in: "history")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")

      try await page.hook("delete window.RTCPeerConnection;")
      try await page.send("Page.navigate", ["url": "about:blank"])
      try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.app)/#token=" + token])
      try await page.waitFor("Use a current Chrome", in: "away-words")
      #expect(try await page.isShown("dialer") == false)
      #expect(try await page.isShown("take-back") == false)
      #expect(try await page.faults() == [])
      try await page.close()
      try await gateway.finish()
    }

    /// Chromium allows sound to a page that captures: this stub does what another browser does.
    private static let autoplay = """
      { const play = HTMLMediaElement.prototype.play;
        HTMLMediaElement.prototype.play = function () {
          return navigator.userActivation.hasBeenActive ? play.call(this) : Promise.reject(new DOMException("no click", "NotAllowedError")); }; }
      """

    @Test func `in a call the sound is refused, then the microphone is blocked: a click mends each, and the call continues`()
      async throws
    {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.hook(Self.autoplay)
      try await page.send(
        "Page.navigate", ["url": "http://127.0.0.1:\(gateway.app)/?answer#token=\(try await gateway.token("alice", "web"))"])
      try await page.wait("trunkline.state === 'online'")
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "60", "--repeat"])
      try await page.waitFor("blocks the sound", in: "notice")
      #expect(try await page.faults() == [])
      try await page.click("notice-act")
      try await page.wait("call.isPlaying && !document.getElementById('notice').checkVisibility()")

      for setting in ["denied", "granted"] {
        try await page.send("Browser.setPermission", ["permission": ["name": "microphone"], "setting": setting])
        if setting == "denied" {
          try await page.waitFor("microphone is blocked", in: "notice")
          #expect(try await page.evaluate("call.isCapturing") as? Bool == false)
          try await page.shot("permission-revoked")
        }
      }
      try await page.wait("call.isCapturing && !document.getElementById('notice').checkVisibility()")
      try await page.click("hangup")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `the page that a push opened answers without a login, is loaded again in the call, and asks for a login after it`()
      async throws
    {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway(over: .webPush, media: "[ auto ]")
      let subscription = try String(contentsOfFile: service.folder + "/subscription.json", encoding: .utf8)
      let registered = try await service.killedApp(gateway, device: "web", token: subscription, ["--push-kind", "webpush"])
      registered.signal(SIGTERM)
      _ = try? await registered.finish(within: 10)
      let page = try await WebPage(gateway)
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "60", "--repeat"])
      let push = try await service.nextPush().merging(["answers": true, "device": "web"]) { $1 }
      let text = String(decoding: try JSONSerialization.data(withJSONObject: push), as: UTF8.self)
      let hash = try #require(text.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
      try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.app)/#push=" + hash])
      try await page.wait("call.state === 'connected' && call.isPlaying && location.hash === ''")
      #expect(try await page.isShown("login") == false)
      // a browser asks before it reloads a page that was touched
      try await page.click("mute")
      try await page.waitFor("Unmute", in: "mute")
      try await page.evaluate("window.isBefore = true")
      try page.start("Page.reload")
      try await page.dialog(1, accept: true)
      try await page.wait("!window.isBefore && call.state === 'connected' && !call.isTakenUp && call.isPlaying")
      #expect(try await page.evaluate("vibrations.length") as? Int == 0, "it does not ring again")
      #expect(try await page.text("mute") == "Unmute")
      try await page.click("hangup")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      try await page.wait("document.getElementById('login').checkVisibility()")
      try await page.close()
      gateway.note(invites: try await gateway.records(1).compactMap { $0["sipCallId"] as? String })
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `the page can be installed: manifest, icons, a service worker over it, and no permission is requested at load`()
      async throws
    {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      let worker = """
        navigator.serviceWorker.ready.then(async (found) =>
          [found.scope, found.active.scriptURL, String(await found.pushManager.getSubscription())])
        """
      let own = "http://127.0.0.1:\(gateway.app)/"
      #expect(try await page.evaluate(worker) as? [String] == [own, own + "service-worker.js", "null"])
      try await page.wait("navigator.serviceWorker.controller")
      #expect(try await page.evaluate("asked") as? Int == 0)

      let manifest = try await page.send("Page.getAppManifest")
      #expect((manifest["errors"] as? [Any])?.isEmpty == true, "\(manifest)")
      #expect((try await page.send("Page.getInstallabilityErrors")["installabilityErrors"] as? [Any])?.isEmpty == true)
      let icons = """
        (async () => { const answer = await fetch("manifest.webmanifest"), wrong = [];
          if (answer.headers.get("content-type") !== "application/manifest+json") wrong.push(answer.headers.get("content-type"));
          for (const { src, sizes, type } of (await answer.json()).icons) {
            const icon = await fetch(src), image = new Image();
            image.src = src;
            await image.decode().catch(() => wrong.push(src));
            const size = `${image.naturalWidth}x${image.naturalHeight}`;
            if (icon.headers.get("content-type") !== type || (sizes !== "any" && size !== sizes)) wrong.push(`${src}: ${size}`);
          }
          return wrong; })()
        """
      #expect(try await page.evaluate(icons) as? [String] == [])
      try await page.close()
      try await gateway.finish()
    }
  }
}
