import Foundation
import Testing

extension Interop {
  /// The status page of the admin port, in Chromium.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium: run Scripts/install test"), .serialized)
  struct StatusPageTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    private func open(_ gateway: GatewayUnderTest, width: Int = 1_000, isDark: Bool = false, says headline: String)
      async throws -> WebPage
    {
      let page = try await WebPage(gateway, width: width, isDark: isDark)
      try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.admin)/"])
      try await page.waitFor(headline, in: "headline", within: 40)
      return page
    }

    /// Over a stand-in of the admin port, without a gateway. With `TRUNKLINE_SCREENSHOTS` each state is kept as a picture of each
    /// screen.
    @Test func `every state is seen and read as it must be, narrow and wide, in light and dark`() async throws {
      let gateway = try await GatewayUnderTest()
      let shots = ProcessInfo.processInfo.environment["TRUNKLINE_SCREENSHOTS"].map { ["--shots", $0] } ?? []
      let states = try Peers.python("states", "status_states.py", shots, gateway)
      #expect(try await states.finish(within: 600) == 0, "\(states.text.suffix(6_000))")
      for event in states.events where (event["faults"] as? [String])?.isEmpty == false {
        Issue.record("\(event["state"] ?? event["name"] ?? "") \(event["look"] ?? ""): \(event["faults"] ?? "")")
      }
      let looked = states.events.filter { $0["event"] as? String == "state" }
      #expect(
        Set(looked.compactMap { $0["state"] as? String }).count >= 21
          && Set(looked.compactMap { $0["look"] as? String }).count == 4)
      #expect(looked.count == looked.compactMap { $0["faults"] as? [String] }.count)
      #expect(states.events.filter { $0["event"] as? String == "behaviour" }.count >= 8)
      try await gateway.finish()
    }

    @Test func `it shows trunks, a call that lives, how it ended, and what is wrong`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "probe: 1s")
      // the probes have no answer yet
      let page = try await open(gateway, says: "Not ready: trunks: down: carrier (OPTIONS not answered)")
      try await page.waitFor("No calls", in: "calls")
      try await page.waitFor("Trunk carrier: does not answer OPTIONS for", in: "wrong", within: 40)
      try await page.wait("document.title.startsWith('NOT READY: trunks · ')")
      #expect(
        try await page.evaluate("fetch(document.querySelector('#trunks a').href).then((answer) => answer.status)") as? Int == 200,
        "the runbook is the gateway's own")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "25000"])
      try await page.waitFor("Connected", in: "calls", within: 30)
      try await page.waitFor("alice", in: "calls")
      try await page.waitFor("Good 4", in: "calls", within: 30)
      try await page.shot("status-light")
      #expect(try await page.faults() == [])
      #expect(try await caller.finish(within: 60) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0)
      try await page.waitFor("Ended: 1 (100 % connected) incoming, 0 outgoing", in: "hour", within: 30)
      try await page.waitFor("The telephone side hung up", in: "ended")
      try await page.waitFor("Connected: 1", in: "reasons")
      #expect(
        try await page.evaluate(
          "[...document.querySelectorAll('#minutes rect')].filter(bar => bar.getAttribute('height') > 0).length") as? Int == 1)
      try await page.close()
      try await gateway.finish()
    }

    @Test
    func
      `a wrong token is reported, the right one accepted; a gateway that stops leaves grey rows, which recover when it is back`()
      async throws
    {
      let gateway = try await GatewayUnderTest(
        ["admin: { tokens: [ { name: duty, token_file: jwt.key, scopes: [ read ], per_second: 20 } ] }"], bearer: Self.secret)
      let page = try await open(gateway, says: "Token required")
      #expect(try await page.focus() == "token")
      for (typed, said) in [("wrong", "This token is not valid."), (Self.secret, "")] {
        try await page.send("Input.insertText", ["text": typed])
        try await page.press("Enter")
        try await page.wait(
          "document.getElementById('login-fault').textContent === '\(said)' && feed.fault?.kind !== \(said.isEmpty ? "'login'" : "0")"
        )
        #expect(try await page.focus() == (said.isEmpty ? "headline" : "token"))
      }
      try await page.waitFor("Ready", in: "headline")
      try await page.waitFor("carrier", in: "trunks")

      gateway.process.signal(SIGKILL)
      _ = try await gateway.process.finish(within: 10)
      try await page.waitFor("No answer for", in: "headline", within: 60)
      try await page.waitFor("Out of date: the state of", in: "as-of")
      #expect(try await page.text("trunks").contains("carrier"), "what was known stays")
      #expect(try await page.faults() == [])
      try await gateway.restart()
      try await page.waitFor("Ready", in: "headline", within: 90)
      try await page.waitFor("As of", in: "as-of")
      #expect(try await page.isShown("notice") == false, "a restart is no second node")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `both pages have the brand's name, colour and logo, and what is on the colour can be read`() async throws {
      // the file exists before the gateway starts, which reads it then
      let logo = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString.prefix(8)).svg")
        .path
      try "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><rect width=\"9\" height=\"9\" fill=\"#fff\"/></svg>"
        .write(
          toFile: logo, atomically: true, encoding: .utf8)
      defer { try? FileManager.default.removeItem(atPath: logo) }
      let gateway = try await GatewayUnderTest(["branding: { name: \"Acme & Söhne\", color: \"#ffcc00\", logo: \(logo) }"])
      let page = try await open(gateway, says: "Ready")
      for port in [gateway.admin, gateway.app] {
        try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(port)/"])
        try await page.wait("document.title.includes('Acme & Söhne') && document.querySelector('h1 img').naturalWidth > 0")
        #expect(try await page.evaluate("document.querySelector('h1').textContent.trim()") as? String == "Acme & Söhne")
        let colours =
          "(({ backgroundColor, color }) => backgroundColor + ' ' + color)(getComputedStyle(document.querySelector('header')))"
        #expect(try await page.evaluate(colours) as? String == "rgb(255, 204, 0) rgb(0, 0, 0)")
        for isDark in [false, true] {
          try await page.look(width: 400, isDark: isDark)
          #expect(try await page.faults() == [], "\(port) \(isDark)")
        }
      }
      try await page.close()
      try await gateway.finish()
    }
  }
}
