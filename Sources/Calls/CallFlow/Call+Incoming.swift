import AppProtocol
import AppSessions
import Bytes
import Devices
import MediaSession
import RTP
import SDP
import SIPDialogs

/// An incoming call until somebody has it: ringing, preparing, answering, refusing.
extension Call {
  /// Media is reserved: the trunk's description is answered, the devices are offered the call. It ends if the trunk's offer does not fit
  /// after all.
  mutating func offer(
    to present: [DevicePresence], waking destinations: [PushDestination], _ remoteDevices: [RemoteDevice],
    _ reservation: MediaReservation, _ intake: Intake, _ turn: inout Turn
  ) {
    guard take(reservation, intake, &turn) else { return }
    ring(present, waking: destinations, remoteDevices, holdsOffers: startVerification(intake.invite, &turn), &turn)
  }

  /// Media is reserved for what the trunk offers. False: it offers nothing that we have, and the call is over.
  mutating func take(_ reservation: MediaReservation, _ intake: Intake, _ turn: inout Turn) -> Bool {
    appMedia.reservation = reservation
    do {
      try trunkLeg.take(intake.offer, over: intake.invite.source, at: reservation.trunkAddress, &turn)
    } catch {
      end(.codec, by: .trunk, detail: String(describing: error), &turn)
      return false
    }
    startJournal(&turn)
    return true
  }

  /// Once: the start line goes to disk.
  mutating func startJournal(_ turn: inout Turn) {
    guard timers[.journal] == nil, !bookkeeping.isJournalled else { return }
    turn.output.actions.append(.journal(startLine(turn)))
    timers[.journal] = turn.now + turn.configuration.timers.journal
  }

  /// The devices of those whom it is for now; with `holdsOffers` a verifier is heard first.
  mutating func ring(
    _ present: [DevicePresence], waking destinations: [PushDestination], _ remoteDevices: [RemoteDevice] = [],
    holdsOffers: Bool = false, _ turn: inout Turn
  ) {
    let window = diversions.rules.rules[.noAnswer]?.after ?? turn.configuration.timers.ring
    timers[.ring] = turn.now + window
    if let rule = diversions.rules.rules[.unreached] { timers[.unreached] = turn.now + (rule.after ?? Diversions.unreachedAfter) }
    if !holdsOffers { for device in present.prefix(Limits.devicesPerCall) { offer(to: device, &turn) } }
    for destination in destinations.prefix(Limits.devicesPerCall) {
      let remote = remoteDevices.first { $0.key == destination.key }
      watch(destination, present.first { $0.key == destination.key }, remote, &turn)
    }
    for remote in remoteDevices.prefix(Limits.devicesPerCall) { watch(remote, &turn) }
    bookkeeping.offeredDevices += pushes.count { push in push.mayShow && !devices.contains { $0.key == push.key } }
  }

  /// `call.offer` to a device that is connected, or may be again.
  mutating func offer(to device: DevicePresence, _ turn: inout Turn) {
    guard isUndecided, !parties.isVerifying, terminals[device.key] == nil, index(of: device.key) == nil,
      let index = addDevice(device, &turn)
    else { return }
    if times[.offered] == nil, let start = times[.numberAnswered] ?? times[.start] {
      turn.measure(.inviteToOffer(turn.now - start))
    }
    markOnce(.offered, &turn)
    devices[index].toldCapabilities = capabilities
    turn.send(.callOffer(callOffer(devices[index], turn)), to: device.key, call: id)
    turn.app(.callLive(device.key, id))
    if let until = device.awaitedUntil(turn.now) {
      devices[index].awaitedUntil = until
      timers[.vanished] = max(timers[.vanished] ?? .zero, until)
    }
    pushOffered(device.key, turn)
  }

  /// 200, either way. The start line goes to disk again: what a killed process leaves says when the call was connected.
  mutating func becomeConnected(_ turn: inout Turn) {
    enter(.connected, &turn)
    mark(.connected, &turn)
    turn.output.actions.append(.journal(startLine(turn)))
    turn.outcomes.append(.connected)
  }

  /// It is on disk, or on its way.
  var hasStartLine: Bool { bookkeeping.isJournalled || timers[.journal] != nil }

