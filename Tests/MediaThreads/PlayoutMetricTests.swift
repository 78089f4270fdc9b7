import Testing
import TrunklineJitterBuffer
import TrunklineMediaSession

@testable import MediaThreads

@Suite struct PlayoutMetricTests {
  @Test func `each decision of play-out is counted under a name of its own`() {
    var now = MediaStatistics()
    (now.fromTrunk.playout.missing, now.fromTrunk.playout.removedSamplesForAcceleration) = (3, 800)
    let metrics = MediaMetrics(threads: 1)
    metrics.add(now, since: MediaStatistics())
    #expect(metrics.playout.counter("trunk", "missing").value == 3)
    #expect(metrics.playout.counter("trunk", "shortened_ms").value == 100)
    #expect(Set(now.fromTrunk.playout.decisions.map(\.name)).count == 14)
  }
}
