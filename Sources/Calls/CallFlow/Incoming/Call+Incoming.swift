import AppSessions
import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP
import TrunklineSIPDialogs

/// An incoming call until it is answered: ringing, preparing, answering, refusing.
extension Call {
  /// Media is reserved: answers the trunk's description and offers the call to the devices. Ends the call if the trunk's offer
  /// cannot be used.
  mutating func offer(
    to present: [DevicePresence], waking destinations: [PushDestination], _ remoteDevices: [RemoteDevice],
    _ reservation: MediaReservation, _ intake: Intake, _ step: inout Step
  ) {
    guard accept(reservation, intake, &step) else { return }
    ring(present, waking: destinations, remoteDevices, holdsOffers: startVerification(intake.invite, &step), &step)
  }

  /// Answers the trunk's offer with the reserved media. False: the offer cannot be used, and the call has ended.
  mutating func accept(_ reservation: MediaReservation, _ intake: Intake, _ step: inout Step) -> Bool {
    reserve(reservation)
    do {
      try trunkLeg.accept(intake.offer, over: intake.invite.source, at: reservation.trunkAddress, &step)
    } catch {
      end(.codec, by: .trunk, detail: String(describing: error), &step)
      return false
    }
    startJournal(&step)
    return true
  }

  /// Writes the journal entry to disk, once.
  mutating func startJournal(_ step: inout Step) {
    guard journal.request(until: step.now + step.configuration.timers.journal) else { return }
    step.output.actions.append(.journal(journalEntry(step)))
  }

  /// Rings the devices of the call's present users; with `holdsOffers` they are offered the call after the verifier's answer.
  mutating func ring(
    _ present: [DevicePresence], waking destinations: [PushDestination], _ remoteDevices: [RemoteDevice] = [],
    holdsOffers: Bool = false, _ step: inout Step
  ) {
    let window = diversions.rules.rules[.noAnswer]?.after ?? step.configuration.timers.ring
    let unreached = diversions.rules.rules[.unreached].map { step.now + ($0.after ?? Diversions.unreachedAfter) }
    ringClock.ring(until: step.now + window, unreached: unreached)
    if !holdsOffers { for device in present.prefix(Limits.devicesPerCall) { offer(to: device, &step) } }
    if isUndecided { pushes.open() }
    wake(destinations, remoteDevices, present: present, &step)
    ringReport.offered(pushes.shown.count { index(of: $0) == nil })
  }

  /// `call.offer` to a device that is connected, or may be again.
  mutating func offer(to device: DevicePresence, _ step: inout Step) {
    guard isUndecided, !ringClock.isVerifying, terminals[device.key] == nil, index(of: device.key) == nil,
      let index = addDevice(device, &step)
    else { return }
    if times[.offered] == nil, let start = times[.numberAnswered] ?? times[.start] {
      step.measure(.inviteToOffer(step.now - start))
    }
    markOnce(.offered, &step)
    _ = devices[index].sends(capabilities)
    step.send(.callOffer(callOffer(devices[index], step)), to: device.key, call: id)
    step.app(.callLive(device.key, id))
    if let until = device.awaitedUntil(step.now) {
      devices[index].isAwaited(until: until)
      ringClock.awaitReconnect(until: until)
    }
    pushes.offered(device.key, step)
  }

  /// 200 was sent or received. The journal entry is written again, so that it states when the call was connected if the process is
  /// killed.
  mutating func becomeConnected(_ step: inout Step) {
    enter(.connected, &step)
    mark(.connected, &step)
    step.output.actions.append(.journal(journalEntry(step)))
    step.outcomes.append(.connected)
  }

  func journalEntry(_ step: Step) -> JournalEntry {
    JournalEntry(
      call: id, sipCallId: sipCallID, direction: direction, trunk: trunk.name, from: parties.callerNumber,
      to: parties.calledNumber,
      user: users.owner.isEmpty ? nil : users.owner, start: step.wall(times[.start] ?? step.now),
      connect: answeredAt.map { step.wall($0) })
  }

