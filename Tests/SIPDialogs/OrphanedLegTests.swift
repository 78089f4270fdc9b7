import Foundation
import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// A process dies with legs open; the next one has what the journal kept of them, as JSON, and a user agent that knows nothing else.
@Suite struct OrphanedLegTests {
  /// Through the journal into a new process.
  private func restarted(_ wire: Wire, _ leg: LegID, credentials: Credentials? = nil, withholdsCaller: Bool = false) throws -> (
    Wire, [Message]
  ) {
    let orphan = try #require(wire.agent.orphan(of: leg, withholdsCaller: withholdsCaller))
    let kept = try JSONDecoder().decode(OrphanedLeg.self, from: JSONEncoder().encode(orphan))
    #expect(kept == orphan)
    var next = Wire(seed: 99)
    next.now = wire.now + .seconds(3)
    let sent = next.input(.orphaned([(kept, credentials)]))
    return (next, sent)
  }

  private func expectNothingLeft(_ wire: inout Wire, _ location: SourceLocation = #_sourceLocation) {
    _ = wire.advance(.seconds(100))
    #expect(wire.isEmpty, "\(wire.agent.statistics)", sourceLocation: location)
  }

  @Test func `an INVITE that rang gets 503 with the tag of its 180, again until its ACK`() throws {
    var (wire, leg, _) = try Wire.ringing()
    let ringing = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first)
    var (next, sent) = try restarted(wire, leg)
    let refusal = try #require(sent.first)
    #expect(sent.count == 1 && refusal.statusCode == 503 && next.output.messages[0].flow == udp)
    for name in [HeaderName.via, .from, .to, .callID, .cseq] { #expect(refusal.value(name) == ringing.value(name)) }
    #expect(next.advance(.seconds(2)).map(\.ms) == [500, 1500])
    #expect(next.receive(request("INVITE", sdp: offer)).map(\.statusCode) == [503], "the INVITE again is a new call")
    next.receive(request("ACK", toTag: refusal.toTag))
    #expect(next.advance(.seconds(2)).isEmpty && next.events().isEmpty)
    expectNothingLeft(&next)
  }

