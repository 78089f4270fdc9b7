import MediaSession
import Testing

@Suite struct TickPhaseTests {
  @Test func `a wish is followed by a millisecond every fourth tick`() {
    var phase = TickPhase()
    let steps = (0..<200).map { _ in phase.step(-1) }
    #expect(steps.reduce(0, +) == -50)
    #expect(steps.allSatisfy { $0 == 0 || $0 == -1 })
  }

  @Test func `without a wish nothing moves, and the next wish is followed at once`() {
    var phase = TickPhase()
    for _ in 0..<30 { #expect(phase.step(0) == 0) }
    #expect(phase.step(7) == 1)
    #expect(phase.step(7) == 0)
  }
}
