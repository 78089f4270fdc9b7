import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct LegTests {
  private func dialog() -> Dialog {
    Dialog(
      callID: "c", localTag: "ours", localParty: "", remoteParty: "", remoteTarget: "sip:a@203.0.113.7", localSequence: 5)
  }
  private func ringing() -> Leg {
    Leg(
      ringing: leg1, trunk: "carrier", flow: udp, dialog: dialog(), transaction: 1, sequence: 9, isLateOffer: false,
      reliability: .off, session: SessionExpiry())
  }
  private func calling() -> Leg {
    var trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    trunk.further = [TrunkTarget(flow(.udp, "203.0.113.8:5060"))]
    return Leg(
      calling: .outbound(1), by: OutboundInvite(trunk: trunk, to: "+1", from: "+2", sdp: offer), dialog: dialog(),
      session: SessionExpiry())
  }

  @Test func `an inbound leg is answered, then acknowledged; inputs out of order and repeated ones change nothing`() {
    var leg = ringing()
    leg.acknowledged()
    leg.accepted(dialog())
    holds(leg.phase == .ringing && !leg.requestCancel(nil))
    for _ in 0..<2 { leg.answered() }
    #expect(leg.phase == .answered)
    for _ in 0..<2 { leg.acknowledged() }
    leg.answered()
    #expect(leg.phase == .confirmed)
    for _ in 0..<2 { leg.end() }
    leg.acknowledged()
    #expect(leg.phase == .ending)
  }

  @Test func `a CANCEL is requested once, before the 2xx`() {
    var leg = calling()
    leg.answered()
    holds(leg.requestCancel(nil) && !leg.requestCancel(.sip(408)) && leg.cancel == .waiting(nil))
    leg.cancelSent()
    holds(!leg.requestCancel(nil) && leg.cancel == .sent)
    leg = calling()
    leg.accepted(dialog())
    holds(leg.phase == .confirmed && leg.invite == nil && !leg.requestCancel(nil) && leg.cancel == .none)
  }

  @Test func `each INVITE after a response has the next CSeq, and each server its own target`() {
    var leg = calling()
    leg.inviteSent(3)
    leg.repeatInvite()
    leg.redirect(to: "sip:b@203.0.113.7", tcp)
    #expect(leg.inviteSequence == 7 && leg.dialog.localSequence == 7 && leg.redirects == 1 && leg.flow == tcp)
    let next = leg.useNextServer(answered: false) { "sip:c@\($0.remote)" }
    #expect(next?.flow == leg.flow && leg.dialog.remoteTarget == "sip:c@203.0.113.8:5060" && leg.inviteSequence == 7)
    holds(leg.useNextServer(answered: false) { "sip:d@\($0.remote)" } == nil && leg.dialog.remoteTarget.hasPrefix("sip:c"))
    holds(!leg.useConnection(bytes: 9_000, refusing: DatagramOnlyServers(), at: .zero), "the server has no connection")
  }

  @Test func `a request of an early dialog has its CSeq, of an unknown one the leg's`() {
    var leg = calling()
    var early = dialog()
    early.localSequence = 20
    holds(leg.early.open("a", early))
    #expect(leg.nextRequest(fork: "a").localSequence == 21 && leg.nextRequest(fork: nil).localSequence == 6)
    #expect(leg.nextRequest(fork: "b").localSequence == 7 && leg.dialog.localSequence == 7)
  }

  @Test func `the peer's CSeq only grows, and its Contact counts when it changes`() {
    var leg = ringing()
    holds(leg.received(sequence: 10) && !leg.received(sequence: 10) && !leg.received(sequence: 3) && leg.received(sequence: 12))
    holds(leg.refresh(target: "sip:z@203.0.113.7") && !leg.refresh(target: "sip:z@203.0.113.7"))
  }
}
