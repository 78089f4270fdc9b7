import Testing
import TrunklineAppProtocol

@testable import CallFlow
@testable import CallModel
@testable import trunkline

/// The last hour of the status page.
@Suite struct RecentCallsTests {
  private func record(
    _ reason: EndReason, _ direction: CallDirection = .incoming, connectedMs: Int64 = 0, trunk: String = "carrier"
  ) -> CallRecord {
    CallRecord(
      call: CallID(high: 1, low: 1), sipCallId: nil, direction: direction, trunk: trunk, from: "+1", to: "+2", user: nil,
      device: nil, devices: 0, times: [:], end: .init(reason, by: .trunk), connectedMs: connectedMs, codecs: .init())
  }

  @Test func `calls count by direction and end for an hour, and are forgotten then`() {
    let recent = RecentCalls()
    let start: Int64 = 1_790_000_000_000 / 60_000 * 60_000
    recent.note(record(.remoteHangup, connectedMs: 5), now: start)
    recent.note(record(.busy, .outgoing), now: start + 59_999)
    recent.note(record(.busy, .outgoing), now: start + 60_000)
    let hour = recent.hour(now: start + 60_000)
    #expect(hour.total == .init(incoming: 1, outgoing: 2, incomingConnected: 1, reasons: ["connected": 1, "busy": 2]))
    #expect(hour.minutes.count == 60 && hour.minutes.suffix(2) == [2, 1])
    #expect(recent.hour(now: start + 59 * 60_000).minutes.prefix(2) == [2, 1])
    #expect(recent.hour(now: start + 60 * 60_000).total.outgoing == 1)
    #expect(recent.hour(now: start + 61 * 60_000) == RecentCalls().hour(now: start))
  }

  @Test func `test calls are neither shown nor counted`() {
    let recent = RecentCalls()
    let start: Int64 = 1_790_000_000_000 / 60_000 * 60_000
    recent.note(record(.remoteHangup, .outgoing, connectedMs: 5_000, trunk: Routing.testTrunk), now: start)
    #expect(recent.ended.isEmpty && recent.hour(now: start) == RecentCalls().hour(now: start))
    recent.note(record(.busy), now: start)
    #expect(recent.ended.map(\.trunk) == ["carrier"] && recent.hour(now: start).total.incoming == 1)
  }
}
