package import TrunklineMediaSession

extension CallRecord.Stream {
  package init(_ stream: StreamStatistics) {
    let expected = stream.packets &+ stream.lost
    self.init(
      packets: stream.packets, sent: stream.sentPackets, lost: stream.lost,
      loss: expected == 0 ? 0 : (Double(stream.lost) / Double(expected) * 1e5).rounded() / 1e5, late: stream.playout.late,
      dropped: stream.dropped,
      jitterMs: (stream.jitterMilliseconds * 100).rounded() / 100,
      bufferMs: (stream.playout.bufferDelayMilliseconds * 100).rounded() / 100,
      concealedMs: stream.playout.concealedMilliseconds, repairedMs: stream.playout.repairedMilliseconds,
      rttMs: stream.roundTripMilliseconds,
      mos: stream.meanOpinionScore.map { ($0 * 100).rounded() / 100 }, bursts: .init(stream),
      levelDb: stream.speechLevel.map { ($0 * 10).rounded() / 10 }, noiseDb: stream.noiseLevel.map { ($0 * 10).rounded() / 10 },
      unheard: .init(stream))
  }
}

extension CallRecord.Unheard {
  /// Nil if every received packet was of the played stream.
  package init?(_ stream: StreamStatistics) {
    guard stream.unknownPackets > 0 || stream.otherSourcePackets > 0 else { return nil }
    self.init(
      packets: stream.unknownPackets, payloadType: stream.unknownPayloadType, otherSources: stream.otherSourcePackets)
  }
}

extension CallRecord.Bursts {
  /// Nil if nothing was lost.
  package init?(_ stream: StreamStatistics) {
    guard stream.burstDensity > 0 || stream.gapDensity > 0 else { return nil }
    func rounded(_ value: Double, to scale: Double) -> Double { (value * scale).rounded() / scale }
    self.init(
      density: rounded(stream.burstDensity, to: 1e4), ms: rounded(stream.burstMilliseconds, to: 10),
      gapDensity: rounded(stream.gapDensity, to: 1e5), gapMs: rounded(stream.gapMilliseconds, to: 10),
      ratio: rounded(stream.burstRatio, to: 100))
  }
}
