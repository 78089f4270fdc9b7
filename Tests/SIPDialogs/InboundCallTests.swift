import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct InboundCallTests {
  /// A wire with one ringing call.
  private func ringing(sdp: String? = offer, extra: [String] = []) throws -> (Wire, LegID) {
    var wire = Wire()
    #expect(wire.receive(request("INVITE", extra: extra, sdp: sdp)).map(\.statusCode) == [100])
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw Missing() }
    return (wire, leg)
  }
  struct Missing: Error {}

  /// A wire with one call that is answered and acknowledged, and the agent's tag.
  private func confirmed() throws -> (Wire, LegID, String) {
    var (wire, leg) = try ringing()
    let tag = try #require(wire.command(.answer(leg, sdp: answer)).first?.toTag)
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag))
    #expect(wire.events().map(\.name) == ["ack"])
    return (wire, leg, tag)
  }

  @Test func `a call is offered with what the INVITE says, after 100`() throws {
    var wire = Wire()
    wire.input(.rules(["carrier": TrunkRules(trustsIdentity: true)]))
    let replies = wire.receive(
      request(
        "INVITE", uri: "sip:+1-555-123-0001;npdi@198.51.100.9",
        extra: [
          "Max-Forwards: 12", "P-Asserted-Identity: \"Bob B\" <sip:+15557654321;verstat=ok@x>", "Privacy: id",
          "Diversion: <sip:1@a>, <sip:2@b>",
        ], sdp: offer))
    #expect(replies.map(\.statusCode) == [100])
    #expect(replies[0].toTag == nil)
    guard case .inviteReceived(_, let invite) = try #require(wire.events().first) else { throw Missing() }
    #expect(invite.to.number == "+15551230001" && invite.from.number == "+15557654321" && invite.from.displayName == "Bob")
    #expect(invite.assertedIdentity == InboundInvite.Party(number: "+15557654321", displayName: "Bob B", host: "x"))
    #expect(invite.isPrivate && invite.diversions == 2 && invite.maxForwards == 12 && invite.callID == "call-1")
    #expect(invite.sdp == offer && invite.trunk == "carrier" && invite.source == udp)
  }

  @Test func `retransmissions give one call and the last response again`() throws {
    var (wire, leg) = try ringing()
    #expect(wire.receive(request("INVITE", sdp: offer)).map(\.statusCode) == [100])
    let ringing = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first)
    #expect(ringing.statusCode == 180 && ringing.toTag != nil && ringing.value(.contact) == "<sip:trunkline@198.51.100.9:5060>")
    let moved = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("203.0.113.7:6001")!)
    let again = wire.receive(request("INVITE", sdp: offer), on: moved)
    #expect(again.map(\.bytes) == [ringing.bytes])
    #expect(wire.output.messages.map(\.flow) == [moved])
    #expect(wire.events().isEmpty)
  }

  @Test func `the answer is sent again from T1 to T2 until its ACK`() throws {
    var (wire, leg) = try ringing()
    let first = try #require(wire.command(.answer(leg, sdp: answer)).first)
    #expect(first.statusCode == 200 && first.text(first.body) == answer)
    #expect(wire.receive(request("INVITE", sdp: offer)).isEmpty)
    let sent = wire.advance(.ms(12_000))
    #expect(sent.map(\.ms) == [500, 1500, 3500, 7500, 11500])
    #expect(sent.allSatisfy { $0.message.bytes == first.bytes })
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: first.toTag))
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: first.toTag))
    #expect(wire.events().map(\.name) == ["ack"])
    #expect(wire.advance(.seconds(60)).isEmpty)
  }

  @Test func `an answer without ACK ends in a BYE after 64 T1`() throws {
    var (wire, leg) = try ringing()
    wire.command(.answer(leg, sdp: answer))
    let sent = wire.advance(.ms(32_000))
    #expect(sent.last?.message.method == .bye && sent.last?.ms == 32_000)
    #expect(wire.events().map(\.name) == ["ackTimedOut"])
    let bye = try #require(sent.last?.message)
    wire.receive(reply(bye, 200))
    #expect(wire.events().map(\.name) == ["closed"])
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `CANCEL gets 200 and the INVITE 487, sent again until ACK`() throws {
    var (wire, leg) = try ringing()
    let replies = wire.receive(request("CANCEL", extra: ["Reason: SIP;cause=200;text=\"elsewhere\""]))
    #expect(replies.map(\.statusCode) == [200, 487])
    #expect(replies[0].value(.cseq) == "1 CANCEL" && replies[1].value(.cseq) == "1 INVITE")
    let events = wire.events()
    #expect(events.map(\.name) == ["cancelled", "closed"])
    guard case .cancelled(leg, let reason) = events[0] else { throw Missing() }
    #expect(reason == .sip(200, "elsewhere"))
    #expect(wire.advance(.ms(4_000)).map(\.ms) == [500, 1500, 3500])
    #expect(wire.receive(request("CANCEL")).map(\.statusCode) == [200])
    wire.receive(request("ACK", toTag: replies[1].toTag))
    #expect(wire.advance(.seconds(40)).isEmpty)
    #expect(wire.isEmpty && wire.events().isEmpty)
    #expect(wire.command(.answer(leg, sdp: answer)).isEmpty)
  }

  @Test func `CANCEL after the 200 gets 200 and changes nothing`() throws {
    var (wire, leg, tag) = try confirmed()
    #expect(wire.receive(request("CANCEL")).map(\.statusCode) == [200])
    #expect(wire.events().isEmpty)
    let bye = try #require(wire.command(.bye(leg, .q850(16))).first)
    #expect(bye.method == .bye && bye.uri == "sip:bob@203.0.113.7:5060" && bye.fromTag == tag && bye.toTag == "77")
    #expect(bye.value(.reason) == "Q.850;cause=16")
    #expect(wire.receive(request("CANCEL", branch: "z9hG4bKother")).map(\.statusCode) == [481])
  }

  @Test func `a refusal carries cause and Retry-After and is sent again until ACK`() throws {
    var (wire, leg) = try ringing()
    let refusal = try #require(wire.command(.refuse(leg, code: 480, reason: nil, cause: .q850(41), retryAfter: 5)).first)
    #expect(refusal.statusCode == 480 && refusal.value(.reason) == "Q.850;cause=41" && refusal.value(.retryAfter) == "5")
    #expect(wire.events().map(\.name) == ["closed"])
    let sent = wire.advance(.seconds(40))
    #expect(sent.map(\.ms) == [500, 1500, 3500, 7500, 11500, 15500, 19500, 23500, 27500, 31500])
    #expect(wire.isEmpty)
  }

  @Test func `on TCP a refusal is sent once and its ACK ends everything`() throws {
    var wire = Wire()
    wire.flow = tcp
    wire.receive(request("INVITE", via: "SIP/2.0/TCP 203.0.113.7", sdp: offer))
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw Missing() }
    let refusal = try #require(wire.command(.refuse(leg, code: 486, reason: nil, cause: nil, retryAfter: nil)).first)
    #expect(wire.output.messages.first?.flow == tcp)
    #expect(wire.advance(.seconds(20)).isEmpty)
    wire.receive(request("ACK", toTag: refusal.toTag, via: "SIP/2.0/TCP 203.0.113.7"))
    #expect(wire.isEmpty)
  }

  @Test func `when a peer's connection is lost, answers go to the port in Via and requests to the one in Contact`() throws {
    var wire = Wire()
    wire.flow = tcp
    wire.receive(request("INVITE", via: "SIP/2.0/TCP 203.0.113.7:5088", sdp: offer))
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw Missing() }
    wire.input(.transportFailed(tcp))
    let tag = wire.command(.answer(leg, sdp: answer)).first?.toTag
    let next = wire.output.messages[0].flow
    #expect(next.remote == SocketAddress("203.0.113.7:5088"))
    // the peer answers on the connection that our 200 has made, and loses it, too
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag), on: next)
    wire.input(.transportFailed(next))
    wire.command(.bye(leg, nil))
    #expect(wire.output.messages[0].flow.remote == SocketAddress("203.0.113.7:5060"))
    #expect(wire.output.messages[0].flow.transport == .tcp)
  }

  @Test func `BYE during set-up ends the call like CANCEL`() throws {
    var (wire, leg) = try ringing()
    let tag = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first?.toTag)
    let replies = wire.receive(request("BYE", branch: "z9hG4bKbye", toTag: tag, cseq: 2))
    #expect(replies.map(\.statusCode) == [200, 487])
    #expect(wire.events().map(\.name) == ["cancelled", "closed"])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKbye", toTag: tag, cseq: 2)).map(\.statusCode) == [200])
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `our BYE waits for the ACK of our 200`() throws {
    var (wire, leg) = try ringing()
    let tag = wire.command(.answer(leg, sdp: answer)).first?.toTag
    #expect(wire.command(.bye(leg, .q850(16))).isEmpty)
    let sent = wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag))
    #expect(sent.map(\.method) == [.bye])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKbye", toTag: tag, cseq: 2)).map(\.statusCode) == [200])
    wire.receive(reply(sent[0], 481))
    #expect(wire.events().map(\.name) == ["ack", "closed"])
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `BYE instead of the lost ACK stops the 200 and ends the call`() throws {
    var (wire, leg) = try ringing()
    let tag = wire.command(.answer(leg, sdp: answer)).first?.toTag
    #expect(
      wire.receive(request("BYE", branch: "z9hG4bKbye", toTag: tag, cseq: 2, extra: ["Reason: Q.850;cause=16"])).map(\.statusCode)
        == [200])
    #expect(wire.events().map(\.name) == ["bye", "closed"])
    #expect(wire.advance(.seconds(40)).isEmpty)
    #expect(wire.isEmpty)
  }

  @Test func `a late offer is answered in the ACK`() throws {
    var (wire, leg) = try ringing(sdp: nil)
    let tag = wire.command(.answer(leg, sdp: offer)).first?.toTag
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag, sdp: answer))
    guard case .acknowledged(leg, let sdp) = try #require(wire.events().last) else { throw Missing() }
    #expect(sdp == answer)
  }

  @Test func `a re-INVITE refreshes the target and is answered until its ACK`() throws {
    var (wire, leg, tag) = try confirmed()
    let again = request("INVITE", branch: "z9hG4bKre", toTag: tag, cseq: 2, extra: [], sdp: offer).replacing(
      "bob@203.0.113.7:5060", with: "new@203.0.113.8:5070")
    #expect(wire.receive(again).map(\.statusCode) == [100])
    #expect(wire.events().map(\.name) == ["reinvite"])
    #expect(wire.receive(request("INVITE", branch: "z9hG4bKre2", toTag: tag, cseq: 3, sdp: offer)).map(\.statusCode) == [500])
    #expect(wire.command(.answerReinvite(leg, sdp: answer)).map(\.statusCode) == [200])
    wire.receive(request("ACK", branch: "z9hG4bKre2", toTag: tag, cseq: 3))
    #expect(wire.advance(.ms(600)).map(\.ms) == [500])
    wire.receive(request("ACK", branch: "z9hG4bKreack", toTag: tag, cseq: 2))
    #expect(wire.events().isEmpty)
    let bye = try #require(wire.command(.bye(leg, nil)).first)
    #expect(bye.uri == "sip:new@203.0.113.8:5070")
    #expect(wire.output.messages.first?.flow.remote == SocketAddress("203.0.113.8:5070"))
  }

  @Test func `a re-INVITE before our 200 has its ACK is 491, before the 200 it is 500`() throws {
    var (wire, leg) = try ringing()
    let tag = wire.command(.respondProvisional(leg, code: 183, reason: nil, sdp: answer)).first?.toTag
    let early = wire.receive(request("INVITE", branch: "z9hG4bKr1", toTag: tag, cseq: 2, sdp: offer))
    #expect(early.map(\.statusCode) == [500] && early[0].value(.retryAfter) != nil)
    wire.command(.answer(leg, sdp: answer))
    #expect(wire.receive(request("INVITE", branch: "z9hG4bKr2", toTag: tag, cseq: 3, sdp: offer)).map(\.statusCode) == [491])
    #expect(wire.events().isEmpty)
  }

  @Test func `in-dialog requests are held to tag, trunk and CSeq`() throws {
    var (wire, _, tag) = try confirmed()
    #expect(wire.receive(request("OPTIONS", branch: "z9hG4bKo1", toTag: tag, cseq: 5)).map(\.statusCode) == [200])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKo2", toTag: tag, cseq: 5)).map(\.statusCode) == [500])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKo3", from: "78", toTag: tag, cseq: 6)).map(\.statusCode) == [481])
    #expect(
      wire.receive(
        request("BYE", branch: "z9hG4bKo4", toTag: tag, cseq: 6),
        on: Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.66:5060")!), trunk: "other"
      ).map(\.statusCode) == [481])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKo5", toTag: tag + "x", cseq: 6)).map(\.statusCode) == [481])
    #expect(wire.receive(request("SUBSCRIBE", branch: "z9hG4bKo6", toTag: tag, cseq: 6)).map(\.statusCode) == [405])
    #expect(wire.receive(request("NEW", branch: "z9hG4bKo7", toTag: tag, cseq: 7)).map(\.statusCode) == [501])
    #expect(wire.events().map(\.name) == ["refused noDialog", "refused noDialog", "refused noDialog"])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKo8", toTag: tag, cseq: 8)).map(\.statusCode) == [200])
    #expect(wire.events().map(\.name) == ["bye", "closed"])
  }

  @Test func `routes of the INVITE are the way of our BYE, loose and strict`() throws {
    for (route, uri, header) in [
      (
        "<sip:203.0.113.50;lr>, <sip:203.0.113.51:5071;lr>", "sip:bob@203.0.113.7:5060",
        ["<sip:203.0.113.50;lr>", "<sip:203.0.113.51:5071;lr>"]
      ),
      ("<sip:203.0.113.50>, <sip:203.0.113.51;lr>", "sip:203.0.113.50", ["<sip:203.0.113.51;lr>", "<sip:bob@203.0.113.7:5060>"]),
    ] {
      var (wire, leg) = try ringing(extra: ["Record-Route: \(route)"])
      let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
      #expect(ok.value(.recordRoute) == route)
      wire.receive(request("ACK", branch: "z9hG4bKack", toTag: ok.toTag))
      let bye = try #require(wire.command(.bye(leg, nil)).first)
      #expect(bye.uri == uri)
      #expect(bye.fields(.route).map { bye.text($0.value) } == header)
      #expect(wire.output.messages[0].flow.remote == SocketAddress("203.0.113.50:5060"))
    }
  }

  @Test func `a ping is answered by anything but silence, 408 and 481`() throws {
    for (code, alive) in [(200, true), (405, true), (500, true), (481, false), (408, false)] {
      var (wire, leg, _) = try confirmed()
      let options = try #require(wire.command(.ping(leg)).first)
      #expect(options.method == .options)
      wire.receive(reply(options, code))
      #expect(wire.events().map(\.name) == ["ping \(alive)"])
    }
    var (wire, leg, _) = try confirmed()
    wire.command(.ping(leg))
    #expect(wire.advance(.seconds(33)).map(\.ms) == [500, 1500, 3500, 7500, 11500, 15500, 19500, 23500, 27500, 31500])
    #expect(wire.events().map(\.name) == ["ping false"])
    wire.command(.ping(leg))
    wire.input(.transportFailed(udp))
    _ = wire.advance(.seconds(4))
    #expect(wire.events().map(\.name) == ["ping false"])
  }
}
