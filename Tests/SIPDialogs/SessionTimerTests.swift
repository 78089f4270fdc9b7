import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// RFC 4028 in both roles.
@Suite struct SessionTimerTests {
  private let timer = ["Supported: timer", "Allow: INVITE, UPDATE"]

  @Test(arguments: [
    (["Session-Expires: 600"], "600;refresher=uac", "timer"), (["Session-Expires: 600;refresher=uas"], "600;refresher=uas", ""),
    (["x: 600;refresher=uac"], "600;refresher=uac", "timer"), ([], "1800;refresher=uac", "timer"),
    (["Session-Expires: 90000"], "1800;refresher=uac", "timer"),
    (["Session-Expires: 2000", "Min-SE: 1900"], "1900;refresher=uac", "timer"),
  ])
  func `the 200 says interval and refresher`(extra: [String], expires: String, require: String) throws {
    let (_, _, _, ok) = try Wire.confirmed(extra: timer + extra)
    #expect(ok.value(.sessionExpires) == expires && ok.value(.require) ?? "" == require)
  }

  @Test func `who does not know timers gets none, or is refreshed by us if a proxy asks`() throws {
    let (_, _, _, plain) = try Wire.confirmed()
    #expect(plain.field(.sessionExpires) == nil && plain.field(.require) == nil)
    let (_, _, _, proxy) = try Wire.confirmed(extra: ["Session-Expires: 600"])
    #expect(proxy.value(.sessionExpires) == "600;refresher=uas" && proxy.field(.require) == nil)
    let (_, _, _, off) = try Wire.confirmed(rules: TrunkRules(sessionTimer: nil), extra: timer + ["Session-Expires: 600"])
    #expect(off.field(.sessionExpires) == nil)
  }

  @Test func `an interval that is too small is 422 with Min-SE`() throws {
    var wire = Wire()
    wire.input(.rules(["carrier": TrunkRules(sessionTimer: .init(seconds: 1_800, minimumSeconds: 300))]))
    let refused = try #require(wire.receive(request("INVITE", extra: timer + ["Session-Expires: 120"], sdp: offer)).first)
    #expect(refused.statusCode == 422 && refused.value(.minSE) == "300")
    #expect(wire.events().map(\.name) == ["refused sessionInterval invite"])
  }

  @Test func `a lab may have intervals of seconds, by rule alone: a peer's wish for one is 422, or raised to 90`() throws {
    let lab = TrunkRules(sessionTimer: .init(seconds: 6, minimumSeconds: 1))
    let short = timer + ["Session-Expires: 4;refresher=uac", "Min-SE: 4"]
    let (_, _, _, ok) = try Wire.confirmed(rules: lab, extra: short)
    #expect(ok.value(.sessionExpires) == "4;refresher=uac")
    let (_, _, _, raised) = try Wire.confirmed(rules: lab, extra: timer + ["Session-Expires: 4;refresher=uac"])
    #expect(raised.value(.sessionExpires) == "90;refresher=uac", "who says no Min-SE means 90")
    var wire = Wire()
    #expect(try #require(wire.receive(request("INVITE", extra: short, sdp: offer)).first).statusCode == 422)
    let (_, invite) = try Wire.calling(rules: lab)
    #expect(invite.value(.sessionExpires) == "6" && invite.value(.minSE) == "4")
  }

