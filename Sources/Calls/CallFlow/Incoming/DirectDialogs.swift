import CallModel
import TrunklineSIPDialogs

/// Connects the two legs of each call between users: a command of one becomes an event of the other, as if a user agent were
/// between them, but within the same input and without a SIP message. Descriptions are negotiated as with a trunk, and media goes
/// from port to port of this machine.
///
/// It also answers the leg of a test call, which has no other side.
///
/// At most one entry for each call of the machine.
///
///     phase      command                                    → phase
///     –          invite                                     → early      the peer is invited
///     –          invite of a test call                      → echo       answered
///     early      answer                                     → confirmed  both are answered
///     early      refuse, cancel                             → –          both are closed
///     confirmed  bye                                        → –          both are closed
///     confirmed  modify, offer, answerReinvite, refuse…     → confirmed  an event of the peer
///     echo       bye                                        → –          closed
///     any        ping                                       → same       alive in `confirmed` and `echo`
///     any        another                                    → same       none
struct DirectDialogs {
  private enum Phase {
    case early, confirmed
    /// Of a test call: there is no other leg.
    case echo
  }
  /// By the caller's leg.
  private var phases: [LegID: Phase] = [:]

  var isEmpty: Bool { phases.isEmpty }

  private func phase(_ leg: LegID) -> Phase? { phases[leg.isOutbound ? leg : leg.directPeer] }

  /// Our own offer is the answer of a test call: what is sent goes to where it comes from.
  private static func echo(_ offer: String) -> String { offer.replacing("a=sendonly", with: "a=recvonly") }

  private mutating func close(_ leg: LegID) { phases[leg.isOutbound ? leg : leg.directPeer] = nil }

  /// The events that a leg's command causes at both ends, in order. A command that does not fit the phase crossed another and has
  /// no effect.
  mutating func events(of command: UserAgent.Command) -> [UserAgent.Event] {
    guard let leg = command.leg else { return [] }
    let peer = leg.directPeer
    switch (command, phase(leg)) {
    case (.invite(_, let invite), nil) where invite.trunk.name == Routing.testTrunk:
      phases[leg] = .echo
      return [.answered(leg, sdp: invite.sdp.map(Self.echo))]
    case (.bye, .echo):
      close(leg)
      return [.legClosed(leg)]
    case (.modify, .echo): return [.offerWanted(leg)]
    case (.offer(_, let sdp), .echo): return [.offerAnswered(leg, sdp: Self.echo(sdp))]
    case (.invite(_, let invite), nil):
      phases[leg] = .early
      return [.inviteReceived(peer, InboundInvite(direct: invite))]
    case (.respondProvisional(_, let code, _, let sdp), .early): return [.progress(peer, code: code, sdp: sdp)]
    case (.answer(_, let sdp), .early):
      phases[peer] = .confirmed
      return [.answered(peer, sdp: sdp), .acknowledged(leg, sdp: nil)]
    case (.refuse(_, let code, _, let cause, _), .early):
      close(leg)
      return [.failed(peer, code: code, cause: cause, byTransport: false), .legClosed(peer), .legClosed(leg)]
    case (.cancel(_, let cause), .early):
      close(leg)
      let failed = UserAgent.Event.failed(leg, code: 487, cause: nil, byTransport: false)
      return [.cancelled(peer, cause), failed, .legClosed(peer), .legClosed(leg)]
    case (.bye(_, let cause), .confirmed):
      close(leg)
      return [.byeReceived(peer, cause), .legClosed(peer), .legClosed(leg)]
    case (.modify, .confirmed): return [.offerWanted(leg)]
    case (.offer(_, let sdp), .confirmed): return [.reinviteReceived(peer, sdp: sdp)]
    case (.answerReinvite(_, let sdp), .confirmed): return [.offerAnswered(peer, sdp: sdp)]
    case (.refuseReinvite(_, let code), .confirmed): return [.offerRefused(peer, code: code)]
    case (.ping, let phase): return [.pingAnswered(leg, alive: phase == .confirmed || phase == .echo)]
    default: return []
    }
  }
}

extension InboundInvite {
  /// The caller's INVITE as the called side gets it.
  fileprivate init(direct invite: OutboundInvite) {
    let caller = Party(number: invite.from, displayName: invite.displayName)
    self.init(
      trunk: invite.trunk.name, source: invite.trunk.flow, callID: invite.callID ?? "", from: caller,
      to: Party(number: invite.to), assertedIdentity: caller, isPrivate: invite.isPrivate, sdp: invite.sdp,
      maxForwards: invite.maxForwards)
    parameters = invite.parameters
  }
}
