import Testing
import TrunklineMediaSession

@Suite struct TickPhaseTests {
  @Test func `a preference is followed by a millisecond every fourth tick`() {
    var phase = TickPhase()
    let steps = (0..<200).map { _ in phase.step(.earlier) }
    #expect(steps.reduce(0, +) == -50)
    #expect(steps.allSatisfy { $0 == 0 || $0 == -1 })
  }

  @Test func `without a preference nothing moves, and the next preference is followed at once`() {
    var phase = TickPhase()
    for _ in 0..<30 { #expect(phase.step(.none) == 0 && phase.step(.stay) == 0) }
    #expect(phase.step(.later) == 1)
    #expect(phase.step(.later) == 0)
  }

  @Test func `where a stream begins just before its tick the next comes later at once, by 5 ms at most`() {
    var phase = TickPhase()
    _ = phase.step(.later)
    #expect(phase.step(.laterAtOnce(3)) == 3)
    #expect(phase.step(.laterAtOnce(19)) == 5)
    #expect(phase.step(.laterAtOnce(-1)) == 0)
    #expect(phase.step(.earlier) == 0)
  }
}