  @Test func `over TCP the 503 goes to the port in Via, since the connection is gone`() throws {
    var wire = Wire()
    wire.flow = tcp
    wire.receive(request("INVITE", via: "SIP/2.0/TCP 203.0.113.7:5070", sdp: offer))
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw Missing() }
    var (next, sent) = try restarted(wire, leg)
    #expect(sent.first?.statusCode == 503)
    #expect(
      next.output.messages[0].flow.remote == SocketAddress("203.0.113.7:5070")! && next.output.messages[0].flow.transport == .tcp)
    next.receive(request("ACK", toTag: sent[0].toTag, via: "SIP/2.0/TCP 203.0.113.7:5070"), on: tcp)
    expectNothingLeft(&next)
  }

  @Test func `an answered call gets BYE, with the dialog's tags and route and a CSeq above all that went before`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: ["Record-Route: <sip:203.0.113.8;lr>"])
    let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: ok.toTag))
    _ = wire.command(.ping(leg))
    var (next, sent) = try restarted(wire, leg)
    let bye = try #require(sent.first)
    #expect(sent.count == 1 && bye.method == .bye && bye.uri == "sip:bob@203.0.113.7:5060")
    #expect(bye.callID == "call-1" && bye.fromTag == ok.toTag && bye.toTag == "77" && bye.value(.route) == "<sip:203.0.113.8;lr>")
    #expect(bye.value(.reason) == "SIP;cause=503;text=\"gateway restarted\"")
    #expect(next.output.messages[0].flow.remote == SocketAddress("203.0.113.8:5060")!)
    let before = try #require(wire.output.messages.first.flatMap { try? Message($0.bytes).cseq }).number
    let after = try #require(try bye.cseq).number
    #expect(after > before + 500)
    next.receive(reply(bye, 200))
    #expect(next.events().map(\.name) == ["closed"])
    expectNothingLeft(&next)
  }

  @Test func `a 200 without its ACK is a call for its peer: BYE`() throws {
    var (wire, leg, _) = try Wire.ringing()
    wire.command(.answer(leg, sdp: answer))
    let (_, sent) = try restarted(wire, leg)
    #expect(sent.map(\.method) == [.bye])
  }

  @Test func `an outgoing call's BYE answers a challenge with the trunk's credentials`() throws {
    let credentials = Credentials(username: "trunk", password: "secret")
    let (wire, _) = try Wire.answered(credentials: credentials)
    var (next, sent) = try restarted(wire, Wire.out, credentials: credentials)
    let bye = try #require(sent.first)
    #expect(bye.method == .bye && bye.uri == "sip:c@203.0.113.7" && bye.toTag == "peer")
    let again = next.receive(reply(bye, 401, extra: ["WWW-Authenticate: Digest realm=\"carrier.example\", nonce=\"n\""]))
    #expect(again.first?.method == .bye && again.first?.field(.authorization) != nil)
    next.receive(reply(try #require(again.first), 200))
    expectNothingLeft(&next)
  }

  @Test func `an INVITE of ours that rang is cancelled in its own transaction, and its 487 acknowledged`() throws {
    var (wire, invite) = try Wire.calling()
    wire.receive(reply(invite, 180))
    var (next, sent) = try restarted(wire, Wire.out)
    let cancel = try #require(sent.first)
    #expect(sent.count == 1 && cancel.method == .cancel && cancel.branch == invite.branch && cancel.uri == invite.uri)
    #expect(
      cancel.value(.cseq) == invite.value(.cseq)?.replacing("INVITE", with: "CANCEL") && cancel.value(.to) == invite.value(.to))
    next.receive(reply(cancel, 200))
    #expect(next.receive(reply(invite, 180)).isEmpty)
    let acknowledged = next.receive(reply(invite, 487))
    #expect(acknowledged.map(\.method) == [.ack] && acknowledged.first?.branch == invite.branch)
    #expect(next.events().isEmpty)
    expectNothingLeft(&next)
  }

  @Test func `a 200 that crosses that CANCEL is acknowledged and ended`() throws {
    let (wire, invite) = try Wire.calling()
    var (next, _) = try restarted(wire, Wire.out)
    let sent = next.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer))
    #expect(sent.map(\.method) == [.ack, .bye] && sent.allSatisfy { $0.toTag == "peer" && $0.fromTag == invite.fromTag })
    next.receive(reply(sent[1], 200))
    expectNothingLeft(&next)
  }

  @Test func `a leg that was damaged or forged sends nothing: no line end gets into a field, no CSeq overflows`() throws {
    var (wire, leg, _) = try Wire.ringing(extra: ["Record-Route: <sip:203.0.113.8;lr>"])
    wire.command(.answer(leg, sdp: answer))
    let orphan = try #require(wire.agent.orphan(of: leg))
    let json = String(decoding: try JSONEncoder().encode(orphan), as: UTF8.self)
    func sent(_ old: some RegexComponent, _ new: String) throws -> Int {
      let text = json.replacing(old, with: new, maxReplacements: 1)
      #expect(text != json, "\(new) is in it")
      guard let forged = try? JSONDecoder().decode(OrphanedLeg.self, from: Data(text.utf8)) else { return 0 }
      var next = Wire(seed: 99)
      return next.input(.orphaned([(forged, nil)])).count
    }
    #expect(try sent(/"localSequence":[0-9]+/, "\"localSequence\":2147418112") == 1, "the highest that may be")
    for number in ["2147418113", "4294966400", "4294967295", "4294967296", "-1"] {
      #expect(try sent(/"localSequence":[0-9]+/, "\"localSequence\":\(number)") == 0, "\(number)")
    }
    for field in ["callID", "localTag", "remoteTag", "localParty", "remoteParty", "remoteTarget", "trunk"] {
      #expect(try sent(try Regex("\"\(field)\":\""), "\"\(field)\":\"x\\r\\nX-Forged: 1") == 0, "\(field)")
    }
    #expect(try sent(/"routeSet":\["/, "\"routeSet\":[\"<sip:h;lr>\\nX-Forged: 1\",\"") == 0)
    #expect(try sent(/"phase":"confirmed"/, "\"phase\":\"ringing\"") == 0, "no INVITE to answer")
    #expect(try sent(/"remote":"[^"]+"/, "\"remote\":\"nowhere\"") == 0)
  }

  @Test func `a peer that rings on after the CANCEL keeps no transaction for ever`() throws {
    let (wire, invite) = try Wire.calling()
    var (next, _) = try restarted(wire, Wire.out)
    for _ in 0..<3 {
      _ = next.advance(.seconds(10))
      next.receive(reply(invite, 180))
    }
    expectNothingLeft(&next)
  }

  @Test func `a leg says when it is to be closed otherwise: INVITE sent, challenged, answered, target changed; never between`()
    throws
  {
    var (wire, _, _) = try Wire.ringing()
    #expect(wire.output.changedLegs.isEmpty)
    let credentials = Credentials(username: "trunk", password: "secret")
    (wire, _) = try Wire.calling(credentials: credentials)
    #expect(wire.output.changedLegs == [Wire.out])
    let first = try #require(try? Message(wire.output.messages[0].bytes))
    wire.output.changedLegs = []
    wire.receive(reply(first, 180))
    #expect(wire.output.changedLegs.isEmpty)
    wire.receive(reply(first, 401, extra: ["WWW-Authenticate: Digest realm=\"carrier.example\", nonce=\"n\""]))
    #expect(wire.output.changedLegs == [Wire.out])
    let second = try #require(wire.output.messages.last.flatMap { try? Message($0.bytes) })
    let branch = try #require(second.branch)
    #expect(wire.agent.orphan(of: Wire.out)?.invite?.contains(branch) == true)
    #expect(wire.agent.orphan(of: Wire.out)?.invite?.contains("Authorization") == false)
    wire.output.changedLegs = []
    wire.receive(reply(second, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer))
    #expect(wire.output.changedLegs == [Wire.out] && wire.agent.orphan(of: Wire.out)?.phase == .confirmed)
    wire.output.changedLegs = []
    wire.receive(wire.inside("INVITE", second, extra: [], sdp: offer))
    wire.command(.answerReinvite(Wire.out, sdp: answer))
    #expect(
      wire.output.changedLegs == [Wire.out] && wire.agent.orphan(of: Wire.out)?.dialog?.remoteTarget == "sip:bob@203.0.113.7:5060"
    )
    _ = wire.command(.bye(Wire.out, nil))
    #expect(wire.agent.orphan(of: Wire.out) == nil)
  }

  @Test func `who withholds the number is not in what is kept, and the peer still knows its dialog`() throws {
    var (wire, leg, _) = try Wire.ringing()
    var kept = String(decoding: try JSONEncoder().encode(wire.agent.orphan(of: leg, withholdsCaller: true)), as: UTF8.self)
    #expect(!kept.contains("15557654321") && !kept.contains("Bob"))
    let (_, refused) = try restarted(wire, leg, withholdsCaller: true)
    #expect(refused.first?.statusCode == 503 && refused.first?.fromTag == "77")
    wire.command(.answer(leg, sdp: answer))
    kept = String(decoding: try JSONEncoder().encode(wire.agent.orphan(of: leg, withholdsCaller: true)), as: UTF8.self)
    #expect(!kept.contains("15557654321") && !kept.contains("Bob"))
    let (_, ended) = try restarted(wire, leg, withholdsCaller: true)
    #expect(ended.first?.method == .bye && ended.first?.toTag == "77")
  }

  @Test func `a thousand legs are closed within two seconds, twenty in one piece`() throws {
    let (wire, leg, _, _) = try Wire.confirmed()
    let orphan = try #require(wire.agent.orphan(of: leg))
    let text = String(decoding: try JSONEncoder().encode(orphan), as: UTF8.self)
    let legs = try (0..<1_000).map { number in
      let other = text.replacing("call-1", with: "call-\(number)x")
      return (leg: try JSONDecoder().decode(OrphanedLeg.self, from: Data(other.utf8)), credentials: Credentials?.none)
    }
    var next = Wire(seed: 5)
    #expect(next.input(.orphaned(legs)).count == 20)
    let sent = next.advance(.seconds(2)).filter { $0.message.method == .bye }
    #expect(Set(sent.map(\.message.callID)).count == 1_000, "the first twenty again, by timer E")
    #expect(next.agent.statistics.orphansClosed == [.confirmed: 1_000])
  }

  @Test(arguments: [
    #"{"phase":"ringing","trunk":"carrier","transport":"udp","local":"198.51.100.9:5060","remote":"203.0.113.7:5060"}"#,
    #"{"phase":"ringing","trunk":"carrier","transport":"udp","local":"198.51.100.9:5060","remote":"203.0.113.7:5060","invite":"INVITE"}"#,
    #"{"phase":"calling","trunk":"carrier","transport":"udp","local":"198.51.100.9:5060","remote":"x","invite":"INVITE sip:a SIP/2.0\r\n\r\n"}"#,
    #"{"phase":"calling","trunk":"carrier","transport":"tcp","local":"198.51.100.9:5060","remote":"203.0.113.7:5060","invite":"BYE sip:a@b SIP/2.0\r\nVia: x\r\n\r\n"}"#,
    #"{"phase":"confirmed","trunk":"carrier","transport":"tls","local":"198.51.100.9:5060","remote":"203.0.113.7:5060"}"#,
  ]) func `a line of a journal that is damaged closes nothing and harms nothing`(_ json: String) throws {
    let orphan = try JSONDecoder().decode(OrphanedLeg.self, from: Data(json.utf8))
    var wire = Wire()
    #expect(wire.input(.orphaned([(orphan, nil)])).isEmpty)
    expectNothingLeft(&wire)
  }
}
