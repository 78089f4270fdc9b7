import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// A program's call that reaches the number before the user (`OriginateRequest.First.number`): the trunk is dialled at once, and
/// the devices ring when it has answered. The callee hears our ringback until a device has the call and media.
extension Call {
  var callsNumberFirst: Bool { parties.origination?.first == .number }

  /// When the trunk's 200 was received or sent: the call costs from then on.
  var answeredAt: Instant? { times[.numberAnswered] ?? times[.connected] }

  /// The number waits for a device. If it hangs up now, the devices are notified of a caller who gave up.
  var ringsBack: Bool {
    callsNumberFirst && trunkLeg.phase == .confirmed && [.parked, .ringing, .answering].contains(state)
  }

  /// The journal entry is on disk. The INVITE does not wait for media of a device: the number hears the gateway first.
  mutating func inviteNumber(_ step: inout Step) {
    guard callsNumberFirst else { return }
    sendInvite(&step)
  }

  /// 100…199. No device knows of the call yet.
  mutating func numberProgressed(_ code: Int, _ sdp: String?, _ step: inout Step) {
    guard state == .ready || state == .progress else { return }
    switch code {
    case 100: markOnce(.trying, &step)
    case 180: markOnce(.ringing, &step)
    case 181: markOnce(.forwarded, &step)
    default: markOnce(.progress, detail: String(code), &step)
    }
    enter(.progress, &step)
    _ = trunkLeg.progressed(code, sdp, &step)
  }

  /// 200: the devices ring now (`CallMachine.numberAnswered`).
  mutating func numberAnswered(_ problem: String?, _ step: inout Step) {
    guard state == .ready || state == .progress else { return }
    ringClock.close()
    mark(.numberAnswered, &step)
    if let problem { return end(.codec, by: .trunk, detail: problem, &step) }
    step.output.actions.append(.journal(journalEntry(step)))
    conclusion.limit(until: step.now + step.configuration.timers.longestCall)
    enter(.parked, &step)
    step.media(.play(session, .ringback))
    step.outcomes.append(.numberAnswered)
  }

  /// The ringback was played to its end: plays it again.
  mutating func ringBack(_ step: inout Step) {
    if ringsBack { step.media(.play(session, .ringback)) }
  }

  /// The gate is open: the device that answered hears the number.
  mutating func joinNumber(_ proof: GateProof, _ step: inout Step) {
    guard ringsBack else { return }
    noteGateOpen(since: .answered, &step)
    step.media(.play(session, nil))
    becomeConnected(&step)
    join(proof.winner, &step)
    announceConnected(&step)
  }
}

extension CallMachine {
  /// The number has answered: the user's devices ring.
  mutating func numberAnswered(_ id: CallID, _ step: inout Step) {
    guard calls[id]?.isLive == true else { return }
    if configuration.isClustered { return locate(id, then: .diverted, &step) }
    ring(id, &step)
  }
}
