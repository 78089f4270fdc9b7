import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIP
import TrunklineSIPDialogs
import TrunklineSRTP

/// How a call ends: once, with one final response, one terminal message per device, and one record.
extension Call {
  /// The only transition to `ended`. `others` is the reason for devices that did not win, if it differs; `sip` is the status for
  /// the record. Nothing is sent on a leg that is `over` already.
  mutating func end(
    _ reason: EndReason, by side: CallSide, others: EndReason? = nil, sip: Int? = nil, q850: Int? = nil,
    detail: String? = nil, _ step: inout Step
  ) {
    guard isLive else { return }
    closeClocks()
    endRecording(.callEnded, &step)
    closeStream(&step)
    diversions.cancel()
    if let second {
      _ = legs[second].end(reason, q850: nil, &step)
      if isDivertedToNumber, let inner = legs[second].session { step.media(.close(inner)) }
    }
    switch trunkLeg.end(reason, q850: q850, &step) {
    case .cancelled: mark(.cancel, detail: "sent", &step)
    case .saidBye: mark(.bye, detail: "sent", &step)
    case .refused, .nothing: break
    }
    let status = sip ?? (answeredAt == nil ? trunkLeg.finalStatus : nil)
    notifyDevices(reason, others: others ?? reason, by: side, sip: status, &step)
    if reservation != nil { step.media(.close(session)) }
    conclusion.end(
      CallRecord.End(reason, by: side, sip: status ?? trunkLeg.finalStatus, detail: detail), others: others ?? reason,
      statisticsUntil: reservation == nil ? step.now : step.now + step.configuration.timers.finalStatistics)
    enter(.ended, &step)
    step.outcomes.append(.ended)
    mark(.ended, detail: "\(reason.rawValue) by \(side.rawValue)", &step)
    let connected = answeredAt.map { step.now - $0 } ?? .zero
    step.measure(.callLength(direction, connected: connected))
  }

  /// Sends the terminal message to every device without one: the winner, those that ring, and those that may connect late.
  mutating func notifyDevices(_ reason: EndReason, others: EndReason, by side: CallSide, sip: Int? = nil, _ step: inout Step) {
    for device in devices where terminals[device.key] == nil {
      let isWinner = device.key == winner
      terminate(device, isWinner ? reason : others, by: side, sip: sip, isWinner: isWinner, &step)
    }
    closePushes(CallOver(others, by: side, at: step.wallNow, sip: sip), &step)
  }

  /// How a call ends.
  struct Ending {
    var reason: EndReason
    var side: CallSide
    /// The reason for devices that did not cause the end, if it differs.
    var others: EndReason?
    var q850: Int?
    var detail: String?
    init(_ reason: EndReason, by side: CallSide, others: EndReason? = nil, q850: Int? = nil, detail: String? = nil) {
      (self.reason, self.side, self.others, self.q850, self.detail) = (reason, side, others, q850, detail)
    }
  }

  /// No device has answered an incoming call, or the winner has no media: only here can the call still be diverted. The machine
  /// makes the diversion after the input that caused it.
  mutating func endUnlessDiverted(_ trigger: DiversionTrigger, _ ending: Ending, _ step: inout Step) {
    guard isLive, diversions.planned == nil else { return }
    mark(.noDeviceAnswered, detail: trigger.rawValue, &step)
    if trunkLeg.phase == .invited, let planned = diversions.plan(trigger, insteadOf: ending) {
      pushes.close()
      return step.outcomes.append(.diverts(planned))
    }
    var ending = ending
    // a final response states the cause by its code, a BYE only by this field
    if callsNumberFirst { ending.q850 = ending.q850 ?? trigger.cause }
    end(ending, &step)
  }

  mutating func end(_ ending: Ending, _ step: inout Step) {
    end(ending.reason, by: ending.side, others: ending.others, q850: ending.q850, detail: ending.detail, &step)
  }

  /// Ends the call with a final response that does not follow from the reason.
  mutating func end(_ ending: Ending, refusing code: Int, _ step: inout Step) {
    guard trunkLeg.phase == .invited else { return end(ending, &step) }
    trunkLeg.close(code)
    step.sip(.refuse(trunkLeg.id, code: code, reason: nil, cause: ending.q850.map { .q850($0) }, retryAfter: nil))
    end(ending.reason, by: ending.side, others: ending.others, sip: code, detail: ending.detail, &step)
  }

  /// An operator ends the call. This server has no fault, so a caller that still waits gets 480 with cause 31.
  mutating func hangUp(_ step: inout Step) {
    if direction == .incoming, trunkLeg.phase == .invited {
      return end(.init(.server, by: .gateway, q850: 31, detail: "hung up by an operator"), refusing: 480, &step)
    }
    end(.server, by: .gateway, detail: "hung up by an operator", &step)
  }

  /// Sends the terminal message of one device; never a second one.
  mutating func terminate(
    _ leg: DeviceLeg, _ reason: EndReason, by side: CallSide, sip: Int? = nil, isWinner: Bool, _ step: inout Step
  ) {
    var over = CallOver(reason, by: side, at: step.wallNow, sip: sip)
    if isWinner { (over.stats, over.received) = (trunkLeg.statistics.map(StreamStats.init), testResult) }
    guard terminals.end(leg.key, Terminal(over: over, isByDevice: false, isUnseen: !leg.isConnected)) else { return }
    step.send(isWinner ? .callEnded(over) : .callCancel(over), to: leg.key, call: id)
    step.app(.callDead(leg.key, id))
  }

