import Glibc
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@Suite struct MailboxTests {
  @Test func `elements come out in the order of their posts, across the ring's end`() throws {
    let box = try Mailbox<Int>(capacity: 4)
    var out: [Int] = []
    for round in 0..<5 {
      for element in 0..<3 { #expect(box.post(round * 3 + element)) }
      #expect(box.drain(into: &out) == 3)
    }
    #expect(out == Array(0..<15))
    #expect(box.depth == 0)
  }

  @Test func `a full box refuses and counts, and keeps what it has`() throws {
    let box = try Mailbox<Int>(capacity: 2)
    #expect(box.post(1) && box.post(2))
    #expect(!box.post(3))
    #expect(box.refused.value == 1)
    #expect(box.highWater.value == 2)
    var out: [Int] = []
    box.drain(into: &out)
    #expect(out == [1, 2])
  }

  @Test func `the reader is woken once per batch`() throws {
    let wakes = Counter()
    let box = try Mailbox<Int>(capacity: 10) { wakes.increment() }
    for element in 0..<5 { box.post(element) }
    #expect(wakes.value == 1)
    var out: [Int] = []
    box.drain(into: &out)
    box.post(9)
    #expect(wakes.value == 2)
  }

  @Test func `what a limited drain leaves wakes the reader again`() throws {
    let box = try Mailbox<Int>(capacity: 10)
    for element in 0..<5 { box.post(element) }
    var out: [Int] = []
    #expect(box.drain(into: &out, limit: 2) == 2)
    #expect(box.event.wait(milliseconds: 0))
    #expect(box.drain(into: &out) == 3)
    #expect(!box.event.wait(milliseconds: 0))
    #expect(out == [0, 1, 2, 3, 4])
  }

  @Test func `elements are released when they are dequeued`() throws {
    final class Token: Sendable {}
    let box = try Mailbox<Token>(capacity: 4)
    weak var seen: Token?
    do {
      let token = Token()
      seen = token
      box.post(token)
    }
    #expect(seen != nil)
    do {
      var out: [Token] = []
      box.drain(into: &out)
    }
    #expect(seen == nil)
  }

  @Test func `nothing is lost or doubled between four writers and a sleeping reader`() throws {
    let box = try Mailbox<Int>(capacity: 64)
    let each = 5_000
    let writers = try (0..<4).map { writer in
      try NamedThread.start(name: "writer-\(writer)") {
        for element in 0..<each {
          while !box.post(writer * each + element) { sched_yield() }
        }
      }
    }
    var out: [Int] = []
    while out.count < 4 * each {
      guard box.wait(into: &out, timeout: .seconds(10)) > 0 else { break }
    }
    for writer in writers { writer.join() }
    #expect(out.sorted() == Array(0..<4 * each))
    for writer in 0..<4 {
      let own = out.filter { $0 / each == writer }
      #expect(own == own.sorted())
    }
  }

  @Test func `gathered posts wake the reader once, when their poster says so`() throws {
    let box = try Mailbox<Int>(capacity: 8)
    for value in 1...3 { box.post(value, .gathered) }
    #expect(!box.event.wait(milliseconds: 0))
    box.wake()
    box.wake()
    #expect(box.event.wait(milliseconds: 0))
    var batch: [Int] = []
    #expect(box.drain(into: &batch) == 3 && batch == [1, 2, 3])
    box.wake()
    #expect(!box.event.wait(milliseconds: 0), "nothing waits")
    box.post(4, .gathered)
    box.post(5)
    #expect(box.event.wait(milliseconds: 0), "another's post wakes it for both")
    box.drain(into: &batch)
    #expect(batch == [1, 2, 3, 4, 5])
  }

  @Test func `a deferred post wakes a reader that sleeps without a time-out, not one that accepts deferred posts`() throws {
    let box = try Mailbox<Int>(capacity: 8)
    box.post(1, .deferred)
    #expect(box.event.wait(milliseconds: 0))
    var batch: [Int] = []
    box.wait(into: &batch, timeout: .zero, includesDeferred: true)
    #expect(batch == [1])
    // As within a doze: when it ends, the reader finds what was posted meanwhile.
    let before = MonotonicClock.now()
    let poster = try NamedThread.start(name: "poster") { box.post(2, .deferred) }
    poster.join()
    #expect(box.event.wait(milliseconds: 0), "the reader does not doze any more")
    box.wait(into: &batch, timeout: .milliseconds(1), includesDeferred: true)
    #expect(batch == [1, 2] && MonotonicClock.now() >= before)
  }

  @Test func `waiting ends at its timeout`() throws {
    let box = try Mailbox<Int>(capacity: 1)
    var out: [Int] = []
    let start = MonotonicClock.now()
    #expect(box.wait(into: &out, timeout: .milliseconds(20)) == 0)
    #expect(MonotonicClock.now() - start >= .milliseconds(19))
  }
}
