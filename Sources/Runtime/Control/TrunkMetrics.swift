import CallFlow
import Platform
import Synchronization
import Trunking

/// What control counts by trunk. A trunk that left the configuration is counted under `removed` from a second
/// after its last call's end.
final class TrunkMetrics: Sendable {
  private let started = CounterTable(labelNames: ["direction", "trunk"], limit: Limits.trunkLabelSets)
  private let ended = CounterTable(labelNames: ["direction", "reason", "by", "trunk"], limit: Limits.trunkLabelSets)
  private let media = CounterTable(labelNames: ["trunk", "profile"], limit: Limits.trunkLabelSets)
  private let events = CounterTable(labelNames: ["trunk", "event"], limit: Limits.trunkLabelSets)
  private let state = Mutex(State())

  private struct State {
    /// As of the last second.
    var statuses: [TrunkStatus] = []
    /// What `started` has counted.
    var started: [CallDirection: [String: Int]] = [:]
  }

  /// Trunks that are configured or have calls.
  var names: Set<String> { Set(state.withLock { $0.statuses }.map(\.trunk)) }

  /// Once a second.
  func publish(_ statuses: [TrunkStatus]) {
    let names = Set(statuses.map(\.trunk))
    for table in [started, ended, media, events] { table.fold("trunk") { !names.contains($0) } }
    state.withLock { $0.statuses = statuses }
  }

  /// The call machine's count, after each turn.
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
  }

  func count(_ news: TrunkNews) {
    switch news {
    case .registered(let trunk, _): events.counter(trunk, "registered").increment()
    case .registrationFailed(let trunk, _, _): events.counter(trunk, "registration_failed").increment()
    case .probed(let trunk, let isUp): events.counter(trunk, isUp ? "probe_up" : "probe_down").increment()
    case .breaker(let trunk, let isOpen): events.counter(trunk, isOpen ? "breaker_opened" : "breaker_closed").increment()
    case .located(let trunk, _): events.counter(trunk, "located").increment()
    case .notLocated(let trunk): events.counter(trunk, "not_located").increment()
    }
  }

  var families: [MetricFamily] {
    [
      gauge("trunkline_trunk_up", "1 while a trunk has servers, answers its probes and is registered, as far as asked to.") {
        [([], $0.up ? 1 : 0)]
      },
      gauge("trunkline_trunk_registered", "1 while the last REGISTER was granted and holds.") { status in
        status.registration.map { [([], $0.registered ? 1 : 0)] } ?? []
      },
      gauge("trunkline_trunk_registration_expires_seconds", "When the registration ends, in seconds since 1970.") { status in
        status.registration?.expires.map { [([], $0 / 1_000)] } ?? []
      },
      gauge("trunkline_trunk_server_up", "0 after a request to a server failed, and while probes are not answered.", ["server"]) {
        $0.servers.map { ([$0.address], $0.up ? 1 : 0) }
      },
      gauge("trunkline_trunk_breaker_open", "1 while a trunk is left alone because calls by it failed in a row.") {
        [([], $0.breakerOpen ? 1 : 0)]
      },
      gauge("trunkline_trunk_calls", "Calls now, by trunk.") { [([], Int64($0.calls))] },
      gauge("trunkline_trunk_calls_limit", "Calls at a time by a trunk that has a limit; more get 503.") { status in
        status.callsLimit.map { [([], Int64($0))] } ?? []
      },
      .counters("trunkline_calls_started_total", "Calls since the start, each of which gets one record.", started),
      .counters("trunkline_calls_ended_total", "Call records by end reason, side and trunk.", ended),
      .counters("trunkline_trunk_media_total", "Calls that were connected, by the SRTP profile of the trunk leg.", media),
      .counters("trunkline_trunk_events_total", "Registrations, probes, breakers and names of trunks.", events),
    ]
  }

  /// A gauge with the label `trunk` and `more`.
  private func gauge(
    _ name: String, _ help: String, _ more: [String] = [],
    _ rows: @escaping @Sendable (TrunkStatus) -> [(labels: [String], value: Int64)]
  ) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .gauge, labelNames: ["trunk"] + more) { [self] in
      state.withLock { $0.statuses }.flatMap { status in
        rows(status).map { MetricSample([status.trunk] + $0.labels, .integer($0.value)) }
      }
    }
  }
}
