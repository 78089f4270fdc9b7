import CallFlow
import Synchronization
import Testing
import Trunking
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import Control

@Suite struct OverloadTests {
  private func take(_ detector: inout OverloadDetector, _ milliseconds: [Int], used: Int64 = 0, limit: Int64 = 0) {
    for late in milliseconds { detector.add(delay: .milliseconds(late), memory: (used, limit)) }
  }

  @Test func `delay refuses from 200 ms in the mean of a second until it is below 50`() {
    var detector = OverloadDetector()
    take(&detector, [1_000])
    #expect(detector.lasting == nil, "one late turn is no overload")
    take(&detector, Array(repeating: 210, count: 10))
    #expect(detector.lasting == .delay)
    take(&detector, Array(repeating: 60, count: 10))
    #expect(detector.lasting == .delay)
    take(&detector, Array(repeating: 40, count: 10))
    #expect(detector.lasting == nil)
  }

  @Test func `a stop of the whole process is no overload, however long`() {
    var detector = OverloadDetector()
    take(&detector, [0, 0, 20_000, 0, 0])
    #expect(detector.lasting == nil)
    take(&detector, [0, 20_000])
    #expect(detector.lasting == .delay, "a second one within a second is")
  }

  @Test func `memory refuses from 90 percent of its limit until 85; without a limit never`() {
    var detector = OverloadDetector()
    for (used, limit, wanted) in [(89, 100, nil), (90, 100, .memory), (86, 100, .memory), (84, 100, nil), (1_000, 0, nil)]
      as [(Int64, Int64, RefusalReason?)]
    {
      take(&detector, [0], used: used * 1_000, limit: limit * 1_000)
      #expect(detector.lasting == wanted, "\(used) of \(limit)")
    }
  }

  @Test func `SIP that waits in the kernel for 40 ms is refused until it is read`() {
    let detector = OverloadDetector()
    #expect(detector.verdict(nil, isFull: false, backlog: .milliseconds(39)) == nil)
    #expect(detector.verdict(.cpu, isFull: true, backlog: .milliseconds(40)) == .delay)
    #expect(detector.verdict(nil, isFull: false, backlog: .zero) == nil)
  }

  @Test func `what lasts comes before slots, and slots before media`() {
    var detector = OverloadDetector()
    #expect(detector.verdict(nil, isFull: false) == nil)
    #expect(detector.verdict(.cpu, isFull: false) == .cpu)
    #expect(detector.verdict(.ports, isFull: false) == .ports)
    #expect(detector.verdict(.ports, isFull: true) == .calls)
    take(&detector, [0], used: 100, limit: 100)
    #expect(detector.verdict(.cpu, isFull: true) == .memory)
  }

  @Test func `a shortage refuses the very next INVITE, its end takes the one after, and readiness hears of it`() throws {
    let shortage = Mutex<MediaShortage?>(.ports)
    let told = Mutex<[RefusalReason?]>([])
    let surroundings = try Surroundings(
      shortage: { shortage.withLock { $0 } }, overloaded: { reason in told.withLock { $0.append(reason) } })
    surroundings.receive(Surroundings.invite(to: "+15551230001"))
    #expect(surroundings.eventually { $0.sip.map { $0.prefix(11) } == ["SIP/2.0 503"] })
    #expect(surroundings.eventually { _ in told.withLock { $0 } == [.ports] })
    shortage.withLock { $0 = nil }
    surroundings.receive(Surroundings.invite(to: "+19990000000", call: "b"))
    #expect(surroundings.eventually { $0.sip.last?.hasPrefix("SIP/2.0 404") == true })
    #expect(surroundings.eventually { _ in told.withLock { $0 } == [.ports, nil] })
    surroundings.stop()
    #expect(surroundings.seen.records.count == 1, "the refused one is no call")
  }

  /// What the delay is measured with: were the loop asleep between two questions, each of these would find it late.
  @Test func `a trunk whose name cannot be found leaves the loop's timers alone, whether somebody asks or not`() throws {
    let lost = TrunkSettings(
      name: "lost", domain: "nowhere.example", server: ServerURI(host: "nowhere.example"), registration: .init(user: "u"),
      probe: .init(interval: .seconds(2)))
    let surroundings = try Surroundings(unlocated: lost)
    #expect(surroundings.eventually { $0.lookUps > 0 })
    for _ in 0..<3 {
      let before = surroundings.seen.pressureChecks
      // nothing comes in: timers alone wake the loop
      #expect(surroundings.eventually(within: .seconds(60)) { $0.pressureChecks >= before + 4 })
      surroundings.inbox.ask(.calls(after: nil), QuestionID(1))
    }
    surroundings.stop()
    #expect(EventLoop.stuckTimers.counter("test", "calls").value == 0)
  }

  @Test func `this process has memory and a limit`() {
    #expect(ProcessMemory.residentBytes() > 1 << 20)
    #expect(ProcessMemory.limitBytes() > ProcessMemory.residentBytes())
  }
}