  /// A leg with its own ufrag, password and SSRC; nil if the call rings on as many devices as it may.
  mutating func addDevice(_ device: DevicePresence, _ step: inout Step) -> Int? {
    guard let reservation, let endpoint = endpoint(reservation, step) else { return nil }
    let negotiation = AppNegotiation(.gateway, endpoint: endpoint, sessionID: step.random.next())
    guard let index = devices.add(device, negotiation, offers: ringsDevices) else { return nil }
    if !pushes.mayShow(device.key) { ringReport.offered(1) }
    step.media(.addAppLeg(session, devices[index].id, devices[index].local))
    return index
  }

  private func endpoint(_ reservation: MediaReservation, _ step: Step) -> SecureEndpoint? {
    guard let fingerprint = FingerprintAttribute(.sha256, reservation.fingerprint) else { return nil }
    var codecs = AudioEncoding.ofApps
    if trunk.prefersRelay {
      // the trunk's codec first: nothing is transcoded
      let relayed = (trunkLeg.media.map { [$0.codec] } ?? trunk.codecs).filter { $0.row.apps != .never }
      codecs = relayed + codecs.filter { !relayed.contains($0) }
    }
    return SecureEndpoint(
      ufrag: step.random.text(DeviceLeg.ufragLength), password: step.random.text(DeviceLeg.passwordLength),
      fingerprint: fingerprint,
      candidates: reservation.appCandidates, ssrc: UInt32(truncatingIfNeeded: step.random.next()) | 1, codecs: codecs,
      opus: opusLimits(step))
  }

  /// The Opus limits for an app: what the trunk's codec can carry. Before the trunk has answered, the widest codec that it or the
  /// next trunk of the route may choose: the encoders follow the path, so a limit that is too wide only costs bits.
  func opusLimits(_ step: Step) -> OpusLimits {
    if let media = trunkLeg.media, media.codec == .opus {
      // relayed untouched: the trunk's own limits count
      return OpusLimits(maxPlaybackRateHz: media.opus.maxPlaybackRateHz, maxAverageBitrate: media.opus.maxAverageBitrate)
    }
    let codecs = trunkLeg.media.map { [$0.codec] } ?? ([trunk] + trunkLeg.alternatives).flatMap(\.codecs)
    let band = codecs.map(\.band).max() ?? .narrowband
    let configuration = step.configuration
    return OpusLimits(band, maxAverageBitrate: band == .wideband ? configuration.opusBitrateWide : configuration.opusBitrate)
  }

  func callOffer(_ leg: DeviceLeg, _ step: Step) -> CallOffer {
    CallOffer(
      from: parties.from, to: parties.to, acct: users.account(of: leg.key.user), sdp: leg.sdp, gen: leg.gen,
      exp: step.wall(ringClock.until ?? step.now), pstn: pstn, caps: capabilities,
      parameters: parties.parameters)
  }

  /// Of an incoming call.
  var pstn: CallOffer.PSTN {
    .init(
      trunk: trunk.name, privacy: parties.isPrivate || parties.from.h == Handle.anonymous.h, attest: parties.attestation,
      diverted: parties.divertedFrom.isEmpty ? nil : parties.divertedFrom,
      // the tokens contain the number
      identity: parties.isPrivate || parties.identities.isEmpty ? nil : parties.identities.map(\.text))
  }

  /// Capabilities of the trunk leg that has the call. While the trunk transfers the call, an app cannot.
  var capabilities: CallCapabilities {
    if isTest { return CallCapabilities() }
    return CallCapabilities(
      hold: true, group: true, dtmf: true, transfer: trunk.rules.allowsTransfer && !isBeingTransferred ? true : nil)
  }

  // MARK: ringing

