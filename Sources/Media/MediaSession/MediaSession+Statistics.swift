import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

// Statistics of both legs' received streams: counts, levels, bursts and listening quality. `mutating`, though nothing changes: of
// a borrowed session the compiler takes seconds (swiftlang/swift #92103, contributing.md).

extension MediaSession {
  mutating func trunkStatistics(_ out: inout StreamStatistics) {
    out.add(trunk.reception, trunk.reports, packetMilliseconds: trunk.received.packetMilliseconds)
    out.bytes = trunk.received.payloadBytes
    out.dropped = trunk.received.dropped
    out.playout = downlink.receiver.statistics
    out.addLevels(downlink.gate.detector)
    out.unknownPackets = trunk.unheard.unknown
    out.unknownPayloadType = trunk.unheard.payloadType
    out.unheardPackets = trunk.unheard.streamed
    out.otherSourcePackets = trunk.unheard.otherSources
    // A stream none of whose packets was played has no score.
    let isUnheard = trunk.unheard.played == 0 && (out.unknownPackets > 0 || out.playout.damaged > 0)
    out.meanOpinionScore = isUnheard ? nil : opinion(out, trunk.incoming, trunk.received.packetMilliseconds)?.mean
  }

  mutating func appStatistics(_ out: inout StreamStatistics, _ leg: borrowing AppLeg) {
    out.add(leg.reception, leg.reports, packetMilliseconds: leg.received.packetMilliseconds)
    out.bytes = leg.received.payloadBytes
    out.dropped = leg.received.dropped
    out.playout = uplink.receiver.statistics
    out.addLevels(uplink.gate.detector)
    out.meanOpinionScore = opinion(out, leg.encoding, leg.received.packetMilliseconds)?.mean
  }

  /// Metrics of the trunk's stream, in the form that the trunk requested (RFC 3611 §4.7).
  mutating func voipMetrics() -> VoIPMetrics {
    var stream = StreamStatistics()
    trunkStatistics(&stream)
    let pattern = trunk.reception.pattern.settled
    var out = VoIPMetrics()
    let expected = Double(max(1, pattern.expected))
    out.lossRate = Double(pattern.lost) / expected
    out.discardRate = Double(pattern.discards) / expected
    out.burstDensity = stream.burstDensity
    out.gapDensity = stream.gapDensity
    out.burstMilliseconds = stream.burstMilliseconds
    out.gapMilliseconds = stream.gapMilliseconds
    out.roundTripMilliseconds = stream.roundTripMilliseconds ?? 0
    out.endSystemMilliseconds = stream.playout.bufferDelayMilliseconds + codecDelay(trunk.incoming)
    // A sine of 0 dBm0 has −6.15 dBov (G.711's overload point is 3.14 dBm0, a full-scale sine −3.01 dBov).
    out.signalLevel = stream.speechLevel.map { $0 + 6.15 }
    out.noiseLevel = stream.noiseLevel.map { $0 + 6.15 }
    let conversation = opinion(stream, trunk.incoming, trunk.received.packetMilliseconds)
    out.rating = conversation?.rating
    out.conversationScore = conversation?.mean
    out.listeningScore = opinion(stream, trunk.incoming, trunk.received.packetMilliseconds, withDelay: false)?.mean
    out.bufferNominalMilliseconds = stream.playout.bufferDelayMilliseconds
    out.bufferMaximumMilliseconds = stream.playout.bufferDelayMilliseconds
    out.bufferAbsoluteMaximumMilliseconds = Limits.bufferMaximumMilliseconds
    return out
  }

  /// The delay of encoder, packet and decoder.
  private func codecDelay(_ encoding: AudioEncoding) -> Double {
    Double(Frame.milliseconds) + encoding.row.algorithmicDelayMilliseconds
  }

  /// The G.107 score of the received stream: unrepaired loss and its burstiness, half the round trip, the buffer and the codec's
  /// own delay.
  private func opinion(
    _ stream: StreamStatistics, _ encoding: AudioEncoding, _ packetMilliseconds: Double, withDelay: Bool = true
  ) -> OpinionScore? {
    guard stream.packets > 0 else { return nil }
    let expected = Double(stream.packets + stream.lost) * packetMilliseconds
    let missing = max(
      Double(stream.playout.concealedMilliseconds),
      Double(stream.lost + stream.playout.late + stream.unheardPackets) * packetMilliseconds
        - Double(stream.playout.repairedMilliseconds))
    let delay = stream.playout.bufferDelayMilliseconds + (stream.roundTripMilliseconds ?? 0) / 2 + codecDelay(encoding)
    return OpinionScore(
      codec: encoding.row.impairment, lossFraction: max(0, missing) / max(1, expected), burstRatio: stream.burstRatio,
      oneWayDelayMilliseconds: withDelay ? delay : 0)
  }
}

extension StreamStatistics {
  fileprivate mutating func add(_ reception: ReceiverStatistics, _ reports: ReportState, packetMilliseconds: Double) {
    packets = reception.received
    lost = reception.lost
    reordered = reception.reordered
    jitterMilliseconds = reception.jitterMilliseconds
    roundTripMilliseconds = reports.roundTripMilliseconds
    reportedLossFraction = reports.reportedLossFraction
    let pattern = reception.pattern.settled
    burstDensity = pattern.burstDensity
    gapDensity = pattern.gapDensity
    burstRatio = pattern.burstRatio
    burstMilliseconds = pattern.burstPacketsMean * packetMilliseconds
    gapMilliseconds = pattern.gapPacketsMean * packetMilliseconds
  }

  fileprivate mutating func addLevels(_ detector: SilenceDetector) {
    speechLevel = detector.speechLevel
    noiseLevel = detector.speechLevel == nil && detector.noiseLevel <= -127 ? nil : detector.noiseLevel
  }
}
