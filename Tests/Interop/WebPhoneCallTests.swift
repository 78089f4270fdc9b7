import Foundation
import Testing

extension Interop {
  /// What a person does with calls in the web phone, in headless Chromium against a gateway: keys, a second call, transfers,
  /// devices.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"), .serialized)
  struct WebPhoneCallTests {
    /// A page that is online on a gateway whose carrier accepts transfers.
    private func online(width: Int = 400) async throws -> (gateway: GatewayUnderTest, page: WebPage) {
      let gateway = try await GatewayUnderTest(trunk: "transfers: true", media: "[ auto ]")
      let page = try await WebPage(gateway, width: width)
      try await page.open(gateway, token: try await gateway.token("alice", "web"))
      return (gateway, page)
    }

    /// A carrier's call on its own port, so that there may be several.
    private func caller(_ gateway: GatewayUnderTest, _ from: String) async throws -> Spawned {
      try await Peers.trunk(
        gateway,
        ["--listen", "127.0.0.1:\(try FreePorts.both())", "--call", "+15551230001", "--from", from, "--talk", "60", "--repeat"])
    }

    /// `held` of each call that the gateway has, by the caller's number.
    private func held(_ gateway: GatewayUnderTest) throws -> [String: Bool] {
      let page = try JSONSerialization.jsonObject(with: Data(try gateway.get("/v1/calls").body.utf8)) as? [String: Any]
      let calls = page?["calls"] as? [[String: Any]] ?? []
      return Dictionary(calls.compactMap { call in (call["from"] as? String).map { ($0, call["held"] as? Bool ?? false) } }) {
        $1
      }
    }

    private let isFront = { (number: String) in "call?.peer.h === '\(number)' && call.state === 'connected'" }

    @Test func `a number is dialled on the keys, and the keys of the call go to the telephone side`() async throws {
      let (gateway, page) = try await online()
      let trunk = try await Peers.trunk(gateway, ["--calls", "1"])
      try await page.click("number")
      try await page.press("+")
      for digit in "155599900019" { try await page.click("dial-pad-\(digit)") }
      try await page.click("erase")
      #expect(try await page.evaluate("document.getElementById('number').value") as? String == "+15559990001")
      try await page.click("dial")
      try await page.wait(isFront("+15559990001"))
      #expect(try await page.isShown("keypad") == false)
      try await page.click("pad")
      for digit in "5*#" { try await page.click("keypad-\(digit)") }
      try await page.waitFor("5*#", in: "digits")
      #expect(try await page.isShown("hold") == false)
      #expect(try await page.isShown("hangup"))
      #expect(try await page.faults() == [])
      try await page.click("pad")
      #expect(try await page.isShown("hold"))
      // a digit that the gateway accepted is not yet played to the end
      _ = try await trunk.event("digit") { ($0["fields"] as? [String: String])?["digit"] == "#" }
      try await page.click("hangup")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      #expect(trunk.fields("digits", of: "ended") == ["5*#"])
      try await page.close()
      try await gateway.finish()
    }

