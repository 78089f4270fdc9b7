import Glibc
import Synchronization
import Testing
import TrunklineBytes

@testable import TrunklinePlatform

/// A resolver that answers when a test says so.
@Suite struct LookupPoolTests {
  private final class Resolver: Sendable {
    private let gate = Gate()
    let asked = Mutex<[String]>([])
    let answered = Mutex<[String: Int]>([:])
    private final class Gate: @unchecked Sendable {
      var semaphore = sem_t()
      init() { sem_init(&semaphore, 0, 0) }
      deinit { sem_destroy(&semaphore) }
    }

    @Sendable func resolve(_ host: String, _ port: UInt16) -> [SocketAddress] {
      asked.withLock { $0.append(host) }
      wait()
      return [SocketAddress(.loopback, port)]
    }
    private func wait() { sem_wait(&gate.semaphore) }
    func open(_ count: Int) { for _ in 0..<count { sem_post(&gate.semaphore) } }
    func note(_ host: String, _ found: [SocketAddress]) {
      answered.withLock { $0[host, default: 0] += found.isEmpty ? 1_000 : 1 }
    }
    var answers: Int { answered.withLock { $0.values.reduce(0) { $0 + $1 % 1_000 + $1 / 1_000 } } }
  }

  private func until(_ isDone: () -> Bool) -> Bool {
    let end = MonotonicClock.now() + .seconds(20)
    while !isDone(), MonotonicClock.now() < end { sched_yield() }
    return isDone()
  }

  private func ask(_ pool: LookupPool, _ resolver: Resolver, _ host: String, by deadline: Instant = .distantFuture) -> Bool {
    pool.ask(host, 1, by: deadline, logger: nil) { resolver.note(host, $0) }
  }

  @Test func `500 names that hang have four threads, and what is beyond the bound is refused; then all are answered`() {
    let resolver = Resolver()
    let pool = LookupPool(thread: "test-name", resolve: resolver.resolve)
    let taken = (0..<1_500).count { ask(pool, resolver, "name-\($0)") }
    #expect(taken == Limits.lookups && pool.threads == Limits.lookupThreads)
    #expect(until { resolver.asked.withLock(\.count) == Limits.lookupThreads })
    resolver.open(taken)
    #expect(until { resolver.answers == taken && pool.threads == 0 })
    #expect(resolver.answered.withLock { $0.values.allSatisfy { $0 == 1 } })
    #expect(ask(pool, resolver, "later"))
    resolver.open(1)
    #expect(until { resolver.answers == taken + 1 && pool.threads == 0 })
  }

  @Test func `a name that many ask for is looked up once`() {
    let resolver = Resolver()
    let pool = LookupPool(thread: "test-name", resolve: resolver.resolve)
    for _ in 0..<100 { #expect(ask(pool, resolver, "bot.example")) }
    resolver.open(1)
    #expect(until { resolver.answers == 100 })
    #expect(resolver.asked.withLock { $0 } == ["bot.example"])
  }

  @Test func `whoever waits no longer is answered without a question`() {
    let resolver = Resolver()
    let pool = LookupPool(thread: "test-name", resolve: resolver.resolve)
    for number in 0..<Limits.lookupThreads { #expect(ask(pool, resolver, "hangs-\(number)")) }
    #expect(ask(pool, resolver, "late", by: MonotonicClock.now()))
    resolver.open(Limits.lookupThreads)
    #expect(until { resolver.answers == Limits.lookupThreads + 1 && pool.threads == 0 })
    #expect(resolver.answered.withLock { $0["late"] } == 1_000 && !resolver.asked.withLock { $0.contains("late") })
  }
}
