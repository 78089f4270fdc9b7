import Foundation
import Testing

extension Interop {
  /// sipp as carriers that use what there is between an INVITE and its BYE, a test for each.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct CarrierCallTests {
    /// A call of the app to a carrier that follows the script; `then` happens once it is connected.
    @discardableResult
    private func outgoing(_ script: SippScript, _ name: String, trunk: String = "", then commands: [String] = []) async throws
      -> (record: [String: Any], events: [[String: Any]])
    {
      let gateway = try await GatewayUnderTest(trunk: trunk)
      let phone = try await Peers.phone(gateway, ["--calls", "1"])
      let carrier = try await Peers.callee(gateway, try script.file(gateway, name))
      phone.type("call +15557654321")
      if !commands.isEmpty { _ = try await phone.event("call.connected") }
      for command in commands { phone.type(command) }
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let (record, events) = (try #require(try await gateway.records(1).first), phone.events)
      try await gateway.finish()
      return (record, events)
    }

    /// A call of a carrier that follows the script.
    @discardableResult
    private func incoming(
      _ script: SippScript, _ name: String, trunk: String = "", answers: Bool = true, then commands: [String] = []
    ) async throws -> (record: [String: Any], events: [[String: Any]]) {
      let gateway = try await GatewayUnderTest(trunk: trunk)
      let phone = try await Peers.phone(gateway, (answers ? ["--answer-after", "0.1"] : []) + ["--calls", "1"])
      let carrier = try Peers.caller(gateway, try script.file(gateway, name))
      if !commands.isEmpty { _ = try await phone.event("call.connected") }
      for command in commands { phone.type(command) }
      #expect(try await carrier.finish(within: 20) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let (record, events) = (try #require(try await gateway.records(1).first), phone.events)
      try await gateway.finish()
      return (record, events)
    }

    private func end(_ record: [String: Any]) -> [String: Any] { record["end"] as? [String: Any] ?? [:] }

    @Test func `early dialog: a reliable 183 has its PRACK, UPDATE moves the media, several 18x, then 200 without SDP`()
      async throws
    {
      var script = SippScript.callee(containing: ["Supported:.*100rel", "Allow:.*UPDATE"])
      script.answers(100)
      script.answers(182)
      script.answers(180)
      script.answers(183, ["Require: 100rel", "RSeq: 7", "Allow: UPDATE, PRACK"], sdp: SippScript.sdp())
      script.awaits("PRACK", containing: ["RAck: 7 [0-9]+ INVITE"])
      script.replies()
      script.asks("UPDATE", sdp: SippScript.sdp("0 101", port: "9", version: 2))
      script.response(200, containing: ["m=audio [0-9]+ RTP/AVP 0 101"])
      script.answers(181)
      script.answers(200)
      script.awaits("ACK")
      script.awaits("BYE", containing: ["Reason: Q.850;cause=16"])
      script.replies()
      let (record, events) = try await outgoing(script, "early-update", then: ["end"])
      #expect(end(record)["reason"] as? String == "localEnd")
      let stages = events.filter { $0["event"] as? String == "call.progress" }.compactMap { $0["stage"] as? String }
      #expect(stages.contains("early") && stages.contains("queued"), "\(stages)")
    }

    @Test func `late_offer: the INVITE has no SDP, the 200 has theirs, the ACK ours`() async throws {
      var script = SippScript.callee(containing: ["Content-Length: 0"])
      script.answers(180)
      script.answers(200, sdp: SippScript.sdp())
      script.awaits("ACK", containing: ["Content-Type: application/sdp", "m=audio [0-9]+ RTP/AVP 0 101"])
      script.awaits("BYE")
      script.replies()
      let (record, _) = try await outgoing(script, "late-offer-out", trunk: "late_offer: true", then: ["end"])
      #expect((record["codecs"] as? [String: Any])?["trunk"] as? String == "PCMU")
    }

    @Test(arguments: [("", "sip:one@127.0.0.1:9"), ("redirects: follow", "sip:one@192.0.2.1")])
    func `a 3xx that is not to be followed fails the call, and no other server is asked`(trunk: String, target: String)
      async throws
    {
      var script = SippScript.callee()
      script.answers(302, contact: target)
      script.awaits("ACK")
      let (record, events) = try await outgoing(script, "moved-away", trunk: trunk)
      #expect(end(record)["sip"] as? Int == 302 && events.contains { $0["event"] as? String == "call.ended" }, "\(end(record))")
    }

    @Test func `the app transfers: REFER, and each NOTIFY is told`() async throws {
      var script = SippScript.caller()
      script.isAnswered()
      script.awaits("REFER", containing: ["Refer-To: <?sip:%2B15558880000@|Refer-To: <?sip:\\+15558880000@"])
      script.replies(202)
      let head = ["Event: refer"]
      script.asks(
        "NOTIFY", head + ["Subscription-State: active;expires=60"], sdp: "SIP/2.0 180 Ringing\n",
        type: "message/sipfrag;version=2.0")
      script.response()
      script.asks(
        "NOTIFY", head + ["Subscription-State: terminated;reason=noresource"], sdp: "SIP/2.0 200 OK\n",
        type: "message/sipfrag;version=2.0")
      script.response()
      script.awaits("BYE")
      script.replies()
      let (record, events) = try await incoming(script, "refer-out", trunk: "transfers: true", then: ["transfer +15558880000"])
      #expect(end(record)["detail"] as? String == "transferred")
      let told = events.filter { $0["event"] as? String == "call.transferred" }.compactMap { $0["status"] as? String }
      #expect(told == ["trying", "ringing", "done"], "\(told)")
    }

    @Test func `a subscription that ends without a word is no transfer: the call goes on`() async throws {
      var script = SippScript.caller()
      script.isAnswered()
      script.awaits("REFER")
      script.replies(202)
      script.asks("NOTIFY", ["Event: refer", "Subscription-State: terminated;reason=noresource"])
      script.response()
      script.expectsNo("BYE", milliseconds: 1_000)
      script.asks("BYE")
      script.response()
      let (record, events) = try await incoming(
        script, "refer-unknown", trunk: "transfers: true", then: ["transfer +15558880000"])
      #expect(end(record)["reason"] as? String == "remoteHangup", "\(end(record))")
      let told = events.filter { $0["event"] as? String == "call.transferred" }.compactMap { $0["status"] as? String }
      #expect(told == ["trying", "failed"], "\(told)")
    }

    @Test func `a caller whose Contact leads nowhere hears our BYE`() async throws {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      var script = SippScript.caller(contact: "sip:one@192.168.77.2:5060")
      script.isAnswered()
      script.awaits("BYE")
      script.replies()
      let carrier = try Peers.caller(gateway, try script.file(gateway, "behind-nat"))
      _ = try await phone.event("call.connected")
      phone.type("end")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      try await gateway.finish()
    }

    @Test func `an attended REFER: the new leg's INVITE names the dialog to replace`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "transfers: true")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      var target = SippScript.callee(containing: [
        "Replaces: consult-77@carrier;to-tag=tt;from-tag=ff", "Referred-By: <sip:carrier@",
      ])
      target.answers(200, sdp: SippScript.sdp())
      target.awaits("ACK")
      target.awaits("BYE")
      target.replies()
      let second = try await Peers.callee(gateway, try target.file(gateway, "replaced"))
      var script = SippScript.caller()
      script.isAnswered()
      let replaces = "Replaces=consult-77%40carrier%3Bto-tag%3Dtt%3Bfrom-tag%3Dff"
      script.asks("REFER", ["Refer-To: <sip:+15558880000@[remote_ip]?\(replaces)>", "Referred-By: <sip:carrier@[local_ip]>"])
      script.response(202)
      for code in [100, 200] {
        script.awaits("NOTIFY", containing: ["SIP/2.0 \(code)"])
        script.replies()
      }
      script.awaits("BYE")
      script.replies()
      let first = try Peers.caller(gateway, try script.file(gateway, "refer-attended"))
      #expect(try await first.finish(within: 20) == 0, "\(first.text.suffix(6_000))")
      phone.type("end")
      #expect(try await second.finish(within: 10) == 0, "\(second.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Any])
      #expect(times["transferred"] != nil)
      try await gateway.finish()
    }

    @Test func `an INVITE with Replaces takes the call over: the first leg gets BYE, the app hears nothing of it, one record`()
      async throws
    {
      let gateway = try await GatewayUnderTest(trunk: "transfers: true")
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let (one, two) = (try RawTrunk(gateway), try RawTrunk(gateway))
      let first = one.request("INVITE", sdp: RawTrunk.offer())
      let answer = try #require(one.ask(first))
      func tag(_ line: String?) -> String { line?.components(separatedBy: "tag=").last ?? "" }
      let own = tag(first.lines.first { $0.hasPrefix("From:") })
      let replaces = "\(first.callID);to-tag=\(tag(answer.header("To")));from-tag=\(own)"
      let second = two.request("INVITE", sdp: RawTrunk.offer()).with("Replaces", replaces)
      let taken = try #require(two.ask(second))
      #expect(taken.code == 200)
      let bye = try #require(one.awaited("BYE"))
      one.reply(to: bye, "200 OK")
      #expect(two.ask(two.request("BYE", sequence: 2, in: second, taken))?.code == 200)
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(phone.events.count { $0["event"] as? String == "call.ended" } == 1)
      _ = try await gateway.records(1)
      #expect(gateway.records.count == 1 && gateway.endReasons == ["remoteHangup"])
      try await gateway.finish()
    }

    @Test func `dtmf info: the app's digits are INFOs, one after the other`() async throws {
      var script = SippScript.caller(["Allow: INVITE, ACK, BYE, INFO"])
      script.isAnswered()
      for digit in ["5", "#"] {
        script.awaits("INFO", containing: ["Content-Type: application/dtmf-relay", "Signal=\(digit)"])
        script.replies()
      }
      script.asks("BYE")
      script.response()
      try await incoming(script, "info-out", trunk: "dtmf: info", then: ["dtmf 5#"])
    }

    @Test func `answered elsewhere: the CANCEL's reason is the app's, and the record's`() async throws {
      var script = SippScript.caller()
      script.expects(180)
      script.cancels(["Reason: SIP;cause=200;text=\"Call completed elsewhere\""])
      let (record, events) = try await incoming(script, "cancel-elsewhere", answers: false)
      let cancel = events.first { $0["event"] as? String == "call.cancel" }
      #expect(cancel?["reason"] as? String == "answeredElsewhere", "\(cancel ?? [:])")
      #expect(end(record)["sip"] as? Int == 487)
    }

    @Test func `Q.850 both ways: a refusal's cause is in the record, ours is in the BYE`() async throws {
      var busy = SippScript.callee()
      busy.answers(486, ["Reason: Q.850;cause=17;text=\"User busy\""])
      busy.awaits("ACK")
      let (record, _) = try await outgoing(busy, "busy-q850")
      #expect((end(record)["detail"] as? String)?.contains("17") == true, "\(end(record))")
      var bye = SippScript.caller()
      bye.isAnswered()
      bye.awaits("BYE", containing: ["Reason: Q.850;cause=16"])
      bye.replies()
      try await incoming(bye, "bye-q850", then: ["end"])
    }

    @Test(arguments: [true, false])
    func `Diversion and History-Info are told to the app of a trunk that is trusted, and of no other`(trusted: Bool) async throws
    {
      var script = SippScript.caller([
        "Diversion: \"Front desk\" <sip:+15551112222@carrier.example>;reason=no-answer;counter=1",
        "History-Info: <sip:+15553334444@carrier.example>;index=1, <sip:+15551230001@carrier.example;cause=302>;index=1.1;mp=1",
        "P-Asserted-Identity: \"Asserted\" <sip:+15556667777@carrier.example>",
      ])
      script.isAnswered()
      script.asks("BYE")
      script.response()
      let (record, events) = try await incoming(script, "diverted", trunk: trusted ? "trust_identity: true" : "")
      let offer = try #require(events.first { $0["event"] as? String == "call.offer" })
      let diverted = ((offer["pstn"] as? [String: Any])?["diverted"] as? [[String: Any]])?.compactMap { $0["h"] as? String }
      #expect((diverted ?? []).contains("+15551112222") == trusted, "\(offer)")
      #expect(((offer["from"] as? [String: Any])?["h"] as? String == "+15556667777") == trusted)
      #expect((record["from"] as? String == "+15556667777") == trusted)
    }
  }
}
