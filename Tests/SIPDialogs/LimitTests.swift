import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

private typealias Bound = TrunklineSIPDialogs.Limits

@Suite struct LimitTests {
  private let trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)

  private func invite() -> OutboundInvite { OutboundInvite(trunk: trunk, to: "+15559990000", from: "+1555", sdp: offer) }

  @Test func `one leg too many fails at once and leaves nothing`() {
    var wire = Wire()
    for n in 0..<Bound.legs { wire.command(.invite(.outbound(UInt64(n)), invite())) }
    #expect(wire.events().isEmpty)
    #expect(wire.command(.invite(.outbound(UInt64(Bound.legs)), invite())).isEmpty)
    #expect(wire.events().map(\.name) == ["failed 503", "closed"])
    #expect(wire.agent.statistics.legs == Bound.legs)
  }

  @Test func `server transactions are bounded, and what comes beyond is answered without state`() {
    var wire = Wire()
    wire.receive(request("INVITE", extra: ["Require: x"], sdp: offer))
    _ = wire.events()
    wire.addServerTransactions(Bound.serverTransactions - 1)
    #expect(wire.agent.statistics.serverTransactions == Bound.serverTransactions)
    let refused = wire.receive(request("INVITE", branch: "z9hG4bKm", callID: "m", extra: ["Require: x"], sdp: offer))
    #expect(refused.map(\.statusCode) == [420])
    #expect(wire.receive(request("INVITE", branch: "z9hG4bKn", callID: "n", sdp: offer)).map(\.statusCode) == [503])
    #expect(wire.events().map(\.name) == ["refused extensionRequired invite", "refused overload invite"])
    #expect(wire.agent.statistics.serverTransactions == Bound.serverTransactions)
  }

  @Test func `client transactions are bounded: an INVITE beyond fails, a BYE beyond ends its leg`() throws {
    var wire = Wire()
    let sent = try #require(wire.command(.invite(.outbound(1), invite())).first)
    wire.receive(reply(sent, 200, sdp: answer))
    wire.addClientTransactions(Bound.clientTransactions - wire.agent.clients.count)
    #expect(wire.command(.invite(.outbound(2), invite())).isEmpty)
    #expect(wire.command(.ping(.outbound(1))).isEmpty)
    #expect(wire.command(.bye(.outbound(1), nil)).isEmpty)
    #expect(wire.events().map(\.name) == ["answered", "failed 503", "closed", "ping true", "closed"])
  }

  @Test func `further forks of one INVITE are ignored`() throws {
    var wire = Wire()
    let sent = try #require(wire.command(.invite(.outbound(1), invite())).first)
    for n in 0..<Bound.forks { #expect(!wire.receive(reply(sent, 200, tag: "f\(n)", sdp: answer)).isEmpty, "fork \(n)") }
    #expect(wire.receive(reply(sent, 200, tag: "last", sdp: answer)).isEmpty)
  }

  @Test func `an INVITE with too many routes is refused`() throws {
    var wire = Wire()
    func routes(_ count: Int) -> String {
      "Record-Route: " + (0..<count).map { "<sip:203.0.113.\($0);lr>" }.joined(separator: ",")
    }
    let good = wire.receive(request("INVITE", extra: [routes(Bound.routes)], sdp: offer))
    #expect(good.map(\.statusCode) == [100])
    let bad = wire.receive(request("INVITE", branch: "z9hG4bKr", callID: "r", extra: [routes(Bound.routes + 1)], sdp: offer))
    #expect(bad.map(\.statusCode) == [400])
  }

  @Test func `a Contact too long to keep means the source`() throws {
    var wire = Wire()
    let long = String(repeating: "b", count: Bound.targetBytes)
    wire.receive(request("INVITE", sdp: offer).replacing("sip:bob@", with: "sip:\(long)@"))
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw InboundCallTests.Missing() }
    let tag = wire.command(.answer(leg, sdp: answer)).first?.toTag
    wire.receive(request("ACK", branch: "z9hG4bKa", toTag: tag))
    #expect(wire.command(.bye(leg, nil)).first?.uri == "sip:203.0.113.7:5060")
  }

  @Test func `extra headers are cut at their limit`() throws {
    var wire = Wire()
    var many = invite()
    many.extraHeaders = (0..<100).map { ("X-\($0)", "v") }
    let sent = try #require(wire.command(.invite(.outbound(1), many)).first)
    #expect(sent.fields.filter { $0.name == .other }.count == Bound.extraHeaders)
  }
}
