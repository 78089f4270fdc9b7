import Testing
import TrunklineBytes

@Suite struct TokenBucketTests {
  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  @Test func `calls per second are a bucket of one second`() {
    var bucket = TokenBucket(perSecond: 3, at: at(1_000))
    func five(_ now: Instant) -> [Bool] { (0..<5).map { _ in bucket.consume(at: now) } }
    #expect(five(at(1_000)) == [true, true, true, false, false])
    let later = bucket.consume(at: at(1_334))
    #expect(later && !bucket.has(at: at(1_340)))
    #expect(five(at(100_000)) == [true, true, true, false, false])
  }

  @Test func `a burst of its own, and a clock that stands still or goes back adds nothing`() {
    var bucket = TokenBucket(perSecond: 2, burst: 4, at: at(1_000))
    func taken(_ now: Instant) -> Int { (0..<10).count { _ in bucket.consume(at: now) } }
    #expect(taken(at(1_000)) == 4)
    #expect(taken(at(500)) == 0)
    #expect(taken(at(2_000)) == 2)
    #expect(!bucket.isFull(at: at(3_999)))
    #expect(bucket.isFull(at: at(4_000)))
  }

  @Test func `what is spent beyond the level is made up for by what comes later`() {
    var bucket = TokenBucket(perSecond: 10, at: at(1_000))
    bucket.setRate(10, burst: 2)
    func taken(_ now: Instant) -> Int { (0..<10).count { _ in bucket.consume(at: now) } }
    #expect(taken(at(1_000)) == 2)
    for _ in 0..<5 { bucket.spend(at: at(1_000)) }
    #expect(taken(at(1_550)) == 0)
    #expect(taken(at(1_650)) == 1)
    #expect(taken(at(9_000)) == 2)
  }
}
