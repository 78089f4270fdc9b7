import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// RFC 3263 §4.3: the servers of one trunk, one after the other, in one leg.
@Suite struct FailoverTests {
  private let leg = LegID.outbound(7)
  private static func flow(_ host: String, _ transport: TransportProtocol = .udp) -> Flow {
    Flow(transport: transport, local: gatewayAddress, remote: SocketAddress(host + ":5060")!)
  }
  private let first = flow("203.0.113.1")
  private let second = flow("203.0.113.2")

  private func calling(_ targets: [TrunkTarget], sdp: String = offer, isLast: Bool = true, _ credentials: Credentials? = nil)
    throws
    -> (Wire, Message)
  {
    var wire = Wire()
    let peer = TrunkPeer(
      name: "carrier", domain: "carrier.example", target: targets[0], further: Array(targets.dropFirst()),
      credentials: credentials)
    var invite = OutboundInvite(trunk: peer, to: "+15559990000", from: "+15551230001", sdp: sdp)
    invite.failsOverOnSilence = !isLast
    let sent = try #require(wire.command(.invite(leg, invite)).first)
    return (wire, sent)
  }

  @Test func `a 503 moves on at once, with a new branch and the same call`() throws {
    var (wire, invite) = try calling([TrunkTarget(first), TrunkTarget(second)])
    let sent = wire.receive(reply(invite, 503, extra: ["Retry-After: 20"]), on: first)
    #expect(sent.map(\.method) == [.ack, .invite])
    let next = try #require(sent.last)
    #expect(wire.output.messages.last?.flow == second && next.branch != invite.branch)
    #expect(next.value(.callID) == invite.value(.callID) && next.fromTag == invite.fromTag)
    #expect(try next.cseq?.number == invite.cseq?.number)
    wire.receive(reply(next, 200, extra: ["Contact: <sip:c@203.0.113.2>"], sdp: answer), on: second)
    #expect(wire.events().map(\.name) == ["next after 203.0.113.1:5060 503", "answered"])
  }

  @Test func `an ICMP error moves on at once, and the last one is the call's`() throws {
    var (wire, _) = try calling([TrunkTarget(first), TrunkTarget(second)])
    #expect(wire.input(.transportFailed(first)).map(\.method) == [.invite])
    wire.input(.transportFailed(second))
    #expect(wire.events().map(\.name) == ["next after 203.0.113.1:5060 503"], "it is tried for a while")
    #expect(wire.advance(.seconds(4)).map(\.ms) == [500, 1500])
    #expect(wire.events().map(\.name) == ["failed 503 transport", "closed"])
    #expect(wire.isEmpty)
  }

  @Test func `silence moves on within four seconds; what the silent one says later is cancelled or ended`() throws {
    var (wire, invite) = try calling([TrunkTarget(first), TrunkTarget(second)])
    let sent = wire.advance(.seconds(4))
    let next = try #require(sent.last { $0.message.branch != invite.branch })
    #expect(next.ms <= 4_000 && next.message.method == .invite)
    // the silent server wakes up: CANCEL at its first provisional response
    let cancel = try #require(wire.receive(reply(invite, 180), on: first).first)
    #expect(cancel.method == .cancel && cancel.branch == invite.branch)
    #expect(wire.output.messages.first?.flow == first)
    // and a 200 that crossed it gets ACK and BYE
    let late = wire.receive(reply(invite, 200, tag: "late", extra: ["Contact: <sip:c@203.0.113.1>"], sdp: answer), on: first)
    #expect(late.map(\.method) == [.ack, .bye] && late.allSatisfy { $0.toTag == "late" })
    wire.receive(reply(late[1], 200), on: first)
    wire.receive(reply(next.message, 200, extra: ["Contact: <sip:c@203.0.113.2>"], sdp: answer), on: second)
    #expect(wire.events().map(\.name) == ["next after 203.0.113.1:5060 408", "answered"])
  }

