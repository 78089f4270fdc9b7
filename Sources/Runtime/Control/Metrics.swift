import CallFlow
import CallModel
import Synchronization
import TrunklineAppProtocol
import TrunklineMediaSession
public import TrunklinePlatform
import TrunklineSIPDialogs

/// Control's counts. Written on the control thread, read by the thread that renders.
public final class ControlMetrics: Sendable {
  let states = LabelledGauges<CallState>()
  let trunks = TrunkMetrics()
  let refused = CounterTable(labelNames: ["direction", "reason"])
  let answeredWithoutMedia = Gauge()
  let journalLate = Gauge()
  let recordsWithoutMedia = Gauge()
  let replaced = Gauge()
  let tombstones = Gauge()
  let inviteToOffer = Histogram(bounds: Histogram.secondsBounds)
  let pushToConnected = Histogram(bounds: Histogram.secondsBounds)
  let app = AppStep.allCases.map { ($0, Histogram(bounds: Histogram.secondsBounds)) }
  let inviteToRinging = Histogram(bounds: Histogram.secondsBounds)
  let gate = CallDirection.allCases.map { ($0, Histogram(bounds: Histogram.secondsBounds)) }
  let answerToAudio = AudioDirection.allCases.map { ($0, Histogram(bounds: Histogram.secondsBounds)) }
  let answerToACK = Histogram(bounds: Histogram.secondsBounds)
  let connectedToActive = Histogram(bounds: Histogram.secondsBounds)
  let callLength = CallDirection.allCases.map { ($0, Histogram(bounds: ControlMetrics.lengthBounds)) }
  /// The user agent's counts, once a second.
  private let signalling = Mutex(Statistics())
  /// Microseconds that the last clock check was late.
  let delay = Gauge()
  private let steps: Histogram
  private let live = Gauge()
  /// Concurrent calls.
  let callsLimit = Gauge()

  static let lengthBounds: [Double] = [1, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400]

  /// - Parameter hasCluster: the families of other nodes are shown.
  public init(steps: Histogram, hasCluster: Bool = false) {
    self.hasCluster = hasCluster
    self.steps = steps
    // Every refusal has its row from the start: a first refusal is then visible as a step from 0.
    for direction in CallDirection.allCases {
      for reason in Refusal.Reason.allCases { _ = refused.counter(direction.rawValue, reason.rawValue) }
    }
  }

  /// Shown if there are other nodes.
  public let cluster = ClusterMetrics()
  let hasCluster: Bool
  /// Calls that are not over, as of the last step.
  public var liveCalls: Int64 { live.value }

  func publish(_ statistics: CallStatistics) {
    var sum = 0
    for state in CallState.allCases {
      let count = statistics.states[state] ?? 0
      states[state].set(Int64(count))
      sum += count
    }
    live.set(Int64(sum))
    trunks.count(started: statistics.started)
    answeredWithoutMedia.set(Int64(statistics.answeredWithoutMedia))
    journalLate.set(Int64(statistics.journalLate))
    replaced.set(Int64(statistics.replaced))
    recordsWithoutMedia.set(Int64(statistics.recordsWithoutMedia))
    tombstones.set(Int64(statistics.tombstones))
  }

  func count(_ refusal: Refusal) { refused.counter(refusal.direction.rawValue, refusal.reason.rawValue).increment() }

  func count(_ measurement: Measurement) {
    switch measurement {
    case .inviteToOffer(let time): inviteToOffer.record(time)
    // The push thread measures to the request itself, where time could be lost.
    case .inviteToPush: break
    case .pushToConnected(let time): pushToConnected.record(time)
    case .app(let step, let time): app.first { $0.0 == step }?.1.record(time)
    case .inviteToRinging(let time): inviteToRinging.record(time)
    case .gate(let direction, let time): gate.first { $0.0 == direction }?.1.record(time)
    case .answerToAudio(let direction, let time): answerToAudio.first { $0.0 == direction }?.1.record(time)
    case .answerToACK(let time): answerToACK.record(time)
    case .connectedToActive(let time): connectedToActive.record(time)
    case .callLength(let direction, let time): callLength.first { $0.0 == direction }?.1.record(time)
    }
  }