  func startLine(_ turn: Turn) -> StartLine {
    StartLine(
      call: id, sipCallId: sipCallID, direction: direction, trunk: trunk.name, from: parties.callerNumber,
      to: parties.calledNumber,
      user: users.owner.isEmpty ? nil : users.owner, start: turn.wall(times[.start] ?? turn.now),
      connect: answeredAt.map { turn.wall($0) })
  }

  /// A leg with its own ufrag, password and SSRC; nil if the call rings on as many devices as it may.
  mutating func addDevice(_ device: DevicePresence, _ turn: inout Turn) -> Int? {
    guard let reservation = appMedia.reservation, devices.count < Limits.devicesPerCall,
      let endpoint = endpoint(reservation, turn)
    else { return nil }
    var leg = DeviceLeg(
      key: device.key, id: AppLegID(raw: appMedia.nextLeg), session: device.session, isConnected: device.isConnected,
      announcesActive: device.announcesActive,
      negotiation: AppNegotiation(.gateway, endpoint: endpoint, sessionID: turn.random.next()))
    appMedia.nextLeg += 1
    if !pushes.contains(where: { $0.key == device.key && $0.mayShow }) { bookkeeping.offeredDevices += 1 }
    if ringsDevices { leg.sdp = leg.negotiation.makeOffer() }
    turn.media(.addAppLeg(session, leg.id, leg.local))
    devices.append(leg)
    return devices.count - 1
  }

  private func endpoint(_ reservation: MediaReservation, _ turn: Turn) -> SecureEndpoint? {
    guard let fingerprint = FingerprintAttribute(.sha256, reservation.fingerprint) else { return nil }
    var codecs = AudioEncoding.ofApps
    if trunk.prefersRelay {
      // the trunk's codec first: nothing is transcoded
      let relayed = (trunkLeg.media.map { [$0.codec] } ?? trunk.codecs).filter { $0.row.apps != .never }
      codecs = relayed + codecs.filter { !relayed.contains($0) }
    }
    return SecureEndpoint(
      ufrag: turn.random.text(DeviceLeg.ufragLength), password: turn.random.text(DeviceLeg.passwordLength),
      fingerprint: fingerprint,
      candidates: reservation.appCandidates, ssrc: UInt32(truncatingIfNeeded: turn.random.next()) | 1, codecs: codecs,
      opus: opusLimits(turn))
  }

  /// What an app is told of Opus: what the trunk's codec can carry. Before the trunk has answered, the widest that it may choose,
  /// or the next trunk of the route: the encoders follow the path by themselves, so that too wide costs only bits.
  func opusLimits(_ turn: Turn) -> OpusLimits {
    if let media = trunkLeg.media, media.codec == .opus {
      // relayed untouched: the trunk's own limits are what counts
      return OpusLimits(maxPlaybackRateHz: media.opus.maxPlaybackRateHz, maxAverageBitrate: media.opus.maxAverageBitrate)
    }
    let codecs = trunkLeg.media.map { [$0.codec] } ?? ([trunk] + trunkLeg.alternatives).flatMap(\.codecs)
    let band = codecs.map(\.band).max() ?? .narrowband
    let configuration = turn.configuration
    return OpusLimits(band, maxAverageBitrate: band == .wideband ? configuration.opusBitrateWide : configuration.opusBitrate)
  }

  func callOffer(_ leg: DeviceLeg, _ turn: Turn) -> CallOffer {
    CallOffer(
      from: parties.from, to: parties.to, acct: users.account(of: leg.key.user), sdp: leg.sdp, gen: leg.gen,
      exp: turn.wall(timers[.ring] ?? turn.now), pstn: pstn, media: .init(), caps: capabilities,
      parameters: parties.parameters)
  }

  /// Of an incoming call.
  var pstn: CallOffer.PSTN {
    .init(
      trunk: trunk.name, privacy: parties.isPrivate || parties.from.h == Self.anonymous.h, attest: parties.attestation,
      diverted: parties.divertedFrom.isEmpty ? nil : parties.divertedFrom,
      // the tokens hold the number
      identity: parties.isPrivate || parties.identities.isEmpty ? nil : parties.identities.map(\.text))
  }

  /// Of the trunk leg that has the call; while the trunk has it transferred, an app cannot.
  var capabilities: CallCapabilities {
    if isTest { return CallCapabilities() }
    return CallCapabilities(
      hold: true, group: true, dtmf: true, transfer: trunk.rules.allowsTransfer && !isBeingTransferred ? true : nil)
  }

