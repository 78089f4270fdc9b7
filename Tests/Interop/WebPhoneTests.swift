import Foundation
import Testing

extension Interop {
  /// What a newcomer sees: each state of the web phone in headless Chromium. With `TRUNKLINE_SCREENSHOTS` set to a folder each is
  /// also kept as a picture.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct WebPhoneTests {
    @Test func `a login by a click requests the permissions that calls need, on every screen, in light and dark`() async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.open(gateway)
      #expect(try await page.isShown("login"))
      try await page.shot("login")
      try await page.press("nonsense")
      try await page.press("Enter")
      try await page.waitFor("not a login token", in: "notice")
      try await page.evaluate("document.getElementById('token').value = '\(try await gateway.token("alice", "web"))'")
      try await page.press("Enter")
      try await page.waitFor("alice · online", in: "status")
      try await page.wait("asked === 1")
      #expect(try await page.isShown("dialer"))

      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      try await page.evaluate("sessionStorage.removeItem('notify')")
      try await page.send("Page.reload")
      try await page.wait("document.getElementById('setup').checkVisibility()")
      for (width, isDark) in [(320, false), (480, true), (1280, false), (1280, true)] {
        try await page.look(width: width, isDark: isDark)
        let faults = try await page.faults()
        #expect(faults == [], "\(width) px, dark: \(isDark)")
        try await page.shot("idle-\(width)\(isDark ? "-dark" : "")")
      }
      try await page.click("allow")
      try await page.wait("asked === 1 && !document.getElementById('setup').checkVisibility()")
      try await page.close()
      try await gateway.finish()
    }

    @Test(arguments: [true, false])
    func `without a microphone the page says what to do, and the caller is not declined`(isDenied: Bool) async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway, ["--asks"] + (isDenied ? [] : ["--no-microphone"]))
      let answer = ["permission": ["name": "microphone"], "setting": isDenied ? "denied" : "granted"] as [String: Any]
      try await page.send("Browser.setPermission", answer)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      let advice = isDenied ? "Allow it in the address bar" : "Connect one"
      try await page.waitFor(advice, in: "notice")
      #expect(try await page.faults() == [])
      try await page.shot(isDenied ? "denied-idle" : "absent-idle")

      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "2"])
      // no Answer button that must fail: the page says first what to do. A program that answers all the same leaves the call to
      // other devices
      try await page.waitFor("cannot be answered", in: "notice")
      try await page.waitFor(advice, in: "notice")
      #expect(try await page.isShown("answer") == false)
      #expect(try await page.isShown("hangup"))
      #expect(try await page.faults() == [])
      try await page.evaluate("call.answer()")
      try await page.waitFor(isDenied ? "The microphone is blocked" : "No microphone found", in: "history")
      try await page.waitFor(advice, in: "notice")
      try await page.shot(isDenied ? "denied-after-call" : "absent-after-call")
      #expect(try await trunk.finish(within: 10) != 0)
      #expect(!trunk.text.contains("486"), "\(trunk.text)")
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == "mediaFailed" && end["sip"] as? Int == 480, "\(end)")

      try await page.evaluate("document.getElementById('number').value = '+15559990001'")
      try await page.click("dial")
      try await page.wait("document.querySelectorAll('#history li').length === 2")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `a call rings in a tab without a click, is answered by a key, held, muted, and resumed after a reload`()
      async throws
    {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      try await page.evaluate("sessionStorage.setItem('notify', 'granted')")
      try await page.send("Page.reload")
      try await page.wait("trunkline.state === 'online' && Notification.permission === 'granted'")
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "14", "--repeat", "--record", "trunk-heard.wav"])

      try await page.wait("shown[0] === '+1 555 777 0001 is calling' && document.title.includes('is calling')")
      #expect(try await page.evaluate("JSON.stringify(vibrations[0])") as? String == "[400,200,400]")
      #expect(try await page.focus() == "answer")
      #expect(try await page.isShown("meters") == false)
      #expect(try await page.faults() == [])
      try await page.shot("ringing")
      try await page.press("Enter")
      try await page.wait("document.getElementById('call').dataset.state === 'connected'")
      #expect(try await page.evaluate("document.title") as? String == "Trunkline phone")
      #expect(try await page.evaluate("shown[1]") as? String == "closed")

      // the clock continues, the words are announced once
      try await page.evaluate(
        "window.said = 0; new MutationObserver(() => said++).observe(document.getElementById('announce'), { childList: true })")
      try await page.waitFor("0:02", in: "clock")
      #expect(try await page.evaluate("said") as? Int == 0)
      #expect(try await page.isShown("meters"))
      try await page.press("4")
      try await page.waitFor("4", in: "digits")
      for next in ["pad", "audio", "hold", "add"] {
        try await page.press("Tab")
        #expect(try await page.focus() == next)
      }
      try await page.faults(expectedIn: [320, 480, 1280])
      try await page.shot("in-call")
      try await hold(page)
      try await page.click("mute")
      try await page.waitFor("Unmute", in: "mute")
      try await page.waitFor("they cannot hear you", in: "words")
      try await page.shot("muted")
      #expect(try await page.evaluate("said") as? Int == 3, "held, resumed, muted")
      try await reload(page)

      try await page.click("mute")
      try await page.wait("meters.peaks.in > -30 && meters.peaks.out > -50")
      #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)")
      try await page.waitFor("They hung up", in: "history")
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      let end = Double(heard.count) / 8_000
      #expect(Speech.level(heard, from: end - 2, to: end) > 100, "the microphone's beeps, after the reload")
      try await page.send("Page.reload")
      try await page.wait("/\\d:\\d\\d · They hung up/.test(document.getElementById('history').textContent)")
      #expect(try await page.faults() == [])
      try await page.shot("history")
      #expect(trunk.fields("digits", of: "ended") == ["4"])
      try await page.close()
      try await gateway.finish()
    }

    private func hold(_ page: WebPage) async throws {
      try await page.click("hold")
      try await page.waitFor("On hold", in: "words")
      try await page.waitFor("Resume", in: "hold")
      #expect(try await page.isShown("meters") == false)
      try await page.shot("held")
      try await page.click("hold")
      try await page.waitFor("Connected", in: "words")
    }

    /// Reloads the page, refused first, then allowed: the call is there, as muted as it was, and the clock has not restarted.
    private func reload(_ page: WebPage) async throws {
      try page.start("Page.reload")
      try await page.dialog(1, accept: false)
      try await page.wait("call.state === 'connected'")
      try page.start("Page.reload")
      try await page.dialog(2, accept: true)
      try await page.wait("call.state === 'connected' && call.peerConnection.connectionState === 'connected' && !call.isTakenUp")
      #expect(try await page.text("mute") == "Unmute")
      let clock = try await page.evaluate("call.seconds") as? Double
      #expect(try #require(clock) >= 2)
      try await page.shot("taken-up")
    }

    @Test func `a user who dials hears ringback, unless the network plays its own; a refusal is stated in words`() async throws {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      let tone = "(await import('/tones.js')).ringback.context"
      for (arguments, rings) in [(["--answer-after", "2"], true), (["--answer-after", "2", "--early"], false)] {
        let trunk = try await Peers.trunk(gateway, ["--calls", "1"] + arguments)
        try await page.evaluate("document.getElementById('number').value = '+1 555 999 0001'")
        try await page.click("dial")
        try await page.wait("call.phase === 'progress' && (call.progress === 'ringing' || call.hasEarlyMedia)")
        #expect(try await page.evaluate("(async () => !!\(tone))()") as? Bool == rings, "\(arguments)")
        #expect(try await page.faults() == [])
        try await page.shot(rings ? "dialling" : "early-media")
        try await page.wait("call.state === 'connected'")
        #expect(try await page.evaluate("(async () => !!\(tone))()") as? Bool == false)
        try await page.click("hangup")
        try await page.waitFor("You hung up", in: "history")
        #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      }
      for (code, words) in [("486", "Busy"), ("404", "This number does not exist")] {
        let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--refuse", code])
        try await page.click("dial")
        try await page.waitFor(words, in: "history")
        try await page.waitFor(words, in: "announce-over")
        try await page.waitFor(words, in: "ended")
        trunk.signal(SIGTERM)
        try await trunk.finish(within: 10)
      }
      try await page.shot("ended")
      #expect(try await page.faults() == [])
      try await page.close()
      try await gateway.finish()
    }

    @Test func `an unreachable gateway is reported, idle and in a call: the clock stops and nothing can be dialled`() async throws
    {
      let gateway = try await GatewayUnderTest(media: "[ auto ]")
      let page = try await WebPage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "30"])
      try await page.click("answer")
      try await page.waitFor("0:01", in: "clock")
      gateway.process.signal(SIGKILL)
      try await page.waitFor("cannot be reached", in: "notice")
      try await page.shot("gone-in-call")
      #expect(try await page.faults() == [])
      let states = "['hold', 'answer'].every((id) => document.getElementById(id).disabled)"
      #expect(try await page.evaluate(states) as? Bool == true)
      let stands = """
        new Promise((done) => { const before = document.getElementById("clock").textContent;
          setTimeout(() => done(before === document.getElementById("clock").textContent), 1500); })
        """
      #expect(try await page.evaluate(stands) as? Bool == true)

      try await page.click("hangup")
      try await page.wait("document.getElementById('dial').disabled && document.getElementById('dialer').checkVisibility()")
      try await page.waitFor("Calls are not possible now", in: "notice")
      #expect(try await page.faults() == [])
      try await page.shot("gone-idle")
      try await gateway.process.finish(within: 5)
      try await gateway.restart()
      try await page.waitFor("alice · online", in: "status")
      #expect(try await page.evaluate("document.getElementById('dial').disabled") as? Bool == false)
      #expect(try await page.isShown("notice") == false)
      #expect(try await page.text("announce") == "", "nor is it left for who has the page read aloud")
      trunk.signal(SIGTERM)
      try await trunk.finish(within: 10)
      try await page.close()
    }
  }
}

extension WebPage {
  /// Expects no faults at any of these widths, then restores the usual one.
  fileprivate func faults(expectedIn widths: [Int]) async throws {
    for width in widths {
      for isDark in [false, true] {
        try await look(width: width, isDark: isDark)
        let faults = try await faults()
        #expect(faults == [], "\(width) px, dark: \(isDark)")
        if width == 320 || isDark { try await shot("in-call-\(width)\(isDark ? "-dark" : "")") }
      }
    }
    try await look(width: 480)
  }
}
