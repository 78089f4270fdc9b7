import Testing
import TrunklineBytes

@Suite struct RateLimitTests {
  @Test func `a burst passes, then so many a second, and a pause saves up one burst and no more`() {
    var limit = RateLimit(perSecond: 4, burst: 3)
    var now = Instant(nanoseconds: 5_000_000_000)
    func passed(_ count: Int) -> Int { (0..<count).count { _ in limit.consume(at: now) } }
    #expect(passed(10) == 3)
    now = now + .milliseconds(249)
    #expect(passed(10) == 0)
    now = now + .milliseconds(1)
    #expect(passed(10) == 1)
    now = now + .seconds(3_600)
    #expect(passed(10) == 3)
    var total = 0
    for _ in 0..<1_000 {
      now = now + .milliseconds(10)
      total += passed(5)
    }
    #expect((39...41).contains(total))
  }
}
