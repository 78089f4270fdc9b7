import Bytes
import Testing

@Suite struct DeadlineQueueTests {
  private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

  @Test func `keys come up in the order of their deadlines, once, and not before`() {
    var queue = DeadlineQueue<String>()
    for (key, due) in [("b", 20), ("a", 10), ("c", 30)] { queue.schedule(key, at: at(due)) }
    #expect(queue.next == at(10) && queue.takeDue(at: at(9)) == nil)
    queue.schedule("a", at: at(25))
    queue.schedule("c", at: nil)
    #expect([queue.takeDue(at: at(40)), queue.takeDue(at: at(40)), queue.takeDue(at: at(40))] == ["b", "a", nil])
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

  @Test func `any order of changes gives what a sorted list gives`() throws {
    for seed in 0..<UInt64(20) {
      var random = SplitMix64(seed: seed)
      var (queue, list): (DeadlineQueue<Int>, [Int: Int]) = (DeadlineQueue(), [:])
      for _ in 0..<400 {
        let key = Int.random(in: 0..<40, using: &random)
        let due = Int.random(in: 0..<1_000, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0...1: (list[key]) = due; queue.schedule(key, at: at(due))
        case 2: (list[key]) = nil; queue.cancel(key)
        default:
          let now = Int.random(in: 0..<200, using: &random)
          let taken = queue.takeDue(at: at(now))
          try #require((taken == nil) == ((list.values.min() ?? .max) > now), "seed \(seed)")
          if let taken { try #require(list.removeValue(forKey: taken) ?? .max <= now, "seed \(seed)") }
        }
        try #require(queue.count == list.count && queue.next == list.values.min().map(at), "seed \(seed)")
      }
    }
  }
}
