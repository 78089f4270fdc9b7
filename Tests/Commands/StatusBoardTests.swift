import Foundation
import HTTP
import Synchronization
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

@testable import AppServer
@testable import CallFlow
@testable import CallModel
@testable import trunkline

/// `/v1/status`: its cost with many readers, and its contents.
@Suite struct StatusBoardTests {
  /// A board that gets its calls from the test.
  private final class Rig: Sendable {
    struct Reading: Sendable {
      var page: @Sendable ([StatusCall]) -> Void
      var done: @Sendable (Bool) -> Void
    }
    let readings = Mutex<[Reading]>([])
    let answers = Mutex<[Body]>([])
    let readiness = Readiness()
    let recent = RecentCalls()
    let facts: StatusFacts
    private let made = Mutex<StatusBoard?>(nil)
    var board: StatusBoard { made.withLock { $0! } }

    init() {
      readiness.set("calls", ready: true)
      facts = StatusFacts(node: "gw-a", readiness: readiness, recent: recent, hung: { [] })
      made.withLock {
        $0 = StatusBoard(facts) { [self] _, page, done in readings.withLock { $0.append(Reading(page: page, done: done)) } }
      }
    }

    func ask(_ query: String = "", at seconds: Int = 0) throws {
      var request = try AdminRequest("GET", target: "/v1/status" + query)
      request.client = "crm"
      try board.answer(
        request,
        { [self] response in
          let body = try? JSONDecoder().decode(Body.self, from: Data(response.body))
          answers.withLock { $0.append(body ?? Body()) }
        }, now: Instant(nanoseconds: 1_000_000_000_000) + .seconds(seconds))
    }

    /// Ends the newest reading.
    func end(_ calls: [StatusCall], isComplete: Bool = true) throws {
      let reading = try #require(readings.withLock { $0.last })
      reading.page(calls)
      reading.done(isComplete)
    }
  }

  struct Body: Decodable {
    struct Call: Decodable {
      var call, quality: String
    }
    struct Calls: Decodable {
      var count, found, poor: Int
      var complete: Bool
      var rows: [Call]
    }
    struct Trunk: Decodable {
      var trunk: String
      var up: Bool
      var since: Int64
    }
    struct Trunks: Decodable {
      var count, down: Int
      var rows: [Trunk]
    }
    struct Ended: Decodable { var call: String }
    var node = ""
    var ready = false
    var calls = Calls(count: -1, found: -1, poor: -1, complete: false, rows: [])
    var trunks = Trunks(count: -1, down: -1, rows: [])
    var ended: [Ended] = []
  }

  private func call(_ number: UInt64, mos: Double? = 4.3, loss: Double = 0, start: Int64 = 0, user: String = "alice")
    -> StatusCall
  {
    var summary = CallSummary(
      call: CallID(high: 0, low: number), sipCallId: "a-\(number)@example", direction: .incoming, state: .connected,
      trunk: "carrier",
      from: "+1555\(number)", to: "+2", user: user, times: ["start": start], devices: [], held: false, heldByTrunk: false,
      muted: false)
    if let mos {
      summary.fromTrunk = CallRecord.Stream(
        packets: 50, sent: 50, lost: 0, loss: loss, late: 0, dropped: 0, jitterMs: 0, bufferMs: 0, concealedMs: 0, repairedMs: 0,
        mos: mos)
    }
    return StatusCall(summary)
  }

