import Glibc
import Logging
import Synchronization
import Testing
import TrunklineBytes

@testable import TrunklinePlatform

@Suite struct HeartbeatTests {
  private let table = Heartbeats()

  private func looks(_ count: Int) -> [Int] {
    (0..<count).map { _ in
      table.look()
      return table.ages.first?.looks ?? -1
    }
  }

  @Test func `a thread that stays in one turn grows older by each look, and is young again with its next turn`() {
    let heartbeat = Heartbeat(name: "control", in: table)
    #expect(looks(4) == [0, 1, 2, 3])
    heartbeat.woke()
    #expect(looks(3) == [0, 1, 2])
    heartbeat.waits()
    #expect(looks(2) == [0, 0])
  }

  @Test func `a thread that waits is well however long, and its next turn is a new one`() {
    let heartbeat = Heartbeat(name: "media-0", in: table)
    heartbeat.waits()
    #expect(looks(100) == Array(repeating: 0, count: 100))
    heartbeat.woke()
    #expect(looks(2) == [0, 1])
    heartbeat.waits()
    heartbeat.woke()
    #expect(looks(2) == [0, 1])
  }

  @Test func `a thread that has ended is watched no longer`() {
    let (first, second) = (Heartbeat(name: "a", in: table), Heartbeat(name: "b", in: table))
    table.look()
    first.end()
    #expect(table.ages.map(\.name) == ["b"])
    second.end()
    #expect(table.ages.isEmpty)
  }

  @Test func `beyond the limit threads are not watched, and nothing is lost of those that are`() {
    let all = (0..<Limits.heartbeats + 10).map { Heartbeat(name: "\($0)", in: table) }
    #expect(table.ages.count == Limits.heartbeats)
    for heartbeat in all { heartbeat.end() }
    #expect(table.ages.isEmpty)
  }

  @Test func `an event loop has a heartbeat of its thread while it runs`() throws {
    let loop = try EventLoop(name: "another")
    let seen = Mutex<[String]>([])
    let thread = try NamedThread.start(name: "beat-test") { loop.run() }
    loop.post { seen.withLock { $0 = Heartbeats.process.ages.map(\.name) } }
    loop.stop()
    thread.join()
    #expect(seen.withLock { $0 }.contains("beat-test"))
    #expect(!Heartbeats.process.ages.contains { $0.name == "beat-test" })
  }
}

@Suite struct HangDetectorTests {
  private var detector = HangDetector { $0 == "control" }
  private func ages(_ name: String, _ looks: Int) -> [Heartbeats.Age] {
    [.init(name: "idle", looks: 0), .init(name: name, looks: looks)]
  }

  @Test func `older than 2 s is a hang, 2 s is none`() {
    #expect(HangDetector.hung(ages("store", 20)).isEmpty)
    #expect(HangDetector.hung(ages("store", 21)).map(\.name) == ["store"])
  }

  @Test mutating func `a vital thread ends the process when it is older than 5 s, another never does`() {
    #expect(detector.wakeUp(ages("control", 50), isAsked: false) == nil)
    #expect(detector.wakeUp(ages("store", 100_000), isAsked: false) == nil)
    #expect(detector.wakeUp(ages("control", 51), isAsked: false) == .hangs("control", seconds: 5))
  }

  @Test mutating func `the time to end is counted in wake-ups, and a later word does not prolong it`() {
    detector.end(within: .seconds(1))
    detector.end(within: .seconds(9))
    for _ in 0..<10 { #expect(detector.wakeUp([], isAsked: false) == nil) }
    #expect(detector.wakeUp(ages("store", 6), isAsked: false) == .overdue(["store"]))
  }

  @Test mutating func `a later word may shorten the time to end`() {
    detector.end(within: .seconds(600))
    _ = detector.wakeUp([], isAsked: false)
    detector.end(within: .zero)
    #expect(detector.wakeUp([], isAsked: false) == .overdue([]))
  }

  @Test mutating func `a signal that nobody takes ends the process after a time-out, one that is taken does not`() {
    for _ in 0..<20 { #expect(detector.wakeUp([], isAsked: true) == nil) }
    #expect(detector.wakeUp([], isAsked: false) == nil)
    detector.setSignalTimeout(.seconds(3))
    for _ in 0..<30 { #expect(detector.wakeUp([], isAsked: true) == nil) }
    #expect(detector.wakeUp([], isAsked: true) == .signalIgnored)
  }

  @Test func `each ending says what hangs in one line`() {
    let endings: [HangDetector.Ending] = [
      .hangs("control", seconds: 5), .overdue(["store", "push"]), .overdue([]), .signalIgnored,
    ]
    for ending in endings { #expect(!ending.text.contains("\n") && ending.text.utf8.count < Limits.emergencyLogBytes - 20) }
    #expect(endings[0].text.contains("thread control") && endings[1].text.contains("store, push"))
  }
}

@Suite struct ThreadWatchTests {
  @Test func `a watch names the thread that hangs, its age is a metric, and it is well again afterwards`() throws {
    let table = Heartbeats()
    let heartbeat = Heartbeat(name: "store", in: table)
    let watch = try ThreadWatch(
      heartbeats: table, interval: .milliseconds(1), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _ in false }
    defer { watch.stop() }
    while watch.hung.isEmpty { sched_yield() }
    #expect(watch.hung.first?.thread == "store")
    #expect(try #require(watch.hung.first?.age) > .seconds(2))
    guard case .number(let seconds) = watch.metrics[0].snapshot().first?.value else { return #expect(Bool(false)) }
    #expect(seconds > 2)
    heartbeat.waits()
    while !watch.hung.isEmpty { sched_yield() }
  }

  @Test(arguments: [
    ("enable=yes", true), ("color=no,enable=tty", true), ("enable=no", false), ("", false), ("enable", false),
    ("color=yes", false),
    ("enable=1,unwind=fast", true),
  ])
  func `the runtime's own crash handler stays only where it was asked for`(setting: String, isAsked: Bool) {
    #expect(ProcessSignals.asksForBacktrace(setting) == isAsked)
  }
}
