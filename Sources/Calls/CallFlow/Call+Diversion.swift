import AppProtocol
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// A call that goes somewhere else because nobody took it: the lock, the second leg, the recording.
extension Call {
  /// Somebody or something else than this user's devices has it.
  func isDiverted(for user: String) -> Bool { formerUsers.contains(user) || second != nil || recording != nil }

  /// What a device hears that comes late; nil if no leg and no recording has the call.
  var divertedReason: EndReason? { second != nil ? .diverted : recording?.wish.reasonForDevices }

  /// The lock, taken for what comes now: every device that had no terminal message yet is told, a winner without media that it
  /// failed.
  mutating func takeLock(for wish: DiversionWish, _ diversion: CallRecord.Diversion, _ turn: inout Turn) {
    for timer in [CallTimer.ring, .unreached, .push, .early180, .gate, .restart, .mediaActive, .vanished] { timers[timer] = nil }
    tellDevices(wish.ending.reason, others: wish.reasonForDevices, by: .gateway, &turn)
    for device in devices { turn.media(.removeAppLeg(session, device.id)) }
    (devices, pushes, winner, declines) = ([], [], nil, Declines())
    (isVerifying, timers[.verification]) = (false, nil)
    self.wish = nil
    diversionsMade.append(diversion)
    enter(.diverting, &turn)
    reach(.diverting, detail: wish.trigger.rawValue, &turn)
  }

  /// Those of the INVITE and ours; recordings and codes lead nowhere.
  var isDivertedTooOften: Bool {
    diversionsBefore + diversionsMade.count { $0.user != nil || $0.number != nil } >= Limits.diversions
  }

  // MARK: another user

  /// The next user's devices ring under the same lock, and that user's rules hold.
  mutating func divert(to next: String, _ rules: Diversions, _ wish: DiversionWish, _ turn: inout Turn) {
    var diversion = CallRecord.Diversion(wish.trigger)
    diversion.user = next
    takeLock(for: wish, diversion, &turn)
    divertedFrom = Array(([to] + divertedFrom).prefix(Limits.diversions))
    diversions = rules
    ring(for: [next])
    enter(.parked, &turn)
  }

  // MARK: a number

  /// The leg to the number; its INVITE waits for the start line on disk.
  mutating func divert(to second: SecondLeg, _ turn: inout Turn) {
    var diversion = CallRecord.Diversion(second.wish.trigger)
    (diversion.number, diversion.trunk, diversion.sipCallId) = (second.number, second.trunk.name, second.sipCallID)
    takeLock(for: second.wish, diversion, &turn)
    self.second = second
    timers[.ring] = turn.now + turn.configuration.timers.ring
    if isJournalled { inviteSecond(&turn) }
  }

  mutating func inviteSecond(_ turn: inout Turn) {
    guard state == .diverting, let next = second, next.phase == .idle, let peer = next.trunk.peer else { return }
    let offer = second?.negotiation.makeOffer()
    second?.phase = .invited
    let own = next.trunk.numbers.calling(next.ownNumber)
    let isPrivate = from.h == Self.anonymous.h
    let caller = next.showsCaller && !isPrivate ? next.trunk.numbers.calling(callerNumber) : own
    var invite = OutboundInvite(
      trunk: peer, to: next.trunk.numbers.called(next.number), from: caller, displayName: next.showsCaller ? from.n : nil,
      isPrivate: next.showsCaller && isPrivate, assertedIdentity: own, sdp: offer, callID: next.sipCallID,
      maxForwards: maxForwards - 1,
      extraHeaders: diversionHeaders(own, next, peer.domain))
    invite.givesUpSilence = !next.alternatives.isEmpty
    reach(.inviteSent, detail: next.trunk.name, &turn)
    turn.sip(.invite(next.leg, invite))
  }

  /// The same by the next trunk of its route.
  mutating func trySecond(_ next: Routing.Trunk, leg: LegID, alternatives: [Routing.Trunk], _ turn: inout Turn) {
    guard var again = second else { return }
    (again.leg, again.trunk, again.alternatives, again.phase, again.isSettled) = (leg, next, alternatives, .idle, false)
    again.negotiation = next.negotiation(local: again.reservation.trunkAddress, over: next.leastSecureFlow, random: turn.random)
    again.sipCallID = CallID(random: turn.random).description
    second = again
    if let last = diversionsMade.indices.last {
      (diversionsMade[last].trunk, diversionsMade[last].sipCallId) = (next.name, again.sipCallID)
    }
    inviteSecond(&turn)
  }