  private func last(_ rig: Rig) throws -> Body { try #require(rig.answers.withLock { $0.last }) }

  @Test func `ten requests at once cost one reading of the calls, and the next one none while it is young`() throws {
    let rig = Rig()
    for _ in 0..<10 { try rig.ask() }
    #expect(rig.readings.withLock { $0.count } == 1 && rig.answers.withLock { $0.isEmpty })
    try rig.end([call(1)])
    #expect(rig.answers.withLock { $0.count } == 10 && rig.answers.withLock { $0.allSatisfy { $0.calls.count == 1 } })
    // young by the machine's clock, on which the thousand seconds have not passed
    try rig.ask("", at: -1_000)
    #expect(rig.readings.withLock { $0.count } == 1 && rig.answers.withLock { $0.count } == 11)
  }

  @Test func `while control does not answer, requests get the known part, marked as incomplete`() throws {
    let rig = Rig()
    try rig.ask()
    try rig.ask("", at: 1)
    #expect(rig.answers.withLock { $0.isEmpty })
    try rig.ask("", at: 3)
    #expect(rig.answers.withLock { $0.count } == 3 && rig.readings.withLock { $0.count } == 1)
    #expect(rig.answers.withLock { $0.allSatisfy { !$0.calls.complete && $0.ready && $0.node == "gw-a" } })
    try rig.end([call(1)])
    #expect(rig.answers.withLock { $0.count } == 3, "each is answered once")
    try rig.ask("", at: -1_000)
    #expect(try last(rig).calls.complete)
  }

  @Test func `after a refused question the answer has the calls of before`() throws {
    let rig = Rig()
    try rig.ask()
    try rig.end([], isComplete: false)
    #expect(try !last(rig).calls.complete && last(rig).calls.count == 0)
    try rig.ask()
    #expect(rig.readings.withLock { $0.count } == 2, "it is asked again")
  }

  @Test func `of ten thousand calls a hundred are shown, the poor first; a search covers all`() throws {
    let rig = Rig()
    try rig.ask()
    let all = (1...10_000 as ClosedRange<UInt64>).map { number in
      call(
        number, mos: number == 9_999 ? 2.0 : number % 2 == 0 ? nil : 4.3, loss: number == 77 ? 0.08 : 0, start: Int64(number),
        user: number == 9_998 ? "Zoë" : "alice")
    }
    try rig.end(all)
    let shown = try last(rig).calls
    #expect(shown.count == 10_000 && shown.found == 10_000 && shown.poor == 2 && shown.rows.count == 100)
    #expect(shown.rows.prefix(3).map(\.call) == [77, 9_999, 1].map { CallID(high: 0, low: $0).description })
    #expect(shown.rows.prefix(3).map(\.quality) == ["poor", "poor", "good"])
    for find in ["zo%C3%AB", "ZO%C3%AB", "A-9998@EXAMPLE", "15559998"] {
      try rig.ask("?find=\(find)", at: -1_000)
      let found = try last(rig).calls
      #expect(
        found.count == 10_000 && found.found == 1 && found.rows.map(\.call) == [CallID(high: 0, low: 9_998).description],
        "\(find)")
    }
    try rig.ask("?find=nobody", at: -1_000)
    #expect(try last(rig).calls.rows.isEmpty)
    #expect(throws: APIError.self) { try rig.ask("?find=" + String(repeating: "x", count: 257)) }
    #expect(throws: APIError.self) { try rig.ask("?find=") }
  }

  @Test func `a trunk has the time since when its state holds, and those that are down come first`() throws {
    let rig = Rig()
    var (carrier, backup) = (TrunkStatus(trunk: "carrier"), TrunkStatus(trunk: "backup"))
    let now = MonotonicClock.now()
    rig.facts.note([carrier, backup], now: now - .seconds(100))
    backup.mark(.notAnswering)
    rig.facts.note([carrier, backup], now: now - .seconds(40))
    rig.facts.note([carrier, backup], now: now - .seconds(10))
    try rig.ask()
    try rig.end([])
    let trunks = try last(rig).trunks
    #expect(trunks.rows.map(\.trunk) == ["backup", "carrier"] && trunks.count == 2 && trunks.down == 1)
    let wall = WallClock.nowMilliseconds()
    #expect((40_000...70_000).contains(wall - trunks.rows[0].since) && (100_000...130_000).contains(wall - trunks.rows[1].since))
    carrier.mark(.disabled)
    rig.facts.note([carrier], now: now)
    try rig.ask("?find=CARR", at: -1_000)
    #expect(
      try last(rig).trunks.rows.map(\.up) == [false]
        && (0...30_000).contains(WallClock.nowMilliseconds() - last(rig).trunks.rows[0].since))
  }

  @Test func `the last fifty calls are kept, the newest first`() throws {
    let rig = Rig()
    for number in 1...60 as ClosedRange<UInt64> {
      rig.recent.note(
        CallRecord(
          call: CallID(high: 0, low: number), sipCallId: nil, direction: .incoming, trunk: "carrier", from: "+1", to: "+2",
          user: nil,
          device: nil, devices: 0, times: ["start": 5], end: .init(.busy, by: .trunk, sip: 486, detail: "486 Busy Here"),
          connectedMs: 0,
          codecs: .init()))
    }
    #expect(rig.recent.ended.map(\.call.low) == (11...60).reversed())
    let newest = try #require(rig.recent.ended.first)
    #expect(
      newest.reason == .busy && newest.sip == 486 && newest.detail == "486 Busy Here" && newest.start == 5
        && newest.fromTrunk == nil)
    try rig.ask()
    try rig.end([])
    #expect(try last(rig).ended.count == 50)
  }

  @Test(arguments: [
    (4.3, 0.0, StatusCall.Quality.good), (4.0, 0.0, .good), (3.99, 0.0, .fair), (3.09, 0.0, .poor), (4.4, 0.05, .poor),
  ])
  func `how a call sounds is a word, by MOS and loss`(mos: Double, loss: Double, expected: StatusCall.Quality) {
    #expect(call(1, mos: mos, loss: loss).quality == expected)
    #expect(call(1, mos: nil).quality == .unknown)
  }
}