  func publish(_ statistics: Statistics) { signalling.withLock { $0 = statistics } }

  var signallingFamilies: [MetricFamily] { messageFamilies + faultFamilies + gaugeFamilies }

  private var messageFamilies: [MetricFamily] {
    [
      counter("trunkline_sip_requests_total", help: "SIP requests by direction and method.", labels: ["direction", "method"]) {
        $0.requestsReceived.map { (["in", $0.key.name], $0.value) } + $0.requestsSent.map { (["out", $0.key.name], $0.value) }
      },
      counter(
        "trunkline_sip_responses_total", help: "SIP responses by direction, method, code and trunk.",
        labels: ["direction", "method", "code", "trunk"]
      ) { [trunks] statistics in
        let known = trunks.names
        func rows(_ direction: String, _ counts: [Statistics.Response: UInt64]) -> [([String], UInt64)] {
          let rows = counts.map { response, count in
            (
              [
                direction, response.method.name, "\(response.code)",
                known.contains(response.trunk) || response.trunk == Edge.peer ? response.trunk : "removed",
              ],
              count
            )
          }
          return Dictionary(rows, uniquingKeysWith: &+).map { ($0.key, $0.value) }
        }
        return rows("in", statistics.responsesReceived) + rows("out", statistics.responsesSent)
      },
      counter("trunkline_sip_retransmissions_total", help: "SIP retransmissions, sent or received.", labels: ["direction"]) {
        [(["in"], $0.retransmissionsReceived), (["out"], $0.retransmissionsSent)]
      },
      counter(
        "trunkline_sip_requests_unanswered_total", help: "SIP requests inside dialogs without a response.", labels: ["method"]
      ) {
        $0.unanswered.map { ([$0.key.name], $0.value) }
      },
    ]
  }

  private var faultFamilies: [MetricFamily] {
    [
      counter("trunkline_sip_refused_total", help: "SIP requests refused before a call existed.", labels: ["reason"]) {
        statistics in
        RefusalReason.allCases.map { ([$0.rawValue], statistics.refused[$0] ?? 0) }
      },
      counter("trunkline_sip_unanswered_total", help: "SIP messages dropped without an answer.", labels: ["reason"]) {
        statistics in
        Statistics.DropReason.allCases.map { ([$0.rawValue], statistics.dropped[$0] ?? 0) }
      },
      counter("trunkline_sip_foreign_challenges_total", help: "401s and 407s left unanswered because of their realm.", labels: [])
      {
        [([], $0.foreignChallenges)]
      },
      counter(
        "trunkline_sip_foreign_trunk_names_total",
        help: "Requests that name a trunk and come from no edge; the name was ignored.", labels: []
      ) {
        [([], $0.foreignTrunkNames)]
      },
      counter(
        "trunkline_sip_orphaned_legs_total", help: "Legs of a killed process that were closed at the start, by kind.",
        labels: ["phase"]
      ) { statistics in
        OrphanedLeg.Phase.allCases.map { ([$0.rawValue], statistics.orphansClosed[$0] ?? 0) }
      },
    ]
  }

  private var gaugeFamilies: [MetricFamily] {
    [
      MetricFamily(
        name: "trunkline_sip_transactions", help: "SIP transactions alive.", kind: .gauge, labelNames: ["side"],
        snapshot: rows { [(["client"], UInt64($0.clientTransactions)), (["server"], UInt64($0.serverTransactions))] }),
      MetricFamily(
        name: "trunkline_sip_legs", help: "SIP call legs alive.", kind: .gauge, snapshot: rows { [([], UInt64($0.legs))] }),
    ]
  }

  private func rows(_ read: @escaping @Sendable (Statistics) -> [([String], UInt64)]) -> @Sendable () -> [MetricSample] {
    { [self] in
      let rows = read(signalling.withLock { $0 })
      return rows.sorted { $0.0.lexicographicallyPrecedes($1.0) }.map { MetricSample($0.0, .integer(Int64(clamping: $0.1))) }
    }
  }

