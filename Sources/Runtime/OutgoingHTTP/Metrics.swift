import PushPolicy
import TrunklinePlatform

/// The counts of the push thread. Any thread reads.
public final class PushStatistics: Sendable {
  /// By service and outcome.
  let outcomes = CounterTable(labelNames: ["service", "outcome"])
  /// By service and the reason that the service states, which operators search for.
  let failures = CounterTable(labelNames: ["service", "reason"])
  let requests = Counter()
  let underWay = Gauge()
  let open = LabelledGauges<PushService>()
  let answerTime = Histogram(bounds: Histogram.secondsBounds)
  /// By service, environment and reason: tokens of another environment or app.
  let tokenMismatches = CounterTable(labelNames: ["service", "environment", "reason"])
  let inviteToPush = Histogram(bounds: Histogram.secondsBounds)
  let elapsed = Histogram(bounds: Histogram.secondsBounds)

  private enum Outcome: String, CaseIterable { case accepted, unregistered, tokenMismatch, failed }

  /// A counter that appears with its first push has no rate for it: each begins at 0.
  init() {
    for service in PushService.allCases { for outcome in Outcome.allCases { _ = counter(service, outcome) } }
  }

  private func counter(_ service: PushService, _ outcome: Outcome) -> Counter {
    outcomes.counter(service.rawValue, outcome.rawValue)
  }

  func count(_ report: PushReport) {
    let service = report.target.service
    elapsed.record(report.elapsed)
    switch report.outcome {
    case .accepted: counter(service, .accepted).increment()
    case .unregistered: counter(service, .unregistered).increment()
    case .tokenMismatch:
      counter(service, .tokenMismatch).increment()
      tokenMismatches.counter(service.rawValue, report.target.environment.rawValue, report.reason).increment()
    case .failed: counter(service, .failed).increment()
    }
    if report.outcome != .accepted { failures.counter(service.rawValue, report.reason).increment() }
  }

  var families: [MetricFamily] {
    [
      .counters("trunkline_pushes_total", help: "Pushes by service and how they ended.", outcomes),
      .counters("trunkline_push_failures_total", help: "Pushes that were not accepted, by the service's reason.", failures),
      .counter("trunkline_push_requests_total", help: "Requests to push services, retries and access tokens included.", requests),
      .gauge("trunkline_pushes_under_way", help: "Pushes without an outcome yet.", underWay),
      .gauges(
        "trunkline_push_circuit_open", help: "1 while a push service gets no requests because it fails.", label: "service", open),
      .counters(
        "trunkline_push_token_mismatches_total",
        help:
          "Tokens refused because they are of another environment (a sandbox token sent to production, or the reverse) or app.",
        tokenMismatches),
      .histogram(
        "trunkline_invite_to_push_seconds",
        help: "From an INVITE to the request for the service, for devices that are pushed to at once.",
        inviteToPush),
      .histogram("trunkline_push_answer_seconds", help: "From a request to its answer.", answerTime),
      .histogram("trunkline_push_seconds", help: "From the decision to wake a device to the outcome.", elapsed),
    ]
  }
}
