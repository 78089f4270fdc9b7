import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Requests of peers that no list names: a challenge, in rate, and nothing without the password.
@Suite struct GuestTests {
  private let credentials = Credentials(username: "pbx", password: "secret")

  private func wire() -> Wire {
    var wire = Wire()
    var rules = TrunkRules()
    rules.peerCredentials = credentials
    wire.input(.rules(["carrier": rules]))
    return wire
  }

  struct Answer {
    var nonce: String
    var count = 1
    var username = "pbx"
    var password = "secret"
    var algorithm = "SHA-256"
    var uri = "sip:+15551230001@198.51.100.9"
    var qop = "auth"
    var method = "INVITE"
    var realm = DigestServer.realm

    var header: String {
      let kind: DigestClient.Algorithm = algorithm == "MD5" ? .md5 : .sha256
      let challenge = DigestClient.Challenge(
        realm: realm, nonce: nonce, opaque: nil, algorithm: kind, algorithmName: algorithm, hasQop: true,
        isStale: false, isProxy: false)
      let digits = String(count, radix: 16)
      let nc = String(repeating: "0", count: 8 - digits.count) + digits
      let response = DigestClient.response(
        challenge, username: username, password: password, method: method, uri: uri, cnonce: "c", nonceCount: nc)
      return
        "Authorization: Digest username=\"\(username)\", realm=\"\(realm)\", nonce=\"\(nonce)\", uri=\"\(uri)\", response=\"\(response)\", "
        + "algorithm=\(algorithm), cnonce=\"c\", qop=\(qop), nc=\(nc)"
    }
  }

  private func nonce(_ response: Message?) -> String? {
    response.flatMap { try? $0.authentication(.wwwAuthenticate) }?.first?["nonce"]
  }

  /// A new request each time; gives the final or first response.
  private func ask(_ wire: inout Wire, _ number: Int, _ method: String = "INVITE", _ extra: [String] = [], on flow: Flow? = nil)
    -> Message?
  {
    wire.receive(
      request(method, branch: "z9hG4bKg\(number)", callID: "g\(number)", extra: extra, sdp: method == "INVITE" ? offer : nil),
      on: flow
    ).first
  }

  @Test func `a refusal says who called: a challenge to one without credentials is the usual course, one to wrong ones is not`()
    throws
  {
    var wire = wire()
    func refused() -> RefusedInvite? {
      wire.events().compactMap { if case .refused(.unauthorized, let invite, _) = $0 { invite } else { nil } }.last
    }
    let fresh = try #require(nonce(ask(&wire, 1)))
    #expect(refused() == RefusedInvite(callID: "g1", number: "+15557654321", isFirstChallenge: true))
    _ = ask(&wire, 2, "INVITE", [Answer(nonce: fresh, password: "wrong").header])
    #expect(refused() == RefusedInvite(callID: "g2", number: "+15557654321", isFirstChallenge: false))
    _ = ask(&wire, 3, "INVITE", ["Privacy: id"])
    #expect(refused() == RefusedInvite(callID: "g3", number: nil, isFirstChallenge: true))
    _ = ask(&wire, 4, "OPTIONS")
    #expect(refused() == nil, "no INVITE")
  }

  @Test func `a trunk that left the configuration goes on to ask for the password`() {
    var wire = wire()
    wire.input(.rules(["another": TrunkRules()]))
    #expect(ask(&wire, 1)?.statusCode == 401)
  }

  @Test(arguments: ["MD5", "SHA-256"]) func `a guest that knows the password gets a call`(algorithm: String) throws {
    var wire = wire()
    let challenge = try #require(ask(&wire, 1))
    #expect(challenge.statusCode == 401)
    let values = try challenge.authentication(.wwwAuthenticate)
    #expect(values.map { $0["algorithm"] } == ["SHA-256", "MD5"] && values.allSatisfy { $0["qop"] == "auth" })
    let answer = Answer(nonce: try #require(nonce(challenge)), algorithm: algorithm)
    #expect(ask(&wire, 2, "INVITE", [answer.header])?.statusCode == 100)
    #expect(wire.events().map(\.name) == ["refused unauthorized invite", "invite"])
  }

  @Test func `several trunks take any peer: each realm is asked for, and the credentials say whose call it is`() throws {
    var (first, second) = (TrunkRules(), TrunkRules())
    first.peerCredentials = credentials
    second.peerCredentials = Credentials(username: "branch", password: "other")
    (second.realm, second.peersKnownAs) = ("branch.example", "carrier")
    var wire = Wire()
    wire.input(.rules(["carrier": first, "branch": second]))
    let challenge = try #require(ask(&wire, 1))
    let values = try challenge.authentication(.wwwAuthenticate)
    #expect(Set(values.compactMap { $0["realm"] }) == ["trunkline", "branch.example"])
    let fresh = try #require(nonce(challenge))
    let answer = Answer(nonce: fresh, username: "branch", password: "other", realm: "branch.example")
    #expect(ask(&wire, 2, "INVITE", [answer.header])?.statusCode == 100)
    let trunks = wire.events().compactMap { if case .inviteReceived(_, let invite) = $0 { invite.trunk } else { nil } }
    #expect(trunks == ["branch"])
    #expect(
      ask(&wire, 3, "INVITE", [Answer(nonce: fresh, count: 2, username: "branch", password: "other").header])?.statusCode == 401)
  }