  /// RFC 5806: who diverts it now comes first, then those before. What an untrusted trunk said of them is counted, not repeated.
  private func diversionHeaders(_ own: String, _ next: SecondLeg, _ domain: String) -> [(name: String, value: String)] {
    let untold = max(0, diversionsBefore + diversionsMade.count - 1 - divertedFrom.count)
    var out = [
      (
        "Diversion",
        "<sip:\(percentEncodedUser(own))@\(domain)>;reason=\(next.wish.trigger.diversionReason);counter=\(1 + untold)"
      )
    ]
    for handle in divertedFrom {
      out.append(
        ("Diversion", "<sip:\(percentEncodedUser(next.trunk.numbers.calling(handle.h)))@\(domain)>;reason=unknown;counter=1"))
    }
    return out
  }

  /// 180 and early media of the second leg are the caller's.
  mutating func secondProgressed(_ code: Int, _ sdp: String?, _ turn: inout Turn) {
    guard state == .diverting, let next = second, next.phase == .invited, code > 100 else { return }
    if code == 180 { reachOnce(.divertedRinging, &turn) }
    var copy = next.negotiation
    if let sdp, let media = try? copy.apply(answer: sdp) {
      second?.earlyAnswer = sdp
      if media != next.media { setSecond(media, &turn) }
      if next.media == nil, let answer = trunkLeg.answer {
        turn.media(.bridge(next.session, to: session, connects: false))
        trunkLeg.sentRinging = true
        return turn.sip(.respondProvisional(trunkLeg.leg, code: 183, reason: nil, sdp: answer))
      }
    }
    guard code == 180 else { return }
    trunkLeg.wantsRinging = true
    ringTrunk(&turn)
  }

  mutating func secondAnswered(_ sdp: String?, _ turn: inout Turn) {
    guard let next = second, state == .diverting, trunkLeg.phase == .invited else { return }
    second?.phase = .confirmed
    reach(.divertedAnswered, &turn)
    timers[.ring] = nil
    do {
      if let sdp = sdp ?? next.earlyAnswer, let media = try second?.negotiation.apply(answer: sdp), media != next.media {
        setSecond(media, &turn)
      }
    } catch {
      return end(.codec, by: .trunk, detail: "diversion: \(error)", &turn)
    }
    guard second?.media != nil else { return end(.codec, by: .trunk, detail: "diversion: 200 without SDP", &turn) }
    sendAnswer(&turn)
  }

  /// Busy, declined and unanswered there are so here; anything else leaves what it was for.
  mutating func secondRefused(_ code: Int, _ turn: inout Turn) {
    guard let next = second, state == .diverting else { return }
    second?.phase = .over
    reach(.divertedFailed, detail: String(code), &turn)
    let reason = EndReason(sipStatus: code)
    var ending = next.wish.ending
    if [.busy, .declined, .unanswered].contains(reason) { ending = Ending(reason, by: .trunk) }
    ending.detail = "diversion refused with \(code)"
    end(ending, &turn)
  }

  /// Nobody answers the second leg, or a recording does not end.
  mutating func secondTimedOut(_ turn: inout Turn) {
    guard let wish = second?.wish ?? recording?.wish else { return }
    end(second == nil ? wish.ending : Ending(.unanswered, by: .trunk, detail: "diversion not answered"), &turn)
  }

  mutating func setSecond(_ media: TrunkMedia, _ turn: inout Turn) {
    guard let next = second else { return }
    second?.media = media
    turn.media(.setTrunk(next.session, next.trunk.parameters(of: media)))
  }

  /// CANCEL or BYE, and its media.
  mutating func endSecondLeg(_ reason: EndReason, _ turn: inout Turn) {
    guard let next = second else { return }
    switch next.phase {
    case .invited: turn.sip(.cancel(next.leg, Self.causeSent(reason)))
    case .answered, .confirmed: turn.sip(.bye(next.leg, Self.causeSent(reason) ?? .q850(16)))
    case .idle, .over: break
    }
    if next.phase != .idle { second?.phase = .over }
    turn.media(.close(next.session))
  }

  // MARK: the second leg while connected

  mutating func secondBye(_ reason: ReasonValue?, _ turn: inout Turn) {
    reach(.bye, detail: "received from the diversion", &turn)
    second?.phase = .over
    end(.remoteHangup, by: .trunk, detail: reason?.description, &turn)
  }

  mutating func secondLost(_ detail: String, saidBye: Bool, _ turn: inout Turn) {
    if saidBye { second?.phase = .over }
    end(.trunkLost, by: .trunk, detail: "diversion: " + detail, &turn)
  }

