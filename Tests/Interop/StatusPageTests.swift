import Foundation
import Testing

extension Interop {
  /// The status page of the admin port, in Chromium.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium: run Scripts/install test"), .serialized)
  struct StatusPageTests {
    private func open(_ gateway: GatewayUnderTest, width: Int = 1_000, isDark: Bool = false, state: String = "takes calls")
      async throws
      -> WebPage
    {
      let page = try await WebPage(gateway, width: width, isDark: isDark)
      try await page.send("Page.navigate", ["url": "http://127.0.0.1:\(gateway.admin)/"])
      try await page.wait("document.getElementById('state').textContent === '\(state)'", within: 40)
      return page
    }

    @Test func `it shows trunks, a call that lives, how it ended, and what is wrong`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "probe: 1s")
      // nobody answers the probes yet
      let page = try await open(gateway, state: "takes no calls")
      try await page.waitFor("no calls", in: "calls")
      try await page.waitFor("trunk carrier: OPTIONS not answered", in: "wrong", within: 40)
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "9000"])
      try await page.waitFor("connected", in: "calls")
      try await page.waitFor("alice", in: "calls")
      try await page.waitFor("MOS 4", in: "calls")
      try await page.shot("status-light")
      #expect(try await page.faults() == [])
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(2_000))")
      #expect(try await phone.finish(within: 10) == 0)
      try await page.waitFor("Ended: 1 (100 % connected) incoming, 0 outgoing", in: "hour")
      try await page.waitFor("connected", in: "reasons")
      #expect(
        try await page.evaluate(
          "[...document.querySelectorAll('#minutes rect')].filter(bar => bar.getAttribute('height') > 0).length") as? Int == 1)
      try await page.close()
      try await gateway.finish()
    }

    @Test
    func `400 pixels wide and dark nothing is cut off, the keyboard reaches what scrolls, and no text has too little contrast`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let page = try await open(gateway, width: 400, isDark: true)
      try await page.waitFor("carrier", in: "trunks")
      #expect(try await page.evaluate("document.documentElement.scrollWidth <= innerWidth") as? Bool == true)
      #expect(
        try await page.evaluate(
          "getComputedStyle(document.body).colorScheme || matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : ''")
          as? String == "dark")
      // what is wider than the screen scrolls in a part of its own
      #expect(try await page.faults().filter { !$0.hasSuffix("beyond the edge") } == [])
      var reached: [String] = []
      for _ in 0..<3 {
        try await page.press("Tab")
        reached.append(try await page.evaluate("document.activeElement.firstElementChild?.id ?? ''") as? String ?? "")
      }
      #expect(reached == ["trunks", "calls", "reasons"])
      try await page.shot("status-dark-narrow")
      try await page.close()
      try await gateway.finish()
    }
  }
}
