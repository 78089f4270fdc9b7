import Testing
import TrunklineBytes

@Suite struct TimeBudgetTests {
  private let start = Instant.zero + .seconds(10)

  @Test func `what was spent beyond a second's time is paid off before there is more`() {
    var budget = TimeBudget(perSecond: .milliseconds(100))
    var has: [Bool] = [budget.has(at: start), budget.has(0.5, at: start)]
    #expect(has == [true, true])
    budget.spend(.milliseconds(60), at: start)
    has = [budget.has(at: start), budget.has(0.5, at: start)]
    #expect(has == [true, false], "guests leave half to the others")
    budget.spend(.milliseconds(90), at: start)
    has = [budget.has(at: start), budget.has(at: start + .milliseconds(499)), budget.has(at: start + .milliseconds(501))]
    #expect(has == [false, false, true])
  }

  @Test func `it says when there is time again, and holds a second's worth at most`() {
    var budget = TimeBudget(perSecond: .milliseconds(100))
    budget.spend(.milliseconds(150), at: start)
    #expect(budget.time(of: 0.1) == start + .milliseconds(600))
    _ = budget.has(at: start + .seconds(3_600))
    budget.spend(.milliseconds(100), at: start + .seconds(3_600))
    let has = budget.has(at: start + .seconds(3_600))
    #expect(!has)
  }
}
