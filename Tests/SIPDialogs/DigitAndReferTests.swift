import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// INFO digits, REFER and Replaces, 3xx.
@Suite struct DigitAndReferTests {
  private func info(_ type: String, _ body: String, _ tag: String, _ cseq: Int) -> String {
    request("INFO", branch: "z9hG4bKi\(cseq)", toTag: tag, cseq: cseq, sdp: body).replacing("application/sdp", with: type)
  }

  @Test(arguments: [
    ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", "digit 5 160"),
    ("application/dtmf-relay", "Signal= *\nDuration= 90", "digit * 90"),
    ("application/dtmf-relay", "Signal=11", "digit # 160"), ("application/dtmf", "7", "digit 7 160"),
    ("application/dtmf", "d\r\n", "digit D 160"),
    ("Application/DTMF-Relay; charset=x", "Signal=0\r\nDuration=999999", "digit 0 6000"),
  ])
  func `a digit by INFO is told, whichever way it is written`(type: String, body: String, event: String) throws {
    var (wire, _, tag, _) = try Wire.confirmed()
    #expect(wire.receive(info(type, body, tag, 2)).map(\.statusCode) == [200])
    #expect(wire.events().map(\.name) == [event])
  }

  @Test func `INFO without a digit, of another type or of a package is answered and nothing else`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed()
    let other = try #require(wire.receive(info("application/media_control+xml", "<x/>", tag, 2)).first)
    #expect(other.statusCode == 415 && other.value(.accept) == "application/dtmf-relay, application/dtmf")
    #expect(wire.receive(info("application/dtmf-relay", "Signal=zz", tag, 3)).map(\.statusCode) == [400])
    #expect(wire.receive(request("INFO", branch: "z9hG4bKi4", toTag: tag, cseq: 4)).map(\.statusCode) == [200], "a keep-alive")
    #expect(
      wire.receive(request("INFO", branch: "z9hG4bKi5", toTag: tag, cseq: 5, extra: ["Info-Package: x"])).map(\.statusCode) == [
        469
      ])
    #expect(wire.receive(request("INFO", branch: "z9hG4bKi6")).map(\.statusCode) == [481], "outside a dialog")
    #expect(wire.events().map(\.name) == ["refused noDialog"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `our digit goes by INFO and tells what became of it`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let sent = try #require(wire.command(.sendDigit(leg, "#", milliseconds: 160)).first)
    #expect(sent.method == .info && sent.value(.contentType) == "application/dtmf-relay")
    #expect(sent.text(sent.body) == "Signal=#\r\nDuration=160\r\n")
    wire.receive(reply(sent, 200))
    let second = try #require(wire.command(.sendDigit(leg, "1", milliseconds: 100)).first)
    wire.receive(reply(second, 415))
    #expect(wire.events().map(\.name) == ["digitSent 200", "digitSent 415"])
    wire.endAndExpectNothing(leg)
  }

  // MARK: REFER

  private let transfers = TrunkRules(allowsTransfer: true)

  private func refer(_ tag: String, _ to: String, cseq: Int = 2) -> String {
    request(
      "REFER", branch: "z9hG4bKr\(cseq)", toTag: tag, cseq: cseq,
      extra: ["Refer-To: \(to)", "Referred-By: <sip:bob@203.0.113.7>", "Contact: <sip:bob@203.0.113.7>"])
  }

  @Test func `REFER is not served unless the trunk's rules say so`() throws {
    var (wire, _, tag, _) = try Wire.confirmed()
    let refused = try #require(wire.receive(refer(tag, "<sip:+15558880000@x>")).first)
    #expect(refused.statusCode == 405 && refused.value(.allow)?.contains("REFER") == false)
    #expect(wire.events().isEmpty)
  }

  @Test func `REFER: 202, NOTIFY for each step, the last one ends the subscription`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    #expect(wire.receive(refer(tag, "\"C\" <sip:+1-555-888-0000@198.51.100.9>")).isEmpty)
    guard case .referReceived(leg, let referral) = try #require(wire.events().first) else { throw Missing() }
    #expect(
      referral.target.number == "+15558880000" && referral.replaces == nil && referral.referredBy == "<sip:bob@203.0.113.7>")
    let sent = wire.command(.acceptRefer(leg))
    #expect(sent.map(\.statusCode) == [202, nil] && sent[1].method == .notify)
    #expect(sent[1].value(.event) == "refer;id=2" && sent[1].value(.subscriptionState) == "active;expires=60")
    #expect(
      sent[1].text(sent[1].body) == "SIP/2.0 100 Trying\r\n" && sent[1].value(.contentType) == "message/sipfrag;version=2.0")
    wire.receive(reply(sent[1], 200))
    #expect(wire.receive(refer(tag, "<sip:1@x>", cseq: 3)).map(\.statusCode) == [491], "one at a time")
    let last = try #require(wire.command(.notifyRefer(leg, code: 486)).first)
    #expect(
      last.value(.subscriptionState) == "terminated;reason=noresource" && last.text(last.body) == "SIP/2.0 486 Busy Here\r\n")
    wire.receive(reply(last, 200))
    #expect(wire.command(.notifyRefer(leg, code: 200)).isEmpty)
    wire.endAndExpectNothing(leg)
  }

  @Test(arguments: [
    ("", 400), ("<sip:1@a>, <sip:2@b>", 400), ("<http://x/>", 416), ("<sip:1@a?Replaces=x>", 400),
    ("<sip:\(String(repeating: "1", count: 2_000))@a>", 400),
  ])
  func `a REFER that points nowhere is refused`(to: String, code: Int) throws {
    var (wire, _, tag, _) = try Wire.confirmed(rules: transfers)
    #expect(wire.receive(refer(tag, to)).map(\.statusCode) == [code])
    #expect(wire.events().isEmpty)
  }

  @Test func `an attended REFER names the dialog to replace`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    wire.receive(refer(tag, "<sip:+15558880000@x?Replaces=abc%40h%3Bto-tag%3D1%3Bfrom-tag%3D2>"))
    guard case .referReceived(_, let referral) = try #require(wire.events().first) else { throw Missing() }
    #expect(referral.replaces == Replaces(callID: "abc@h", toTag: "1", fromTag: "2") && referral.uri == "sip:+15558880000@x")
    #expect(wire.command(.refuseRefer(leg, code: 603)).map(\.statusCode) == [603])
    wire.endAndExpectNothing(leg)
  }

  @Test(arguments: [
    ("<sip:sip.trunk.example:5061;x-m=8:orgid:1;x-t=2;transport=tls>", true), ("<sip:+1555@x;X-T=2>", true), ("<sip:x>", true),
    ("<sip:+1555@x;user=phone>", false), ("<sip:+1555@x?X-T=2>", false), ("<sip:+1555@x>;x-t=1", false),
    ("<tel:+1555;x-t=1>", false),
  ])
  func `a Refer-To that only its author understands is told as it is written`(to: String, isOpaque: Bool) throws {
    var (wire, _, tag, _) = try Wire.confirmed(rules: transfers)
    wire.receive(refer(tag, to))
    guard case .referReceived(_, let referral) = try #require(wire.events().first) else { throw Missing() }
    #expect(referral.isOpaque == isOpaque && to.hasPrefix("<\(referral.uri)"))
  }

  @Test func `an INVITE to a URI that another party wrote names it in Request-URI and To`() throws {
    let uri = "sip:sip.trunk.example:5061;x-m=8:orgid:1;transport=tls"
    var wire = Wire()
    var invite = OutboundInvite(
      trunk: TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp), to: "", from: "+1555", sdp: offer)
    invite.uri = uri
    let sent = try #require(wire.command(.invite(Wire.out, invite)).first)
    _ = try sent.checked()
    #expect(sent.uri == uri && sent.value(.to) == "<\(uri)>" && wire.output.messages.first?.flow == udp)
  }

  @Test func `our REFER is told by its NOTIFYs`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    let sent = try #require(
      wire.command(
        .refer(leg, to: "sip:+15558880000@carrier.example", replaces: Replaces(callID: "c@h", toTag: "t", fromTag: "f"))
      ).first)
    #expect(sent.method == .refer && sent.value(.contact) != nil)
    #expect(sent.value(.referTo) == "<sip:+15558880000@carrier.example?Replaces=c%40h%3Bto-tag%3Dt%3Bfrom-tag%3Df>")
    wire.receive(reply(sent, 202))
    func notify(_ cseq: Int, _ line: String, _ state: String, event: String = "refer") -> String {
      request(
        "NOTIFY", branch: "z9hG4bKn\(cseq)", toTag: tag, cseq: cseq, extra: ["Event: \(event)", "Subscription-State: \(state)"],
        sdp: line
      )
      .replacing("application/sdp", with: "message/sipfrag")
    }
    #expect(wire.receive(notify(2, "SIP/2.0 180 Ringing\r\n", "active;expires=60")).map(\.statusCode) == [200])
    #expect(wire.receive(notify(3, "x", "active", event: "presence")).map(\.statusCode) == [489])
    #expect(wire.receive(notify(4, "SIP/2.0 200 OK\r\n", "terminated;reason=noresource")).map(\.statusCode) == [200])
    #expect(wire.receive(notify(5, "SIP/2.0 200 OK\r\n", "terminated")).map(\.statusCode) == [481])
    #expect(wire.events().map(\.name) == ["referAnswered 202", "referProgress 180", "referProgress 200 final"])
    let again = try #require(wire.command(.refer(leg, to: "sip:1@x", replaces: nil)).first)
    wire.receive(reply(again, 603))
    #expect(wire.events().map(\.name) == ["referAnswered 603"])
    wire.endAndExpectNothing(leg)
  }

  private func notify(
    _ tag: String, _ cseq: Int, _ body: String?, _ state: String, event: String = "refer",
    type: String = "message/sipfrag;version=2.0"
  ) -> String {
    request(
      "NOTIFY", branch: "z9hG4bKn\(cseq)", toTag: tag, cseq: cseq, extra: ["Event: \(event)", "Subscription-State: \(state)"],
      sdp: body
    )
    .replacing("application/sdp", with: type)
  }

  @Test(
    arguments: [
      (nil, "terminated;reason=noresource", "message/sipfrag", "referProgress unknown final"),
      (nil, "terminated;reason=timeout", "message/sipfrag", "referProgress unknown final"),
      ("SIP/2.0 180 Ringing\r\n", "terminated;reason=giveup", "message/sipfrag", "referProgress 180 final"),
      ("SIP/2.0 200 OK\r\n", "terminated", "text/plain", "referProgress unknown final"),
      ("SIP/2.0 +20 OK\r\n", "terminated", "message/sipfrag", "referProgress unknown final"),
      ("SIP/2.0 2000 OK\r\n", "terminated", "message/sipfrag", "referProgress unknown final"),
      ("INVITE sip:a@b SIP/2.0 200", "terminated", "message/sipfrag", "referProgress unknown final"),
      ("SIP/2.0 302 Moved\r\n", "terminated", "message/sipfrag", "referProgress 302 final"),
      ("SIP/2.0 200 OK", "active;expires=5", "message/sipfrag", "referProgress 200 final"),
      ("SIP/2.0 202 Accepted\r\nContact: <sip:x@y>\r\n", "terminated", "Message/SIPfrag", "referProgress 202 final"),
    ] as [(String?, String, String, String)])
  func `a REFER is done when a 2xx sipfrag says so, and only then`(
    body: String?, state: String, type: String, event: String
  ) throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    let sent = try #require(wire.command(.refer(leg, to: "sip:1@x", replaces: nil)).first)
    wire.receive(reply(sent, 202))
    #expect(wire.receive(notify(tag, 2, body, state, type: type)).map(\.statusCode) == [200])
    #expect(wire.events().map(\.name) == ["referAnswered 202", event])
    #expect(wire.receive(notify(tag, 3, "SIP/2.0 200 OK\r\n", "terminated")).map(\.statusCode) == [481], "it is over")
    #expect(wire.advance(.seconds(300)).isEmpty && wire.events().isEmpty)
    wire.endAndExpectNothing(leg)
  }

  @Test func `a REFER that nobody says anything of is over in time, and the next one can be asked`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    let sent = try #require(wire.command(.refer(leg, to: "sip:1@x", replaces: nil)).first)
    wire.receive(reply(sent, 202))
    _ = wire.advance(.seconds(31))
    #expect(wire.events().map(\.name) == ["referAnswered 202"])
    _ = wire.advance(.seconds(2))
    #expect(wire.events().map(\.name) == ["referProgress unknown final"])
    #expect(wire.receive(notify(tag, 2, "SIP/2.0 200 OK\r\n", "terminated")).map(\.statusCode) == [481])
    let next = try #require(wire.command(.refer(leg, to: "sip:2@x", replaces: nil)).first)
    wire.receive(reply(next, 202))
    // the requested call rings for as long as calls may, however often that is repeated
    let first = try next.text(#require(next.field(.cseq)).value).split(separator: " ")[0]
    for number in 3..<30 where wire.receive(notify(tag, number, "SIP/2.0 180 Ringing\r\n", "active")).first?.statusCode == 200 {
      _ = wire.advance(.seconds(10))
    }
    #expect(wire.events().map(\.name).last == "referProgress unknown final")
    let third = try #require(wire.command(.refer(leg, to: "sip:3@x", replaces: nil)).first)
    wire.receive(reply(third, 202))
    let late = notify(tag, 40, "SIP/2.0 200 OK\r\n", "terminated", event: "refer;id=\(first)")
    #expect(wire.receive(late).map(\.statusCode) == [481], "the subscription of the REFER before")
    #expect(wire.events().map(\.name) == ["referAnswered 202"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `a NOTIFY that overtakes the 202 counts`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    let sent = try #require(wire.command(.refer(leg, to: "sip:1@x", replaces: nil)).first)
    wire.receive(notify(tag, 2, "SIP/2.0 200 OK\r\n", "terminated"))
    wire.receive(reply(sent, 202))
    #expect(wire.events().map(\.name) == ["referProgress 200 final", "referAnswered 202"])
    #expect(wire.advance(.seconds(60)).isEmpty && wire.events().isEmpty)
    wire.endAndExpectNothing(leg)
  }

  // MARK: Replaces

  @Test func `an INVITE with Replaces names the leg; what it can not replace gets its code`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: transfers)
    func invite(_ replaces: String, branch: String) -> String {
      request(
        "INVITE", branch: branch, callID: branch, from: "99", extra: ["Replaces: \(replaces)", "Require: replaces"], sdp: offer)
    }
    #expect(wire.receive(invite("call-1;to-tag=none;from-tag=77", branch: "z9hG4bKa")).map(\.statusCode) == [481])
    #expect(wire.receive(invite("call-1;to-tag=\(tag);from-tag=77;early-only", branch: "z9hG4bKb")).map(\.statusCode) == [486])
    #expect(wire.receive(invite("call-1;to-tag=\(tag)", branch: "z9hG4bKc")).map(\.statusCode) == [400])
    _ = wire.events()
    #expect(wire.receive(invite("call-1;to-tag=\(tag);from-tag=77", branch: "z9hG4bKd")).map(\.statusCode) == [100])
    guard case .inviteReceived(_, let new) = try #require(wire.events().last) else { throw Missing() }
    #expect(new.replaces == leg)
    wire.command(.bye(leg, nil))
    #expect(
      wire.receive(invite("call-1;to-tag=\(tag);from-tag=77", branch: "z9hG4bKe")).map(\.statusCode) == [603],
      "it is on its way out")
    var (closed, _, other, _) = try Wire.confirmed()
    let refused = try #require(closed.receive(invite("call-1;to-tag=\(other);from-tag=77", branch: "z9hG4bKf")).first)
    #expect(refused.statusCode == 420 && refused.value(.unsupported) == "replaces")
  }

  @Test func `an INVITE with Replaces that overtakes the ACK replaces the leg, whose BYE waits for the ACK`() throws {
    var (wire, leg, _) = try Wire.ringing(rules: transfers)
    let tag = try #require(wire.command(.answer(leg, sdp: answer)).first?.toTag)
    let replaces = ["Replaces: call-1;to-tag=\(tag);from-tag=77", "Require: replaces"]
    let second = request("INVITE", branch: "z9hG4bKsecond", callID: "second", from: "99", extra: replaces, sdp: offer)
    #expect(wire.receive(second).map(\.statusCode) == [100])
    guard case .inviteReceived(_, let new) = try #require(wire.events().last) else { throw Missing() }
    #expect(new.replaces == leg)
    #expect(wire.command(.bye(leg, nil)).isEmpty)
    #expect(wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag)).map(\.method) == [.bye])
  }

  // MARK: 3xx

  private func moved(_ invite: Message, _ contacts: String) -> String { reply(invite, 302, extra: ["Contact: \(contacts)"]) }

  @Test func `a 3xx fails the call unless the trunk follows, and then only to its own hosts`() throws {
    var (wire, invite) = try Wire.calling()
    #expect(wire.receive(moved(invite, "<sip:1@carrier.example>")).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["failed 302", "closed"])
    var (follows, first) = try Wire.calling(rules: TrunkRules(redirects: .follow(hosts: ["203.0.113.20"])))
    let sent = follows.receive(
      moved(first, "<sip:2@elsewhere.example>;q=1.0, <sip:3@203.0.113.20:5070>;q=0.5, <sip:4@carrier.example>;q=0.1"))
    #expect(
      sent.map(\.method) == [.ack, .invite] && sent[1].uri == "sip:3@203.0.113.20:5070" && sent[1].value(.to) == first.value(.to))
    #expect(follows.output.messages[1].flow.remote == SocketAddress("203.0.113.20:5070"))
    #expect(follows.receive(moved(sent[1], "<sip:2@elsewhere.example>")).map(\.method) == [.ack])
    #expect(follows.events().map(\.name) == ["failed 302", "closed"])
    _ = follows.advance(.seconds(60))
    #expect(follows.isEmpty)
  }

  @Test func `a chain of 3xx ends after three`() throws {
    var (wire, invite) = try Wire.calling(rules: TrunkRules(redirects: .follow(hosts: [])))
    for step in 1...3 {
      let sent = wire.receive(moved(invite, "<sip:\(step)@carrier.example>"))
      invite = try #require(sent.last)
      #expect(invite.uri == "sip:\(step)@carrier.example")
    }
    #expect(wire.receive(moved(invite, "<sip:4@carrier.example>")).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["failed 302", "closed"])
  }

  // MARK: identity

  @Test func `diversions are told of a trunk that is trusted, and counted of any`() throws {
    let diversion = ["Diversion: \"Boss\" <sip:+15550001111@x>;reason=no-answer, <sip:+15550002222@x>"]
    let (_, _, trusted) = try Wire.ringing(rules: TrunkRules(trustsIdentity: true), extra: diversion)
    #expect(
      trusted.divertedFrom.map(\.number) == ["+15550001111", "+15550002222"] && trusted.divertedFrom[0].displayName == "Boss")
    let (_, _, other) = try Wire.ringing(extra: diversion + ["P-Asserted-Identity: <sip:+1999@x>"])
    #expect(other.divertedFrom.isEmpty && other.diversions == 2 && other.assertedIdentity == nil)
    let history = [
      "History-Info: <sip:+15550003333@x>;index=1, <sip:+15550004444@x;cause=302?Reason=SIP%3Bcause%3D486>;index=1.1;mp=1, <sip:+15551230001@x;cause=486>;index=1.2;mp=1.1"
    ]
    let (_, _, seven) = try Wire.ringing(rules: TrunkRules(trustsIdentity: true), extra: history)
    #expect(seven.divertedFrom.map(\.number) == ["+15550004444", "+15550003333"] && seven.diversions == 2)
  }

  @Test(
    arguments: [
      // a proxy's retargeting, an alias, a service number: no diversion has happened
      (
        "<sip:1@x>;index=1, <sip:2@x>;index=1.1, <sip:3@x>;index=1.1.1, <sip:4@x>;index=1.1.1.1, <sip:5@x>;index=1.1.1.1.1", 0, []
      ),
      ("<sip:1@x?Reason=SIP%3Bcause%3D480>;index=1, <sip:2@x>;index=1.2;rc=1", 0, []),
      ("<sip:1@x>;index=1, <sip:2@x;cause=380>;index=1.1;mp=1", 0, []),
      // Teams: the diverting party says so in its own entry, which is shown and not counted
      (
        "<sip:+1@x;user=phone?Reason=SIP%3Bcause%3D302%3Btext%3D%22Moved%22>;index=1, <sip:+2@x?REASON=SIP;cause=302>;index=1.1, <sip:+3@x>;index=1.2",
        0, ["+2", "+1"]
      ),
      ("<sip:1@x?Reason=Q.850%3Bcause%3D302>;index=1, <sip:2@x?Reason=SIP%3Bcause%3D3020>;index=1.1", 0, []),
      ("<sip:1@x?Reason=SIP%3Bcause%3D302>;index=1, <sip:2@x;cause=302>;index=1.1;mp=1", 1, ["1"]),
      ("<sip:1@x>;index=1, <sip:2@x;cause=200>;index=1.1, <sip:3@x;cause=>;index=1.2, <sip:4@x;cause>;index=1.3", 0, []),
      // the diverting party is the entry that mp names, or the one before
      ("<sip:1@x>;index=1, <sip:2@x;cause=302>;index=1.1;mp=1", 1, ["1"]),
      ("<sip:1@x>;index=1, <sip:2@x;CAUSE=408>;index=1.1", 1, ["1"]),
      ("<sip:1@x>;index=1, <sip:2@x>;index=1.1, <sip:3@x>;index=1.2, <sip:4@x;user=phone;cause=486>;index=1.3;mp=1.1", 1, ["2"]),
      (
        "<sip:1@x>;index=1, <sip:2@x;cause=302>;index=1.1;mp=1, <sip:3@x>;index=1.1.1;rc=1.1, <sip:4@x;cause=503>;index=1.1.1.1;mp=1.1.1",
        2,
        ["3", "1"]
      ),
      ("<sip:1@x?Privacy=history>;index=1, <sip:2@x;cause=302>;index=1.1;mp=1", 1, ["anonymous"]),
      ("<sip:1@x;cause=302>;index=1", 1, []), ("<sip:1@x;cause=302>;index=1.1;mp=7", 1, []),
    ] as [(String, Int, [String])])
  func `an entry of History-Info is a diversion by its cause`(value: String, count: Int, told: [String]) throws {
    let (_, _, invite) = try Wire.ringing(rules: TrunkRules(trustsIdentity: true), extra: ["History-Info: \(value)"])
    #expect(invite.diversions == count && invite.divertedFrom.map(\.number) == told)
  }
}
