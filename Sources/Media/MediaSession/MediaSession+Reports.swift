import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP
import TrunklineSRTP

extension MediaSession {
  // MARK: Silence

  /// Reports a leg that has been silent for too long; its return is reported where packets are received. Time in which the
  /// process was stopped does not count: packets that arrived meanwhile still wait in the sockets.
  mutating func watch(at now: Instant, into output: inout MediaOutput) {
    guard let connectedAt = state.connectedAt else { return }
    silence.check(at: now)
    let legs = apps.slots
    if apps.hasWinner, !legs[apps.winner].liveness.isSilent {
      let last = max(legs[apps.winner].liveness.last ?? connectedAt, connectedAt - Limits.appSilence)
      if silence.length(since: last, at: now) >= Limits.appSilence {
        legs[apps.winner].liveness.fellSilent()
        output.events.append(.appLegSilent(id, legs[apps.winner].id))
      }
    }
    if let last = trunk.liveness.last, !trunk.liveness.isSilent, trunk.receives, !state.isHeld,
      silence.length(since: last, at: now) >= Limits.trunkSilence
    {
      trunk.liveness.fellSilent()
      output.events.append(.trunkSilent(id))
    }
  }

  // MARK: RTCP and quality

  mutating func report(at now: Instant, into output: inout MediaOutput) {
    if reporting.qualityIsDue(at: now) {
      output.events.append(.quality(id, statistics()))
      countRetirements(into: &output)
    }
    followReports(at: now)
    guard isDownlinkOpen else { return }
    if trunk.isSet, reporting.isDue(&trunk.reports, at: now) { sendTrunkReport(goodbye: false, at: now, into: &output) }
    let legs = apps.slots
    guard apps.hasWinner, legs[apps.winner].isReady else { return }
    if reporting.isDue(&legs[apps.winner].reports, at: now) {
      sendAppReport(apps.winner, goodbye: false, at: now, into: &output)
    }
  }

  /// Counts the SSRCs that the receivers of both legs retired.
  mutating func countRetirements(into output: inout MediaOutput) {
    let legs = apps.slots
    output.retiredSources &+= trunk.drainRetirements()
    if apps.hasWinner { output.retiredSources &+= legs[apps.winner].keys.drainRetirements() }
  }

  /// Adapts the encoders to the loss that the receivers of our packets report, and the cost of delay to the round trips.
  private mutating func followReports(at now: Instant) {
    let legs = apps.slots
    let toApp = apps.hasWinner ? legs[apps.winner].reports.roundTripMilliseconds : nil
    let toTrunk = trunk.reports.roundTripMilliseconds
    let appLoss = apps.hasWinner ? legs[apps.winner].reports.drainReportedLoss() : nil
    let trunkLoss = trunk.reports.drainReportedLoss()
    if let appLoss { downlink.encoder.reported(lossFraction: appLoss, roundTripMilliseconds: toApp, at: now) }
    if let trunkLoss { uplink.encoder.reported(lossFraction: trunkLoss, roundTripMilliseconds: toTrunk, at: now) }
    guard appLoss != nil || trunkLoss != nil else { return }
    let path = DelayPolicy.path(roundTrips: toApp, toTrunk)
    downlink.receiver.setPath(milliseconds: path)
    uplink.receiver.setPath(milliseconds: path)
  }

  mutating func sendTrunkReport(goodbye: Bool, at now: Instant, into output: inout MediaOutput) {
    guard trunk.isSet, let destination = trunk.controlDestination, trunk.stream.packets > 0 || trunk.reception.received > 0 else {
      return
    }
    var count = writeReport(
      stream: trunk.stream, reception: &trunk.reception, cname: reporting.cname, goodbye: goodbye, at: now,
      wallClock: wallClock(now),
      metrics: trunk.wantsVoIPMetrics ? voipMetrics() : nil, into: output.packets.room)
    guard !trunk.isProtected || protectForTrunk(&count, isControl: true, into: &output) else { return }
    output.packets.commit(count, to: destination, route: setup.trunkControlRoute)
  }

  private mutating func sendAppReport(_ index: Int, goodbye: Bool, at now: Instant, into output: inout MediaOutput) {
    let legs = apps.slots
    guard let address = legs[index].path.address, legs[index].keys.isInstalled else { return }
    let clock = wallClock(now)
    var count = writeReport(
      stream: legs[index].stream, reception: &legs[index].reception, cname: reporting.cname, goodbye: goodbye, at: now,
      wallClock: clock,
      into: output.packets.room)
    guard count > 0 else { return }
    do throws(SRTPError) {
      try legs[index].keys.protect(output.packets.room, isControl: true, count: &count)
    } catch { return }
    output.packets.commit(count, to: address, route: legs[index].path.route)
  }

  /// Sends RTCP BYE, if the leg ever had keys and a stream.
  mutating func sendGoodbye(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    let legs = apps.slots
    guard legs[index].isReady, legs[index].stream.packets > 0 else { return }
    sendAppReport(index, goodbye: true, at: now, into: &output)
  }
}
