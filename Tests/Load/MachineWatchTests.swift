import CTrunklineLinux
import Foundation
import Synchronization
import Testing

@testable import trunkline_lab

/// What `trunkline-lab demo` says of the machine, and what it takes for a call of its own.
@Suite struct MachineWatchTests {
  private func lateness(_ milliseconds: [Int: Int]) -> MachineLateness {
    var ticks = TickCounts()
    for (late, count) in milliseconds { for _ in 0..<count { ticks.count(.milliseconds(late)) } }
    return ticks.lateness
  }

  @Test func `a machine is late for a stall of more than two packets, or when one tick in a hundred is`() {
    #expect(!lateness([0: 990, 9: 5, 40: 5]).isLate)
    #expect(lateness([0: 9_999, 41: 1]).isLate)
    #expect(lateness([0: 980, 12: 20]).isLate)
    #expect(!TickCounts().lateness.isLate)
    #expect(!MachineLateness(waitShare: 0.1).isLate && MachineLateness(waitShare: 0.11).isLate)
  }

  @Test func `what is later than the scale counts as worst, and one tick in a hundred is above p99`() {
    let stalled = lateness([1: 99, 1_100: 1])
    #expect(stalled.worstMilliseconds == 1_100 && stalled.p99Milliseconds == 1)
    #expect(lateness([1: 98, 1_100: 2]).p99Milliseconds == 200)
    #expect("\(stalled)".hasPrefix("at most 1100.0 ms late, p99 1.0 ms; "))
  }

  @Test func `the thread counts at least one tick and ends when it is told`() throws {
    let watch = try MachineWatch([getpid()])
    #expect(watch.stop().worstMilliseconds > 0)
  }

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/schedstat")))
  func `of two threads that want one processor one waits, and a process that is gone is passed over`() throws {
    let isOver = Flag()
    var processors = [Int32](repeating: 0, count: 1_024)
    try #require(clx_get_affinity(&processors, Int32(processors.count)) > 0)
    let processor = processors[0]
    for _ in 0..<2 {
      Thread.detachNewThread {
        _ = clx_set_affinity(processor)
        while !isOver.value.withLock({ $0 }) {}
      }
    }
    defer { isOver.value.withLock { $0 = true } }
    var waits = ThreadWaits()
    let end = ContinuousClock.now + .seconds(60)
    while waits.worstMilliseconds < 5, ContinuousClock.now < end {
      waits.read([getpid(), 0])
      usleep(1_000)
    }
    #expect(waits.worstMilliseconds >= 5)
  }

  private final class Flag: Sendable { let value = Mutex(false) }

  private func outcome(_ lateness: MachineLateness) throws -> DemoOutcome {
    let nothing = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    return try DemoOutcome(carrier: [], phone: [], record: nil, lateness: lateness, folder: nothing)
  }

  @Test func `a call that was not heard is red on a machine in time, void on a late one`() throws {
    let inTime = try outcome(MachineLateness(worstMilliseconds: 3, p99Milliseconds: 0.2))
    #expect(inTime.failure == 1 && inTime.verdict.hasPrefix("NOT both"))
    let late = try outcome(MachineLateness(worstMilliseconds: 1_100, p99Milliseconds: 2))
    #expect(late.failure == 75 && late.verdict.hasPrefix("VOID"))
  }

  @Test func `a second demo in one folder is refused, and no earlier call's sound is kept`() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: path) }
    try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
    let old = path.appendingPathComponent(DemoOutcome.appFile)
    try Data([1]).write(to: old)
    let first = try DemoFolder(path.path)
    #expect(!FileManager.default.fileExists(atPath: old.path))
    #expect(throws: DemoFolder.FolderInUse.self) { try DemoFolder(path.path) }
    withExtendedLifetime(first) {}
  }
}