  /// What is shown of a caller who withholds the number.
  static let anonymous = Handle(k: .generic, h: "anonymous")

  // MARK: ringing

  mutating func deviceRinging(_ key: DeviceKey, _ ringing: CallRinging, _ turn: inout Turn) {
    guard isUndecided, let index = index(of: key), terminals[key] == nil else { return }
    note(ringing, of: index, &turn)
    if devices[index].phase == .offered { devices[index].phase = .ringing }
    pushNotNeeded(key)
    markOnce(.deviceRinging, &turn)
    timers[.unreached] = nil
    enter(.ringing, &turn)
    trunkLeg.wantsRinging = true
    ringTrunk(&turn)
  }

  /// What the app measured; a repeat after a reconnect counts no second time.
  private mutating func note(_ ringing: CallRinging, of index: Int, _ turn: inout Turn) {
    guard devices[index].rang == nil, ringing != CallRinging() else { return }
    devices[index].rang = ringing
    if bookkeeping.firstRing == nil { bookkeeping.firstRing = .init(devices[index].key, ringing) }
    let steps: [(AppStep, Int?)] = [(.push, ringing.pushMs), (.report, ringing.reportMs), (.open, ringing.openMs)]
    for case (let step, let milliseconds?) in steps { turn.measure(.app(step, .milliseconds(milliseconds))) }
  }

  /// 180 once, and not before the start line is on disk.
  mutating func ringTrunk(_ turn: inout Turn) {
    guard trunkLeg.wantsRinging, !trunkLeg.sentRinging, bookkeeping.isJournalled, trunkLeg.phase == .invited,
      isUndecided || isDivertedToNumber
    else { return }
    mark(.ringing, &turn)
    if let start = times[.start] { turn.measure(.inviteToRinging(turn.now - start)) }
    trunkLeg.sendRinging(&turn)
  }

  /// The journal has the call, or took too long.
  mutating func journalled(_ turn: inout Turn) {
    timers[.journal] = nil
    guard isLive, !bookkeeping.isJournalled else { return }
    bookkeeping.isJournalled = true
    if callsNumberFirst { return inviteNumber(&turn) }
    guard direction == .incoming else { return tryGate(&turn) }
    if isDivertedToNumber {
      inviteDiversion(&turn)
    } else if diversions.recording != nil {
      startRecording(&turn)
    } else if appMedia.stream != nil {
      answerForStream(&turn)
    } else {
      ringTrunk(&turn)
    }
  }

  mutating func deviceUnavailable(_ key: DeviceKey, _ why: CallUnavailable.Why?, _ turn: inout Turn) {
    guard isUndecided, terminals[key] == nil, index(of: key) != nil else { return }
    if why == .blocked { bookkeeping.declines.blocked += 1 } else { bookkeeping.declines.filtered += 1 }
    leave(key, why == .blocked ? .blocked : .dnd, &turn)
    endIfNobodyRings(&turn)
  }

  /// Woken or not, no device has said that it rings.
  mutating func unreached(_ turn: inout Turn) {
    guard state == .parked, isUndecided else { return }
    endUnlessDiverted(.unreached, .init(.unanswered, by: .gateway, q850: 20, detail: "no device rang"), &turn)
  }

  mutating func ringTimedOut(_ turn: inout Turn) {
    switch direction {
    case _ where isUndecided: endUnlessDiverted(.noAnswer, .init(.unanswered, by: .gateway), &turn)
    case .incoming where isDivertedToNumber || diversions.recording != nil: diversionTimedOut(&turn)
    case .outgoing where state == .ready || state == .progress: end(.unanswered, by: .trunk, &turn)
    default: break
    }
  }

  // MARK: requests

  mutating func prepare(_ prepare: CallPrepare, from key: DeviceKey, on session: SessionID, _ turn: inout Turn) -> RequestAnswer {
    guard ringsDevices, isUndecided, let index = index(of: key) else { return .err(Failure(.badState)) }
    if let refusal = describe(index, prepare.sdp, gen: prepare.gen, on: session, &turn) { return .err(refusal) }
    markOnce(.prepared, &turn)
    return .ok
  }

