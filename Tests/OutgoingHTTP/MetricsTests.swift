import PushPolicy
import Testing
import TrunklinePlatform

@testable import OutgoingHTTP

@Suite struct MetricsTests {
  /// A counter that appears with its first event has no rate for that event.
  @Test func `each outcome has a sample at 0 before the first`() throws {
    let families = PushStatistics().families + EventStatistics().families + WebhookStatistics().families
    let samples = [
      "trunkline_pushes_total": PushService.allCases.count * 4,
      "trunkline_event_webhooks_total": EventStatistics.Outcome.allCases.count,
      "trunkline_webhooks_total": WebhookStatistics.Outcome.allCases.count,
    ]
    for (name, count) in samples {
      let family = try #require(families.first { $0.name == name })
      let values = family.snapshot().map(\.value)
      #expect(values.count == count, "\(name)")
      for value in values {
        guard case .integer(0) = value else {
          Issue.record("\(name) begins at \(value)")
          continue
        }
      }
    }
  }
}
