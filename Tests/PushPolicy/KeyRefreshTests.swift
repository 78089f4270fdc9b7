import Testing
import TrunklineBytes

@testable import PushPolicy

@Suite struct KeyRefreshTests {
  private static let start = Instant.zero + .seconds(1_000)

  @Test(arguments: [(nil, 600), (0, 60), (15, 60), (300, 300), (19_845, 3_600), (1 << 31, 3_600)] as [(Int?, Int)])
  func `keys are fetched again when they are no longer fresh, within a minute and an hour`(fresh: Int?, seconds: Int) {
    var refresh = KeyRefresh(at: Self.start)
    #expect(refresh.next == Self.start)
    refresh.began(at: Self.start)
    #expect(refresh.next == .distantFuture)
    let end = Self.start + .seconds(2)
    refresh.fetched(freshSeconds: fresh, at: end)
    #expect(refresh.next == end + .seconds(seconds))
    #expect(refresh.expiry == Self.start + .seconds(86_400))
  }

  @Test func `failures are tried again in 1, 2, 4 and at most 60 seconds, and keys that are here count for a day`() {
    var refresh = KeyRefresh(at: Self.start)
    refresh.began(at: Self.start)
    refresh.fetched(freshSeconds: nil, at: Self.start)
    var now = Self.start + .seconds(600)
    var waits: [Duration] = []
    for _ in 0..<100 {
      refresh.began(at: now)
      refresh.failed(at: now)
      waits.append(refresh.next - now)
      now = refresh.next
      #expect(refresh.expiry == Self.start + .seconds(86_400))
    }
    let first: [Duration] = [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) }
    #expect(Array(waits.prefix(8)) == first && waits.allSatisfy { $0 <= .seconds(60) })
    refresh.began(at: now)
    refresh.fetched(freshSeconds: nil, at: now)
    #expect(refresh.expiry == now + .seconds(86_400))
    refresh.began(at: now)
    refresh.failed(at: now)
    #expect(refresh.next == now + .seconds(1))
  }

  @Test func `however many tokens name keys that are not here, a fetch begins no sooner than ten seconds after the last`() {
    var refresh = KeyRefresh(at: Self.start)
    var (now, fetches) = (Self.start, 0)
    // an hour with a hundred such tokens a second; a fetch takes 30 ms, and every third fails
    for step in 0..<360_000 {
      now = Self.start + .milliseconds(step * 10)
      refresh.wanted(at: now)
      guard refresh.next <= now else { continue }
      refresh.began(at: now)
      refresh.wanted(at: now)
      fetches += 1
      let end = now + .milliseconds(3)
      if fetches.isMultiple(of: 3) { refresh.failed(at: end) } else { refresh.fetched(freshSeconds: 300, at: end) }
    }
    // three in 21 s: after a failure the back-off's first second counts
    #expect((340...515).contains(fetches), "\(fetches)")
  }

  @Test func `a wish while a fetch is under way begins no second one`() {
    var refresh = KeyRefresh(at: Self.start)
    refresh.began(at: Self.start)
    refresh.wanted(at: Self.start + .seconds(60))
    #expect(refresh.next == .distantFuture)
  }
}
