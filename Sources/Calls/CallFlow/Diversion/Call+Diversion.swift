import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Diversion of a call that no device answered: the lock, the second leg, the recording.
extension Call {
  /// Another user, a number or a recording has the call instead of this user's devices.
  func isDiverted(for user: String) -> Bool { users.former.contains(user) || isDivertedToNumber || diversions.recording != nil }

  /// The end reason for a device that connects late; nil if no leg and no recording has the call.
  var divertedReason: EndReason? { isDivertedToNumber ? .diverted : diversions.recording?.planned.reasonForDevices }

  /// Claims the lock for a diversion: each device without a terminal message gets one; for a winner without media it states the
  /// failure.
  mutating func acquireLock(
    for planned: PlannedDiversion, _ diversion: CallRecord.Diversion, playing recording: Diversions.Recording? = nil,
    _ step: inout Step
  ) {
    ringClock.close()
    gate.close()
    notifyDevices(planned.ending.reason, others: planned.reasonForDevices, by: .gateway, &step)
    removeDevices(&step)
    diversions.begin(diversion, playing: recording.map { (planned, $0) })
    enter(.diverting, &step)
    mark(.diverting, detail: planned.trigger.rawValue, &step)
  }

  // MARK: another user

  /// The next user's devices ring under the same lock, and that user's rules apply.
  mutating func divert(to next: String, _ rules: Diversions, _ planned: PlannedDiversion, _ step: inout Step) {
    var diversion = CallRecord.Diversion(planned.trigger)
    diversion.user = next
    acquireLock(for: planned, diversion, &step)
    parties.divert()
    diversions.adopt(rules)
    users.ring(for: [next])
    enter(.parked, &step)
  }

  // MARK: a number

  /// Adds the leg to the number; its INVITE waits until the journal entry is on disk.
  mutating func divert(by leg: TrunkLeg, to target: DiversionTarget, _ step: inout Step) {
    var diversion = CallRecord.Diversion(target.planned.trigger)
    diversion.number = target.number.text
    diversion.trunk = leg.trunk.name
    diversion.sipCallId = leg.sipCallID
    acquireLock(for: target.planned, diversion, &step)
    legs.add(leg)
    ringClock.ring(until: step.now + step.configuration.timers.ring)
    if journal.isOnDisk { inviteDiversion(&step) }
  }

  mutating func inviteDiversion(_ step: inout Step) {
    guard state == .diverting, let second, legs[second].phase == .idle, let target = legs[second].diversion,
      let peer = legs[second].trunk.peer
    else { return }
    let trunk = legs[second].trunk
    let own = trunk.numbers.calling(target.ownNumber)
    let isPrivate = parties.from.h == Handle.anonymous.h
    let caller = target.showsCaller && !isPrivate ? trunk.numbers.calling(parties.callerNumber) : own
    mark(.inviteSent, detail: trunk.name, &step)
    legs[second].invite(
      OutboundInvite(
        trunk: peer, to: trunk.numbers.called(target.number.text), from: caller,
        displayName: target.showsCaller ? parties.from.n : nil,
        isPrivate: target.showsCaller && isPrivate, assertedIdentity: own, sdp: nil, maxForwards: transfers.maxForwards - 1,
        extraHeaders: diversionHeaders(from: own, because: target.planned.trigger, over: trunk, domain: peer.domain)), &step)
  }

  /// RFC 5806: the latest diversion comes first, then the earlier ones. Those stated by an untrusted trunk are counted, not
  /// repeated.
  private func diversionHeaders(from own: String, because trigger: DiversionTrigger, over trunk: Routing.Trunk, domain: String)
    -> [(name: String, value: String)]
  {
    let unlisted = diversions.unlisted(beside: parties.divertedFrom.count)
    var out = [
      ("Diversion", "<sip:\(percentEncodedUser(own))@\(domain)>;reason=\(trigger.diversionReason);counter=\(1 + unlisted)")
    ]
    for handle in parties.divertedFrom {
      out.append(
        ("Diversion", "<sip:\(percentEncodedUser(trunk.numbers.calling(handle.h)))@\(domain)>;reason=unknown;counter=1"))
    }
    return out
  }

