import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct RefusalTests {
  private func first(_ text: String, _ wire: inout Wire) throws -> Message { try #require(wire.receive(text).first) }

  @Test(arguments: [
    (request("INVITE", extra: ["Require: 100rel, foo"], sdp: offer), 420, "refused extensionRequired invite"),
    (request("INVITE", extra: ["Max-Forwards: 0"], sdp: offer), 483, "refused tooManyHops invite"),
    (request("INVITE", extra: ["Accept: text/plain"], sdp: offer), 406, "refused notAcceptable invite"),
    (request("INVITE", extra: ["Content-Encoding: gzip"], sdp: offer), 415, "refused mediaType invite"),
    (request("INVITE", extra: ["CSeq: 2 INVITE"], sdp: offer), 400, "refused malformed invite"),
    (request("INVITE", uri: "http://x/", sdp: offer), 416, "refused uriScheme invite"),
    (request("INVITE", toTag: "gone", sdp: offer), 481, "refused noDialog invite"),
    (request("BYE"), 481, "refused noDialog"),
    (request("REGISTER"), 405, "refused method"),
    (request("FOO"), 501, "refused method"),
  ])
  func `a request we can not serve gets its code`(text: String, code: Int, event: String) throws {
    var wire = Wire()
    let response = try first(text, &wire)
    #expect(response.statusCode == code)
    #expect(wire.events().map(\.name) == [event])
    if code == 420 { #expect(response.value(.unsupported) == "foo") }
    if code == 405 || code == 501 { #expect(response.value(.allow) == "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK") }
    if code == 415 { #expect(response.value(.accept) == "application/sdp") }
    if code != 400 && code != 481 { #expect(response.toTag != nil) }
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `a refused INVITE counts once however often it comes`() throws {
    var wire = Wire()
    let text = request("INVITE", extra: ["Require: x"], sdp: offer)
    let responses = (0..<3).flatMap { _ in wire.receive(text) }
    #expect(responses.map(\.statusCode) == [420, 420, 420] && Set(responses.map(\.toTag)).count == 1)
    #expect(wire.events().count == 1)
    #expect(wire.agent.statistics.refused[.extensionRequired] == 1)
    wire.receive(request("ACK", toTag: responses[0].toTag))
    #expect(wire.advance(.seconds(10)).isEmpty)
  }

  @Test func `a body of another type is 415, one with SDP among its parts is taken`() throws {
    var wire = Wire()
    let isup = request("INVITE", sdp: offer).replacing("application/sdp", with: "application/isup")
    #expect(try first(isup, &wire).statusCode == 415)
    let body =
      "--b\r\nContent-Type: application/isup\r\n\r\nx\r\n--b\r\nContent-Type: application/sdp\r\n\r\n\(offer)\r\n--b--\r\n"
    let mixed = request("INVITE", branch: "z9hG4bKm", callID: "m", sdp: body).replacing(
      "application/sdp\r\nContent-L", with: "multipart/mixed;boundary=b\r\nContent-L")
    #expect(try first(mixed, &wire).statusCode == 100)
    guard case .inviteReceived(_, let invite) = try #require(wire.events().last) else { throw InboundCallTests.Missing() }
    #expect(invite.sdp == offer)
  }

  @Test func `the same request on another way is merged`() throws {
    var wire = Wire()
    #expect(try first(request("INVITE", sdp: offer), &wire).statusCode == 100)
    #expect(try first(request("INVITE", branch: "z9hG4bKc2", sdp: offer), &wire).statusCode == 482)
    #expect(wire.events().map(\.name) == ["invite", "refused merged invite"])
  }

  @Test func `a proxy that forks to two numbers of ours calls both, and each of them once`() throws {
    var wire = Wire()
    func invite(_ number: String, _ branch: String) -> String {
      request("INVITE", uri: "sip:\(number)@198.51.100.9", branch: branch, sdp: offer)
    }
    #expect(try first(invite("+15551230001", "z9hG4bKf1"), &wire).statusCode == 100)
    #expect(try first(invite("+15551230002", "z9hG4bKf2"), &wire).statusCode == 100)
    #expect(try first(invite("+15551230002", "z9hG4bKf3"), &wire).statusCode == 482, "the same number on another way")
    #expect(try first(invite("+1-555-123-0001", "z9hG4bKf4"), &wire).statusCode == 482, "the same, written otherwise")
    let legs = wire.events().compactMap {
      if case .inviteReceived(let leg, let invite) = $0 { (leg, invite.to.number) } else { nil }
    }
    #expect(legs.map(\.1) == ["+15551230001", "+15551230002"])
    // one answers, the proxy cancels the other
    let ok = try #require(wire.command(.answer(legs[1].0, sdp: answer)).first)
    #expect(ok.statusCode == 200 && ok.branch == "z9hG4bKf2")
    let cancel = request("CANCEL", uri: "sip:+15551230001@198.51.100.9", branch: "z9hG4bKf1")
    #expect(wire.receive(cancel).map(\.statusCode) == [200, 487])
    wire.receive(request("ACK", branch: "z9hG4bKa", toTag: ok.toTag))
    #expect(wire.events().map(\.name) == ["cancelled", "closed", "ack"])
    wire.endAndExpectNothing(legs[1].0)
  }

  @Test func `our own call coming back is a loop, for another number it is a spiral with a leg of its own`() throws {
    var wire = Wire()
    let trunk = TrunkPeer(name: "carrier", domain: "203.0.113.7", flow: udp)
    let out = LegID.outbound(1)
    let sent = try #require(
      wire.command(.invite(out, OutboundInvite(trunk: trunk, to: "+15559990000", from: "+1555", sdp: offer))).first)
    func back(_ uri: String) -> String {
      let via = "Via: SIP/2.0/UDP 203.0.113.7:5060;branch=z9hG4bKp\(uri.count)\r\nVia: \(sent.value(.via) ?? "")"
      return String(decoding: sent.bytes, as: UTF8.self).replacing("Via: \(sent.value(.via) ?? "")", with: via).replacing(
        sent.uri, with: uri)
    }
    let loop = wire.receive(back(sent.uri))
    #expect(loop.map(\.statusCode) == [482])
    #expect(wire.events().map(\.name) == ["refused loop invite"])
    let spiral = wire.receive(back("sip:+15551230001@198.51.100.9"))
    #expect(spiral.map(\.statusCode) == [100])
    guard case .inviteReceived(let inbound, _) = try #require(wire.events().first) else { throw InboundCallTests.Missing() }
    let ok = try #require(wire.command(.answer(inbound, sdp: answer)).first)
    let acks = wire.receive(reply(sent, 200, tag: ok.toTag, sdp: answer))
    #expect(acks.map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["answered"])
    let bye = try #require(wire.command(.bye(out, nil)).first)
    wire.receive(String(decoding: bye.bytes, as: UTF8.self).replacing("branch=", with: "branch=z9hG4bKproxied"))
    #expect(wire.events().map { "\($0.name) \($0.leg == inbound)" } == ["bye true", "closed true"])
  }

  @Test func `while draining OPTIONS and INVITE get 503 with Retry-After`() throws {
    var wire = Wire()
    #expect(try first(request("OPTIONS"), &wire).statusCode == 200)
    wire.input(.draining(true))
    for text in [request("OPTIONS"), request("INVITE", sdp: offer)] {
      let response = try first(text, &wire)
      #expect(response.statusCode == 503 && response.value(.retryAfter) == "30")
    }
    #expect(wire.events().map(\.name) == ["refused draining invite"])
    wire.input(.draining(false))
    #expect(try first(request("OPTIONS", branch: "z9hG4bKo"), &wire).statusCode == 200)
  }

  @Test func `a full table answers 503 without state`() throws {
    var wire = Wire()
    for n in 0..<TrunklineSIPDialogs.Limits.legs {
      wire.receive(request("INVITE", branch: "z9hG4bKn\(n)", callID: "n\(n)", sdp: offer))
    }
    #expect(wire.events().count == TrunklineSIPDialogs.Limits.legs)
    let before = wire.agent.statistics
    let response = try first(request("INVITE", branch: "z9hG4bKlast", callID: "last", sdp: offer), &wire)
    #expect(response.statusCode == 503 && response.value(.retryAfter) != nil)
    #expect(wire.events().map(\.name) == ["refused overload invite"])
    #expect(wire.agent.statistics.serverTransactions == before.serverTransactions && wire.agent.statistics.legs == before.legs)
  }

  @Test func `answers go where RFC 3581 says`() throws {
    var wire = Wire()
    wire.flow = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("203.0.113.99:40000")!)
    wire.receive(request("OPTIONS", via: "SIP/2.0/UDP 10.0.0.1:5066;rport"))
    #expect(wire.output.messages[0].flow.remote == SocketAddress("203.0.113.99:40000"))
    #expect(
      try Message(wire.output.messages[0].bytes).value(.via)
        == "SIP/2.0/UDP 10.0.0.1:5066;rport=40000;branch=z9hG4bKc1;received=203.0.113.99")
    wire.receive(request("OPTIONS", via: "SIP/2.0/UDP 10.0.0.1:5066"))
    #expect(wire.output.messages[0].flow.remote == SocketAddress("203.0.113.99:5066"))
    wire.receive(request("OPTIONS", via: "SIP/2.0/UDP 203.0.113.99"))
    #expect(wire.output.messages[0].flow.remote == SocketAddress("203.0.113.99:5060"))
    #expect(try Message(wire.output.messages[0].bytes).value(.via) == "SIP/2.0/UDP 203.0.113.99;branch=z9hG4bKc1")
  }

  @Test func `what has no answer is dropped and counted`() throws {
    var wire = Wire()
    #expect(wire.input(.received(try torture("noreason"), udp, trunk: "carrier")).isEmpty)
    #expect(wire.receive("garbage").isEmpty)
    #expect(wire.receive(request("ACK", toTag: "x")).isEmpty)
    #expect(wire.receive("INVITE sip:a@b SIP/2.0\r\nTo: x\r\n\r\n").isEmpty)
    #expect(wire.agent.statistics.dropped == [.strayResponse: 1, .unreadable: 2, .strayAcknowledgement: 1])
    #expect(wire.events().isEmpty && wire.isEmpty)
  }
}