  @Test func `wrong name, password, address, scheme or count is challenged again, and a wrong one uses no count up`() throws {
    var wire = wire()
    let fresh = try #require(nonce(ask(&wire, 1)))
    var wrong = [
      Answer(nonce: fresh, username: "other"), Answer(nonce: fresh, password: "guess"), Answer(nonce: fresh, qop: "auth-int"),
    ]
    wrong.append(Answer(nonce: fresh, uri: "sip:other@198.51.100.9"))
    wrong.append(Answer(nonce: "0" + fresh.dropFirst()))
    for (index, answer) in wrong.enumerated() where index < 4 {
      let response = ask(&wire, 10 + index, "INVITE", [answer.header])
      #expect(response?.statusCode == 401 && response?.value(.wwwAuthenticate)?.contains("stale") == false, "\(index)")
    }
    wire.now = wire.now + .seconds(2)
    // the right one, still with count 1
    #expect(ask(&wire, 20, "INVITE", [Answer(nonce: fresh).header])?.statusCode == 100)
    // the same count again is a replay: stale
    let replay = ask(&wire, 21, "INVITE", [Answer(nonce: fresh).header])
    #expect(replay?.statusCode == 401 && replay?.value(.wwwAuthenticate)?.contains("stale=true") == true)
    #expect(ask(&wire, 22, "INVITE", [Answer(nonce: fresh, count: 2).header])?.statusCode == 100)
  }

  @Test func `a challenge is of the trunk's own realm where it has one`() throws {
    var wire = wire()
    var rules = TrunkRules()
    (rules.peerCredentials, rules.realm) = (credentials, "pbx.example")
    wire.input(.rules(["carrier": rules]))
    let challenge = try #require(ask(&wire, 1))
    #expect(try challenge.authentication(.wwwAuthenticate).map { $0["realm"] } == ["pbx.example", "pbx.example"])
    let fresh = try #require(nonce(challenge))
    #expect(ask(&wire, 2, "INVITE", [Answer(nonce: fresh).header])?.statusCode == 401)
    #expect(ask(&wire, 3, "INVITE", [Answer(nonce: fresh, realm: "pbx.example").header])?.statusCode == 100)
  }

  @Test func `a nonce is for its source and for five minutes`() throws {
    var wire = wire()
    let fresh = try #require(nonce(ask(&wire, 1)))
    let elsewhere = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.66:5060")!)
    let other = ask(&wire, 2, "INVITE", [Answer(nonce: fresh).header], on: elsewhere)
    #expect(other?.statusCode == 401 && other?.value(.wwwAuthenticate)?.contains("stale=true") == true)
    wire.now = wire.now + .seconds(301)
    #expect(ask(&wire, 3, "INVITE", [Answer(nonce: fresh).header])?.value(.wwwAuthenticate)?.contains("stale=true") == true)
  }

  @Test func `no method of a guest gets more than 401, and many get silence`() throws {
    var wire = wire()
    for (index, method) in ["OPTIONS", "REGISTER", "SUBSCRIBE", "MESSAGE", "REFER", "BYE", "UPDATE", "NEW"].enumerated() {
      #expect(ask(&wire, index, method)?.statusCode == 401, "\(method)")
    }
    #expect(ask(&wire, 50, "ACK") == nil)
    var answered = 0
    for index in 0..<500 where ask(&wire, 100 + index, "OPTIONS") != nil { answered += 1 }
    #expect(answered <= 10 && wire.agent.statistics.dropped[.challengeLimit] ?? 0 >= 490)
    #expect(wire.receive("NONSENSE sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 203.0.113.7;branch=z9hG4bKx\r\n\r\n").isEmpty)
    #expect(wire.agent.statistics.serverTransactions == 0)
  }

  @Test func `in a dialog its source is enough, another source is not`() throws {
    var wire = wire()
    let fresh = try #require(nonce(ask(&wire, 1)))
    _ = ask(&wire, 2, "INVITE", [Answer(nonce: fresh).header])
    guard case .inviteReceived(let leg, _)? = wire.events().last else {
      Issue.record("no call")
      return
    }
    let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
    let tag = try #require(ok.toTag)
    wire.receive(request("ACK", branch: "z9hG4bKa", callID: "g2", toTag: tag))
    let bye = request("BYE", branch: "z9hG4bKb", callID: "g2", toTag: tag, cseq: 2)
    let elsewhere = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.66:5060")!)
    #expect(wire.receive(bye, on: elsewhere).map(\.statusCode) == [401])
    #expect(wire.receive(bye).map(\.statusCode) == [200])
  }

  @Test func `a connection is told as authenticated with the right password or a dialog of its source, and with nothing else`()
    throws
  {
    var wire = wire()
    wire.flow = tcp
    let fresh = try #require(nonce(ask(&wire, 1)))
    _ = ask(&wire, 2, "INVITE", [Answer(nonce: fresh, password: "guess").header])
    _ = ask(&wire, 3, "BYE")
    wire.receive("NONSENSE sip:x SIP/2.0\r\nVia: SIP/2.0/TCP 203.0.113.7;branch=z9hG4bKx\r\nContent-Length: 0\r\n\r\n")
    #expect(wire.output.authenticated.isEmpty)
    _ = ask(&wire, 4, "INVITE", [Answer(nonce: fresh).header])
    #expect(wire.output.authenticated == [tcp])
    guard case .inviteReceived(let leg, _)? = wire.events().last else {
      Issue.record("no call")
      return
    }
    let tag = try #require(wire.command(.answer(leg, sdp: answer)).first?.toTag)
    let again = Flow(transport: .tcp, local: tcp.local, remote: SocketAddress(tcp.remote.ip, 34_000))
    wire.output.removeAll()
    wire.receive(request("INFO", branch: "z9hG4bKi", callID: "g4", toTag: tag, cseq: 2), on: again)
    #expect(wire.output.authenticated == [again])
    wire.output.removeAll()
    wire.receive(request("BYE", branch: "z9hG4bKb", callID: "g4", toTag: tag, cseq: 3), on: udp)
    #expect(wire.output.authenticated.isEmpty, "a datagram has no connection")
  }
}
