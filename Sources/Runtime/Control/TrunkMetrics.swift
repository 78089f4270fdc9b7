import CallFlow
import CallModel
import Synchronization
import Trunking
import TrunklinePlatform

/// Control's counts by trunk. A trunk that left the configuration is counted under `removed` from a second after its last call's
/// end.
final class TrunkMetrics: Sendable {
  private let started = CounterTable(labelNames: ["direction", "trunk"], limit: Limits.trunkLabelSets)
  private let ended = CounterTable(labelNames: ["direction", "reason", "by", "trunk"], limit: Limits.trunkLabelSets)
  private let media = CounterTable(labelNames: ["trunk", "profile"], limit: Limits.trunkLabelSets)
  private let events = CounterTable(labelNames: ["trunk", "event"], limit: Limits.trunkLabelSets)
  private let outcomes = CounterTable(labelNames: ["direction", "outcome", "trunk"], limit: Limits.trunkLabelSets)
  private let audio = CounterTable(labelNames: ["trunk", "audio"], limit: Limits.trunkLabelSets)
  private let postDialDelay = TrunkMetrics.histogram(Histogram.secondsBounds)
  private let score = TrunkMetrics.histogram([1.5, 2, 2.5, 3, 3.3, 3.6, 3.8, 4, 4.1, 4.2, 4.3, 4.4])
  private let loss = TrunkMetrics.histogram([0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5])
  private let state = Mutex(State())

  private static func histogram(_ bounds: [Double]) -> HistogramTable {
    HistogramTable(labelName: "trunk", bounds: bounds, limit: Limits.trunkLabelSets)
  }

  private struct State {
    /// As of the last second.
    var statuses: [TrunkStatus] = []
    /// The last counts of `started`.
    var started: [CallDirection: [String: Int]] = [:]
  }

  /// Trunks that are configured or have calls.
  var names: Set<String> { Set(state.withLock { $0.statuses }.map(\.trunk)) }

  /// Once a second.
  func publish(_ statuses: [TrunkStatus]) {
    let names = Set(statuses.map(\.trunk))
    for table in [started, ended, media, events, outcomes, audio] { table.fold("trunk") { !names.contains($0) } }
    // Rows that alerts divide by each other exist from the start: a first failure is then visible as a step from 0.
    for trunk in names.subtracting(self.names) {
      for outcome in InviteOutcome.allCases {
        _ = outcomes.counter(CallDirection.outgoing.rawValue, outcome.rawValue, trunk)
      }
      for heard in AudioHeard.allCases { _ = audio.counter(trunk, heard.rawValue) }
    }
    for table in [postDialDelay, score, loss] { table.fold { !names.contains($0) } }
    state.withLock { $0.statuses = statuses }
  }

  /// The call machine's count, after each step.
  func count(started now: [CallDirection: [String: Int]]) {
    state.withLock { state in
      guard now != state.started else { return }
      for (direction, trunks) in now {
        for (trunk, count) in trunks {
          let before = state.started[direction]?[trunk] ?? 0
          if count > before { started.counter(direction.rawValue, trunk).increment(by: UInt64(count - before)) }
        }
      }
      state.started = now
    }
  }

  func count(_ record: CallRecord) {
    ended.counter(record.direction.rawValue, record.end.reason.rawValue, record.end.by.rawValue, record.trunk).increment()
    if record.connectedMs > 0 { media.counter(record.trunk, record.trunkSrtp ?? "none").increment() }
    if let outcome = record.outcome {
      outcomes.counter(record.direction.rawValue, outcome.rawValue, record.trunk).increment()
    }
    if let delay = record.postDialDelay { postDialDelay.record(delay, record.trunk) }
    if let heard = record.audioHeard { audio.counter(record.trunk, heard.rawValue).increment() }
    guard let stream = record.fromTrunk, stream.packets > 0 else { return }
    loss.record(stream.loss, record.trunk)
    if let mos = stream.mos { score.record(mos, record.trunk) }
  }

