import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Requests of the caller's trunk: CANCEL, ACK and PRACK; and hold, in calls of both directions.
extension Call {
  /// CANCEL before our 200. `Reason: SIP;cause=200` states that another fork answered (RFC 3326 §2).
  mutating func cancelled(_ cause: ReasonValue?, _ step: inout Step) {
    trunkLeg.close(487)
    mark(.cancel, detail: "received", &step)
    let isAnsweredElsewhere = cause.map { $0.protocolName.uppercased() == "SIP" && $0.cause == 200 } ?? false
    end(isAnsweredElsewhere ? .answeredElsewhere : .callerCancelled, by: .trunk, sip: 487, &step)
  }

  mutating func acknowledged(_ index: Int, _ sdp: String?, _ step: inout Step) {
    if legs[index].acknowledged() {
      let isFirst = times[.acknowledged] == nil && times[.transferred] == nil
      markOnce(.acknowledged, &step)
      if isFirst, let since = times[.connected] { step.measure(.answerToACK(step.now - since)) }
      if trunkLeg.isLateOffer, !trunkLeg.isProvisionallyAnswered { lateAnswer(sdp, in: "ACK", &step) }
    } else if legs[index].awaitsReinviteAnswer {
      guard legs[index].reinviteAnswered(sdp, &step) else {
        return end(.codec, by: .trunk, detail: "no usable answer in the ACK", &step)
      }
      noteTrunkHold(&step)
    }
  }

  /// The PRACK carried the answer to the offer of our 180: the call can be answered, or its 200 waited for this PRACK.
  mutating func provisionallyAnswered(_ sdp: String?, _ step: inout Step) {
    if trunkLeg.provisionallyAnswered() { lateAnswer(sdp, in: "PRACK", &step) }
  }

  /// The answer to the offer that our 200 or 180 carried: once the call is connected, audio flows.
  private mutating func lateAnswer(_ sdp: String?, in request: String, _ step: inout Step) {
    if let problem = trunkLeg.lateAnswer(sdp, in: request, &step) { return end(.codec, by: .trunk, detail: problem, &step) }
    guard state == .connected else { return }
    joinAnswered(&step)
    announceConnected(&step)
  }

  mutating func provisionalTimedOut(_ step: inout Step) {
    trunkLeg.close(504)
    end(.server, by: .trunk, sip: 504, detail: "no PRACK", &step)
  }

  /// The user agent has sent the BYE.
  mutating func ackTimedOut(_ step: inout Step) {
    trunkLeg.close()
    mark(.bye, detail: "no ACK", &step)
    end(.server, by: .trunk, detail: "no ACK", &step)
  }

  /// Notifies the device that has the call of each hold by the trunk, and of a call that begins on hold.
  mutating func noteTrunkHold(_ step: inout Step) {
    guard let winner, trunkLeg.notifyHold() else { return }
    let isHeld = trunkLeg.isHeldByPeer
    mark(isHeld ? .heldByTrunk : .resumedByTrunk, &step)
    if isHeld { stopTrunkWatch() }
    step.send(.callHeld(CallHeld(by: .remote, on: isHeld)), to: winner, call: id)
  }
}
