import Testing
import TrunklineBytes

@testable import TrunklinePlatform

@Suite struct LongestTurnsTests {
  @Test func `the longest turn is known for one to two minutes, and then forgotten`() {
    let turns = LongestSteps().steps("control")
    let start = Instant.zero + .seconds(1_000)
    turns.note(.milliseconds(3), at: start)
    turns.note(.milliseconds(80), at: start + .seconds(10))
    turns.note(.milliseconds(5), at: start + .seconds(59))
    #expect(turns.longest(at: start + .seconds(59)) == .milliseconds(80))
    turns.note(.milliseconds(7), at: start + .seconds(70))
    #expect(turns.longest(at: start + .seconds(100)) == .milliseconds(80))
    #expect(turns.longest(at: start + .seconds(135)) == .milliseconds(7))
    #expect(turns.longest(at: start + .seconds(300)) == .zero)
  }
}
