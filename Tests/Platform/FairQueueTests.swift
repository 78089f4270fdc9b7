import Synchronization
import Testing

@testable import TrunklinePlatform

@Suite struct FairQueueTests {
  @Test func `keys take turns, and what one key has keeps its order`() {
    var queue = FairQueue<String, Int>(capacity: 1_000, share: 500)
    for number in 0..<100 { queue.append(number, of: "loud") }
    queue.append(1_000, of: "quiet")
    queue.append(1_001, of: "quiet")
    #expect(queue.count == 102)
    let first = (0..<5).compactMap { _ in queue.next() }
    #expect(first == [0, 1_000, 1, 1_001, 2])
    var rest: [Int] = []
    while let number = queue.next() { rest.append(number) }
    #expect(rest == Array(3..<100) && queue.isEmpty && queue.count(of: "loud") == 0)
  }

  @Test func `a key has a share and all together the room; what is exempt has both`() {
    var queue = FairQueue<Int, Int>(capacity: 10, share: 4)
    let mine = (0..<6).filter { queue.append($0, of: 1) }
    let others = (0..<20).filter { queue.append($0, of: 2 + $0) }
    #expect(mine == [0, 1, 2, 3] && others.count == 6, "the room is full")
    let isTaken = queue.append(9, of: 1, isExempt: true)
    #expect(isTaken && queue.count == 11 && queue.count(of: 1) == 5)
  }

  @Test func `over a long life all that was put in comes out, once`() {
    var queue = FairQueue<Int, Int>(capacity: 8, share: 8)
    var (put, taken) = (0, 0)
    for round in 0..<10_000 {
      if queue.append(put, of: round % 3) { put += 1 }
      if round % 2 == 1, queue.next() != nil { taken += 1 }
    }
    while queue.next() != nil { taken += 1 }
    #expect(put == taken && queue.isEmpty)
  }

  @Test func `a reader wakes for each post, from whichever thread, and hears of refusals`() throws {
    let box = try FairMailbox<Int, Int>(capacity: 4_000, share: 1_000)
    let sum = Atomic<Int>(0)
    let reader = try NamedThread.start(name: "reader") {
      var left = 3_000
      while left > 0 {
        guard let number = box.wait() else { continue }
        sum.add(number, ordering: .relaxed)
        left -= 1
      }
    }
    let writers = try (0..<3).map { key in
      try NamedThread.start(name: "writer") { for number in 1...1_000 { while !box.post(number, of: key) {} } }
    }
    for writer in writers { writer.join() }
    reader.join()
    #expect(sum.load(ordering: .relaxed) == 3 * 500_500 && box.depth == 0)
    for _ in 0..<1_001 { box.post(1, of: 9) }
    #expect(box.refused.value > 0 && box.depth == 1_000)
  }
}
