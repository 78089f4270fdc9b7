import AppProtocol
import Bytes
import MediaSession
import SIPDialogs

/// A program's call that reaches the number before the user (`OriginateRequest.First.number`): the trunk is dialled at once, and the devices
/// ring when it has answered. Whoever answered hears ringback of ours until a device has the call and media.
extension Call {
  var callsNumberFirst: Bool { parties.origination?.first == .number }

  /// When the trunk's 200 came or went: from then on it costs.
  var answeredAt: Instant? { times[.numberAnswered] ?? times[.connected] }

  /// The number waits for a device. If it hangs up now it is to the devices a caller who gave up.
  var ringsBack: Bool {
    callsNumberFirst && trunkLeg.phase == .confirmed && [.parked, .ringing, .answering].contains(state)
  }

  /// The start line is on disk. Nobody's media is waited for: it is the gateway that the number hears first.
  mutating func inviteNumber(_ turn: inout Turn) {
    guard callsNumberFirst else { return }
    sendInvite(&turn)
  }

  /// 100…199. No device knows of the call yet.
  mutating func numberProgressed(_ code: Int, _ sdp: String?, _ turn: inout Turn) {
    guard state == .ready || state == .progress else { return }
    switch code {
    case 100: markOnce(.trying, &turn)
    case 180: markOnce(.ringing, &turn)
    case 181: markOnce(.forwarded, &turn)
    default: markOnce(.progress, detail: String(code), &turn)
    }
    enter(.progress, &turn)
    _ = trunkLeg.progressed(code, sdp, &turn)
  }

  /// 200: the devices are to ring (`CallMachine.numberAnswered`).
  mutating func numberAnswered(_ problem: String?, _ turn: inout Turn) {
    guard state == .ready || state == .progress else { return }
    timers[.ring] = nil
    mark(.numberAnswered, &turn)
    if let problem { return end(.codec, by: .trunk, detail: problem, &turn) }
    turn.output.actions.append(.journal(startLine(turn)))
    timers[.longestCall] = turn.now + turn.configuration.timers.longestCall
    enter(.parked, &turn)
    turn.media(.play(session, .ringback))
    turn.outcomes.append(.numberAnswered)
  }

  /// The ringback has been played once: it begins anew.
  mutating func ringBack(_ turn: inout Turn) {
    if ringsBack { turn.media(.play(session, .ringback)) }
  }

  /// The gate is open: the device that answered hears the number.
  mutating func joinNumber(_ proof: GateProof, _ turn: inout Turn) {
    guard ringsBack else { return }
    noteGateOpen(since: .answered, &turn)
    turn.media(.play(session, nil))
    becomeConnected(&turn)
    join(proof.winner, &turn)
    announceConnected(&turn)
  }
}

extension CallMachine {
  /// The number is on the line: the user's devices ring.
  mutating func numberAnswered(_ id: CallID, _ turn: inout Turn) {
    guard calls[id]?.isLive == true else { return }
    if configuration.isClustered { return locate(id, then: .diverted, &turn) }
    ring(id, &turn)
  }
}