  @Test func `an abandoned server that stays silent leaves nothing behind`() throws {
    var (wire, _) = try calling([TrunkTarget(first), TrunkTarget(second)])
    _ = wire.advance(.seconds(4))
    wire.input(.transportFailed(second))
    _ = wire.advance(.seconds(4))
    #expect(wire.events().last?.name == "closed")
    _ = wire.advance(.seconds(40))
    #expect(wire.isEmpty)
  }

  @Test func `the last server has until timer B, unless there is another trunk`() throws {
    var (alone, _) = try calling([TrunkTarget(first)])
    _ = alone.advance(.seconds(31))
    #expect(alone.events().isEmpty)
    var (grouped, _) = try calling([TrunkTarget(first)], isLast: false)
    _ = grouped.advance(.seconds(4))
    #expect(grouped.events().map(\.name) == ["failed 408 transport", "closed"])
  }

  @Test func `a server that said 100 is not silent`() throws {
    var (wire, invite) = try calling([TrunkTarget(first), TrunkTarget(second)])
    wire.receive(reply(invite, 100, tag: nil), on: first)
    #expect(wire.advance(.seconds(60)).isEmpty)
    // 486 is a person's answer, not a server's fault
    wire.receive(reply(invite, 486), on: first)
    #expect(wire.events().map(\.name) == ["progress 100", "failed 486", "closed"])
  }

  @Test func `a cancelled call does not move on`() throws {
    var (wire, _) = try calling([TrunkTarget(first), TrunkTarget(second)])
    wire.command(.cancel(leg, nil))
    wire.input(.transportFailed(first))
    _ = wire.advance(.seconds(4))
    #expect(wire.events().map(\.name) == ["failed 503 transport", "closed"])
  }

  @Test func `a large INVITE goes by TCP, and by UDP after all where TCP is refused`() throws {
    let stream = Self.flow("203.0.113.1", .tcp)
    let long = offer + String(repeating: "a=x-filler:1234567890\r\n", count: 50)
    var (wire, invite) = try calling([TrunkTarget(first, large: stream)], sdp: long)
    #expect(wire.output.messages.first?.flow == stream && invite.value(.via)?.hasPrefix("SIP/2.0/TCP") == true)
    #expect(invite.value(.contact)?.contains("transport=tcp") == true)
    let again = try #require(wire.input(.transportFailed(stream)).first)
    #expect(wire.output.messages.first?.flow == first && again.value(.via)?.hasPrefix("SIP/2.0/UDP") == true)
    // the next call does not wait for that again, for a while
    let peer = TrunkPeer(name: "carrier", domain: "carrier.example", target: TrunkTarget(first, large: stream))
    for (number, pause, flow) in [(8, 0, first), (9, 601, stream)] {
      _ = wire.advance(.seconds(pause))
      wire.command(
        .invite(.outbound(UInt64(number)), OutboundInvite(trunk: peer, to: "+15559990000", from: "+15551230001", sdp: long)))
      #expect(wire.output.messages.last?.flow == flow, "call \(number)")
    }
    let (small, short) = try calling([TrunkTarget(first, large: stream)])
    #expect(small.output.messages.first?.flow == first && short.bytes.count <= 1_300)
    let (forced, _) = try calling([TrunkTarget(first)], sdp: long)
    #expect(forced.output.messages.first?.flow == first)
  }

  @Test func `each server may ask for the password`() throws {
    let credentials = Credentials(username: "u", password: "p")
    var (wire, invite) = try calling([TrunkTarget(first), TrunkTarget(second)], credentials)
    func challenge(_ nonce: String) -> [String] { ["WWW-Authenticate: Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\""] }
    let answered = try #require(wire.receive(reply(invite, 401, extra: challenge("a")), on: first).last)
    #expect(answered.value(.authorization)?.contains("nonce=\"a\"") == true)
    let next = try #require(wire.receive(reply(answered, 503), on: first).last)
    #expect(next.field(.authorization) == nil)
    let last = try #require(wire.receive(reply(next, 401, extra: challenge("b")), on: second).last)
    #expect(last.value(.authorization)?.contains("nonce=\"b\"") == true && wire.output.messages.last?.flow == second)
  }
}
