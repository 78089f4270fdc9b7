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
  private let seizures = CounterTable(labelNames: ["trunk", "direction", "outcome"], limit: Limits.trunkLabelSets)
  private let packets = CounterTable(labelNames: ["trunk", "fate"], limit: Limits.trunkLabelSets)
  private let oneWay = CounterTable(labelNames: ["trunk", "silent"], limit: Limits.trunkLabelSets)
  private let postDialDelay = HistogramTable(labelNames: ["trunk"], bounds: Histogram.secondsBounds)
  private let opinionScore = HistogramTable(
    labelNames: ["trunk"], bounds: [1.5, 2, 2.5, 3, 3.3, 3.6, 3.8, 4, 4.1, 4.2, 4.3, 4.4])
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
    for table in [started, ended, media, events, seizures, packets, oneWay] { table.fold("trunk") { !names.contains($0) } }
    for table in [postDialDelay, opinionScore] { table.drop("trunk") { !names.contains($0) } }
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
    seizures.counter(record.trunk, record.direction.rawValue, SeizureOutcome(record).rawValue).increment()
    if let delay = record.postDialDelay { postDialDelay.record(delay, record.trunk) }
    guard record.connectedMs > 0 else { return }
    media.counter(record.trunk, record.trunkSrtp ?? "none").increment()
    if let stream = record.fromTrunk {
      packets.counter(record.trunk, "received").increment(by: stream.packets)
      packets.counter(record.trunk, "lost").increment(by: stream.lost)
      if let score = stream.mos { opinionScore.record(score, record.trunk) }
    }
    if let silent = record.silentSide { oneWay.counter(record.trunk, silent.rawValue).increment() }
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
      .counters(
        "trunkline_trunk_seizures_total",
        "Calls by how they came out, for the answer-seizure and the network-effectiveness ratio (ITU-T E.425).", seizures),
      .counters("trunkline_trunk_packets_total", "RTP that ended calls had from the trunk, received and lost.", packets),
      .counters(
        "trunkline_trunk_one_way_total", "Calls of 5 s and more in which one side's media never came.", oneWay),
      .histograms(
        "trunkline_trunk_post_dial_delay_seconds", "From our INVITE to the first ringing, early media or answer.", postDialDelay),
      .histograms(
        "trunkline_trunk_opinion_score", "Estimated opinion score (ITU-T G.107) of what calls had from the trunk.", opinionScore),
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
