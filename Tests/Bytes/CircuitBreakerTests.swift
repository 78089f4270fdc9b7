import Testing
import TrunklineBytes

/// Its rows with and without `attemptTime` are also tested where they are used: Trunking's `HealthTests`, PushPolicy's `PushMachineTests`.
@Suite struct CircuitBreakerTests {
  private let policy = CircuitBreaker.Policy(failures: 2, pause: .seconds(1) ... .seconds(3), attemptTime: .seconds(10))
  private func at(_ seconds: Int) -> Instant { .zero + .seconds(seconds) }

  @Test func `a half-open attempt without news counts as lost after its time, and another is allowed`() {
    var breaker = CircuitBreaker(policy)
    for _ in 0..<2 { breaker.failed(at: at(0)) }
    #expect(breaker.isOpen && !breaker.allows(at: at(0)) && breaker.allows(at: at(1)))
    breaker.attempted(at: at(1))
    #expect(!breaker.allows(at: at(10)) && breaker.allows(at: at(11)))
    breaker.attempted(at: at(11))
    #expect(!breaker.allows(at: at(12)))
  }

  @Test func `the pause doubles up to the longest, and a success begins anew`() {
    var breaker = CircuitBreaker(policy)
    breaker.failed(at: at(0))
    breaker.failed(at: at(0))
    var opensFor: [Int] = []
    var now = 0
    for _ in 0..<4 {
      let start = now
      while !breaker.allows(at: at(now)) { now += 1 }
      opensFor.append(now - start)
      breaker.attempted(at: at(now))
      breaker.failed(at: at(now))
    }
    #expect(opensFor == [1, 2, 3, 3])
    let hasClosed = breaker.succeeded()
    #expect(hasClosed && breaker == CircuitBreaker(policy))
  }

  @Test func `failures of attempts that began before it opened do not lengthen the pause`() {
    var breaker = CircuitBreaker(policy)
    for _ in 0..<9 { breaker.failed(at: at(0)) }
    #expect(breaker.allows(at: at(1)))
  }
}