  /// The device itself left the call: the `ok` or receipt for its request is its terminal message. Its leg is freed.
  mutating func leave(_ key: DeviceKey, _ reason: EndReason, _ step: inout Step) {
    let over = CallOver(reason, by: .app, at: step.wallNow)
    guard terminals.end(key, Terminal(over: over, isByDevice: true, isUnseen: false)) else { return }
    pushes.settled(key)
    guard let index = index(of: key) else { return }  // it was woken and rejects without a session
    step.app(.callDead(key, id))
    removeLeg(index, &step)
  }

  mutating func removeLeg(_ index: Int, _ step: inout Step) {
    step.media(.removeAppLeg(session, devices[index].id))
    devices.remove(at: index)
  }

  /// Other devices, a number or a program may have the call: these have their terminal messages.
  mutating func removeDevices(_ step: inout Step) {
    for device in devices.removeAll() { step.media(.removeAppLeg(session, device.id)) }
    pushes.removeAll()
    ringReport.removeRefusals()
  }

  /// Ends the call if no device is left that could answer: the final response follows from the devices' refusals.
  mutating func endIfNoDeviceRings(_ step: inout Step) {
    guard isUndecided, ringsDevices, !ringClock.isVerifying, users.locating == nil else { return }
    let undecided = devices.filter { terminals[$0.key] == nil }
    guard !undecided.contains(where: { $0.isConnected || $0.phase == .ringing }),
      !pushes.awaits(where: { terminals[$0] == nil })
    else { return }
    // a device that lost its socket before it rang delays the end no longer than a client needs to reconnect
    if let until = undecided.compactMap(\.awaitedUntil).max(), until > step.now {
      return ringClock.checkReconnect(at: until)
    }
    switch ringReport.ending {
    case (let trigger?, let ending)?: return endUnlessDiverted(trigger, ending, &step)
    case (nil, let ending)?: return end(ending, &step)
    case nil: break
    }
    // Another thread gives up a push when the ring time ends: whichever comes first, the call rang out.
    if let ring = ringClock.until, ring <= step.now { return ringTimedOut(&step) }
    let detail = pushes.failure.map { "no device left, no push accepted: \($0)" } ?? "no device left"
    endUnlessDiverted(.unreached, .init(.unanswered, by: .app, q850: 20, detail: detail), &step)
  }

  /// The call's record. `final` is nil if the final statistics are late.
  func record(_ final: MediaStatistics?, _ step: Step) -> CallRecord {
    let statistics = final ?? trunkLeg.statistics
    let ended = times[.ended] ?? step.now
    let leg = winnerIndex.map { devices[$0] }
    var record = CallRecord(
      call: id, sipCallId: sipCallID, direction: direction, trunk: trunk.name, from: parties.callerNumber,
      to: parties.calledNumber,
      user: users.owner.isEmpty ? nil : users.owner,
      device: winner?.device, devices: ringReport.offeredDevices,
      times: Dictionary(uniqueKeysWithValues: times.map { ($0.rawValue, step.wall($1)) }),
      end: conclusion.end ?? .init(.unknown, by: .gateway),
      connectedMs: answeredAt.map { (ended - $0).milliseconds } ?? 0,
      codecs: .init(
        trunk: (trunkLeg.media?.codec ?? statistics?.trunkEncoding)?.name,
        app: (leg?.negotiation.agreed?.codec ?? statistics?.appEncoding)?.name),
      srtp: leg?.srtpProfile ?? statistics?.srtpProfile, fromTrunk: statistics.map { .init($0.fromTrunk) },
      fromApp: statistics.map { .init($0.fromApp) })
    let band = final?.band ?? trunkLeg.statistics?.band
    record.band = band.map { $0 == .wideband ? .wide : .narrow }
    record.trunkSrtp = trunkLeg.media?.protection.flatMap { SRTPProfile(suite: $0.suite.rawValue)?.name }
    record.ring = winner == nil ? ringReport.firstRing : leg.flatMap { leg in leg.rang.map { .init(leg.key, $0) } }
    record.appStats = leg?.stats
    record.peer = parties.peer
    record.parameters = parties.parameters
    if !diversions.made.isEmpty { record.diversions = diversions.made }
    if !transfers.made.isEmpty { record.transfers = transfers.made }
    if !recordings.files.isEmpty { record.recordings = recordings.files }
    record.stream = stream.url
    let others = users.concerned.filter { $0 != users.owner }
    if !others.isEmpty { record.otherUsers = others }
    if !users.owner.isEmpty { record.account = users.account(of: users.owner) }
    if isDivertedToNumber { record.join(legs[1], statistics) }
    return record
  }
}

extension StreamStats {
  /// The device's view: the stream that it received.
  init(_ statistics: MediaStatistics) {
    let received = statistics.fromTrunk
    let expected = received.packets &+ received.lost
    self.init(
      rttMs: statistics.fromApp.roundTripMilliseconds, jitterMs: received.jitterMilliseconds,
      loss: expected == 0 ? 0 : Double(received.lost) / Double(expected), bytes: Int64(clamping: received.bytes),
      plc: Double(received.playout.concealedMilliseconds), codec: statistics.appEncoding?.name, mos: received.meanOpinionScore)
  }
}
