import Foundation
import Testing

extension Interop {
  /// The web phone's data from the gateway beside calls: history, names, the user's numbers; and the number that it dials for a
  /// text. In headless Chromium.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct WebPhoneHistoryTests {
    private static let users = "users: [ { id: alice, numbers: [ \"+15551230001\", \"+15551230003\" ] } ]"

    private func put(_ contacts: String, _ gateway: GatewayUnderTest) throws {
      let answer = try HTTP.request(
        "PUT", "/v1/directory/user:alice", port: gateway.admin, headers: ["Content-Type: text/csv"], body: contacts)
      #expect(answer.status == 200, "\(answer.body)")
    }

    @Test
    func `a call that was missed while no page was open is on each device, named and counted, and called back by one click`()
      async throws
    {
      let gateway = try await GatewayUnderTest([Self.users], media: "[ auto ]")
      try put("number,label,kind\n+15557770001,Ada Lovelace,identify\n", gateway)
      let page = try await WebPage(gateway)
      let token = try await gateway.token("alice", "web")
      try await page.open(gateway, token: token)
      try await page.wait("trunkline.keepsHistory && document.getElementById('recent-local').hidden")
      #expect(try await page.text("own-number").isEmpty)
      #expect(try await page.isShown("from"))
      try await page.send("Page.navigate", ["url": "about:blank"])

      let missed = try await Peers.trunk(gateway, ["--call", "+15551230001", "--from", "+15557770001", "--talk", "1"])
      // Chromium keeps the page for "Back" with its socket, but its session has ended: nothing rings, and the caller gets 480
      _ = try await missed.finish(within: 15)
      try await page.open(gateway, token: token)
      try await page.waitFor("Ada Lovelace", in: "history")
      try await page.wait(
        "document.title === '(1) Trunkline phone' && document.getElementById('missed-count').textContent === '1'")
      // a call that rings when the page is left ends before a reloaded page would be back
      let alone = try await Peers.trunk(gateway, ["--call", "+15551230001", "--from", "+15557770001", "--talk", "1"])
      try await page.wait("call?.state === 'ringing'")
      try await page.send("Page.navigate", ["url": "about:blank"])
      _ = try await alone.finish(within: 15)
      let ends = try await gateway.records(2).map { ($0["end"] as? [String: Any])?["sip"] as? Int }
      #expect(ends == [480, 480])
      try await page.open(gateway, token: token)
      try await page.wait("document.title === '(2) Trunkline phone'")
      let other = try await WebPage(gateway)
      try await other.open(gateway, token: try await gateway.token("alice", "desk"))
      try await other.waitFor("Ada Lovelace", in: "history")
      try await page.click("show-missed")
      try await page.wait("document.title === 'Trunkline phone' && document.querySelectorAll('#history li.missed').length === 2")
      #expect(try await page.faults() == [])

      // the user chooses the calling number, and the callee sees it
      try await page.choose(1, in: "from")
      let trunk = try await Peers.trunk(gateway, ["--calls", "1"])
      try await page.evaluate("document.querySelector('#history .call').click()")
      try await page.wait("call?.state === 'connected'")
      try await page.waitFor("Ada Lovelace", in: "peer")
      try await page.click("hangup")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      let records = try await gateway.records(3)
      #expect(
        records.last?["from"] as? String == "+15551230003" && records.last?["to"] as? String == "+15557770001", "\(records)")
      // both devices list the call, once
      for one in [page, other] {
        try await one.wait("document.querySelectorAll('#history li').length >= 1 && trunkline.isOnline")
      }
      try await other.wait("document.querySelectorAll('#history li').length === 3", within: 20)
      try await other.close()
      try await page.close()
      try await gateway.finish()
    }

    @Test func `what is dialled is what was typed: read by the gateway before it rings, the extension sent after the answer`()
      async throws
    {
      let gateway = try await GatewayUnderTest(trunk: "numbers: { country: US }", media: "[ auto ]")
      // among a hundred thousand contacts
      let others = (1...100_000).map { "+1\(2_120_000_000 + $0),Contact \($0),identify\n" }
      try put("number,label,kind\n+15559990001,Grace Hopper,identify\n" + others.joined(), gateway)
      let page = try await WebPage(gateway)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      // the text is refused with a reason, and no call is made
      for (text, words) in [
        ("030 123456 / 030 654321", "two numbers"), ("https://example.com", "a web address"), ("a@b.example", "e-mail"),
      ] {
        try await page.evaluate("document.getElementById('number').value = '\(text)'")
        try await page.click("dial")
        try await page.waitFor(words, in: "dial-refusal")
        #expect(try await page.evaluate("trunkline.calls.length") as? Int == 0)
        #expect(try await page.focus() == "number")
      }
      // names while one types
      try await page.evaluate("document.getElementById('number').value = ''")
      try await page.click("number")
      try await page.press("hopp")
      try await page.waitFor("Grace Hopper", in: "found")
      try await page.evaluate("document.querySelector('#found button').click()")
      #expect(try await page.evaluate("document.getElementById('number').value") as? String == "+15559990001")

      let trunk = try await Peers.trunk(gateway, ["--calls", "1"])
      try await page.evaluate("location.hash = '#call=' + encodeURIComponent('1-800-FLOWERS ext. 12')")
      try await page.waitFor("A link asks", in: "announce")
      #expect(try await page.evaluate("location.hash + trunkline.calls.length") as? String == "0")
      try await page.waitFor("1-800-3569377", in: "dial-reading")
      try await page.click("dial")
      try await page.wait("call?.state === 'connected' && call.peer.h === '+18003569377'")
      try await page.waitFor("+1 800 356 9377", in: "peer")
      for digit in ["1", "2"] { _ = try await trunk.event("digit") { ($0["fields"] as? [String: String])?["digit"] == digit } }
      try await page.click("hangup")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      try await page.close()
      try await gateway.finish()
    }
  }
}
