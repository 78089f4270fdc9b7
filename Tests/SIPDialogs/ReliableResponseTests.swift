import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// RFC 3262 in both roles.
@Suite struct ReliableResponseTests {
  private let required = ["Require: 100rel", "Supported: 100rel"]

  private func prack(_ response: Message, tag: String?, branch: String = "z9hG4bKprack", cseq: Int = 2, sdp: String? = nil)
    -> String
  {
    request(
      "PRACK", branch: branch, toTag: tag, cseq: cseq, extra: ["RAck: \(response.value(.rseq) ?? "0") 1 INVITE"], sdp: sdp)
  }

  @Test func `a peer that requires 100rel gets its 180 again until PRACK`() throws {
    var (wire, leg, invite) = try Wire.ringing(extra: required)
    #expect(invite.isReliable)
    let ringing = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first)
    let number = try #require(ringing.responseSequence)
    #expect(ringing.value(.require) == "100rel" && number > 0 && number < 1 << 31 && ringing.value(.contact) != nil)
    #expect(wire.advance(.seconds(8)).map(\.ms) == [500, 1500, 3500, 7500])
    #expect(wire.receive(prack(ringing, tag: ringing.toTag)).map(\.statusCode) == [200])
    #expect(wire.advance(.seconds(60)).isEmpty)
    #expect(wire.events().isEmpty)
    let again = wire.receive(prack(ringing, tag: ringing.toTag, branch: "z9hG4bKp2", cseq: 3))
    #expect(again.map(\.statusCode) == [481], "a second PRACK of the same response matches nothing")
    let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
    #expect(ok.statusCode == 200 && ok.text(ok.body) == answer)
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: ok.toTag))
    wire.endAndExpectNothing(leg)
  }

  @Test func `without PRACK the INVITE is refused with 504 after 64 T1`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: required)
    wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil))
    let sent = wire.advance(.seconds(33))
    #expect(sent.contains { $0.message.statusCode == 504 && $0.ms == 32_000 })
    #expect(wire.events().map(\.name) == ["provisionalTimedOut", "closed"])
    _ = wire.advance(.seconds(60))
    #expect(wire.isEmpty)
  }

  @Test func `responses wait behind the one without PRACK and are numbered one by one`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: required)
    let first = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first)
    #expect(wire.command(.respondProvisional(leg, code: 181, reason: nil, sdp: nil)).isEmpty)
    #expect(wire.command(.respondProvisional(leg, code: 183, reason: nil, sdp: answer)).isEmpty)
    let second = wire.receive(prack(first, tag: first.toTag))
    #expect(second.map(\.statusCode) == [200, 181])
    let number = try #require(first.responseSequence)
    #expect(second[1].responseSequence == number + 1)
    // the 200 with the answer must not overtake a reliable response with SDP
    let third = wire.receive(prack(second[1], tag: first.toTag, branch: "z9hG4bKp2", cseq: 3))
    #expect(third.map(\.statusCode) == [200, 183] && third[1].text(third[1].body) == answer)
    #expect(wire.command(.answer(leg, sdp: answer)).isEmpty)
    let last = wire.receive(prack(third[1], tag: first.toTag, branch: "z9hG4bKp3", cseq: 4))
    #expect(last.map(\.statusCode) == [200, 200] && last.map { $0.value(.cseq) } == ["4 PRACK", "1 INVITE"])
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: first.toTag))
    #expect(wire.events().map(\.name) == ["ack"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `a 200 overtakes a 180 without SDP, and its late PRACK is known`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: required)
    let ringing = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first)
    #expect(wire.command(.answer(leg, sdp: answer)).map(\.statusCode) == [200])
    #expect(wire.receive(prack(ringing, tag: ringing.toTag)).map(\.statusCode) == [200])
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: ringing.toTag))
    #expect(wire.events().map(\.name) == ["ack"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `a late offer and 100rel: ours in the 180, theirs in the PRACK, none in the 200`() throws {
    var (wire, leg, invite) = try Wire.ringing(extra: required, sdp: nil)
    #expect(invite.sdp == nil && invite.isReliable)
    let ringing = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: answer)).first)
    #expect(ringing.text(ringing.body) == answer)
    #expect(wire.command(.answer(leg, sdp: nil)).isEmpty)
    let sent = wire.receive(prack(ringing, tag: ringing.toTag, sdp: offer))
    #expect(sent.map(\.statusCode) == [200, 200] && sent[1].body.isEmpty)
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: ringing.toTag))
    #expect(wire.events().map(\.name) == ["prack+sdp", "ack"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `an offer in the PRACK is answered in its 200`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: required)
    let progress = try #require(wire.command(.respondProvisional(leg, code: 183, reason: nil, sdp: answer)).first)
    #expect(wire.receive(prack(progress, tag: progress.toTag, sdp: offer)).isEmpty)
    #expect(wire.events().map(\.name) == ["reinvite"])
    let ok = try #require(wire.command(.answerReinvite(leg, sdp: answer)).first)
    #expect(ok.statusCode == 200 && ok.value(.cseq) == "2 PRACK" && ok.text(ok.body) == answer)
    #expect(wire.command(.answer(leg, sdp: answer)).map(\.statusCode) == [200])
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: progress.toTag))
    wire.endAndExpectNothing(leg)
  }

  @Test func `supported alone makes only responses with SDP reliable; off refuses, required demands`() throws {
    var (wire, leg, invite) = try Wire.ringing(extra: ["Supported: 100rel, timer"])
    #expect(!invite.isReliable)
    #expect(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first?.field(.rseq) == nil)
    #expect(wire.command(.respondProvisional(leg, code: 183, reason: nil, sdp: answer)).first?.field(.rseq) != nil)
    var off = Wire()
    off.input(.rules(["carrier": TrunkRules(reliability: .off)]))
    let refused = try #require(off.receive(request("INVITE", extra: required, sdp: offer)).first)
    #expect(refused.statusCode == 420 && refused.value(.unsupported) == "100rel")
    var strict = Wire()
    strict.input(.rules(["carrier": TrunkRules(reliability: .required)]))
    let demanded = try #require(strict.receive(request("INVITE", sdp: offer)).first)
    #expect(demanded.statusCode == 421 && demanded.value(.require) == "100rel")
    #expect(strict.events().map(\.name) == ["refused extensionRequired invite"])
  }

  @Test func `the INVITE says Supported, Require and Allow as the trunk's rules have it`() throws {
    let (_, supported) = try Wire.calling()
    #expect(supported.value(.supported) == "100rel, timer" && supported.field(.require) == nil)
    #expect(supported.value(.allow) == "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK")
    let (_, required) = try Wire.calling(rules: TrunkRules(reliability: .required, sessionTimer: nil))
    #expect(required.value(.require) == "100rel" && required.field(.supported) == nil && required.field(.sessionExpires) == nil)
    let (_, off) = try Wire.calling(rules: TrunkRules(reliability: .off, sessionTimer: nil, allowsTransfer: true))
    #expect(off.value(.supported) == "replaces" && off.field(.require) == nil)
    #expect(off.value(.allow) == "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, REFER, NOTIFY")
    let (_, late) = try Wire.calling(sdp: nil)
    #expect(late.value(.supported) == "timer" && late.body.isEmpty, "an answer in a PRACK is what we do without")
    var wire = Wire()
    let options = try #require(wire.receive(request("OPTIONS")).first)
    #expect(options.value(.supported) == "100rel, timer" && options.value(.accept) == "application/sdp")
  }

  @Test func `each reliable response gets one PRACK, in its own early dialog and in order`() throws {
    var (wire, invite) = try Wire.calling()
    func progress(_ code: Int, tag: String, rseq: Int, sdp: String? = nil) -> String {
      reply(invite, code, tag: tag, extra: ["Require: 100rel", "RSeq: \(rseq)", "Contact: <sip:\(tag)@203.0.113.7>"], sdp: sdp)
    }
    let first = try #require(wire.receive(progress(183, tag: "one", rseq: 10, sdp: answer)).first)
    let number = try #require(try invite.cseq).number
    #expect(first.method == .prack && first.uri == "sip:one@203.0.113.7" && first.toTag == "one")
    #expect(first.value(.rack) == "10 \(number) INVITE")
    #expect(try first.cseq?.number == number + 1)
    wire.receive(reply(first, 200))
    #expect(wire.receive(progress(183, tag: "one", rseq: 10, sdp: answer)).isEmpty, "the same response again")
    #expect(wire.receive(progress(180, tag: "one", rseq: 12)).isEmpty, "one is missing: it comes again")
    let other = try #require(wire.receive(progress(180, tag: "two", rseq: 99)).first)
    #expect(other.toTag == "two")
    #expect(try other.cseq?.number == number + 1)
    wire.receive(reply(other, 200))
    let next = try #require(wire.receive(progress(180, tag: "one", rseq: 11)).first)
    #expect(try next.cseq?.number == number + 2)
    #expect(wire.events().map(\.name) == ["progress 183", "progress 180", "progress 180"])
    // the winner's dialog continues with its own numbers; its description came with the 183
    let ack = try #require(wire.receive(reply(invite, 200, tag: "one", extra: ["Contact: <sip:one@203.0.113.7>"])).first)
    #expect(ack.method == .ack)
    guard case .answered(_, let sdp) = try #require(wire.events().first) else { throw Missing() }
    #expect(sdp == answer)
    let bye = try #require(wire.command(.bye(Wire.out, nil)).first)
    #expect(try bye.cseq?.number == number + 3)
    let late = wire.receive(reply(invite, 200, tag: "two", extra: ["Contact: <sip:two@203.0.113.7>"], sdp: answer))
    #expect(late.map(\.method) == [.ack, .bye] && late.allSatisfy { $0.toTag == "two" }, "another fork's 200 is ended")
    wire.receive(reply(bye, 200))
    wire.receive(reply(late[1], 200))
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty)
  }
}