  mutating func deviceRinging(_ key: DeviceKey, _ ringing: CallRinging, _ step: inout Step) {
    guard isUndecided, let index = index(of: key), terminals[key] == nil else { return }
    note(ringing, of: index, &step)
    devices[index].rings()
    pushes.settled(key)
    markOnce(.deviceRinging, &step)
    ringClock.deviceRang()
    enter(.ringing, &step)
    trunkLeg.requestRinging()
    ringTrunk(&step)
  }

  /// Records what the app measured; a repeat after a reconnect does not count again.
  private mutating func note(_ ringing: CallRinging, of index: Int, _ step: inout Step) {
    guard devices[index].measured(ringing) else { return }
    ringReport.rang(.init(devices[index].key, ringing))
    let steps: [(AppStep, Int?)] = [(.push, ringing.pushMs), (.report, ringing.reportMs), (.open, ringing.openMs)]
    for case (let phase, let milliseconds?) in steps { step.measure(.app(phase, .milliseconds(milliseconds))) }
  }

  /// Sends 180 once, and not before the journal entry is on disk.
  mutating func ringTrunk(_ step: inout Step) {
    guard trunkLeg.wantsRinging, !trunkLeg.sentRinging, journal.isOnDisk, trunkLeg.phase == .invited,
      isUndecided || isDivertedToNumber
    else { return }
    mark(.ringing, &step)
    if let start = times[.start] { step.measure(.inviteToRinging(step.now - start)) }
    trunkLeg.sendRinging(&step)
  }

  /// The journal has the call, or its deadline passed.
  mutating func journalled(_ step: inout Step) {
    guard isLive, journal.confirmed() else { return }
    if callsNumberFirst { return inviteNumber(&step) }
    guard direction == .incoming else { return tryGate(&step) }
    if isDivertedToNumber {
      inviteDiversion(&step)
    } else if diversions.recording != nil {
      startRecording(&step)
    } else if stream.audio != nil {
      answerForStream(&step)
    } else {
      ringTrunk(&step)
    }
  }

  mutating func deviceUnavailable(_ key: DeviceKey, _ why: CallUnavailable.Why?, _ step: inout Step) {
    guard isUndecided, terminals[key] == nil, index(of: key) != nil else { return }
    ringReport.unavailable(isBlocked: why == .blocked)
    leave(key, why == .blocked ? .blocked : .dnd, &step)
    endIfNoDeviceRings(&step)
  }

  /// No device, woken or not, has reported that it rings.
  mutating func unreached(_ step: inout Step) {
    guard state == .parked, isUndecided else { return }
    endUnlessDiverted(.unreached, .init(.unanswered, by: .gateway, q850: 20, detail: "no device rang"), &step)
  }

  mutating func ringTimedOut(_ step: inout Step) {
    switch direction {
    case _ where isUndecided: endUnlessDiverted(.noAnswer, .init(.unanswered, by: .gateway), &step)
    case .incoming where isDivertedToNumber || diversions.recording != nil: diversionTimedOut(&step)
    case .outgoing where state == .ready || state == .progress: end(.unanswered, by: .trunk, &step)
    default: break
    }
  }

  // MARK: requests

  mutating func prepare(_ prepare: CallPrepare, from key: DeviceKey, on session: SessionID, _ step: inout Step) -> RequestAnswer {
    guard ringsDevices, isUndecided, let index = index(of: key) else { return .err(Failure(.badState)) }
    if let refusal = describe(index, prepare.sdp, gen: prepare.gen, on: session, &step) { return .err(refusal) }
    markOnce(.prepared, &step)
    return .ok
  }

