import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct OutboundCallTests {
  private let leg = LegID.outbound(7)

  private func trunk(_ credentials: Credentials? = nil, flow: Flow = udp) -> TrunkPeer {
    TrunkPeer(name: "carrier", domain: "carrier.example", flow: flow, credentials: credentials)
  }

  /// A wire with an INVITE on its way.
  private func calling(_ credentials: Credentials? = nil, flow: Flow = udp) throws -> (Wire, Message) {
    var wire = Wire()
    let invite = OutboundInvite(
      trunk: trunk(credentials, flow: flow), to: "+15559990000", from: "+15551230001", displayName: "A \"B\"", sdp: offer)
    let sent = try #require(wire.command(.invite(leg, invite)).first)
    return (wire, sent)
  }

  @Test func `the INVITE names caller and callee`() throws {
    let (wire, invite) = try calling()
    let envelope = try invite.checked()
    #expect(invite.uri == "sip:+15559990000@carrier.example" && invite.value(.to) == "<sip:+15559990000@carrier.example>")
    #expect(invite.displayName(of: envelope.from) == "A \"B\"" && envelope.maxForwards == 70)
    #expect(invite.value(.contact) == "<sip:trunkline@198.51.100.9:5060>" && invite.text(invite.body) == offer)
    #expect(invite.value(.via)?.hasPrefix("SIP/2.0/UDP 198.51.100.9:5060;branch=z9hG4bK") == true && envelope.via.wantsRport)
    #expect(wire.output.messages[0].flow == udp)
    var hidden = OutboundInvite(
      trunk: trunk(flow: tcp), to: "+1 x;y", from: "+15551230001", displayName: "Alice", isPrivate: true,
      assertedIdentity: "+15551230001",
      sdp: offer, maxForwards: 12)
    hidden.extraHeaders = [("X-A", "1\r\nVia: evil"), ("bad name", "x")]
    var other = Wire(seed: 2)
    let withheld = try #require(other.command(.invite(LegID.outbound(8), hidden)).first)
    #expect(withheld.field(.pAssertedIdentity) == nil && withheld.value(.privacy) == "id", "an untrusted trunk is told who calls")
    other.input(.rules(["carrier": TrunkRules(trustsIdentity: true)]))
    let anonymous = try #require(other.command(.invite(leg, hidden)).first)
    #expect(anonymous.value(.from)?.hasPrefix("\"Anonymous\" <sip:anonymous@anonymous.invalid>;tag=") == true)
    #expect(
      anonymous.value(.pAssertedIdentity) == "\"Alice\" <sip:+15551230001@carrier.example>" && anonymous.value(.privacy) == "id")
    #expect(anonymous.uri == "sip:+1%20x%3By@carrier.example;transport=tcp" && anonymous.value(.maxForwards) == "12")
    #expect(anonymous.count(.via) == 1 && anonymous.value(.via)?.hasPrefix("SIP/2.0/TCP") == true)
  }

  @Test func `without an answer the INVITE is sent by timer A and fails by timer B`() throws {
    var (wire, invite) = try calling()
    let sent = wire.advance(.seconds(33))
    #expect(sent.map(\.ms) == [500, 1500, 3500, 7500, 15500, 31500])
    #expect(sent.allSatisfy { $0.message.bytes == invite.bytes })
    #expect(wire.events().map(\.name) == ["failed 408", "closed"])
    #expect(wire.isEmpty)
  }

  @Test func `a connection that fails gives 503 at once, not after a provisional response`() throws {
    var (wire, _) = try calling(flow: tcp)
    wire.input(.transportFailed(tcp))
    #expect(wire.events().map(\.name) == ["failed 503 transport", "closed"])
    var (later, invite) = try calling(flow: tcp)
    later.receive(reply(invite, 180), on: tcp)
    later.input(.transportFailed(tcp))
    #expect(later.events().map(\.name) == ["progress 180"])
  }

  @Test func `progress, answer, ACK for each 2xx, BYE`() throws {
    var (wire, invite) = try calling()
    wire.receive(reply(invite, 100, tag: nil))
    #expect(wire.advance(.seconds(20)).isEmpty)
    wire.receive(reply(invite, 183, sdp: answer))
    let ok = reply(
      invite, 200, extra: ["Contact: <sip:c@203.0.113.7:5080>", "Record-Route: <sip:203.0.113.1;lr>, <sip:203.0.113.2;lr>"],
      sdp: answer)
    let ack = try #require(wire.receive(ok).first)
    #expect(ack.method == .ack && ack.uri == "sip:c@203.0.113.7:5080" && ack.toTag == "peer" && ack.branch != invite.branch)
    #expect(ack.fields(.route).map { ack.text($0.value) } == ["<sip:203.0.113.2;lr>", "<sip:203.0.113.1;lr>"])
    #expect(wire.output.messages[0].flow.remote == SocketAddress("203.0.113.2:5060"))
    #expect(wire.receive(ok).map(\.bytes) == [ack.bytes])
    #expect(wire.events().map(\.name) == ["progress 100", "progress 183", "answered"])
    let bye = try #require(wire.command(.bye(leg, .q850(16))).first)
    let number = try #require(try ack.cseq).number
    #expect(try bye.cseq?.number == number + 1)
    wire.receive(reply(bye, 200))
    #expect(wire.events().map(\.name) == ["closed"])
    #expect(wire.receive(ok).map(\.bytes) == [ack.bytes])
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `a second fork's 2xx is acknowledged and ended unseen`() throws {
    var (wire, invite) = try calling()
    wire.receive(reply(invite, 200, tag: "one", extra: ["Contact: <sip:one@203.0.113.7>"], sdp: answer))
    let other = reply(invite, 200, tag: "two", extra: ["Contact: <sip:two@203.0.113.8>"], sdp: answer)
    let sent = wire.receive(other)
    #expect(
      sent.map(\.method) == [.ack, .bye] && sent.map(\.toTag) == ["two", "two"]
        && sent.map(\.uri) == Array(repeating: "sip:two@203.0.113.8", count: 2))
    #expect(wire.receive(other).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["answered"])
    wire.receive(reply(sent[1], 200))
    wire.receive(reply(wire.command(.bye(leg, nil))[0], 200))
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `a refusal is acknowledged each time and carries its cause`() throws {
    var (wire, invite) = try calling()
    let busy = reply(invite, 486, extra: ["Reason: Q.850;cause=17;text=\"busy\""])
    let ack = try #require(wire.receive(busy).first)
    #expect(ack.method == .ack && ack.branch == invite.branch && ack.toTag == "peer" && ack.uri == invite.uri)
    #expect(wire.receive(busy).map(\.bytes) == [ack.bytes])
    let events = wire.events()
    #expect(events.map(\.name) == ["failed 486", "closed"])
    guard case .failed(_, _, let cause, _) = events[0] else { throw InboundCallTests.Missing() }
    #expect(cause == .q850(17, "busy"))
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `CANCEL waits for a provisional response`() throws {
    var (wire, invite) = try calling()
    #expect(wire.command(.cancel(leg, .sip(200))).isEmpty)
    let cancel = try #require(wire.receive(reply(invite, 180)).first)
    #expect(cancel.method == .cancel && cancel.branch == invite.branch && cancel.uri == invite.uri && cancel.toTag == nil)
    #expect(cancel.value(.reason) == "SIP;cause=200")
    let number = try #require(try invite.cseq).number
    #expect(cancel.value(.cseq) == "\(number) CANCEL")
    wire.receive(reply(cancel, 200))
    #expect(wire.receive(reply(invite, 487)).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["failed 487", "closed"])
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `a 200 that crosses our CANCEL gets ACK and BYE`() throws {
    var (wire, invite) = try calling()
    wire.receive(reply(invite, 180))
    #expect(wire.command(.cancel(leg, nil)).map(\.method) == [.cancel])
    let sent = wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer))
    #expect(sent.map(\.method) == [.ack, .bye])
    #expect(wire.events().map(\.name) == ["progress 180", "failed 487"])
    wire.receive(reply(sent[1], 200))
    #expect(wire.events().map(\.name) == ["closed"])
  }

  @Test func `a cancelled INVITE without final response is given up after 64 T1`() throws {
    var (wire, invite) = try calling()
    wire.receive(reply(invite, 180))
    wire.command(.cancel(leg, nil))
    _ = wire.advance(.seconds(33))
    #expect(wire.events().map(\.name) == ["progress 180", "failed 408", "closed"])
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `responses of another trunk, branch or with two Vias are not ours`() throws {
    var (wire, invite) = try calling()
    let ok = reply(invite, 200, sdp: answer)
    wire.receive(ok, on: Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.66:5060")!), trunk: "other")
    wire.receive(ok.replacing("z9hG4bK", with: "z9hG4bKx"))
    wire.receive(ok.replacing("From:", with: "Via: SIP/2.0/UDP 1.2.3.4;branch=z9hG4bK1\r\nFrom:"))
    #expect(wire.events().isEmpty && wire.agent.statistics.dropped[.strayResponse] == 3)
  }

  @Test func `a peer's BYE and re-INVITE work on an outbound leg too`() throws {
    var (wire, invite) = try calling()
    wire.receive(reply(invite, 180))
    let callID = invite.callID
    let tag = try #require(invite.fromTag)
    func inDialog(_ method: String, _ cseq: Int, sdp: String? = nil) -> String {
      request(method, branch: "z9hG4bK\(method)\(cseq)", callID: callID, from: "peer", toTag: tag, cseq: cseq, sdp: sdp)
    }
    #expect(wire.receive(inDialog("INVITE", 1, sdp: offer)).map(\.statusCode) == [491])
    #expect(wire.receive(inDialog("BYE", 2)).map(\.statusCode) == [481])
    wire.receive(reply(invite, 200, sdp: answer))
    #expect(wire.receive(inDialog("INVITE", 3)).map(\.statusCode) == [100])
    wire.command(.refuseReinvite(leg, code: 488))
    #expect(wire.receive(inDialog("BYE", 4)).map(\.statusCode) == [200])
    #expect(wire.events().map(\.name) == ["progress 180", "answered", "reinvite-", "bye", "closed"])
  }
}

@Suite struct DigestTests {
  private let leg = LegID.outbound(1)
  private let challenge401 = [
    "WWW-Authenticate: Digest realm=\"r\", nonce=\"n5\", qop=\"auth\", algorithm=MD5",
    "WWW-Authenticate: Digest realm=\"r\", nonce=\"n2\", qop=\"auth,auth-int\", algorithm=SHA-256, opaque=\"o\"",
  ]

  private func calling(_ credentials: Credentials? = Credentials(username: "u", password: "p")) throws -> (Wire, Message) {
    var wire = Wire()
    let trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp, credentials: credentials)
    let sent = try #require(wire.command(.invite(leg, OutboundInvite(trunk: trunk, to: "1", from: "2", sdp: offer))).first)
    return (wire, sent)
  }

  @Test func `the examples of RFC 7616 come out`() {
    func response(_ algorithm: DigestClient.Algorithm) -> String {
      let challenge = DigestClient.Challenge(
        realm: "http-auth@example.org", nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", algorithm: algorithm, hasQop: true,
        isStale: false, isProxy: false)
      return DigestClient.response(
        challenge, username: "Mufasa", password: "Circle of Life", method: "GET", uri: "/dir/index.html",
        cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", nonceCount: "00000001")
    }
    #expect(response(.md5) == "8ca523f5e9506fed4657c9700eebdbec")
    #expect(response(.sha256) == "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1")
  }

  @Test func `a challenge is answered once, SHA-256 before MD5`() throws {
    var (wire, invite) = try calling()
    let sent = wire.receive(reply(invite, 401, extra: challenge401))
    #expect(sent.map(\.method) == [.ack, .invite])
    let again = sent[1]
    let credentials = try #require(try again.authentication(.authorization).first)
    #expect(credentials["nonce"] == "n2" && credentials["algorithm"] == "SHA-256" && credentials["nc"] == "00000001")
    #expect(
      credentials["qop"] == "auth" && credentials["opaque"] == "o" && credentials["uri"] == again.uri
        && credentials["response"]?.count == 64)
    #expect(again.callID == invite.callID && again.fromTag == invite.fromTag && again.branch != invite.branch)
    let number = try #require(try invite.cseq).number
    #expect(try again.cseq?.number == number + 1)
    #expect(wire.receive(reply(again, 401, extra: challenge401)).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["failed 401", "closed"])
  }

  @Test func `a stale nonce is worth one more try, and the ACK and BYE carry credentials`() throws {
    var (wire, invite) = try calling()
    let first = wire.receive(reply(invite, 407, extra: ["Proxy-Authenticate: Digest realm=\"r\", nonce=\"a\""]))[1]
    #expect(first.value(.proxyAuthorization)?.contains("qop") == false)
    let stale = "Proxy-Authenticate: Digest realm=\"r\", nonce=\"b\", stale=true"
    let second = wire.receive(reply(first, 407, extra: [stale]))[1]
    #expect(second.value(.proxyAuthorization)?.contains("nonce=\"b\"") == true)
    let ack = wire.receive(reply(second, 200, sdp: answer))[0]
    #expect(ack.value(.proxyAuthorization) == second.value(.proxyAuthorization))
    let bye = wire.command(.bye(leg, .q850(16)))[0]
    let byeAgain = try #require(wire.receive(reply(bye, 407, extra: [stale])).first)
    #expect(byeAgain.method == .bye && byeAgain.value(.proxyAuthorization) != nil && byeAgain.value(.reason) == "Q.850;cause=16")
    wire.receive(reply(byeAgain, 407, extra: [stale]))
    #expect(wire.events().map(\.name) == ["answered", "closed"])
  }

  @Test(arguments: [
    "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"",
    "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess",
    "WWW-Authenticate: Basic realm=\"r\"", "WWW-Authenticate: Digest realm=\"r\"", "X: y",
  ])
  func `a challenge we can not answer ends the call`(header: String) throws {
    var (wire, invite) = try calling()
    #expect(wire.receive(reply(invite, 401, extra: [header])).map(\.method) == [.ack])
    #expect(wire.events().map(\.name) == ["failed 401", "closed"])
  }

  /// A host that can answer instead of the trunk could otherwise make us compute on the password for a realm and nonce of its choice.
  @Test func `a challenge of another realm than the trunk's is not answered, but counted and told`() throws {
    for (realm, isAnswered) in [("r", true), ("R", false), ("other", false)] {
      var (wire, invite) = try calling()
      var rules = TrunkRules()
      rules.realm = realm
      wire.input(.rules(["carrier": rules]))
      let sent = wire.receive(reply(invite, 401, extra: challenge401))
      #expect(sent.map(\.method) == (isAnswered ? [.ack, .invite] : [.ack]))
      #expect(wire.events().map(\.name) == (isAnswered ? [] : ["challenge refused carrier r", "failed 401", "closed"]))
      #expect(wire.agent.statistics.foreignChallenges == (isAnswered ? 0 : 1))
    }
  }

  @Test func `of several realms the trunk's is answered, in a dialog too`() throws {
    var (wire, invite) = try calling()
    var rules = TrunkRules()
    rules.realm = "mine"
    wire.input(.rules(["carrier": rules]))
    let both = [
      "WWW-Authenticate: Digest realm=\"evil\", nonce=\"e\", algorithm=SHA-256",
      "WWW-Authenticate: Digest realm=\"mine\", nonce=\"m\"",
    ]
    let again = wire.receive(reply(invite, 401, extra: both))[1]
    #expect(again.value(.authorization)?.contains("realm=\"mine\"") == true)
    wire.receive(reply(again, 200, sdp: answer))
    let bye = wire.command(.bye(leg, nil))[0]
    #expect(wire.receive(reply(bye, 401, extra: [both[0]])).isEmpty)
    #expect(wire.events().map(\.name) == ["answered", "challenge refused carrier evil", "closed"])
  }

  @Test func `an INVITE answers the proxy's realm and the server's in a row; ACK and BYE carry both`() throws {
    var (wire, invite) = try calling()
    let proxy = "Proxy-Authenticate: Digest realm=\"proxy\", nonce=\"p\""
    let home = "WWW-Authenticate: Digest realm=\"home\", nonce=\"h\""
    let one = wire.receive(reply(invite, 407, extra: [proxy]))[1]
    #expect(one.value(.authorization) == nil)
    let two = wire.receive(reply(one, 401, extra: [home]))[1]
    #expect(two.value(.proxyAuthorization)?.contains("realm=\"proxy\"") == true)
    #expect(two.value(.authorization)?.contains("realm=\"home\"") == true)
    let ack = wire.receive(reply(two, 200, sdp: answer))[0]
    #expect(
      ack.value(.proxyAuthorization) == two.value(.proxyAuthorization) && ack.value(.authorization) == two.value(.authorization))
    let bye = wire.command(.bye(leg, nil))[0]
    let byeOne = try #require(wire.receive(reply(bye, 407, extra: [proxy])).first)
    let byeTwo = try #require(wire.receive(reply(byeOne, 401, extra: [home])).first)
    #expect(byeTwo.value(.proxyAuthorization) != nil && byeTwo.value(.authorization) != nil)
    wire.receive(reply(byeTwo, 401, extra: [home]))
    #expect(wire.events().map(\.name) == ["answered", "closed"])
  }

  @Test func `credentials go only to the address that was asked`() throws {
    var (wire, invite) = try calling()
    let elsewhere = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("203.0.113.200:5060")!)
    #expect(wire.receive(reply(invite, 401, extra: challenge401), on: elsewhere).isEmpty)
    #expect(wire.events().isEmpty && wire.agent.statistics.dropped[.strayResponse] == 1)
    #expect(wire.receive(reply(invite, 401, extra: challenge401)).map(\.method) == [.ack, .invite])
    var (bare, second) = try calling(nil)
    #expect(bare.receive(reply(second, 401, extra: challenge401)).map(\.method) == [.ack])
  }
}
