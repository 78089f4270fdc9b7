import AppProtocol
import AppSessions
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// Transfers of a connected call: asked for by the trunk (REFER, Replaces) or by the app (`call.transfer`).
///
///     event                        transfer leg        old leg
///     REFER                        INVITE              202, NOTIFY 100
///     18x                          –                   NOTIFY 18x
///     200                          takes the call      NOTIFY 200, BYE
///     300…699                      forgotten           NOTIFY with the code; the call goes on
///     BYE of the old leg           goes on alone       –; a later failure ends the call
extension Call {
  mutating func follow(_ referral: Referral, to number: String, over next: Routing.Trunk, _ leg: LegID, _ turn: inout Turn) {
    guard let peer = next.peer, let reservation else { return turn.sip(.refuseRefer(trunkLeg.leg, code: 500)) }
    transfers += 1
    var negotiation = next.negotiation(local: reservation.trunkAddress, over: next.leastSecureFlow, random: turn.random)
    let offer = negotiation.makeOffer()
    transfer = Transfer(leg: leg, trunk: next, negotiation: negotiation)
    reach(.transferring, detail: next.name, &turn)
    turn.sip(.acceptRefer(trunkLeg.leg))
    var headers: [(name: String, value: String)] = []
    if let referredBy = referral.referredBy { headers.append(("Referred-By", referredBy)) }
    // the dialog to be replaced lives where the REFER came from, and nowhere else
    if let replaces = referral.replaces, next.name == trunk.name { headers.append(("Replaces", replaces.text)) }
    let own = direction == .incoming ? calledNumber : callerNumber
    turn.sip(
      .invite(
        leg,
        OutboundInvite(
          trunk: peer, to: next.numbers.called(number), from: next.numbers.calling(own),
          isPrivate: direction == .outgoing && isPrivate, assertedIdentity: next.numbers.calling(own), sdp: offer,
          maxForwards: maxForwards - 1,
          extraHeaders: headers)))
  }

  mutating func transferProgressed(_ code: Int, _ turn: inout Turn) {
    guard let transfer, !transfer.isAlone, code > 100 else { return }
    turn.sip(.notifyRefer(trunkLeg.leg, code: code))
  }

  mutating func transferAnswered(_ sdp: String?, _ turn: inout Turn) {
    guard var transfer, isLive else { return }
    guard let sdp, let media = try? transfer.negotiation.apply(answer: sdp) else {
      turn.sip(.bye(transfer.leg, .q850(65)))
      return transferFailed(488, &turn)
    }
    if !transfer.isAlone {
      turn.sip(.notifyRefer(trunkLeg.leg, code: 200))
      turn.sip(.bye(trunkLeg.leg, .q850(16)))
    }
    trunk = transfer.trunk
    moved(to: transfer.leg, transfer.negotiation, media, endsOld: false, &turn)
    trunkLeg.phase = .confirmed
  }

  mutating func transferFailed(_ code: Int, _ turn: inout Turn) {
    guard let transfer else { return }
    self.transfer = nil
    reach(.transferFailed, detail: String(code), &turn)
    if transfer.isAlone {
      return end(.remoteHangup, by: .trunk, trunk: .alreadyOver, detail: "transfer failed with \(code)", &turn)
    }
    turn.sip(.notifyRefer(trunkLeg.leg, code: code))
  }

  /// The call goes on on another leg. With `endsOld` the one before gets BYE (RFC 3891 §3).
  mutating func moved(
    to leg: LegID, _ negotiation: TrunkNegotiation?, _ media: TrunkMedia, endsOld: Bool = true, _ turn: inout Turn
  ) {
    let old = trunkLeg.leg
    if endsOld {
      transfers += 1
      turn.sip(.bye(old, .q850(16)))
    }
    transfer = nil
    replacedLegs.append(old)
    var next = TrunkLeg(leg: leg, phase: endsOld ? .answered : .confirmed)
    (next.negotiation, next.finalStatus, next.sentRinging) = (negotiation, 200, true)
    trunkLeg = next
    stopTrunkWatch()
    reach(.transferred, detail: trunk.name, &turn)
    setTrunk(media, &turn)
    noteTrunkHold(&turn)
  }

  // MARK: asked for by the app

  /// Why a `call.transfer` cannot be asked of the trunk now.
  func refusal(of request: CallTransfer, domain: String?) -> Failure? {
    guard state == .connected, trunkLeg.phase == .confirmed, !isTransferring, transfer == nil else { return Failure(.badState) }
    guard trunk.rules.allowsTransfer else { return Failure(.unsupported, msg: "this trunk takes no transfers") }
    guard request.withCall != nil || domain != nil && request.number != nil else {
      return Failure(.badRequest, msg: "target is not a number")
    }
    return nil
  }

  /// `call.transfer` without a refusal: a REFER to the trunk. `call.transferred` tells how it goes. `other` is the leg of `withCall`.
  mutating func askTransfer(_ request: CallTransfer, domain: String, other: LegID?, _ turn: inout Turn) {
    if let other {
      turn.sip(.referToLeg(trunkLeg.leg, other: other))
    } else if let number = request.number {
      turn.sip(.refer(trunkLeg.leg, to: "sip:\(percentEncodedUser(number))@\(domain)", replaces: nil))
    }
    isTransferring = true
  }

  mutating func referAnswered(_ code: Int, _ turn: inout Turn) {
    guard isTransferring else { return }
    tellTransfer(code < 300 ? .trying : .failed, code, &turn)
  }

  mutating func referProgress(_ code: Int, isFinal: Bool, _ turn: inout Turn) {
    guard isTransferring, isLive else { return }
    guard isFinal else { return tellTransfer(code < 180 ? .trying : .ringing, code, &turn) }
    tellTransfer(code < 300 ? .done : .failed, code, &turn)
    // the far ends have each other: our part is over
    if code < 300 { end(.localEnd, by: .app, detail: "transferred", &turn) }
  }

  private mutating func tellTransfer(_ status: CallTransferred.Status, _ code: Int, _ turn: inout Turn) {
    if status == .failed || status == .done { isTransferring = false }
    guard let winner else { return }
    turn.send(.callTransferred(CallTransferred(status, sip: code)), to: winner, call: id)
  }
}

extension CallTransfer {
  /// The number that the call is to go to; nil if `target` is none.
  fileprivate var number: String? { target.flatMap { $0.k == .phone ? Routing.dialled($0.h) : nil } }
}
