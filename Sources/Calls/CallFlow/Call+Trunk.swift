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
    turn.media(.setTrunk(session, trunk.parameters(of: media)))
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
    guard state == .connected else { return }
    do {
      guard let sdp, let media = try trunkLeg.negotiation?.apply(answer: sdp) else {
        return end(.codec, by: .trunk, detail: "no SDP in the ACK", &turn)
      }
      setTrunk(media, &turn)
      joinAnswered(&turn)
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
      guard state == .connected else { return }
      joinAnswered(&turn)
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
  mutating func trunkSilent(_ session: MediaSessionID, _ turn: inout Turn) {
    if session == second?.session { return secondSilent(&turn) }
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

  mutating func trunkBack(_ session: MediaSessionID, _ turn: inout Turn) {
    guard session == self.session, trunkLeg.isSilent else { return }
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

extension Routing.Trunk {
  /// What the media thread is told of a leg of this trunk.
  func parameters(of media: TrunkMedia) -> TrunkLegParameters {
    var out = TrunkLegParameters(
      remote: media.remote, encoding: AudioEncoding(media.codec), payloadType: media.payloadType,
      telephoneEventPayloadType: media.telephoneEventPayloadType, packetTimeMilliseconds: media.packetTimeMilliseconds,
      sends: media.direction.sends, receives: media.direction.receives, sourcePolicy: sourcePolicy, mediaPeers: mediaPeers,
      comfortNoisePayloadType: media.comfortNoisePayloadType)
    (out.peers, out.signalling) = (peers, calledFrom.isEmpty ? servers : calledFrom)
    (out.digits, out.remoteControl) = (digits, media.control)
    out.wantsVoIPMetrics = media.wantsVoIPMetrics
    out.holdAudio = holdAudio
    out.protection = media.protection.flatMap { TrunkProtection($0) }
    return out
  }
  /// Where an INVITE of ours goes, or may go.
  private var servers: [IPAddress] {
    guard let peer else { return [] }
    return ([peer.target] + peer.further).flatMap { [$0.flow, $0.large].compactMap { $0?.remote.ip } }
  }
}
