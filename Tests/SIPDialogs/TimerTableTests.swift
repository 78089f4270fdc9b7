import Bytes
import Testing

@testable import SIPDialogs

@Suite struct TimerTableTests {
  private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

  @Test func `timers fire by deadline, equal ones in the order they were set`() {
    var table = TimerTable<Int>()
    for (key, due) in [(1, 30), (2, 10), (3, 20), (4, 10)] { table.set(key, at: at(due)) }
    #expect(table.next == at(10) && table.count == 4)
    #expect(table.popDue(at(9)) == nil)
    #expect((0..<4).map { _ in table.popDue(at(30)) } == [2, 4, 3, 1])
    #expect(table.next == nil && table.count == 0)
  }

  @Test func `a timer that is set again moves, behind those that stood there`() {
    var table = TimerTable<Int>()
    for (key, due) in [(1, 10), (2, 20), (3, 20)] { table.set(key, at: at(due)) }
    table.set(1, at: at(20))
    table.cancel(7)
    #expect((0..<4).map { _ in table.popDue(at(20)) } == [2, 3, 1, nil])
  }

  /// Against a list that is searched: set, moved and cancelled timers of a few keys, by chance.
  @Test func `whatever is set, moved and cancelled, what fires is what a plain list would fire`() {
    var random = SplitMix(state: 11)
    var table = TimerTable<UInt64>()
    var list: [(key: UInt64, due: Instant, order: Int)] = []
    for order in 0..<20_000 {
      let (what, key) = (random.next() % 4, random.next() % 200)
      let due = at(Int(random.next() % 500) + order / 10)
      if what < 3 { list.removeAll { $0.key == key } }
      switch what {
      case 0, 1:
        table.set(key, at: due)
        list.append((key, due, order))
      case 2: table.cancel(key)
      default:
        let now = at(order / 10)
        let first = list.filter { $0.due <= now }.min { ($0.due, $0.order) < ($1.due, $1.order) }?.key
        #expect(table.popDue(now) == first)
        list.removeAll { $0.key == first }
      }
      #expect(table.count == list.count && table.next == list.map(\.due).min())
    }
  }

  private struct SplitMix {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }

  @Test func `a box is a value: what is shared is copied before it is changed`() {
    var first = [1: Box("a"), 2: Box("b")]
    let second = first
    first[1]?.value += "!"
    let held = first[2]
    first[2]?.value = "c"
    #expect(first.mapValues(\.value) == [1: "a!", 2: "c"])
    #expect(second.mapValues(\.value) == [1: "a", 2: "b"] && held?.value == "b")
  }
}