  /// Applies a device's answer to our offer. A second one of the same generation is accepted only from a new session, and
  /// restarts ICE and DTLS. A device whose description cannot be used leaves the call, and its index is invalid afterwards.
  private mutating func describe(_ index: Int, _ sdp: String, gen: Int, on session: SessionID, _ step: inout Step) -> Failure? {
    guard gen == devices[index].gen else { return Failure(.staleGen) }
    guard devices[index].describedOn != session else { return Failure(.badState, msg: "already prepared") }
    do {
      let remote = try devices[index].apply(answer: sdp, on: session)
      step.media(.setAppRemote(self.session, devices[index].id, remote, newLocal: nil, newAssociation: true))
      return nil
    } catch {
      // no better description can be expected: the refusal is the device's terminal message, and the last one to leave ends the
      // call
      ringReport.describedUnusably()
      leave(devices[index].key, .codec, &step)
      endIfNoDeviceRings(&step)
      return Failure(.codec, msg: String(describing: error))
    }
  }

  /// `call.answer` claims the lock. The first device whose description can be used gets the call.
  mutating func answer(_ answer: CallAnswer, from key: DeviceKey, on session: SessionID, _ step: inout Step) -> RequestAnswer {
    if winner == key { return .ok(Success(won: true)) }
    guard isUndecided, ringsDevices, let index = index(of: key) else {
      return .err(Failure(winner == nil ? .badState : .answeredElsewhere, reason: winner == nil ? nil : .answeredElsewhere))
    }
    if let gen = answer.gen, gen != devices[index].gen { return .err(Failure(.staleGen)) }
    // a description that an earlier process of the device prepared is invalid
    if let sdp = answer.sdp, devices[index].describedOn != session {
      if let refusal = describe(index, sdp, gen: devices[index].gen, on: session, &step) { return .err(refusal) }
    } else if !devices[index].isDescribed {
      return .err(Failure(.badRequest, msg: "nothing prepared: sdp is missing"))
    }
    lock(index, answer, isWarm: devices[index].ackedOn == session, &step)
    return .ok(Success(won: true))
  }

  private mutating func lock(_ index: Int, _ answer: CallAnswer, isWarm: Bool, _ step: inout Step) {
    let (key, leg) = (devices[index].key, devices[index].id)
    let others = devices.lock(index)
    enter(.answering, &step)
    markOnce(.deviceRinging, &step)
    mark(.tap, at: gate.tapped(answer, isWarm: isWarm, step), &step)
    mark(.answered, detail: isWarm ? "warm" : "cold", &step)
    ringClock.close()
    users.answered(by: key.user)
    step.media(.lockWinner(session, leg))
    for other in others {
      terminate(other, .answeredElsewhere, by: .app, isWinner: false, &step)
      step.media(.removeAppLeg(session, other.id))
    }
    closePushes(CallOver(.answeredElsewhere, by: .app, at: step.wallNow), &step)
  }

  /// After `ok{won}` is on its way: the gate may be open already.
  mutating func answerAccepted(_ step: inout Step) {
    guard let index = winnerIndex, state == .answering else { return }
    failIfFatal(index, &step)
    tryGate(&step)
  }

  mutating func reject(_ reject: CallReject, from key: DeviceKey, _ step: inout Step) -> RequestAnswer {
    guard ringsDevices, isUndecided, terminals[key] == nil else { return .err(Failure(.badState)) }
    let isBusy = reject.reason == .busy
    ringReport.rejected(reject.reason)
    leave(key, EndReason(rawValue: reject.reason.rawValue) ?? .declined, &step)
    switch reject.scope {
    // other devices may have what one device lacks
    case .all where reject.reason != .mediaFailed:
      endUnlessDiverted(
        isBusy ? .busy : .declined,
        .init(isBusy ? .busy : .declined, by: .app, others: isBusy ? .busyElsewhere : .declinedElsewhere), &step)
    case .all, .device: endIfNoDeviceRings(&step)
    }
    return .ok
  }
}

extension CallRecord.Ring {
  init(_ key: DeviceKey, _ ringing: CallRinging) {
    self.init(device: key.device, pushMs: ringing.pushMs, reportMs: ringing.reportMs, openMs: ringing.openMs)
  }
}