  private func counter(
    _ name: String, help: String, labels: [String], _ read: @escaping @Sendable (Statistics) -> [([String], UInt64)]
  ) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .counter, labelNames: labels, snapshot: rows(read))
  }
}

extension ControlMetrics {
  public var families: [MetricFamily] {
    func grown(_ name: String, help: String, _ value: Gauge) -> MetricFamily {
      MetricFamily(name: name, help: help, kind: .counter) { [MetricSample([], .integer(value.value))] }
    }
    func histograms<Label: Sendable>(
      _ name: String, help: String, _ rows: [(Label, Histogram)], _ text: @escaping @Sendable (Label) -> String
    ) -> MetricFamily {
      MetricFamily(name: name, help: help, kind: .histogram, labelNames: ["direction"]) {
        rows.map { MetricSample([text($0.0)], .histogram($0.1.snapshot)) }
      }
    }
    let appSteps = app.map { MetricFamily.histogram("trunkline_app_\($0.0)_seconds", help: $0.0.help, $0.1) }
    return [
      .gauges("trunkline_calls", help: "Calls by state now.", label: "state", states),
      .gauge("trunkline_calls_limit", help: "Calls at a time; more get 503.", callsLimit),
      .counters("trunkline_calls_refused_total", help: "INVITEs and call.starts that became no call, by reason.", refused),
      grown(
        "trunkline_answered_without_media_total", help: "Trunk legs answered before the media gate was open; stays 0.",
        answeredWithoutMedia),
      grown("trunkline_journal_late_total", help: "180s and INVITEs sent before the journal confirmed the call.", journalLate),
      grown(
        "trunkline_calls_replaced_total", help: "INVITEs with Replaces that took over a call: neither new calls nor refusals.",
        replaced
      ),
      grown(
        "trunkline_records_without_media_total", help: "Records written without the media thread's final statistics.",
        recordsWithoutMedia),
      .gauge("trunkline_call_tombstones", help: "Ended calls whose reason is still stored.", tombstones),
      .histogram("trunkline_invite_to_offer_seconds", help: "From INVITE to the first call.offer.", inviteToOffer),
      .histogram("trunkline_push_to_connected_seconds", help: "From a push to the hello of its device.", pushToConnected),
      .histogram("trunkline_invite_to_ringing_seconds", help: "From INVITE to our 180.", inviteToRinging),
      histograms("trunkline_media_gate_seconds", help: "From the tap, or call.start, to the open media gate.", gate) {
        $0.rawValue
      },
      histograms(
        "trunkline_answer_to_audio_seconds",
        help: "From call.answer to the first frame with sound, less the trunk's ACK time and the client's activation time.",
        answerToAudio
      ) { $0 == .trunkToApp ? "trunk_to_app" : "app_to_trunk" },
      .histogram("trunkline_answer_to_ack_seconds", help: "From our 200 to the trunk's ACK.", answerToACK),
      .histogram("trunkline_connected_to_active_seconds", help: "From call.connected to media.active.", connectedToActive),
      histograms("trunkline_call_connected_seconds", help: "Length of calls from 200 to end.", callLength) { $0.rawValue },
      .histogram("trunkline_control_step_seconds", help: "Length of the control loop's steps.", steps),
      MetricFamily(
        name: "trunkline_control_delay_seconds", help: "How late the control loop's last clock check was.", kind: .gauge
      ) { [delay] in [MetricSample([], .number(Double(delay.value) / 1e6))] },
    ] + appSteps + trunks.families + signallingFamilies + (hasCluster ? cluster.families : [])
  }
}

extension AppStep {
  fileprivate var help: String {
    switch self {
    case .push: "From an app's start or a push's delivery to the push delegate, as the app reports in call.ringing."
    case .report: "From an app's push delegate to the accepted report of the call, as the app reports in call.ringing."
    case .open: "From an app's push delegate to welcome, as the app reports in call.ringing."
    }
  }
}
