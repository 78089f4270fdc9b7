import AudioCodecs
import Bytes
import RTP
import SRTP

extension MediaSession {
  // MARK: Silence

  /// Tells when a leg has gone quiet for too long; its return is told where packets come in.
  mutating func watch(at now: Instant, into output: inout MediaOutput) {
    guard let connectedAt else { return }
    if hasLeg(winner), !legs[winner].isSilent {
      let last = max(legs[winner].lastAuthenticated ?? connectedAt, connectedAt - Limits.appSilence)
      if now - last >= Limits.appSilence {
        legs[winner].isSilent = true
        output.events.append(.appLegSilent(id, legs[winner].id))
      }
    }
    if let last = trunk.lastReceived, !trunk.isSilent, trunk.receives, !isHeld, now - last >= Limits.trunkSilence {
      trunk.isSilent = true
      output.events.append(.trunkSilent(id))
    }
  }

  // MARK: RTCP and quality

  mutating func report(at now: Instant, into output: inout MediaOutput) {
    let legs = legs  // docs/decisions/0081
    if now >= nextQuality {
      nextQuality = nextQuality + Limits.reportInterval
      output.events.append(.quality(id, statistics()))
    }
    followReports(at: now)
    guard isDownlinkOpen else { return }
    if trunk.isSet, trunk.reports.isDue(at: now, random: &random) { sendTrunkReport(goodbye: false, at: now, into: &output) }
    if hasLeg(winner), legs[winner].isReady, legs[winner].reports.isDue(at: now, random: &random) {
      sendAppReport(winner, goodbye: false, at: now, into: &output)
    }
  }

  /// What our packets carry follows the reports of those who hear them.
  private mutating func followReports(at now: Instant) {
    if hasLeg(winner), let loss = legs[winner].reports.takeNews() {
      downlink.encoder?.reported(
        lossFraction: loss, roundTripMilliseconds: legs[winner].reports.roundTripMilliseconds, at: now)
    }
    if let loss = trunk.reports.takeNews() {
      uplink.encoder?.reported(lossFraction: loss, roundTripMilliseconds: trunk.reports.roundTripMilliseconds, at: now)
    }
  }

  mutating func sendTrunkReport(goodbye: Bool, at now: Instant, into output: inout MediaOutput) {
    guard trunk.isSet, let destination = trunk.controlDestination, trunk.stream.packets > 0 || trunk.reception.received > 0 else {
      return
    }
    let count = writeReport(
      stream: trunk.stream, reception: &trunk.reception, cname: cname, goodbye: goodbye, at: now, wallClock: wallClock(now),
      into: output.packets.room)
    output.packets.commit(count, to: destination, route: setup.trunkControlRoute)
  }

  private mutating func sendAppReport(_ index: Int, goodbye: Bool, at now: Instant, into output: inout MediaOutput) {
    let legs = legs  // docs/decisions/0081
    guard let address = legs[index].address, legs[index].security != nil else { return }
    let clock = wallClock(now)
    var count = writeReport(
      stream: legs[index].stream, reception: &legs[index].reception, cname: cname, goodbye: goodbye, at: now, wallClock: clock,
      into: output.packets.room)
    guard count > 0 else { return }
    do throws(SRTPError) { try legs[index].security?.sender.protectRTCP(output.packets.room, count: &count) } catch { return }
    output.packets.commit(count, to: address, route: legs[index].route)
  }

  /// RTCP BYE, if the leg ever had keys and a stream.
  mutating func sendGoodbye(_ index: Int, at now: Instant, into output: inout MediaOutput) {
    guard legs[index].isReady, legs[index].stream.packets > 0 else { return }
    sendAppReport(index, goodbye: true, at: now, into: &output)
  }

  // MARK: Statistics

  func trunkStatistics(_ out: inout StreamStatistics) {
    (out.packets, out.bytes, out.lost) = (trunk.reception.received, trunk.bytesReceived, trunk.reception.lost)
    (out.reordered, out.jitterMilliseconds) = (trunk.reception.reordered, trunk.reception.jitterMilliseconds)
    (out.dropped, out.roundTripMilliseconds) = (trunk.dropped, trunk.reports.roundTripMilliseconds)
    out.reportedLossFraction = trunk.reports.reportedLossFraction
    if let counts = counts(of: downlink.receiver) { take(counts, into: &out) }
    out.meanOpinionScore = opinion(out, trunk.encoding, otherRoundTrip: nil)
  }

  func appStatistics(_ out: inout StreamStatistics, _ leg: borrowing AppLeg) {
    (out.packets, out.bytes, out.lost) = (leg.reception.received, leg.bytesReceived, leg.reception.lost)
    (out.reordered, out.jitterMilliseconds) = (leg.reception.reordered, leg.reception.jitterMilliseconds)
    (out.dropped, out.roundTripMilliseconds) = (leg.dropped, leg.reports.roundTripMilliseconds)
    out.reportedLossFraction = leg.reports.reportedLossFraction
    if let counts = counts(of: uplink.receiver) { take(counts, into: &out) }
    out.meanOpinionScore = opinion(out, leg.encoding, otherRoundTrip: nil)
  }

  private func counts(of receiver: borrowing AudioReceiver?) -> AudioReceiverStatistics? {
    switch receiver {
    case .some(let receiver): receiver.statistics
    case nil: nil
    }
  }

  private func take(_ counts: AudioReceiverStatistics, into out: inout StreamStatistics) {
    (out.late, out.duplicate) = (counts.packets.late, counts.packets.duplicate)
    out.concealedMilliseconds = counts.concealedSamples / 8
    out.repairedByFECMilliseconds = counts.repairedSamples / 8
    out.bufferDelayMilliseconds = counts.meanDelayMilliseconds
  }

  /// G.107 for what was received: loss that was not repaired, half the round trip, the buffer and the codec's own delay.
  private func opinion(_ stream: StreamStatistics, _ encoding: AudioEncoding, otherRoundTrip: Double?) -> Double? {
    guard stream.packets > 0 else { return nil }
    let expected = Double(stream.packets + stream.lost) * Double(Frame.milliseconds)
    let missing = max(
      Double(stream.concealedMilliseconds),
      Double(stream.lost + stream.late) * Double(Frame.milliseconds)
        - Double(stream.repairedByFECMilliseconds))
    let delay = stream.bufferDelayMilliseconds + (stream.roundTripMilliseconds ?? 0) / 2 + (encoding == .opus ? 26.5 : 20)
    return OpinionScore(
      codec: encoding == .opus ? .opus : .g711, lossFraction: max(0, missing) / max(1, expected), oneWayDelayMilliseconds: delay
    ).mean
  }
}
