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
    guard let connectedAt else { return }
    if let silenceCheckedAt, now - silenceCheckedAt >= Limits.interruption { uninterruptedSince = now }
    silenceCheckedAt = now
    if hasLeg(winner), !legs[winner].isSilent {
      let last = max(legs[winner].lastAuthenticated ?? connectedAt, connectedAt - Limits.appSilence)
      if now - max(last, uninterruptedSince) >= Limits.appSilence {
        legs[winner].isSilent = true
        output.events.append(.appLegSilent(id, legs[winner].id))
      }
    }
    if let last = trunk.lastReceived, !trunk.isSilent, trunk.receives, !isHeld,
      now - max(last, uninterruptedSince) >= Limits.trunkSilence
    {
      trunk.isSilent = true
      output.events.append(.trunkSilent(id))
    }
  }

  // MARK: RTCP and quality

  mutating func report(at now: Instant, into output: inout MediaOutput) {
    if now >= nextQuality {
      nextQuality = nextQuality + Limits.reportInterval
      output.events.append(.quality(id, statistics()))
      countRetirements(into: &output)
    }
    followReports(at: now)
    guard isDownlinkOpen else { return }
    if trunk.isSet, trunk.reports.isDue(at: now, random: &random) { sendTrunkReport(goodbye: false, at: now, into: &output) }
    guard hasLeg(winner), legs[winner].isReady else { return }
    let leg = legs + winner
    if leg.pointee.reports.isDue(at: now, random: &random) {
      sendAppReport(winner, goodbye: false, at: now, into: &output)
    }
  }

  /// Counts the SSRCs that the receivers of both legs retired.
  mutating func countRetirements(into output: inout MediaOutput) {
    output.retiredSources &+= trunk.security?.drainRetirements() ?? 0
    if hasLeg(winner) { output.retiredSources &+= legs[winner].security?.receiver.drainRetirements() ?? 0 }
  }

  /// Adapts the encoders to the loss that the receivers of our packets report, and the cost of delay to the round trips.
  private mutating func followReports(at now: Instant) {
    let toApp = hasLeg(winner) ? legs[winner].reports.roundTripMilliseconds : nil
    let toTrunk = trunk.reports.roundTripMilliseconds
    let appLoss = hasLeg(winner) ? legs[winner].reports.drainReportedLoss() : nil
    let trunkLoss = trunk.reports.drainReportedLoss()
    if let appLoss { downlink.encoder?.reported(lossFraction: appLoss, roundTripMilliseconds: toApp, at: now) }
    if let trunkLoss { uplink.encoder?.reported(lossFraction: trunkLoss, roundTripMilliseconds: toTrunk, at: now) }
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
      stream: trunk.stream, reception: &trunk.reception, cname: cname, goodbye: goodbye, at: now, wallClock: wallClock(now),
      metrics: trunk.wantsVoIPMetrics ? voipMetrics() : nil, into: output.packets.room)
    guard !trunk.isProtected || protectForTrunk(&count, isControl: true, into: &output) else { return }
    output.packets.commit(count, to: destination, route: setup.trunkControlRoute)
  }

  private mutating func sendAppReport(_ index: Int, goodbye: Bool, at now: Instant, into output: inout MediaOutput) {
    let legs = legs
    guard let address = legs[index].address, legs[index].security != nil else { return }
    let clock = wallClock(now)
    var count = writeReport(
      stream: legs[index].stream, reception: &legs[index].reception, cname: cname, goodbye: goodbye, at: now, wallClock: clock,
      into: output.packets.room)
    guard count > 0 else { return }
    do throws(SRTPError) { try legs[index].security?.sender.protectRTCP(output.packets.room, count: &count) } catch { return }
    output.packets.commit(count, to: address, route: legs[index].route)
  }

  /// Sends RTCP BYE, if the leg ever had keys and a stream.
  mutating func sendGoodbye(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    guard legs[index].isReady, legs[index].stream.packets > 0 else { return }
    sendAppReport(index, goodbye: true, at: now, into: &output)
  }
}
