import AppProtocol
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// What the caller's trunk does to a call: CANCEL, ACK, PRACK; and hold, whoever called.
extension Call {
  /// CANCEL before our 200. `Reason: SIP;cause=200` says that another fork answered (RFC 3326 §2).
  mutating func cancelled(_ cause: ReasonValue?, _ turn: inout Turn) {
    (trunkLeg.phase, trunkLeg.finalStatus) = (.over, 487)
    mark(.cancel, detail: "received", &turn)
    let isAnsweredElsewhere = cause.map { $0.protocolName.uppercased() == "SIP" && $0.cause == 200 } ?? false
    end(isAnsweredElsewhere ? .answeredElsewhere : .callerCancelled, by: .trunk, sip: 487, &turn)
  }

  mutating func acknowledged(_ place: Int, _ sdp: String?, _ turn: inout Turn) {
    if legs[place].phase == .answered {
      legs[place].phase = .confirmed
      let isFirst = times[.acknowledged] == nil && times[.transferred] == nil
      markOnce(.acknowledged, &turn)
      if isFirst, let since = times[.connected] { turn.measure(.answerToACK(turn.now - since)) }
      if trunkLeg.isLateOffer, !trunkLeg.isProvisionallyAnswered { lateAnswer(sdp, in: "ACK", &turn) }
    } else if legs[place].awaitsReinviteAnswer {
      guard legs[place].reinviteAnswered(sdp, &turn) else {
        return end(.codec, by: .trunk, detail: "no usable answer in the ACK", &turn)
      }
      noteTrunkHold(&turn)
    }
  }

  /// The PRACK brought the answer to the offer of our 180: the call can be answered, or is already, behind this PRACK.
  mutating func provisionallyAnswered(_ sdp: String?, _ turn: inout Turn) {
    guard trunkLeg.isLateOffer, !trunkLeg.isProvisionallyAnswered else { return }
    trunkLeg.isProvisionallyAnswered = true
    lateAnswer(sdp, in: "PRACK", &turn)
  }

  /// The answer to the offer that our 200 or 180 carried: once the call is connected, audio flows.
  private mutating func lateAnswer(_ sdp: String?, in request: String, _ turn: inout Turn) {
    if let problem = trunkLeg.lateAnswer(sdp, in: request, &turn) { return end(.codec, by: .trunk, detail: problem, &turn) }
    guard state == .connected else { return }
    joinAnswered(&turn)
    announceConnected(&turn)
  }

  mutating func provisionalTimedOut(_ turn: inout Turn) {
    (trunkLeg.phase, trunkLeg.finalStatus) = (.over, 504)
    end(.server, by: .trunk, sip: 504, detail: "no PRACK", &turn)
  }

  /// The user agent has sent the BYE.
  mutating func ackTimedOut(_ turn: inout Turn) {
    trunkLeg.phase = .over
    mark(.bye, detail: "no ACK", &turn)
    end(.server, by: .trunk, detail: "no ACK", &turn)
  }

  /// Who has the call hears of each hold by the trunk, and of a call that begins so.
  mutating func noteTrunkHold(_ turn: inout Turn) {
    let isHeld = trunkLeg.isHeldByPeer
    guard isHeld != trunkLeg.isHoldSignalled, let winner else { return }
    trunkLeg.isHoldSignalled = isHeld
    mark(isHeld ? .heldByTrunk : .resumedByTrunk, &turn)
    if isHeld { stopTrunkWatch() }
    turn.send(.callHeld(CallHeld(by: .remote, on: isHeld)), to: winner, call: id)
  }
}