  /// Passes 180 and early media of the second leg to the caller.
  mutating func diversionProgressed(_ code: Int, _ sdp: String?, _ step: inout Step) {
    guard state == .diverting, let second, code > 100 else { return }
    if code == 180 { markOnce(.divertedRinging, &step) }
    if legs[second].progressed(code, sdp, &step), let inner = legs[second].session, trunkLeg.answer != nil {
      step.media(.bridge(inner, to: session, connects: false))
      _ = trunkLeg.sendEarlyMedia(&step)
      return
    }
    guard code == 180 else { return }
    trunkLeg.requestRinging()
    ringTrunk(&step)
  }

  mutating func diversionAnswered(_ problem: String?, _ step: inout Step) {
    guard state == .diverting, trunkLeg.phase == .invited else { return }
    mark(.divertedAnswered, &step)
    ringClock.close()
    if let problem { return end(.codec, by: .trunk, detail: "diversion: " + problem, &step) }
    sendAnswer(&step)
  }

  /// Busy, declined and unanswered at the second leg become the call's end reason; any other refusal keeps the reason of the
  /// diversion.
  mutating func diversionRefused(_ code: Int, _ step: inout Step) {
    guard state == .diverting, let planned = second.flatMap({ legs[$0].diversion?.planned }) else { return }
    mark(.divertedFailed, detail: String(code), &step)
    let reason = EndReason(sipStatus: code)
    var ending = planned.ending
    if [.busy, .declined, .unanswered].contains(reason) { ending = Ending(reason, by: .trunk) }
    ending.detail = "diversion refused with \(code)"
    end(ending, &step)
  }

  /// The second leg was not answered, or a recording did not end.
  mutating func diversionTimedOut(_ step: inout Step) {
    if isDivertedToNumber {
      end(Ending(.unanswered, by: .trunk, detail: "diversion not answered"), &step)
    } else if let recording = diversions.recording {
      end(recording.planned.ending, &step)
    }
  }

  // MARK: a recording

  mutating func divert(to file: Diversions.Recording, _ planned: PlannedDiversion, _ step: inout Step) {
    var diversion = CallRecord.Diversion(planned.trigger)
    diversion.recording = file.name
    acquireLock(for: planned, diversion, playing: file, &step)
    if journal.isOnDisk { startRecording(&step) }
  }

  mutating func startRecording(_ step: inout Step) {
    guard state == .diverting, let (planned, file) = diversions.recording else { return }
    // the call ends even if the media thread never reports the end of the file
    ringClock.ring(until: step.now + .milliseconds(file.audio.milliseconds) + Self.recordingTimeout)
    guard file.isEarly else { return sendAnswer(&step) }
    guard trunkLeg.sendEarlyMedia(&step) else { return end(planned.ending, &step) }
    joinDiverted(&step)
  }

  private static let recordingTimeout = Duration.seconds(5)

  /// A file was played to its end. If it was a diversion's recording, the call ends.
  mutating func played(_ step: inout Step) {
    audio.fileEnded()
    ringBack(&step)
    guard isLive, let (planned, _) = diversions.recording else { return }
    var ending = planned.ending
    ending.q850 = planned.trigger.cause
    end(ending, &step)
  }

  /// Both ends have media: connects their audio.
  mutating func joinDiverted(_ step: inout Step) {
    if isDivertedToNumber, let inner = legs[1].session {
      step.media(.bridge(session, to: inner, connects: true))
      step.media(.bridge(inner, to: session, connects: true))
    } else if let recording = diversions.recording {
      step.media(.play(session, recording.file.audio))
    }
  }
}

extension CallRecord {
  /// Fills the record's fields of the app leg with those of the second leg.
  mutating func join(_ second: TrunkLeg, _ first: MediaStatistics?) {
    codecs.app = second.media.map { $0.codec.name }
    guard let other = second.statistics else { return }
    var received = other.fromTrunk
    received.sentPackets = first?.fromApp.sentPackets ?? 0
    fromApp = Stream(received)
    fromTrunk?.sent = other.fromApp.sentPackets
  }
}
