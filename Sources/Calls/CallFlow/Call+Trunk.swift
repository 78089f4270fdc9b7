import AppProtocol
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// What the trunk does to a call: CANCEL, ACK, BYE, re-INVITE, silence.
extension Call {
  /// The trunk leg's media as negotiated, for the media thread.
  mutating func setTrunk(_ media: TrunkMedia, _ turn: inout Turn) {
    trunkLeg.media = media
    var parameters = TrunkLegParameters(
      remote: media.remote, encoding: AudioEncoding(media.codec), payloadType: media.payloadType,
      telephoneEventPayloadType: media.telephoneEventPayloadType, packetTimeMilliseconds: media.packetTimeMilliseconds,
      sends: media.direction.sends, receives: media.direction.receives, sourcePolicy: trunk.sourcePolicy,
      mediaPeers: trunk.mediaPeers, comfortNoisePayloadType: media.comfortNoisePayloadType)
    (parameters.digits, parameters.remoteControl) = (trunk.digits, media.control)
    parameters.wantsVoIPMetrics = media.wantsVoIPMetrics
    parameters.holdAudio = trunk.holdAudio
    parameters.protection = media.protection.flatMap { TrunkProtection($0) }
    turn.media(.setTrunk(session, parameters))
  }

  /// CANCEL before our 200. `Reason: SIP;cause=200` says that another fork answered (RFC 3326 §2).
  mutating func cancelled(_ cause: ReasonValue?, _ turn: inout Turn) {
    trunkLeg.finalStatus = 487
    reach(.cancel, detail: "received", &turn)
    let elsewhere = cause.map { $0.protocolName.uppercased() == "SIP" && $0.cause == 200 } ?? false
    end(elsewhere ? .answeredElsewhere : .callerCancelled, by: .trunk, sip: 487, trunk: .alreadyOver, &turn)
  }

  mutating func acknowledged(_ sdp: String?, _ turn: inout Turn) {
    guard isLive else { return }
    if trunkLeg.phase == .answered {
      trunkLeg.phase = .confirmed
      let isFirst = times[.acknowledged] == nil && replacedLegs.isEmpty
      reachOnce(.acknowledged, &turn)
      if isFirst, let since = times[.connected] { turn.measure(.answerToACK(turn.now - since)) }
      if trunkLeg.isLateOffer, !trunkLeg.isProvisionallyAnswered { lateAnswer(sdp, &turn) }
    } else if trunkLeg.awaitsReinviteAnswer {
      trunkLeg.awaitsReinviteAnswer = false
      guard let sdp, let media = try? trunkLeg.negotiation?.apply(answer: sdp) else {
        return end(.codec, by: .trunk, detail: "no usable answer in the ACK", &turn)
      }
      moveTrunk(media, &turn)
    }
  }

  /// The answer to the offer that our 200 carried: from here on audio flows.
  private mutating func lateAnswer(_ sdp: String?, _ turn: inout Turn) {
    guard let winner = winnerIndex, state == .connected else { return }
    do {
      guard let sdp, let media = try trunkLeg.negotiation?.apply(answer: sdp) else {
        return end(.codec, by: .trunk, detail: "no SDP in the ACK", &turn)
      }
      setTrunk(media, &turn)
      join(winner, &turn)
      announceConnected(&turn)
    } catch {
      end(.codec, by: .trunk, detail: String(describing: error), &turn)
    }
  }

  /// The PRACK brought the answer to the offer of our 180: the call can be answered, or is already, behind this PRACK.
  mutating func provisionallyAnswered(_ sdp: String?, _ turn: inout Turn) {
    guard isLive, trunkLeg.isLateOffer, !trunkLeg.isProvisionallyAnswered else { return }
    do {
      guard let sdp, let media = try trunkLeg.negotiation?.apply(answer: sdp) else {
        return end(.codec, by: .trunk, detail: "no SDP in the PRACK", &turn)
      }
      trunkLeg.isProvisionallyAnswered = true
      setTrunk(media, &turn)
      guard state == .connected, let winner = winnerIndex else { return }
      join(winner, &turn)
      announceConnected(&turn)
    } catch {
      end(.codec, by: .trunk, detail: String(describing: error), &turn)
    }
  }

  mutating func provisionalTimedOut(_ turn: inout Turn) {
    trunkLeg.finalStatus = 504
    end(.server, by: .trunk, sip: 504, trunk: .alreadyOver, detail: "no PRACK", &turn)
  }

  /// The session timer ran out, or the dialog was gone when we refreshed it; the user agent has sent the BYE.
  mutating func sessionLost(_ loss: SessionLoss, _ turn: inout Turn) {
    let detail =
      switch loss {
      case .expired: "session expired"
      case .refreshFailed(let code): "session refresh failed with \(code)"
      }
    reach(.bye, detail: detail, &turn)
    end(.trunkLost, by: .trunk, trunk: .alreadyOver, detail: detail, &turn)
  }

  /// The user agent has sent the BYE.
  mutating func ackTimedOut(_ turn: inout Turn) {
    reach(.bye, detail: "no ACK", &turn)
    end(.server, by: .trunk, trunk: .alreadyOver, detail: "no ACK", &turn)
  }

  mutating func byeReceived(_ reason: ReasonValue?, _ turn: inout Turn) {
    reach(.bye, detail: "received", &turn)
    if transfer != nil {
      // who asked for the transfer need not wait for it
      transfer?.isAlone = true
      trunkLeg.phase = .over
      return
    }
    end(.remoteHangup, by: .trunk, trunk: .alreadyOver, detail: reason?.description, &turn)
  }

  /// The leg is gone without a word that ended it.
  mutating func legClosed(_ turn: inout Turn) {
    if transfer?.isAlone == true { return }
    end(.trunkLost, by: .trunk, trunk: .alreadyOver, detail: "leg closed", &turn)
  }

  // MARK: silence

  /// RTP came and then not for 20 s: is anybody there? Never asked while held.
  mutating func trunkSilent(_ turn: inout Turn) {
    guard state == .connected, trunkLeg.phase == .confirmed, !isHeldByApp, !isHeldByTrunk else { return }
    reach(.trunkSilent, &turn)
    trunkLeg.isSilent = true
    pingTrunk(&turn)
  }

  private mutating func pingTrunk(_ turn: inout Turn) {
    trunkLeg.isPinging = true
    turn.sip(.ping(trunkLeg.leg))
    timers[.trunkPing] = turn.now + turn.configuration.timers.trunkPing
  }

  mutating func trunkBack(_ turn: inout Turn) {
    guard trunkLeg.isSilent else { return }
    reach(.trunkBack, &turn)
    stopTrunkWatch()
  }

  mutating func stopTrunkWatch() {
    (trunkLeg.isSilent, trunkLeg.isPinging) = (false, false)
    timers[.trunkPing] = nil
  }

  mutating func pingAnswered(alive: Bool, _ turn: inout Turn) {
    guard isLive, trunkLeg.isPinging else { return }
    guard alive else { return end(.trunkLost, by: .trunk, detail: "OPTIONS not answered", &turn) }
    // alive: asked again while it stays silent
    trunkLeg.isPinging = false
  }

  mutating func trunkPingDue(_ turn: inout Turn) {
    guard isLive, trunkLeg.isSilent else { return }
    if trunkLeg.isPinging { return end(.trunkLost, by: .trunk, detail: "no answer to OPTIONS", &turn) }
    pingTrunk(&turn)
  }
}
