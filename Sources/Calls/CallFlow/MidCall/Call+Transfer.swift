import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Transfers of a connected call: requested by the trunk (REFER, Replaces) or by the app (`call.transfer`).
///
///     event                        transfer leg        old leg
///     REFER                        INVITE              202, NOTIFY 100
///     18x                          –                   NOTIFY 18x
///     200                          gets the call       NOTIFY 200, BYE
///     300…699                      removed             NOTIFY with the code; the call continues
///     BYE of the old leg           continues alone     –; a later failure ends the call
extension Call {
  /// Accepts a REFER. `leg` is not invited yet; its trunk has a peer.
  mutating func follow(_ leg: TrunkLeg, _ step: inout Step) {
    legs.add(leg)
    mark(.transferring, detail: leg.trunk.name, &step)
    transfers.follow(.init(by: .trunk, number: leg.transfer?.number?.text, referredBy: leg.transfer?.referral.referredBy))
    step.sip(.acceptRefer(trunkLeg.id))
    inviteTransfer(&step)
    sendCapabilities(&step)
  }

  mutating func inviteTransfer(_ step: inout Step) {
    guard let second, let target = legs[second].transfer, let peer = legs[second].trunk.peer else { return }
    let next = legs[second].trunk
    var headers: [(name: String, value: String)] = []
    if let referredBy = target.referral.referredBy { headers.append(("Referred-By", referredBy)) }
    // the dialog to be replaced exists only at the trunk that sent the REFER
    if let replaces = target.referral.replaces, next.name == trunk.name { headers.append(("Replaces", replaces.text)) }
    let own = next.numbers.calling(direction == .incoming ? parties.calledNumber : parties.callerNumber)
    var invite = OutboundInvite(
      trunk: peer, to: target.number.map { next.numbers.called($0.text) } ?? "", from: own,
      isPrivate: direction == .outgoing && parties.isPrivate, assertedIdentity: own, sdp: nil,
      maxForwards: transfers.maxForwards - 1, extraHeaders: headers)
    invite.uri = target.uri
    legs[second].invite(invite, &step)
    transfers.invited(over: next.name, sipCallID: legs[second].sipCallID)
  }

  /// Notifies the leg that sent the REFER of the progress, if it still exists.
  private mutating func notify(_ code: Int, _ step: inout Step) {
    if trunkLeg.phase != .over { step.sip(.notifyRefer(trunkLeg.id, code: code)) }
  }

  /// Early media is not connected: the app talks to the old leg as long as that exists.
  mutating func transferProgressed(_ code: Int, _ sdp: String?, _ step: inout Step) {
    guard code > 100 else { return }
    _ = legs[1].progressed(code, sdp, &step)
    notify(code, &step)
  }

  mutating func transferAnswered(_ problem: String?, _ step: inout Step) {
    guard problem == nil else {
      step.sip(.bye(legs[1].id, .q850(65)))
      return transferFailed(488, &step)
    }
    notify(200, &step)
    transfers.end(200)
    if let next = legs.removeSecond() { moved(to: next, &step) }
  }

  mutating func transferFailed(_ code: Int, _ step: inout Step) {
    legs[1].close()
    mark(.transferFailed, detail: String(code), &step)
    transfers.end(code)
    // the leg that sent the REFER has ended: no other party is left
    if trunkLeg.phase == .over { return end(.remoteHangup, by: .trunk, detail: "transfer failed with \(code)", &step) }
    if let left = legs.removeSecond() { step.outcomes.append(.legLeft(left)) }
    notify(code, &step)
    sendCapabilities(&step)
  }

  /// The call continues on another leg. The previous leg gets BYE (RFC 3891 §3), and so does a transfer in progress.
  mutating func moved(to next: TrunkLeg, _ step: inout Step) {
    for index in legs.indices.reversed() {
      var old = legs[index]
      _ = old.end(.localEnd, q850: 16, &step)
      step.outcomes.append(.legLeft(old))
    }
    var next = next
    next.replace(trunkLeg, in: session)
    legs.replace(with: next)
    stopTrunkWatch()
    mark(.transferred, detail: trunk.name, &step)
    if let media = next.media { trunkLeg.set(media, &step) }
    noteTrunkHold(&step)
    sendCapabilities(&step)
  }

  // MARK: requested by the app

  /// Why a `call.transfer` cannot be sent to the trunk now; nil: it can.
  func refusal(of target: AskedTransfer?) -> Failure? {
    guard state == .connected, trunkLeg.phase == .confirmed, !transfers.isAsked, second == nil else { return Failure(.badState) }
    guard trunk.rules.allowsTransfer else { return Failure(.unsupported, msg: "this trunk accepts no transfers") }
    return target == nil ? Failure(.badRequest, msg: "target is not a number") : nil
  }

  /// `call.transfer` without a refusal: sends a REFER to the trunk. `call.transferred` reports the progress.
  mutating func askTransfer(_ target: AskedTransfer, _ step: inout Step) {
    switch target {
    case .call(let other):
      step.sip(.referToLeg(trunkLeg.id, other: other))
      transfers.ask(.init(by: .app, number: nil))
    case .number(let number, let domain):
      let user = percentEncodedUser(trunk.numbers.called(number.text))
      step.sip(.refer(trunkLeg.id, to: "sip:\(user)@\(domain)", replaces: nil))
      transfers.ask(.init(by: .app, number: number.text))
    }
  }

  mutating func referAnswered(_ code: Int, _ step: inout Step) {
    if let status = transfers.answered(code) { sendTransfer(status, code, &step) }
  }

  /// Only a 2xx completes the transfer. After any other outcome, or none, the call continues: hanging up would leave its caller
  /// alone.
  mutating func referProgress(_ code: Int?, isFinal: Bool, _ step: inout Step) {
    guard isLive, let status = transfers.reported(code, isFinal: isFinal) else { return }
    let isUnknown = isFinal && (code ?? 0) < 200
    if isUnknown { mark(.transferFailed, detail: "the trunk did not report the outcome", &step) }
    sendTransfer(status, isUnknown ? nil : code, &step)
    // the far ends are connected to each other: our call ends
    if status == .done {
      report(.transferred, at: step.now, &step)
      end(.localEnd, by: .app, detail: "transferred", &step)
    }
  }

  private func sendTransfer(_ status: CallTransferred.Status, _ code: Int?, _ step: inout Step) {
    guard let winner else { return }
    step.send(.callTransferred(CallTransferred(status, sip: code)), to: winner, call: id)
  }
}

/// The target of an app's transfer.
enum AskedTransfer {
  /// The far end of another of the app's calls, by its leg.
  case call(LegID)
  case number(AllowedNumber, domain: String)
}

/// The target of a REFER.
struct TransferTarget {
  /// Nil for a URI without a number.
  let number: AllowedNumber?
  /// The Refer-To URI, called at the trunk that wrote it; nil: the number is called, as the trunk of its route writes it.
  let uri: String?
  let referral: Referral
}