  mutating func secondReinvited(_ sdp: String?, _ turn: inout Turn) {
    guard state == .connected, let next = second, next.phase == .confirmed else {
      if let second { turn.sip(.refuseReinvite(second.leg, code: 491)) }
      return
    }
    // an offer of ours would need an answer in the ACK, which a carrier in the middle of a call hardly asks for
    guard let sdp else { return turn.sip(.refuseReinvite(next.leg, code: 488)) }
    do {
      guard let (answer, media) = try second?.negotiation.answer(to: sdp) else { return }
      if media != next.media { setSecond(media, &turn) }
      turn.sip(.answerReinvite(next.leg, sdp: answer))
    } catch {
      turn.sip(.refuseReinvite(next.leg, code: error.sipStatus))
    }
  }

  /// Its session is refreshed with the same description.
  mutating func secondOfferWanted(_ turn: inout Turn) {
    guard state == .connected, let next = second, let offer = second?.negotiation.makeOffer() else { return }
    turn.sip(.offer(next.leg, sdp: offer))
  }

  mutating func secondOfferAnswered(_ sdp: String?, _ turn: inout Turn) {
    guard state == .connected, let sdp, let media = try? second?.negotiation.apply(answer: sdp), media != second?.media else {
      return
    }
    setSecond(media, &turn)
  }

  mutating func secondSilent(_ turn: inout Turn) {
    guard state == .connected, let next = second, next.phase == .confirmed, !next.isPinging else { return }
    second?.isPinging = true
    turn.sip(.ping(next.leg))
  }

  mutating func secondPingAnswered(alive: Bool, _ turn: inout Turn) {
    second?.isPinging = false
    if !alive { secondLost("OPTIONS not answered", saidBye: false, &turn) }
  }

  /// A digit of one trunk for the other; what comes as tones is in the audio already.
  mutating func passOn(
    _ digit: Character, _ milliseconds: Int, heardIn heard: MediaSessionID, byInfo: Bool = false, _ turn: inout Turn
  ) {
    guard state == .connected, let next = second else { return }
    let isCaller = heard == session
    let (source, media) = isCaller ? (trunk, trunkLeg.media) : (next.trunk, next.media)
    guard byInfo || (source.digits != .inband && media?.telephoneEventPayloadType != nil) else { return }
    if isCaller ? next.trunk.sendsDigitsByInfo : trunk.sendsDigitsByInfo {
      return turn.sip(.sendDigit(isCaller ? next.leg : trunkLeg.leg, digit, milliseconds: milliseconds))
    }
    let length = min(max(milliseconds, 40), 6_000)
    turn.media(
      .sendDigits(
        isCaller ? next.session : session, DigitRequest(digits: String(digit), durationMilliseconds: length, gapMilliseconds: 80))
    )
  }

  // MARK: a recording

  mutating func divert(to file: Diversions.Recording, _ wish: DiversionWish, _ turn: inout Turn) {
    var diversion = CallRecord.Diversion(wish.trigger)
    diversion.recording = file.name
    takeLock(for: wish, diversion, &turn)
    recording = (wish, file)
    if isJournalled { startRecording(&turn) }
  }

  mutating func startRecording(_ turn: inout Turn) {
    guard state == .diverting, let (wish, file) = recording else { return }
    // a media thread that never tells of the end does not hold the caller
    timers[.ring] = turn.now + .milliseconds(file.audio.samples.count / 8) + Self.recordingPatience
    guard file.isEarly else { return sendAnswer(&turn) }
    // without an offer there is nothing that a 183 could answer
    guard let answer = trunkLeg.answer else { return end(wish.ending, &turn) }
    trunkLeg.sentRinging = true
    turn.sip(.respondProvisional(trunkLeg.leg, code: 183, reason: nil, sdp: answer))
    joinDiverted(&turn)
  }

  private static let recordingPatience = Duration.seconds(5)

  /// The recording is over, and with it the call.
  mutating func played(_ turn: inout Turn) {
    guard isLive, let (wish, _) = recording else { return }
    var ending = wish.ending
    ending.q850 = wish.trigger.cause
    end(ending, &turn)
  }

  /// Both ends have media: audio flows.
  mutating func joinDiverted(_ turn: inout Turn) {
    if let second {
      turn.media(.bridge(session, to: second.session, connects: true))
      turn.media(.bridge(second.session, to: session, connects: true))
    } else if let recording {
      turn.media(.play(session, recording.1.audio))
    }
  }
}

extension CallRecord {
  /// The second leg of a diverted call stands where the app's would.
  mutating func join(_ second: SecondLeg, _ first: MediaStatistics?) {
    codecs.app = second.media.map { AudioEncoding($0.codec).name }
    guard let other = second.statistics else { return }
    var heard = other.fromTrunk
    heard.sentPackets = first?.fromApp.sentPackets ?? 0
    fromApp = Stream(heard)
    fromTrunk?.sent = other.fromApp.sentPackets
  }
}
