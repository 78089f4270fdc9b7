import AudioCodecs
import Bytes
import RTP

// What both legs received: counts, levels, bursts, and what it is worth to a listener.

extension MediaSession {
  func trunkStatistics(_ out: inout StreamStatistics) {
    (out.packets, out.bytes, out.lost) = (trunk.reception.received, trunk.bytesReceived, trunk.reception.lost)
    (out.reordered, out.jitterMilliseconds) = (trunk.reception.reordered, trunk.reception.jitterMilliseconds)
    (out.dropped, out.roundTripMilliseconds) = (trunk.dropped, trunk.reports.roundTripMilliseconds)
    out.reportedLossFraction = trunk.reports.reportedLossFraction
    take(downlink.receiver.statistics, into: &out)
    take(downlink.gate.detector, into: &out)
    take(trunk.reception.pattern.settled, packetMilliseconds: trunk.packetMilliseconds, into: &out)
    out.meanOpinionScore = opinion(out, trunk.encoding, trunk.packetMilliseconds)?.mean
  }

  func appStatistics(_ out: inout StreamStatistics, _ leg: borrowing AppLeg) {
    (out.packets, out.bytes, out.lost) = (leg.reception.received, leg.bytesReceived, leg.reception.lost)
    (out.reordered, out.jitterMilliseconds) = (leg.reception.reordered, leg.reception.jitterMilliseconds)
    (out.dropped, out.roundTripMilliseconds) = (leg.dropped, leg.reports.roundTripMilliseconds)
    out.reportedLossFraction = leg.reports.reportedLossFraction
    take(uplink.receiver.statistics, into: &out)
    take(uplink.gate.detector, into: &out)
    take(leg.reception.pattern.settled, packetMilliseconds: leg.packetMilliseconds, into: &out)
    out.meanOpinionScore = opinion(out, leg.encoding, leg.packetMilliseconds)?.mean
  }

  /// What the trunk sent us, as it asked to be told (RFC 3611 §4.7).
  func voipMetrics() -> VoIPMetrics {
    var stream = StreamStatistics()
    trunkStatistics(&stream)
    let pattern = trunk.reception.pattern.settled
    var out = VoIPMetrics()
    let expected = Double(max(1, pattern.expected))
    (out.lossRate, out.discardRate) = (Double(pattern.lost) / expected, Double(pattern.discards) / expected)
    (out.burstDensity, out.gapDensity) = (stream.burstDensity, stream.gapDensity)
    (out.burstMilliseconds, out.gapMilliseconds) = (stream.burstMilliseconds, stream.gapMilliseconds)
    out.roundTripMilliseconds = stream.roundTripMilliseconds ?? 0
    out.endSystemMilliseconds = stream.bufferDelayMilliseconds + codecDelay(trunk.encoding)
    // A sine of 0 dBm0 has −6.15 dBov (G.711's overload point is 3.14 dBm0, a full-scale sine −3.01 dBov).
    out.signalLevel = stream.speechLevel.map { $0 + 6.15 }
    out.noiseLevel = stream.noiseLevel.map { $0 + 6.15 }
    let conversation = opinion(stream, trunk.encoding, trunk.packetMilliseconds)
    (out.rating, out.conversationScore) = (conversation?.rating, conversation?.mean)
    out.listeningScore = opinion(stream, trunk.encoding, trunk.packetMilliseconds, withDelay: false)?.mean
    out.bufferNominalMilliseconds = stream.bufferDelayMilliseconds
    out.bufferMaximumMilliseconds = stream.bufferDelayMilliseconds
    out.bufferAbsoluteMaximumMilliseconds = Limits.bufferMaximumMilliseconds
    return out
  }

  private func take(_ counts: AudioReceiverStatistics, into out: inout StreamStatistics) {
    (out.late, out.duplicate) = (counts.packets.late, counts.packets.duplicate)
    out.concealedMilliseconds = counts.concealedSamples / 8
    out.repairedByFECMilliseconds = counts.repairedSamples / 8
    out.bufferDelayMilliseconds = counts.meanDelayMilliseconds
    out.playout = PlayoutCounts(counts)
  }

  private func take(_ detector: SilenceDetector, into out: inout StreamStatistics) {
    out.speechLevel = detector.speechLevel
    out.noiseLevel = detector.speechLevel == nil && detector.noiseLevel <= -127 ? nil : detector.noiseLevel
  }

  private func take(_ pattern: LossPattern, packetMilliseconds: Double, into out: inout StreamStatistics) {
    (out.burstDensity, out.gapDensity) = (pattern.burstDensity, pattern.gapDensity)
    out.burstMilliseconds = pattern.burstPacketsMean * packetMilliseconds
    out.gapMilliseconds = pattern.gapPacketsMean * packetMilliseconds
    out.burstRatio = pattern.burstRatio
  }

  /// Encoder, packet and decoder.
  private func codecDelay(_ encoding: AudioEncoding) -> Double {
    Double(Frame.milliseconds) + encoding.row.algorithmicDelayMilliseconds
  }

  /// G.107 for what was received: loss that was not repaired and how bursty it is, half the round trip, the buffer and the
  /// codec's own delay.
  private func opinion(
    _ stream: StreamStatistics, _ encoding: AudioEncoding, _ packetMilliseconds: Double, withDelay: Bool = true
  ) -> OpinionScore? {
    guard stream.packets > 0 else { return nil }
    let expected = Double(stream.packets + stream.lost) * packetMilliseconds
    let missing = max(
      Double(stream.concealedMilliseconds),
      Double(stream.lost + stream.late) * packetMilliseconds - Double(stream.repairedByFECMilliseconds))
    let delay = stream.bufferDelayMilliseconds + (stream.roundTripMilliseconds ?? 0) / 2 + codecDelay(encoding)
    return OpinionScore(
      codec: encoding.row.impairment, lossFraction: max(0, missing) / max(1, expected), burstRatio: stream.burstRatio,
      oneWayDelayMilliseconds: withDelay ? delay : 0)
  }
}
