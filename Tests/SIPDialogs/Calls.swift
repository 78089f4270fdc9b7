import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

struct Missing: Error {}

/// Calls in the state that a test begins with.
extension Wire {
  /// An inbound call that rings.
  static func ringing(rules: TrunkRules = TrunkRules(), extra: [String] = [], sdp: String? = offer) throws -> (
    Wire, LegID, InboundInvite
  ) {
    var wire = Wire()
    wire.input(.rules(["carrier": rules]))
    wire.receive(request("INVITE", extra: extra, sdp: sdp))
    guard case .inviteReceived(let leg, let invite) = try #require(wire.events().first) else { throw Missing() }
    return (wire, leg, invite)
  }

  /// An inbound call that is answered and acknowledged; the agent's tag, and the 200.
  static func confirmed(rules: TrunkRules = TrunkRules(), extra: [String] = []) throws -> (Wire, LegID, String, Message) {
    var (wire, leg, _) = try ringing(rules: rules, extra: extra)
    let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
    let tag = try #require(ok.toTag)
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag))
    #expect(wire.events().map(\.name) == ["ack"])
    return (wire, leg, tag, ok)
  }

  static let out = LegID.outbound(7)

  /// An INVITE of the agent on its way.
  static func calling(
    rules: TrunkRules = TrunkRules(), sdp: String? = offer, credentials: Credentials? = nil, flow: Flow = udp
  ) throws -> (Wire, Message) {
    var wire = Wire()
    wire.input(.rules(["carrier": rules]))
    let trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: flow, credentials: credentials)
    let invite = OutboundInvite(trunk: trunk, to: "+15559990000", from: "+15551230001", sdp: sdp)
    let sent = try #require(wire.command(.invite(out, invite)).first)
    return (wire, sent)
  }

  /// An outbound call that is answered; its INVITE.
  static func answered(rules: TrunkRules = TrunkRules(), extra: [String] = [], credentials: Credentials? = nil) throws -> (
    Wire, Message
  ) {
    var (wire, invite) = try calling(rules: rules, credentials: credentials)
    wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"] + extra, sdp: answer))
    #expect(wire.events().map(\.name) == ["answered"])
    return (wire, invite)
  }

  /// A request of the peer in the dialog of an outbound call.
  func inside(
    _ method: String, _ invite: Message, tag: String = "peer", cseq: Int = 1, branch: String = "z9hG4bKin", extra: [String] = [],
    sdp: String? = nil
  )
    -> String
  {
    request(method, branch: branch, callID: invite.callID, from: tag, toTag: invite.fromTag, cseq: cseq, extra: extra, sdp: sdp)
  }

  /// Ends the leg from our side and lets everything run out: nothing may be left.
  mutating func endAndExpectNothing(_ leg: LegID, _ location: SourceLocation = #_sourceLocation) {
    for message in command(.bye(leg, nil)) where message.method == .bye { receive(reply(message, 200)) }
    _ = advance(.seconds(100))
    #expect(isEmpty, "\(agent.statistics) \(agent.step.timers.count)", sourceLocation: location)
  }
}
