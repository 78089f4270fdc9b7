import Bytes
import Testing

@testable import MediaSession

@Suite struct ArrivalPhaseTests {
  @Test(arguments: [0, 7, 19]) func `the tick is asked to come just after jittered arrivals`(phase: Int) {
    var random = SplitMix64(seed: 3)
    var arrivals = ArrivalPhase()
    for index in 0..<50 {
      let jitter = Int64(random.next() % 3_000_000)
      arrivals.arrived(at: Instant(nanoseconds: Int64(index) * 20_000_000 + Int64(phase) * 1_000_000 + jitter))
    }
    let verdict = arrivals.verdict(current: phase)
    #expect(verdict == (phase + 3) % 20)
  }

  @Test func `a tick that is right stays, and the next verdict takes ten seconds`() {
    var arrivals = ArrivalPhase()
    for index in 0..<50 { arrivals.arrived(at: Instant(nanoseconds: Int64(index) * 20_000_000)) }
    let right = arrivals.verdict(current: 2)
    #expect(right == nil)
    for index in 0..<499 { arrivals.arrived(at: Instant(nanoseconds: Int64(index) * 20_000_000)) }
    let early = arrivals.verdict(current: 15)
    #expect(early == nil)
    arrivals.arrived(at: .zero)
    let late = arrivals.verdict(current: 15)
    #expect(late == 1)
  }
}
