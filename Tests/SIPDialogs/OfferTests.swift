import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Offers inside a dialog: re-INVITE and UPDATE, ours and the peer's, and both at once.
@Suite struct OfferTests {
  private func offered(_ wire: inout Wire, _ leg: LegID, _ sdp: String = offer) throws -> Message {
    wire.command(.modify(leg))
    #expect(wire.events().map(\.name) == ["offerWanted"])
    return try #require(wire.command(.offer(leg, sdp: sdp)).first)
  }

  @Test func `our re-INVITE carries the offer, its 2xx is acknowledged each time`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed()
    let reinvite = try offered(&wire, leg)
    #expect(
      reinvite.method == .invite && reinvite.uri == "sip:bob@203.0.113.7:5060" && reinvite.fromTag == tag
        && reinvite.toTag == "77")
    #expect(reinvite.text(reinvite.body) == offer && reinvite.value(.contact) != nil && reinvite.value(.allow) != nil)
    wire.receive(reply(reinvite, 100, tag: nil))
    #expect(wire.advance(.seconds(5)).isEmpty)
    let ok = reply(reinvite, 200, extra: ["Contact: <sip:moved@203.0.113.7:5090>"], sdp: answer)
    let ack = try #require(wire.receive(ok).first)
    #expect(ack.method == .ack && ack.uri == "sip:moved@203.0.113.7:5090")
    #expect(try ack.cseq?.number == reinvite.cseq?.number)
    #expect(wire.receive(ok).map(\.bytes) == [ack.bytes])
    #expect(wire.events().map(\.name) == ["offerAnswered+sdp"])
    #expect(wire.command(.bye(leg, nil)).first?.uri == "sip:moved@203.0.113.7:5090", "the 2xx refreshes the target")
    wire.endAndExpectNothing(leg)
    _ = wire.advance(.seconds(100))
  }

  @Test func `a dialog whose address of ours went goes on from another: the next offer says so by Via and Contact`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let moved = Flow(transport: .udp, local: SocketAddress("198.51.100.10:5060")!, remote: udp.remote)
    wire.input(.moveLegs([:]))
    #expect(wire.events().isEmpty && wire.agent.flow(of: leg)?.hasMoved == false)
    wire.input(.moveLegs([leg: moved]))
    #expect(wire.agent.flow(of: leg)?.flow == moved && wire.agent.flow(of: leg)?.hasMoved == true)
    #expect(wire.events().map(\.name) == ["addressMoved"])
    let reinvite = try offered(&wire, leg)
    #expect(reinvite.value(.contact)?.contains("@198.51.100.10:5060>") == true)
    #expect(reinvite.value(.via)?.contains("198.51.100.10:5060") == true)
    let ack = try #require(wire.receive(reply(reinvite, 200, sdp: answer), on: moved).first)
    #expect(ack.method == .ack && ack.value(.via)?.contains("198.51.100.10:5060") == true)
    #expect(wire.events().map(\.name) == ["offerAnswered+sdp"])
    wire.endAndExpectNothing(leg)
    _ = wire.advance(.seconds(100))
  }

  @Test(arguments: [nil, 100, 180], [false, true])
  func `our INVITE ends if its local address is removed before the answer, and CANCEL goes from the next address`(
    provisional: Int?, isCancelled: Bool
  ) throws {
    var (wire, invite) = try Wire.calling()
    let leg = Wire.out
    let moved = Flow(transport: .udp, local: SocketAddress("198.51.100.10:5060")!, remote: udp.remote)
    if let provisional { _ = wire.receive(reply(invite, provisional)) }
    _ = wire.events()
    if isCancelled { wire.command(.cancel(leg, nil)) }
    let wasSent = isCancelled && provisional != nil
    let cancels = wire.input(.moveLegs([leg: moved])).filter { $0.method == .cancel }
    let sent = wire.output.messages.filter { $0.flow == moved }
    #expect(wasSent ? sent.isEmpty : sent.count == 1 && cancels.count == 1)
    if let cancel = cancels.first {
      #expect(try cancel.value(.via) == invite.value(.via) && cancel.cseq?.number == invite.cseq?.number)
    }
    #expect(
      wire.events().map(\.name) == (isCancelled ? ["failed 487", "closed"] : ["addressLost", "failed 408 transport", "closed"]))
    // answered nevertheless: the late answer is acknowledged and ended, so that the callee is not left alone
    let late = wire.receive(reply(invite, 200, tag: "late", extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer), on: moved).map(
      \.method)
    #expect(late == [.ack, .bye] && wire.events().isEmpty)
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty)
  }

  @Test func `an offer that went nowhere makes way for the one from the next address; a ping is sent again from there`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let moved = Flow(transport: .udp, local: SocketAddress("198.51.100.10:5060")!, remote: udp.remote)
    wire.input(.moveLegs([leg: moved]))
    _ = wire.events()
    let lost = try offered(&wire, leg)
    wire.command(.ping(leg))
    _ = wire.advance(.seconds(5))
    // the first address is available again
    wire.input(.moveLegs([leg: udp]))
    #expect(wire.events().map(\.name) == ["addressMoved"])
    let reinvite = try offered(&wire, leg)
    #expect(
      try reinvite.cseq?.number == (lost.cseq?.number).map { $0 + 2 }
        && reinvite.value(.via)?.contains("198.51.100.9:5060") == true)
    _ = wire.receive(reply(reinvite, 200, sdp: answer))
    #expect(wire.events().map(\.name) == ["offerAnswered+sdp"])
    let sent = wire.advance(.seconds(8)).map(\.message)
    #expect(!sent.isEmpty && sent.allSatisfy { $0.method == .options } && wire.output.messages.allSatisfy { $0.flow == udp })
    _ = wire.receive(reply(try #require(sent.last), 200))
    #expect(wire.events().map(\.name) == ["ping true"])
    wire.endAndExpectNothing(leg)
    _ = wire.advance(.seconds(100))
  }

  @Test func `a refused re-INVITE changes nothing, 481 and silence end the dialog`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let refused = try offered(&wire, leg)
    #expect(wire.receive(reply(refused, 488)).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["offerRefused 488"])
    let gone = try offered(&wire, leg)
    #expect(wire.receive(reply(gone, 481)).map(\.method) == [.ack, .bye])
    #expect(wire.events().map(\.name) == ["refreshFailed 481"])
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty)
    var (silent, quiet, _, _) = try Wire.confirmed()
    _ = try offered(&silent, quiet)
    let sent = silent.advance(.seconds(33))
    #expect(sent.last?.message.method == .bye)
    #expect(silent.events().map(\.name) == ["refreshFailed 408"])
  }

  @Test func `glare: after 491 the side that does not own the Call-ID waits at most 2 s`() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      var (wire, leg, _, _) = try Wire.confirmed()
      _ = wire.advance(.milliseconds(Int(seed) * 7))
      let ours = try offered(&wire, leg)
      wire.receive(reply(ours, 491))
      let isAtOnce = wire.events().map(\.name) == ["offerWanted"]
      if !isAtOnce {
        #expect(wire.command(.modify(leg)).isEmpty && wire.events().isEmpty, "nothing goes out while the glare is waited out")
        _ = wire.advance(.milliseconds(2_001))
        #expect(wire.events().map(\.name) == ["offerWanted"])
      }
    }
  }

  @Test func `the owner of the Call-ID waits 2100 to 4000 ms, in steps of 10`() throws {
    var waits: Set<Int64> = []
    for seed in 1...30 as ClosedRange<UInt64> {
      var wire = Wire(seed: seed)
      let trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
      let invite = try #require(
        wire.command(.invite(Wire.out, OutboundInvite(trunk: trunk, to: "+1555", from: "+1556", sdp: offer))).first)
      wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer))
      _ = wire.events()
      let reinvite = try offered(&wire, Wire.out)
      wire.receive(reply(reinvite, 491))
      let start = wire.now
      while wire.events().isEmpty {
        wire.now = try #require(wire.agent.nextDeadline)
        wire.input(.timer)
      }
      waits.insert((wire.now - start).milliseconds)
    }
    #expect(waits.allSatisfy { (2_100...4_000).contains($0) && $0 % 10 == 0 } && waits.count > 10, "\(waits.sorted())")
  }

  @Test func `the peer's re-INVITE while ours is open is 491, and ours goes on`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed()
    let reinvite = try offered(&wire, leg)
    let theirs = request("INVITE", branch: "z9hG4bKre", toTag: tag, cseq: 2, sdp: offer)
    #expect(wire.receive(theirs).map(\.statusCode) == [491])
    let update = request("UPDATE", branch: "z9hG4bKup", toTag: tag, cseq: 3, sdp: offer)
    #expect(wire.receive(update).map(\.statusCode) == [491])
    #expect(
      wire.receive(request("UPDATE", branch: "z9hG4bKup2", toTag: tag, cseq: 4)).map(\.statusCode) == [200], "no offer, no glare")
    wire.receive(reply(reinvite, 200, sdp: answer))
    #expect(wire.events().map(\.name) == ["offerAnswered+sdp"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `an offer waits while the peer's is open or our 200 has no ACK`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed()
    wire.receive(request("INVITE", branch: "z9hG4bKre", toTag: tag, cseq: 2, sdp: offer))
    #expect(wire.events().map(\.name) == ["reinvite"])
    wire.command(.modify(leg))
    #expect(wire.events().isEmpty)
    wire.command(.answerReinvite(leg, sdp: answer))
    #expect(wire.events().isEmpty)
    wire.receive(request("ACK", branch: "z9hG4bKreack", toTag: tag, cseq: 2))
    #expect(wire.events().map(\.name) == ["offerWanted"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `a re-INVITE that never gets its final response is given up, the call stays`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let reinvite = try offered(&wire, leg)
    wire.receive(reply(reinvite, 180))
    #expect(wire.advance(.seconds(61)).isEmpty)
    #expect(wire.events().map(\.name) == ["offerRefused 504"])
    wire.endAndExpectNothing(leg)
  }

  @Test func `a 200 to a re-INVITE that comes after our BYE is acknowledged all the same`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let reinvite = try offered(&wire, leg)
    let bye = try #require(wire.command(.bye(leg, nil)).first)
    wire.receive(reply(bye, 200))
    #expect(wire.events().map(\.name) == ["closed"])
    let ok = reply(reinvite, 200, extra: ["Contact: <sip:bob@203.0.113.7>"], sdp: answer)
    #expect(wire.receive(ok).map(\.method) == [.ack])
    #expect(wire.receive(ok).map(\.method) == [.ack])
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty && wire.events().isEmpty)
  }

  @Test func `UPDATE with an offer is answered like a re-INVITE, without ACK, and refreshes the target`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed()
    #expect(
      wire.receive(
        request("UPDATE", branch: "z9hG4bKu", toTag: tag, cseq: 2, extra: ["Contact: <sip:new@203.0.113.7>"], sdp: offer)
      ).isEmpty)
    #expect(wire.events().map(\.name) == ["reinvite"])
    #expect(wire.receive(request("UPDATE", branch: "z9hG4bKu2", toTag: tag, cseq: 3, sdp: offer)).first?.statusCode == 500)
    let ok = try #require(wire.command(.answerReinvite(leg, sdp: answer)).first)
    #expect(ok.statusCode == 200 && ok.value(.cseq) == "2 UPDATE" && ok.value(.contact) != nil)
    #expect(wire.advance(.seconds(33)).isEmpty, "nothing waits for an ACK")
    #expect(wire.command(.bye(leg, nil)).first?.uri == "sip:new@203.0.113.7")
    wire.endAndExpectNothing(leg)
  }

  @Test func `UPDATE before the final response waits for the first exchange`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: ["Require: 100rel"])
    let progress = try #require(wire.command(.respondProvisional(leg, code: 183, reason: nil, sdp: answer)).first)
    let early = try #require(
      wire.receive(request("UPDATE", branch: "z9hG4bKu", toTag: progress.toTag, cseq: 2, sdp: offer)).first)
    #expect(early.statusCode == 500 && early.retryAfterSeconds.map { $0 < 10 } == true)
    wire.receive(
      request(
        "PRACK", branch: "z9hG4bKp", toTag: progress.toTag, cseq: 3, extra: ["RAck: \(progress.value(.rseq) ?? "") 1 INVITE"]))
    wire.receive(request("UPDATE", branch: "z9hG4bKu2", toTag: progress.toTag, cseq: 4, sdp: offer))
    #expect(wire.events().map(\.name) == ["reinvite"])
    #expect(wire.command(.answerReinvite(leg, sdp: answer)).map(\.statusCode) == [200])
    #expect(wire.command(.answer(leg, sdp: answer)).map(\.statusCode) == [200])
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: progress.toTag))
    wire.endAndExpectNothing(leg)
  }

  @Test func `UPDATE in an early dialog of ours follows the answer, and no dialog is 481`() throws {
    var (wire, invite) = try Wire.calling()
    #expect(wire.receive(wire.inside("UPDATE", invite, sdp: offer)).map(\.statusCode) == [481])
    wire.receive(reply(invite, 180, extra: ["Contact: <sip:c@203.0.113.7>"]))
    #expect(wire.receive(wire.inside("UPDATE", invite, cseq: 2, branch: "z9hG4bKi2", sdp: offer)).map(\.statusCode) == [491])
    wire.receive(reply(invite, 183, extra: ["Contact: <sip:c@203.0.113.7>", "Require: 100rel", "RSeq: 1"], sdp: answer))
    _ = wire.events()
    wire.receive(wire.inside("UPDATE", invite, cseq: 3, branch: "z9hG4bKi3", sdp: offer))
    #expect(wire.events().map(\.name) == ["reinvite"])
    #expect(wire.command(.answerReinvite(Wire.out, sdp: answer)).map(\.statusCode) == [200])
    wire.receive(reply(invite, 486))
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty)
  }

  @Test func `a late offer of ours: the 200 brings theirs, the ACK our answer`() throws {
    var (wire, invite) = try Wire.calling(sdp: nil)
    let ok = reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: offer)
    #expect(wire.receive(ok).isEmpty, "the ACK waits for the answer")
    #expect(wire.receive(ok).isEmpty, "and the 200 that comes again is no other fork")
    #expect(wire.events().map(\.name) == ["answered"])
    #expect(wire.receive(wire.inside("INVITE", invite, sdp: offer)).map(\.statusCode) == [491])
    let ack = try #require(wire.command(.acknowledge(Wire.out, sdp: answer)).first)
    #expect(ack.method == .ack && ack.text(ack.body) == answer && ack.value(.contentType) == "application/sdp")
    #expect(wire.receive(ok).map(\.bytes) == [ack.bytes])
    wire.endAndExpectNothing(Wire.out)
    var (hasty, second) = try Wire.calling(sdp: nil)
    hasty.receive(reply(second, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: offer))
    #expect(
      hasty.command(.bye(Wire.out, nil)).map(\.method) == [.ack, .bye],
      "a call that ends before its answer leaves no 200 without ACK")
  }

  @Test func `a challenged re-INVITE is repeated with credentials`() throws {
    var (wire, _) = try Wire.answered(credentials: Credentials(username: "u", password: "p"))
    let reinvite = try offered(&wire, Wire.out)
    let challenge = ["WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\""]
    let sent = wire.receive(reply(reinvite, 401, extra: challenge))
    #expect(sent.map(\.method) == [.ack, .invite] && sent[1].field(.authorization) != nil && sent[1].text(sent[1].body) == offer)
    #expect(wire.receive(reply(sent[1], 401, extra: challenge)).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["offerRefused 401"])
    wire.endAndExpectNothing(Wire.out)
  }
}
