import Glibc
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@Suite struct EventLoopTests {
  @Test func `a loop runs posted closures on its thread in order, and stop returns from run`() throws {
    let loop = try EventLoop(name: "test")
    let seen = Mutex<[Int]>([])
    let names = Mutex<Set<String>>([])
    let thread = try NamedThread.start(name: "loop-test") { loop.run() }
    for number in 0..<100 {
      #expect(
        loop.post {
          seen.withLock { $0.append(number) }
          names.withLock { _ = $0.insert(currentThreadName()) }
        })
    }
    loop.stop()
    thread.join()
    #expect(seen.withLock { $0 } == Array(0..<100))
    #expect(names.withLock { $0 } == ["loop-test"])
  }

  @Test func `a timer fires once at or after its deadline, a moved one at the new, one put off never`() throws {
    let loop = try EventLoop()
    var fired: [String] = []
    let start = MonotonicClock.now()
    var at: [String: Duration] = [:]
    let off = loop.addTimer("off") { fired.append("off") }
    let early = loop.addTimer("early") {
      fired.append("early")
      at["early"] = loop.now - start
    }
    let late = loop.addTimer("late") {
      fired.append("late")
      at["late"] = loop.now - start
      loop.stop()
    }
    loop.setTimer(late, at: start + .milliseconds(5))
    loop.setTimer(late, at: start + .milliseconds(40))
    loop.setTimer(early, at: start + .milliseconds(20))
    loop.setTimer(off, at: start + .milliseconds(10))
    loop.setTimer(off, at: nil)
    loop.run()
    #expect(fired == ["early", "late"])
    #expect(try #require(at["early"]) >= .milliseconds(20))
    #expect(try #require(at["late"]) >= .milliseconds(40))
  }

  @Test func `a timer set by its own handler fires again`() throws {
    let loop = try EventLoop()
    var count = 0
    let box = TimerBox()
    let timer = loop.addTimer("again") {
      count += 1
      if count == 5 { loop.stop() } else if let id = box.id { loop.setTimer(id, at: loop.now + .milliseconds(1)) }
    }
    box.id = timer
    loop.setTimer(timer, at: loop.now)
    loop.run()
    #expect(count == 5)
  }

  @Test(.timeLimit(.minutes(1)))
  func `a deadline that stays in the past neither stops the loop nor spins it, and is counted and reported once`() throws {
    let loop = try EventLoop(name: "stuck-test")
    let reports = Mutex<[String]>([])
    EventLoop.reportStuckTimers { loop, timer in if loop == "stuck-test" { reports.withLock { $0.append(timer) } } }
    defer { EventLoop.reportStuckTimers { _, _ in } }
    let start = MonotonicClock.now()
    var (stuck, beats) = (0, 0)
    let timer = loop.addTimer("machine") {
      stuck += 1
      if stuck == 10 { loop.stop() }
    }
    let box = TimerBox()
    box.id = loop.addTimer("beat") {
      beats += 1
      if let id = box.id { loop.setTimer(id, at: loop.now + .milliseconds(1)) }
    }
    loop.addFlush { loop.setTimer(timer, at: start) }
    if let id = box.id { loop.setTimer(id, at: start) }
    loop.run()
    // the first firing is in time; each of the others waits for its pause, whatever else the loop does
    #expect(loop.now - start >= .milliseconds(90))
    #expect(beats > 1)
    #expect(reports.withLock { $0 } == ["machine"])
    #expect(EventLoop.stuckTimers.counter("stuck-test", "machine").value == 9)
    #expect(EventLoop.stuckTimers.counter("stuck-test", "beat").value == 0)
  }

  @Test(.timeLimit(.minutes(1))) func `a deadline in the past that moves on is caught up with, not slowed down`() throws {
    let loop = try EventLoop(name: "late-test")
    let start = MonotonicClock.now()
    let box = TimerBox()
    var ticks = 0
    box.id = loop.addTimer("tick") {
      ticks += 1
      guard let id = box.id, ticks < 1_000 else { return loop.stop() }
      loop.setTimer(id, at: Instant(nanoseconds: start.nanoseconds - 1_000_000_000 + Int64(ticks) * 1_000))
    }
    if let id = box.id { loop.setTimer(id, at: Instant(nanoseconds: start.nanoseconds - 1_000_000_000)) }
    loop.run()
    #expect(ticks == 1_000)
    #expect(EventLoop.stuckTimers.counter("late-test", "tick").value == 0)
  }

  @Test func `a readable descriptor calls its handler until it is unregistered`() throws {
    let loop = try EventLoop()
    let a = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let b = try UDPSocket(bind: SocketAddress(.loopback, 0))
    var got: [UInt8] = []
    try loop.register(b.fd, .readable) { events in
      #expect(events.contains(.readable))
      var buffer = [UInt8](repeating: 0, count: 10)
      while let (count, from) = buffer.withUnsafeMutableBytes({ raw in try? b.receive(into: raw) }) {
        #expect(from == a.localAddress)
        got += buffer.prefix(count)
      }
      if got.count == 1 {
        loop.unregister(b.fd)
        _ = try? a.send([2], to: b.localAddress)
        loop.post { loop.stop() }
      }
    }
    try a.send([1], to: b.localAddress)
    loop.run()
    #expect(got == [1])
  }

  @Test func `no event of a turn reaches a handler that was replaced within that turn`() throws {
    let loop = try EventLoop()
    let events = try (0..<2).map { _ in try EventDescriptor() }
    var calls: [Int] = []
    func handler(_ index: Int) -> (IOEvents) -> Void {
      { _ in
        calls.append(index)
        events[index].clear()
        let other = 1 - index
        loop.unregister(events[other].fd)
        try? loop.register(events[other].fd, .readable) { _ in
          calls.append(10 + other)
          loop.stop()
        }
      }
    }
    for index in 0..<2 {
      events[index].signal()
      try loop.register(events[index].fd, .readable, handler: handler(index))
    }
    loop.run()
    #expect(calls.count == 2 && calls[0] < 2 && calls[1] == 11 - calls[0])
  }

  @Test func `flushes run at the end of every turn`() throws {
    let loop = try EventLoop()
    var log: [String] = []
    loop.addFlush { log.append("flush") }
    let event = try EventDescriptor()
    event.signal()
    try loop.register(event.fd, .readable) { _ in
      event.clear()
      log.append("event")
      loop.stop()
    }
    loop.run()
    #expect(log.prefix(3) == ["flush", "event", "flush"])
  }

  @Test func `an ended thread leaves nothing behind`() throws {
    let entered = try EventDescriptor()
    let release = try EventDescriptor()
    let thread = try NamedThread.start(name: "a-name-longer-than-fifteen", nice: 5, cpu: 0) {
      entered.signal()
      _ = release.wait(milliseconds: 10_000)
    }
    #expect(entered.wait(milliseconds: 10_000))
    #expect(NamedThread.live.value >= 1)
    release.signal()
    thread.join()
    thread.join()
  }
}

private final class TimerBox { var id: EventLoop.TimerID? }

private func currentThreadName() -> String {
  guard let file = fopen("/proc/thread-self/comm", "r") else { return "" }
  defer { fclose(file) }
  var name = [UInt8](repeating: 0, count: 16)
  let count = fread(&name, 1, 16, file)
  return String(decoding: name.prefix(count).filter { $0 != 10 }, as: UTF8.self)
}