  /// Applies a device's answer to our offer. A second one of the same generation is taken only from a new session, and starts
  /// ICE and DTLS anew. A device whose description cannot be used is out: its index means nothing afterwards.
  private mutating func describe(_ index: Int, _ sdp: String, gen: Int, on session: SessionID, _ turn: inout Turn) -> Failure? {
    guard gen == devices[index].gen else { return Failure(.staleGen) }
    guard devices[index].describedOn != session else { return Failure(.badState, msg: "already prepared") }
    do {
      let media = try devices[index].negotiation.apply(answer: sdp)
      let remote = devices[index].describe(media, on: session, newAssociation: true)
      turn.media(.setAppRemote(self.session, devices[index].id, remote, newLocal: nil, newAssociation: true))
      return nil
    } catch {
      // no other description is to be hoped for: the refusal is the device's terminal message, and the last one out ends the call
      bookkeeping.declines.unusable += 1
      leave(devices[index].key, .codec, &turn)
      endIfNobodyRings(&turn)
      return Failure(.codec, msg: String(describing: error))
    }
  }

  /// `call.answer`: the one lock. The first whose description can be used has the call.
  mutating func answer(_ answer: CallAnswer, from key: DeviceKey, on session: SessionID, _ turn: inout Turn) -> RequestAnswer {
    if winner == key { return .ok(Success(won: true)) }
    guard isUndecided, ringsDevices, let index = index(of: key) else {
      return .err(Failure(winner == nil ? .badState : .answeredElsewhere, reason: winner == nil ? nil : .answeredElsewhere))
    }
    if let gen = answer.gen, gen != devices[index].gen { return .err(Failure(.staleGen)) }
    // what an earlier process of the device had prepared went with it
    if let sdp = answer.sdp, devices[index].describedOn != session {
      if let refusal = describe(index, sdp, gen: devices[index].gen, on: session, &turn) { return .err(refusal) }
    } else if !devices[index].isDescribed {
      return .err(Failure(.badRequest, msg: "nothing prepared: sdp is missing"))
    }
    lock(index, answer, isWarm: devices[index].ackedOn == session, &turn)
    return .ok(Success(won: true))
  }

  private mutating func lock(_ index: Int, _ answer: CallAnswer, isWarm: Bool, _ turn: inout Turn) {
    let key = devices[index].key
    winner = key
    devices[index].phase = .winner
    enter(.answering, &turn)
    markOnce(.deviceRinging, &turn)
    startGateDeadline(answer, isWarm: isWarm, &turn)
    mark(.answered, detail: isWarm ? "warm" : "cold", &turn)
    (timers[.ring], timers[.unreached]) = (nil, nil)
    users.owner = key.user
    turn.media(.lockWinner(session, devices[index].id))
    for other in devices where other.key != key {
      terminate(other.key, .answeredElsewhere, by: .app, isWinner: false, &turn)
      turn.media(.removeAppLeg(session, other.id))
    }
    devices.removeAll { $0.key != key }
    closePushes(CallOver(.answeredElsewhere, by: .app, at: turn.wallNow), &turn)
  }

  /// After `ok{won}` is on its way: the gate may be open already.
  mutating func answerAccepted(_ turn: inout Turn) {
    guard let index = winnerIndex, state == .answering else { return }
    failIfFatal(index, &turn)
    tryGate(&turn)
  }

  mutating func reject(_ reject: CallReject, from key: DeviceKey, _ turn: inout Turn) -> RequestAnswer {
    guard ringsDevices, isUndecided, terminals[key] == nil else { return .err(Failure(.badState)) }
    let isBusy = reject.reason == .busy
    switch reject.reason {
    case .busy: bookkeeping.declines.busy += 1
    case .declined: bookkeeping.declines.declined += 1
    case .mediaFailed: bookkeeping.declines.incapable += 1
    }
    leave(key, EndReason(rawValue: reject.reason.rawValue) ?? .declined, &turn)
    switch reject.scope {
    // what one device lacks says nothing about the others
    case .all where reject.reason != .mediaFailed:
      endUnlessDiverted(
        isBusy ? .busy : .declined,
        .init(isBusy ? .busy : .declined, by: .app, others: isBusy ? .busyElsewhere : .declinedElsewhere), &turn)
    case .all, .device: endIfNobodyRings(&turn)
    }
    return .ok
  }
}

extension CallRecord.Ring {
  init(_ key: DeviceKey, _ ringing: CallRinging) {
    self.init(device: key.device, pushMs: ringing.pushMs, reportMs: ringing.reportMs, openMs: ringing.openMs)
  }
}
