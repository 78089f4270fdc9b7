import Synchronization
import Testing
import TrunklinePlatform

@Suite struct LoopBoundTests {
  /// Not Sendable: only its loop's thread may count.
  private final class Count {
    var value = 0
  }

  @Test func `posts to a value run on its loop's thread in their order, and the joiner has the value back`() throws {
    let loop = try EventLoop(name: "bound")
    let count = LoopBound(Count(), to: loop)
    count.value.value = 1  // before the loop runs
    let seen = Mutex<[Int]>([])
    let thread = try NamedThread.start(name: "bound") { loop.run() }
    for _ in 0..<3 {
      count.post { count in
        count.value *= 2
        seen.withLock { [value = count.value] in $0.append(value) }
      }
    }
    loop.stop()
    thread.join()
    #expect(seen.withLock { $0 } == [2, 4, 8] && count.value.value == 8)
  }
}
