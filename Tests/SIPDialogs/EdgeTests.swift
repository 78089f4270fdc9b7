import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// A proxy of ours between the trunks and the gateway names the trunk of each call.
@Suite struct EdgeTests {
  private let edge = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.9:5060")!)

  private func wire(_ change: (inout TrunkRules) -> Void = { _ in }) -> Wire {
    var wire = Wire()
    var rules = TrunkRules()
    rules.contactUser = "ours"
    change(&rules)
    wire.input(.rules(["carrier": rules, "other": TrunkRules()]))
    wire.flow = edge
    return wire
  }

  private func invite(_ fields: [String], branch: String = "z9hG4bKe1") -> String {
    request("INVITE", branch: branch, callID: branch, extra: fields, sdp: offer)
  }

  @Test func `a call is of the trunk that its edge names, and so is all that belongs to it, without the header`() throws {
    var wire = wire()
    wire.receive(invite(["X-Trunkline-Trunk: carrier"]), trunk: Edge.peer)
    guard case .inviteReceived(let leg, let invite)? = wire.events().first else {
      Issue.record("no call")
      return
    }
    #expect(invite.trunk == "carrier" && invite.isFromEdge)
    let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
    #expect(ok.value(.contact)?.contains("sip:ours@") == true, "the trunk's own contact: \(ok.value(.contact) ?? "none")")
    wire.receive(request("ACK", branch: "z9hG4bKe2", callID: "z9hG4bKe1", toTag: ok.toTag), trunk: Edge.peer)
    let bye = request("BYE", branch: "z9hG4bKe3", callID: "z9hG4bKe1", toTag: ok.toTag, cseq: 2)
    #expect(wire.receive(bye, trunk: Edge.peer).first?.statusCode == 200)
    #expect(wire.events().map(\.name) == ["ack", "bye", "closed"])
  }

  @Test func `a CANCEL of the edge finds its INVITE, though it names no trunk`() {
    var wire = wire()
    wire.receive(invite(["X-Trunkline-Trunk: carrier"]), trunk: Edge.peer)
    _ = wire.events()
    let sent = wire.receive(request("CANCEL", branch: "z9hG4bKe1", callID: "z9hG4bKe1"), trunk: Edge.peer)
    #expect(sent.map(\.statusCode) == [200, 487])
    #expect(wire.events().map(\.name) == ["cancelled", "closed"])
  }

  @Test(arguments: [
    ([], RefusalReason.trunkMissing), (["X-Trunkline-Trunk: nobody"], .trunkUnknown), (["X-Trunkline-Trunk: "], .trunkUnknown),
    (["X-Trunkline-Trunk: carrier, other"], .trunkUnknown),
    (["X-Trunkline-Trunk: carrier", "x-trunkline-trunk: carrier"], .trunkTwice),
  ])
  func `an INVITE of an edge that is of no trunk, or of two, gets 403`(fields: [String], why: RefusalReason) {
    var wire = wire()
    let sent = wire.receive(invite(fields), trunk: Edge.peer)
    #expect(sent.map(\.statusCode) == [403] && wire.agent.statistics.refused == [why: 1])
    #expect(wire.events().map(\.name) == ["refused \(why) invite"])
    #expect(why.isEdgeFault)
  }

  @Test func `from anybody else the header is passed over and counted`() {
    var wire = wire()
    wire.receive(invite(["X-Trunkline-Trunk: other"]), on: udp, trunk: "carrier")
    guard case .inviteReceived(_, let invite)? = wire.events().first else {
      Issue.record("no call")
      return
    }
    #expect(invite.trunk == "carrier" && !invite.isFromEdge && wire.agent.statistics.foreignTrunkNames == 1)
  }

  @Test func `OPTIONS of an edge gets 200, and 503 while draining`() {
    var wire = wire()
    func options(_ number: Int) -> String { request("OPTIONS", branch: "z9hG4bKo\(number)", callID: "o\(number)") }
    #expect(wire.receive(options(1), trunk: Edge.peer).map(\.statusCode) == [200])
    wire.input(.draining(true))
    #expect(wire.receive(options(2), trunk: Edge.peer).map(\.statusCode) == [503])
    #expect(wire.agent.statistics.foreignTrunkNames == 0)
  }

  /// What an INVITE gets at last.
  private func final(_ wire: inout Wire, _ branch: String) -> Int? {
    wire.receive(invite(["X-Trunkline-Trunk: carrier"], branch: branch), trunk: Edge.peer).last?.statusCode
  }
  private func ask(_ wire: inout Wire, _ number: Int) {
    _ = wire.receive(request("OPTIONS", branch: "z9hG4bKo\(number)", callID: "o\(number)"), trunk: Edge.peer)
  }

  @Test func `an INVITE that comes after an edge's long silence has waited, and others have it: 503, for a second`() {
    var wire = wire()
    for number in 0..<3 {
      ask(&wire, number)
      _ = wire.advance(.seconds(2))
    }
    #expect(final(&wire, "z9hG4bKa") == 100, "in its rhythm")
    _ = wire.advance(.seconds(10))
    #expect(final(&wire, "z9hG4bKb") == 503 && wire.agent.statistics.refused[.stale] == 1)
    ask(&wire, 3)
    #expect(final(&wire, "z9hG4bKc") == 503)
    _ = wire.advance(.seconds(1))
    #expect(final(&wire, "z9hG4bKd") == 100)
  }

  @Test func `an edge that never asks may be silent for as long as it likes, and another connection has waited for nothing`() {
    var wire = wire()
    #expect(final(&wire, "z9hG4bKa") == 100)
    _ = wire.advance(.seconds(60))
    #expect(final(&wire, "z9hG4bKb") == 100)
    for number in 0..<3 {
      ask(&wire, number)
      _ = wire.advance(.seconds(2))
    }
    _ = wire.advance(.seconds(10))
    wire.flow = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.9:5070")!)
    #expect(final(&wire, "z9hG4bKc") == 100)
  }

  @Test func `a trunk with peer_auth is asked for its password behind an edge, too, but not within a dialog`() throws {
    var wire = wire { $0.peerCredentials = Credentials(username: "pbx", password: "secret") }
    #expect(wire.receive(invite(["X-Trunkline-Trunk: carrier"]), trunk: Edge.peer).map(\.statusCode) == [401])
    #expect(wire.receive(invite(["X-Trunkline-Trunk: other"], branch: "z9hG4bKe9"), trunk: Edge.peer).map(\.statusCode) == [100])
  }

  @Test func `answers to what we sent by an edge are heard from any edge`() throws {
    var wire = wire()
    var trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: edge)
    (trunk.proxies, trunk.uriParameter) = (["sip:192.0.2.9:5060;transport=tcp", "sip:proxy.carrier.example"], "")
    let invite = try #require(
      wire.command(.invite(.outbound(1), OutboundInvite(trunk: trunk, to: "+15559990001", from: "+15551230001", sdp: offer)))
        .first)
    #expect(
      invite.fields(.route).map { invite.text($0.value) } == [
        "<sip:192.0.2.9:5060;transport=tcp;lr>", "<sip:proxy.carrier.example;lr>",
      ])
    #expect(invite.uri == "sip:+15559990001@carrier.example")
    let other = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("192.0.2.10:5060")!)
    wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer), on: other, trunk: Edge.peer)
    #expect(wire.events().map(\.name) == ["answered"])
  }
}
