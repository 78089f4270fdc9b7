import AppProtocol
import Testing

@testable import CallFlow
@testable import Control

/// How calls came out, for ratios by trunk.
@Suite struct SeizureOutcomeTests {
  private func record(
    _ reason: EndReason, direction: CallDirection = .outgoing, times: [CallStage: Int64] = [:], connectedMs: Int64 = 0
  ) -> CallRecord {
    CallRecord(
      call: CallID(high: 1, low: 1), sipCallId: nil, direction: direction, trunk: "carrier", from: "+1", to: "+2", user: nil,
      device: nil,
      devices: 0, times: Dictionary(uniqueKeysWithValues: times.map { ($0.key.rawValue, $0.value) }),
      end: .init(reason, by: .trunk),
      connectedMs: connectedMs, codecs: .init())
  }

  @Test func `every reason is one outcome, and a call that was connected is answered whatever ended it`() {
    for reason in EndReason.allCases { #expect(SeizureOutcome(record(reason, connectedMs: 1)) == .answered) }
    let wanted: [(EndReason, SeizureOutcome)] = [
      (.busy, .busy), (.unanswered, .noAnswer), (.callerCancelled, .abandoned), (.localEnd, .abandoned), (.declined, .rejected),
      (.trunkFailed, .failed), (.notFound, .failed), (.overload, .failed),
    ]
    for (reason, outcome) in wanted { #expect(SeizureOutcome(record(reason)) == outcome, "\(reason)") }
  }

  @Test func `post-dial delay is from our INVITE to the first sign of the called party`() {
    #expect(record(.busy, times: [.inviteSent: 1_000, .ringing: 2_500, .connected: 5_000]).postDialDelay == 1.5)
    #expect(record(.busy, times: [.inviteSent: 1_000, .connected: 1_200]).postDialDelay == 0.2)
    #expect(record(.busy, times: [.inviteSent: 1_000]).postDialDelay == nil)
    #expect(record(.busy, direction: .incoming, times: [.inviteSent: 1_000, .ringing: 2_500]).postDialDelay == nil)
  }
}
