import CallFlow
import CallModel
import Foundation
import Testing
import Trunking
import TrunklinePlatform

@testable import Control

/// What a trunk's counters say of calls that ended.
@Suite struct TrunkQualityTests {
  private func record(
    _ reason: String, _ direction: CallDirection = .outgoing, times: [CallStage: Int64] = [.start: 0, .inviteSent: 100],
    connectedMs: Int64 = 0, packets: (trunk: Int, app: Int)? = nil, recording: Bool = false
  ) throws -> CallRecord {
    func stream(_ packets: Int) -> [String: Any] {
      [
        "packets": packets, "sent": 0, "lost": 1, "loss": 0.01, "late": 0, "dropped": 0, "jitterMs": 0, "bufferMs": 0,
        "concealedMs": 0, "repairedMs": 0, "mos": 4.2,
      ]
    }
    var json: [String: Any] = [
      "call": "0b9f2a30-6c5c-4f43-8d5c-1f0c2b8a7d11", "direction": direction.rawValue, "trunk": "carrier", "from": "a", "to": "b",
      "devices": 1, "times": Dictionary(uniqueKeysWithValues: times.map { ($0.key.rawValue, $0.value) }),
      "end": ["reason": reason, "by": "trunk"], "connectedMs": connectedMs, "codecs": [String: String](),
    ]
    if let packets { (json["fromTrunk"], json["fromApp"]) = (stream(packets.trunk), stream(packets.app)) }
    if recording { json["diversions"] = [["why": "unreached", "recording": "box"]] }
    return try JSONDecoder().decode(CallRecord.self, from: JSONSerialization.data(withJSONObject: json))
  }

  private func samples(_ metrics: TrunkMetrics, _ name: String) -> [MetricSample] {
    metrics.families.first { $0.name == name }?.snapshot() ?? []
  }

  @Test(arguments: [
    ("busy", InviteOutcome.busy), ("unanswered", .unanswered), ("declined", .rejected), ("trunkFailed", .failed),
    ("notFound", .failed), ("callerCancelled", .abandoned),
  ])
  func `a refused INVITE has an outcome by its reason`(reason: String, outcome: InviteOutcome) throws {
    #expect(try record(reason).outcome == outcome)
  }

  @Test func `a caller who gives up while it rings was not answered, and an INVITE that was not sent is no attempt`() throws {
    #expect(try record("localEnd", times: [.inviteSent: 100, .ringing: 900]).outcome == .unanswered)
    #expect(try record("trunkFailed", times: [.start: 0]).outcome == nil)
    #expect(try record("busy", .incoming, times: [.start: 0]).outcome == .busy)
    #expect(try record("remoteHangup", times: [.inviteSent: 100, .connected: 900]).outcome == .answered)
  }

  @Test func `post-dial delay ends with the first 18x or 2xx, of outgoing calls only`() throws {
    #expect(try record("busy").postDialDelay == nil)
    #expect(try record("busy", times: [.inviteSent: 100, .trying: 110, .progress: 1_350, .ringing: 2_000]).postDialDelay == 1.25)
    #expect(try record("remoteHangup", times: [.inviteSent: 100, .connected: 600]).postDialDelay == 0.5)
    #expect(try record("busy", .incoming, times: [.start: 0, .ringing: 50]).postDialDelay == nil)
  }

  @Test(arguments: [(9, 9, AudioHeard.both), (9, 0, .trunkOnly), (0, 9, .appOnly), (0, 0, .neither)])
  func `a call of 5 s says which sides sent audio`(trunk: Int, app: Int, heard: AudioHeard) throws {
    #expect(try record("remoteHangup", connectedMs: 5_000, packets: (trunk, app)).audioHeard == heard)
    #expect(try record("remoteHangup", connectedMs: 4_999, packets: (trunk, app)).audioHeard == nil)
    #expect(try record("remoteHangup", connectedMs: 5_000, packets: (trunk, app), recording: true).audioHeard == nil)
  }

  @Test func `each outcome of a trunk's outgoing calls has its row from the start, so that the first one is a step from 0`() {
    let metrics = TrunkMetrics()
    metrics.publish([TrunkStatus(trunk: "carrier")])
    #expect(samples(metrics, "trunkline_trunk_attempts_total").count == InviteOutcome.allCases.count)
    #expect(samples(metrics, "trunkline_trunk_audio_total").count == AudioHeard.allCases.count)
  }

  @Test func `counters and histograms carry the trunk's name, and go on under removed when it has left`() throws {
    let metrics = TrunkMetrics()
    let times: [CallStage: Int64] = [.inviteSent: 100, .ringing: 600, .connected: 900]
    metrics.count(try record("remoteHangup", times: times, connectedMs: 6_000, packets: (99, 0)))
    let histograms = [
      "trunkline_trunk_post_dial_delay_seconds": 0.5, "trunkline_trunk_opinion_score": 4.2, "trunkline_trunk_loss_ratio": 0.01,
    ]
    for trunk in ["carrier", "removed", "removed"] {
      #expect(samples(metrics, "trunkline_trunk_attempts_total").map(\.labels) == [["out", "answered", trunk]])
      #expect(samples(metrics, "trunkline_trunk_audio_total").map(\.labels) == [[trunk, "trunk_only"]])
      for (name, sum) in histograms {
        let found = samples(metrics, name)
        #expect(found.map(\.labels) == [[trunk]], "\(name)")
        guard case .histogram(let histogram)? = found.first?.value else { continue }
        #expect(histogram.sum == sum && histogram.total == 1, "\(name)")
      }
      metrics.publish([])
    }
  }
}