  @Test func `a refresher that sends nothing is ended before the interval is over`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(extra: timer + ["Session-Expires: 90;refresher=uac"])
    // a third of 90 s before its end
    var sent = wire.advance(.seconds(59))
    #expect(sent.isEmpty)
    let update = request("UPDATE", branch: "z9hG4bKu", toTag: tag, cseq: 2, extra: timer + ["Session-Expires: 90;refresher=uac"])
    let ok = try #require(wire.receive(update).first)
    #expect(
      ok.statusCode == 200 && ok.value(.sessionExpires) == "90;refresher=uac" && ok.value(.require) == "timer" && ok.body.isEmpty)
    #expect(wire.events().isEmpty, "a refresh without an offer is nothing to the call")
    sent = wire.advance(.seconds(61))
    let bye = try #require(sent.first)
    #expect(bye.ms == 60_000 && bye.message.method == .bye)
    #expect(bye.message.value(.reason) == "SIP;cause=408;text=\"Session expired\"")
    #expect(wire.events().map(\.name) == ["expired"])
    wire.receive(reply(bye.message, 200))
    #expect(wire.events().map(\.name) == ["closed"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `we refresh by UPDATE at half of the interval, where the peer allows it`() throws {
    var (wire, leg, _, _) = try Wire.confirmed(extra: timer + ["Session-Expires: 200;refresher=uas"])
    for _ in 0..<3 {
      let sent = wire.advance(.seconds(100))
      #expect(sent.map(\.ms) == [100_000])
      let update = try #require(sent.first?.message)
      #expect(update.method == .update && update.body.isEmpty && update.value(.sessionExpires) == "200;refresher=uac")
      #expect(update.value(.contact) != nil && update.value(.minSE) == "90")
      wire.receive(reply(update, 200, extra: ["Session-Expires: 200;refresher=uac", "Require: timer"]))
    }
    #expect(wire.events().isEmpty)
    wire.endAndExpectNothing(leg)
  }

  @Test func `without UPDATE we refresh by re-INVITE, and a peer that refuses UPDATE is asked that way`() throws {
    var (wire, invite) = try Wire.answered(extra: ["Session-Expires: 100;refresher=uac", "Allow: INVITE, BYE"])
    #expect(invite.value(.sessionExpires) == "1800" && invite.value(.minSE) == "90")
    _ = wire.advance(.seconds(51))
    #expect(wire.events().map(\.name) == ["offerWanted"])
    let reinvite = try #require(wire.command(.offer(Wire.out, sdp: offer)).first)
    #expect(reinvite.method == .invite && reinvite.toTag == "peer" && reinvite.value(.sessionExpires) == "100;refresher=uac")
    let ack = wire.receive(reply(reinvite, 200, extra: ["Session-Expires: 100;refresher=uac", "Allow: UPDATE"], sdp: answer))
    #expect(ack.map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["offerAnswered+sdp"])
    let update = try #require(wire.advance(.seconds(51)).first?.message)
    #expect(update.method == .update)
    wire.receive(reply(update, 405))
    #expect(wire.events().map(\.name) == ["offerWanted"])
    wire.endAndExpectNothing(Wire.out)
  }

  @Test(arguments: [408, 481]) func `a refresh that finds the dialog gone ends it`(code: Int) throws {
    var (wire, _) = try Wire.answered(extra: ["Session-Expires: 100;refresher=uac", "Allow: UPDATE"])
    let update = try #require(wire.advance(.seconds(51)).first?.message)
    let bye = try #require(wire.receive(reply(update, code)).first)
    #expect(bye.method == .bye && bye.value(.reason) == "SIP;cause=\(code)")
    #expect(wire.events().map(\.name) == ["refreshFailed \(code)"])
    wire.receive(reply(bye, 200))
    _ = wire.advance(.seconds(60))
    #expect(wire.isEmpty)
  }

  @Test func `a refresh without an answer ends the call`() throws {
    var (wire, _) = try Wire.answered(extra: ["Session-Expires: 100;refresher=uac", "Allow: UPDATE"])
    let sent = wire.advance(.seconds(90))
    #expect(sent.filter { $0.message.method == .update }.count > 3 && sent.contains { $0.message.method == .bye })
    #expect(wire.events().map(\.name) == ["expired"], "10 s before the 32 s of the UPDATE are over")
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty)
  }

  @Test func `422 to our INVITE raises the interval and tries again`() throws {
    var (wire, invite) = try Wire.calling(rules: TrunkRules(sessionTimer: .init(seconds: 600)))
    #expect(invite.value(.sessionExpires) == "600")
    let sent = wire.receive(reply(invite, 422, extra: ["Min-SE: 900"]))
    #expect(sent.map(\.method) == [.ack, .invite])
    let second = try #require(sent.last)
    #expect(second.value(.sessionExpires) == "900" && second.value(.minSE) == "900" && second.callID == invite.callID)
    let (first, next) = (try #require(try invite.cseq).number, try #require(try second.cseq).number)
    #expect(next == first + 1)
    #expect(wire.receive(reply(second, 422, extra: ["Min-SE: 900"])).map(\.method) == [.ack], "it says nothing new")
    #expect(wire.events().map(\.name) == ["failed 422", "closed"])
    _ = wire.advance(.seconds(60))
    #expect(wire.isEmpty)
  }

  @Test func `a 200 without Session-Expires switches the timer off`() throws {
    var (wire, _) = try Wire.answered()
    #expect(wire.agent.nextDeadline.map { $0 - wire.now } ?? .zero <= .seconds(33))
    _ = wire.advance(.seconds(4_000))
    #expect(wire.events().isEmpty)
    wire.endAndExpectNothing(Wire.out)
  }
}
