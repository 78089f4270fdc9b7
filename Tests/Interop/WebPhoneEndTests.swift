import Foundation
import Testing

extension Interop {
  /// What the web phone leaves of a call that could not be made or was lost, in headless Chromium against a gateway and SIP peers.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct WebPhoneEndTests {
    private func online(_ more: [String] = []) async throws -> (gateway: GatewayUnderTest, page: WebPage) {
      let gateway = try await GatewayUnderTest(more, media: "[ auto ]")
      let page = try await WebPage(gateway, width: 400)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      return (gateway, page)
    }

    private let tone = { (name: String) in "(await import('/tones.js')).\(name).context" }

    @Test func `who is busy, declines, does not exist or cannot be reached leaves a card, a tone and a way to call again`()
      async throws
    {
      let (gateway, page) = try await online()
      try await page.click("number")
      try await page.press("+15559990001")
      for (code, words, name) in [
        ("486", "Busy", "busy"), ("603", "Declined", "busy"), ("404", "This number does not exist", "congestion"),
        ("503", "The telephone network could not connect the call", "congestion"),
      ] {
        let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--refuse", code])
        // the first by the keyboard, the others by the card of the one before
        if code == "486" { try await page.press("Enter") } else { try await page.click("again-0") }
        try await page.waitFor(words, in: "ended")
        try await page.waitFor(WebPage.shown("+15559990001"), in: "ended")
        try await page.waitFor(words, in: "announce-over")
        #expect(try await page.evaluate("(async () => !!\(tone(name)))()") as? Bool == true, "\(code)")
        #expect(
          try await page.evaluate("document.activeElement !== document.body") as? Bool == true, "\(code): the keyboard is lost")
        #expect(try await page.faults() == [])
        try await page.shot("ended-\(code)")
        trunk.signal(SIGTERM)
        try await trunk.finish(within: 10)
      }
      try await page.evaluate("document.getElementById('number').value = '112'; document.getElementById('dial').click()")
      try await page.waitFor("Emergency numbers cannot be called here", in: "ended")
      try await page.press("Escape")
      #expect(try await page.isShown("ended") == false)
      try await page.close()
      try await gateway.finish()
    }

    @Test func `a gateway that is restarted in a call leaves a card with why, and the notice goes`() async throws {
      let (gateway, page) = try await online()
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "30"])
      try await page.click("answer")
      try await page.waitFor("0:01", in: "clock")
      gateway.process.signal(SIGKILL)
      try await page.wait("document.getElementById('notice').checkVisibility()")
      try await gateway.process.finish(within: 5)
      try await gateway.restart()
      try await page.waitFor("The gateway", in: "ended", within: 40)
      try await page.wait(
        "document.getElementById('ended').checkVisibility() && !document.getElementById('notice').checkVisibility()")
      try await page.waitFor(WebPage.shown("+15557770001"), in: "ended")
      #expect(try await page.evaluate("document.activeElement !== document.body") as? Bool == true)
      #expect(try await page.faults() == [])
      try await page.shot("ended-restart")
      try await page.click("dismiss-0")
      #expect(try await page.isShown("ended") == false)
      trunk.signal(SIGTERM)
      try await trunk.finish(within: 10)
      try await page.close()
    }

    @Test func `ten calls wait beside one: each is shown, none is refused as busy, any can be taken`() async throws {
      let (gateway, page) = try await online(["limits: { calls_per_user: 16 }"])
      let first = try await caller(gateway, "+15557770000")
      try await page.click("answer")
      try await page.wait("call?.state === 'connected'")
      var waiting: [Spawned] = []
      for number in 1...10 { waiting.append(try await caller(gateway, "+155577701\(number < 10 ? "0" : "")\(number)")) }
      try await page.wait("document.querySelectorAll('#queue li').length === 9", within: 30)
      #expect(try await page.faults() == [])
      try await page.shot("ten-waiting")
      try await page.evaluate("[...document.querySelectorAll('#queue li')].at(-1).querySelector('button').click()")
      try await page.wait("call?.peer.h === '+15557770110' && call.state === 'connected'", within: 20)
      try await page.waitFor(WebPage.shown("+15557770000"), in: "other")
      try await page.evaluate("trunkline.calls.forEach((one) => one.end())")
      for trunk in [first] + waiting { _ = try await trunk.finish(within: 20) }
      try await page.close()
      try await gateway.finish()
    }

    private func caller(_ gateway: GatewayUnderTest, _ from: String) async throws -> Spawned {
      try await Peers.trunk(
        gateway,
        ["--listen", "127.0.0.1:\(try FreePorts.both())", "--call", "+15551230001", "--from", from, "--talk", "90", "--repeat"])
    }
  }
}