  func count(_ news: TrunkNews) {
    switch news {
    case .registered(let trunk, _): events.counter(trunk, "registered").increment()
    case .registrationFailed(let trunk, _, _): events.counter(trunk, "registration_failed").increment()
    case .formerContactKept: break  // No fault of the trunk.
    case .serviceRouteRefused(let trunk): events.counter(trunk, "service_route_refused").increment()
    case .probed(let trunk, let isUp): events.counter(trunk, isUp ? "probe_up" : "probe_down").increment()
    case .breaker(let trunk, let isOpen): events.counter(trunk, isOpen ? "breaker_opened" : "breaker_closed").increment()
    case .located(let trunk, _): events.counter(trunk, "located").increment()
    case .unreached(let trunk, _): events.counter(trunk, "unreached").increment()
    case .notLocated(let trunk): events.counter(trunk, "not_located").increment()
    }
  }

  var families: [MetricFamily] {
    [
      gauge(
        "trunkline_trunk_up",
        help: "1 while a trunk has servers that a listener reaches, answers its probes and is registered, if so configured."
      ) {
        [([], $0.up ? 1 : 0)]
      },
      gauge("trunkline_trunk_registered", help: "1 while the last REGISTER was granted and holds.") { status in
        status.registration.map { [([], $0.registered ? 1 : 0)] } ?? []
      },
      gauge("trunkline_trunk_registration_expires_seconds", help: "When the registration ends, in seconds since 1970.") {
        status in
        status.registration?.expires.map { [([], $0 / 1_000)] } ?? []
      },
      gauge(
        "trunkline_trunk_server_up", help: "0 after a request to a server failed, and while probes are not answered.",
        labels: ["server"]
      ) {
        $0.servers.map { ([$0.address], $0.up ? 1 : 0) }
      },
      gauge("trunkline_trunk_breaker_open", help: "1 while a trunk gets no calls because calls over it failed in a row.") {
        [([], $0.breakerOpen ? 1 : 0)]
      },
      gauge("trunkline_trunk_calls", help: "Calls now, by trunk.") { [([], Int64($0.calls))] },
      gauge("trunkline_trunk_calls_limit", help: "Calls at a time by a trunk that has a limit; more get 503.") { status in
        status.callsLimit.map { [([], Int64($0))] } ?? []
      },
      MetricFamily(
        name: "trunkline_trunk_unanswered_total", help: "Requests to a trunk that had no answer, by cause.",
        kind: .counter,
        labelNames: ["trunk", "method", "why"]
      ) { [self] in
        state.withLock { $0.statuses }.flatMap { status in
          (status.unanswered ?? []).map {
            MetricSample([status.trunk, $0.method, $0.failure.rawValue], .integer(Int64(clamping: $0.count)))
          }
        }
      },
      .counters("trunkline_calls_started_total", help: "Calls since the start, each of which gets one record.", started),
      .counters("trunkline_calls_ended_total", help: "Call records by end reason, side and trunk.", ended),
      .counters("trunkline_trunk_media_total", help: "Calls that were connected, by the SRTP profile of the trunk leg.", media),
      .counters(
        "trunkline_trunk_attempts_total", help: "Calls that ended, by the outcome of the INVITE (ITU-T E.425).", outcomes),
      .counters("trunkline_trunk_audio_total", help: "Calls of 5 s and more that ended, by the sides that sent audio.", audio),
      .histograms(
        "trunkline_trunk_post_dial_delay_seconds", help: "From our INVITE to the first 18x or 2xx of the trunk.", postDialDelay),
      .histograms("trunkline_trunk_opinion_score", help: "MOS of what a trunk sent, by G.107, once per call.", score),
      .histograms(
        "trunkline_trunk_loss_ratio", help: "Part of a trunk's RTP packets that were never received, once per call.", loss),
      .counters("trunkline_trunk_events_total", help: "Registrations, probes, breakers and names of trunks.", events),
    ]
  }

  /// A gauge with the label `trunk` and `more`.
  private func gauge(
    _ name: String, help: String, labels more: [String] = [],
    _ rows: @escaping @Sendable (TrunkStatus) -> [(labels: [String], value: Int64)]
  ) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .gauge, labelNames: ["trunk"] + more) { [self] in
      state.withLock { $0.statuses }.flatMap { status in
        rows(status).map { MetricSample([status.trunk] + $0.labels, .integer($0.value)) }
      }
    }
  }
}
