import Testing
import TrunklineBytes

@Suite struct DeadlineQueueTests {
  private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

  @Test func `keys come up in the order of their deadlines, once, and not before`() {
    var queue = DeadlineQueue<String>()
    for (key, due) in [("b", 20), ("a", 10), ("c", 30)] { queue.schedule(key, at: at(due)) }
    #expect(queue.next == at(10) && queue.popDue(at: at(9)) == nil)
    queue.schedule("a", at: at(25))
    queue.schedule("c", at: nil)
    #expect([queue.popDue(at: at(40)), queue.popDue(at: at(40)), queue.popDue(at: at(40))] == ["b", "a", nil])
    #expect(queue.count == 0 && queue.next == nil)
  }

  @Test func `a deadline that may only come sooner is not moved later`() {
    var queue = DeadlineQueue<Int>()
    queue.schedule(1, notLaterThan: at(10))
    queue.schedule(1, notLaterThan: at(20))
    #expect(queue.next == at(10))
    queue.schedule(1, notLaterThan: at(5))
    #expect(queue.next == at(5))
    queue.cancel(1)
    #expect(queue.count == 0)
  }

  @Test func `equal deadlines come up in the order they were set, one set again behind those that stood there`() {
    var queue = DeadlineQueue<Int>()
    for (key, due) in [(1, 30), (2, 10), (3, 20), (4, 10)] { queue.schedule(key, at: at(due)) }
    #expect((0..<4).map { _ in queue.popDue(at: at(30)) } == [2, 4, 3, 1])
    for (key, due) in [(1, 10), (2, 20), (3, 20)] { queue.schedule(key, at: at(due)) }
    queue.schedule(1, at: at(20))
    queue.cancel(7)
    #expect((0..<4).map { _ in queue.popDue(at: at(20)) } == [2, 3, 1, nil])
  }

  @Test func `any order of changes gives what a list gives that is searched`() throws {
    for seed in 0..<UInt64(20) {
      var random = SplitMix64(seed: seed)
      var (queue, list): (DeadlineQueue<Int>, [(key: Int, due: Instant, order: Int)]) = (DeadlineQueue(), [])
      for order in 0..<2_000 {
        let key = Int.random(in: 0..<100, using: &random)
        let due = at(Int.random(in: 0..<500, using: &random) + order / 10)
        switch Int.random(in: 0..<4, using: &random) {
        case 0...1:
          list.removeAll { $0.key == key }
          list.append((key, due, order))
          queue.schedule(key, at: due)
        case 2:
          list.removeAll { $0.key == key }
          queue.cancel(key)
        default:
          let now = at(order / 10)
          let first = list.filter { $0.due <= now }.min { ($0.due, $0.order) < ($1.due, $1.order) }?.key
          try #require(queue.popDue(at: now) == first, "seed \(seed)")
          list.removeAll { $0.key == first }
        }
        try #require(queue.count == list.count && queue.next == list.map(\.due).min(), "seed \(seed)")
      }
    }
  }
}