    @Test func `a second call waits, is answered while the first is held, swapped, and left for the first`() async throws {
      let (gateway, page) = try await online(width: 320)
      let (one, two) = ("+15557770001", "+15557770002")
      let first = try await caller(gateway, one)
      try await page.click("answer")
      try await page.wait(isFront(one))

      // declined: the first call continues untouched
      let declined = try await caller(gateway, "+15557770003")
      try await page.waitFor("+1 555 777 0003", in: "waiting-who")
      #expect(try await page.focus() == "mute", "nobody answers by a key that was meant for the first")
      #expect(try await page.evaluate("document.title.includes('is calling')") as? Bool == true)
      try await page.click("waiting-decline")
      #expect(try await declined.finish(within: 10) != 0)
      try await page.wait(isFront(one))

      let second = try await caller(gateway, two)
      try await page.waitFor(WebPage.shown(two), in: "waiting-who")
      #expect(try await page.faults() == [])
      try await page.click("hold-accept")
      try await page.wait("\(isFront(two)) && !document.getElementById('swap').disabled")
      try await page.waitFor("On hold", in: "other-words")
      #expect(await eventually(within: 5) { (try? self.held(gateway)) == [one: true, two: false] })
      #expect(try await page.faults() == [])
      try await page.click("swap")
      try await page.wait(isFront(one))
      #expect(await eventually(within: 5) { (try? self.held(gateway)) == [one: false, two: true] })
      try await page.wait("meters.call === call && meters.peaks.in > -40")

      try await page.click("hangup")
      try await page.waitFor("Resume", in: "hold")
      #expect(try await page.text("peer") == WebPage.shown(two))
      #expect(try await page.isShown("other") == false)
      try await page.click("hold")
      try await page.wait(isFront(two))
      #expect(await eventually(within: 5) { (try? self.held(gateway)) == [two: false] })

      // the third ends the second
      let third = try await caller(gateway, "+15557770004")
      try await page.click("end-accept")
      try await page.wait(isFront("+15557770004"))
      #expect(try await page.isShown("other") == false)
      try await page.click("hangup")
      for trunk in [first, second, third] { #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)") }
      #expect(try await page.evaluate("document.querySelectorAll('#history li').length") as? Int == 4)
      try await page.close()
      try await gateway.finish()
    }

    @Test func `a call is transferred to a number: it continues if that is refused, else it ends as transferred`() async throws {
      let (gateway, page) = try await online()
      var script = SippScript.caller()
      script.isAnswered()
      script.awaits("REFER", containing: ["Refer-To: <?sip:(%2B|\\+)15558880000@"])
      script.replies(603)
      script.awaits("REFER", containing: ["Refer-To: <?sip:(%2B|\\+)15558880000@"])
      script.replies(202)
      let head = ["Event: refer"]
      let type = "message/sipfrag;version=2.0"
      script.asks("NOTIFY", head + ["Subscription-State: active;expires=60"], sdp: "SIP/2.0 180 Ringing\n", type: type)
      script.response()
      script.asks("NOTIFY", head + ["Subscription-State: terminated;reason=noresource"], sdp: "SIP/2.0 200 OK\n", type: type)
      script.response()
      script.awaits("BYE")
      script.replies()
      let carrier = try Peers.caller(gateway, try script.file(gateway, "page-transfers"))
      try await page.click("answer")
      try await page.wait("call.state === 'connected'")
      for attempt in ["The transfer failed", nil] {
        try await page.click("transfer")
        #expect(try await page.focus() == "number")
        try await page.press("+1 555 888 0000")
        #expect(try await page.faults() == [])
        try await page.shot("transfer")
        try await page.click("dial")
        if let attempt { try await page.waitFor(attempt, in: "notice") }
      }
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      try await page.waitFor("Transferred", in: "history")
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["detail"] as? String == "transferred", "\(end)")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `an attended transfer: the target is asked first, then both are connected with each other`() async throws {
      let (gateway, page) = try await online()
      var asked = SippScript.callee()
      asked.answers(200, sdp: SippScript.sdp())
      asked.awaits("ACK")
      asked.awaits("BYE")
      asked.replies()
      let target = try await Peers.callee(gateway, try asked.file(gateway, "page-asked"))
      var script = SippScript.caller()
      script.isAnswered()
      // the waiting side hears the gateway's hold audio: no INVITE of `hold: signal` comes before the REFER
      script.awaits("REFER", containing: ["Replaces="])
      script.replies(202)
      script.asks(
        "NOTIFY", ["Event: refer", "Subscription-State: terminated;reason=noresource"], sdp: "SIP/2.0 200 OK\n",
        type: "message/sipfrag;version=2.0")
      script.response()
      script.awaits("BYE")
      script.replies()
      let carrier = try Peers.caller(gateway, try script.file(gateway, "page-attended"))
      try await page.click("answer")
      try await page.wait("call.state === 'connected'")
      try await page.click("transfer")
      try await page.press("+15559990001")
      try await page.click("ask")
      try await page.wait(isFront("+15559990001"))
      try await page.waitFor("On hold", in: "other-words")
      try await page.click("join")
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      try await page.waitFor("Transferred", in: "history")
      // a real telephone hangs up on the gateway once it has been replaced; this one does not, so the user does
      try await page.click("hangup")
      #expect(try await target.finish(within: 10) == 0, "\(target.text.suffix(6_000))")
      try await page.close()
      try await gateway.finish()
    }

    @Test func `two calls are merged on the page: the carriers hear each other, until they are separated`() async throws {
      let (gateway, page) = try await online()
      let low = try Peers.caller(gateway, says: .low, ["--talk", "120"])
      try await page.click("answer")
      try await page.wait("call.state === 'connected'")
      // Chromium's microphone beeps, which counts as any tone
      try await page.evaluate("call.mute(true)")
      let high = try Peers.caller(gateway, says: .high, ["--talk", "120"])
      try await page.click("hold-accept")
      try await page.wait("trunkline.calls.filter((one) => one.phase === 'connected').length === 2")
      try await page.evaluate("trunkline.calls.forEach((one) => one.mute(true))")
      try await page.click("merge")
      try await page.wait("trunkline.calls.every((one) => one.group !== null && one.isListening && !one.isHeld)")
      #expect(try await page.evaluate("document.getElementById('peer').textContent.includes(', ')") as? Bool == true)
      #expect(Set(try held(gateway).values) == [false])
      // the carriers' recordings contain what the gateway mixes, for as long as this takes
      try await page.wait("trunkline.calls.every((one) => one.statistics && one.seconds > 3)")
      let before = try await page.evaluate("Math.max(...trunkline.calls.map((one) => one.seconds))") as? Int ?? 0
      try await page.wait("Math.max(...trunkline.calls.map((one) => one.seconds)) >= \(before + 2)")
      try await page.click("merge")
      try await page.wait("trunkline.calls.every((one) => one.group === null)")
      for _ in 0..<2 {
        try await page.evaluate("trunkline.calls.find((one) => one.state !== 'ended').end()")
      }
      for carrier in [low, high] { #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text)") }
      for (own, other) in [(Tone.low, Tone.high), (.high, .low)] {
        let heard = try Speech.read(gateway.folder + "/\(own)-heard.wav")
        #expect(other.seconds(in: heard) > 1.2, "who says \(own) hears \(other) for \(other.seconds(in: heard)) s")
        #expect(own.seconds(in: heard) < 0.6, "and not itself, for \(own.seconds(in: heard)) s")
      }
      #expect(try await page.faults() == [])
      try await page.close()
      try await gateway.finish()
    }

    @Test func `microphone and loudspeaker are chosen in the call, and kept`() async throws {
      let (gateway, page) = try await online()
      let trunk = try await caller(gateway, "+15557770001")
      try await page.click("answer")
      try await page.wait("call.state === 'connected' && call.localStream")
      try await page.click("audio")
      try await page.choose(2, in: "microphone")
      try await page.wait("call.localStream.getAudioTracks()[0].label === 'Fake Audio Input 2' && trunkline.microphone")
      try await page.choose(1, in: "loudspeaker")
      try await page.wait("trunkline.loudspeaker")
      #expect(try await page.faults() == [])
      try await page.shot("settings")

      // one that cannot be used: the page reports it, and nothing changes
      try await page.evaluate(
        "HTMLMediaElement.prototype.setSinkId = () => Promise.reject(new DOMException('gone', 'NotFoundError'))")
      try await page.choose(2, in: "loudspeaker")
      try await page.waitFor("Choose another one", in: "device-fault")
      #expect(try await page.evaluate("document.getElementById('loudspeaker').selectedIndex") as? Int == 1)
      try await page.press("Escape")
      #expect(try await page.isShown("settings") == false)
      try await page.click("hangup")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      try await page.send("Page.reload")
      try await page.wait("trunkline.state === 'online' && trunkline.microphone && trunkline.loudspeaker")
      try await page.close()
      try await gateway.finish()
    }
  }
}
