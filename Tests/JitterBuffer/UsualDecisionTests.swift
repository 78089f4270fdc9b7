import Testing

@testable import JitterBuffer

/// The short way of `PlayoutBuffer.decide` says what the policy says.
@Suite struct UsualDecisionTests {
  /// As `PlayoutBuffer.decide` asks.
  private func usual(_ status: PlayoutStatus, _ thresholds: DelayPolicy.Thresholds) -> (excess: Int64, hasSurplus: Bool)? {
    guard status.pending == 0 else { return nil }
    return DelayPolicy.usual(
      slack: status.now + status.grain - status.nextTimestamp, wanted: status.wanted, slowest: status.slowest,
      DelayPolicy.Steps(grain: status.grain, thresholds))
  }

  @Test func `in the usual cases the short way is the policy's, in all others there is none`() {
    var state: UInt64 = 7
    func random(_ range: ClosedRange<Int64>) -> Int64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return range.lowerBound + Int64(state >> 33) % (range.upperBound - range.lowerBound + 1)
    }
    let thresholds = DelayPolicy.Thresholds(DelayPolicy(), unitsPerMillisecond: 8)
    var (kept, shortened, others) = (0, 0, 0)
    for _ in 0..<20_000 {
      let status = PlayoutStatus(
        now: 1_000_000 + random(-300...600), nextTimestamp: 1_000_000, pending: random(0...3) == 0 ? random(1...400) : 0,
        grain: [1, 80, 160][Int(random(0...2))], wanted: random(0...400), slowest: random(-200...500))
      let decision = DelayPolicy.decide(status, thresholds)
      guard let usual = usual(status, thresholds) else {
        others += 1
        continue
      }
      #expect(decision.tickShift == 0 - usual.excess)
      #expect(decision.adjustment == (usual.hasSurplus ? .shrink(Int(status.grain)) : .none))
      if usual.hasSurplus { shortened += 1 } else { kept += 1 }
    }
    #expect(kept > 1000 && shortened > 500 && others > 1000)
    let short = PlayoutStatus(now: 0, nextTimestamp: 161, pending: 0, grain: 160, wanted: 0, slowest: 0)
    #expect(usual(short, thresholds) == nil)
    let ahead = PlayoutStatus(now: 0, nextTimestamp: 0, pending: 1, grain: 160, wanted: 0, slowest: 0)
    #expect(usual(ahead, thresholds) == nil)
  }
}
