import CallFlow
import Cluster
import Synchronization
import TrunklineBytes
public import TrunklinePlatform

/// What `/metrics` shows of this node in its cluster; published once a second.
public final class ClusterMetrics: Sendable {
  private struct Snapshot {
    var state = SharedStoreState.away
    var leaseAge = -1.0
    var nodes: [SeenNode] = []
    var leads: Set<SingleTask> = []
    var own = ""
    var unwritten = 0
    var unconfirmedEnds = 0
    var staleGrants = 0
    var cluster = ClusterStatistics()
    var calls = CallStatistics()
  }
  private let snapshot = Mutex(Snapshot())

  public init() {}

  func publish(_ machine: ClusterMachine, nodes: [SeenNode], calls: CallMachine, at now: Instant) {
    snapshot.withLock {
      $0 = Snapshot(
        state: machine.state, leaseAge: machine.leaseAge(at: now).map { Double($0.nanoseconds) / 1e9 } ?? -1,
        nodes: nodes, leads: machine.leads, own: machine.settings.configuration, unwritten: machine.unwritten,
        unconfirmedEnds: machine.unconfirmedEndCount, staleGrants: calls.staleGrants,
        cluster: machine.statistics, calls: calls.statistics)
    }
  }

  public var families: [MetricFamily] { nodeFamilies + callFamilies + grantFamilies + sharedStoreFamilies }

  private var nodeFamilies: [MetricFamily] {
    [
      labelled(
        "trunkline_cluster_state", help: "1 for the state of this node in the cluster: away, isolated, up.", .gauge,
        label: "state"
      ) {
        now in
        SharedStoreState.allCases.map { ($0.rawValue, now.state == $0 ? 1 : 0) }
      },
      one(
        "trunkline_cluster_lease_age_seconds", help: "Time since this node's lease was renewed; -1 before the first renewal.",
        .gauge
      ) { .number($0.leaseAge) },
      labelled("trunkline_cluster_nodes", help: "Nodes as this one sees them, by state.", .gauge, label: "liveness") { now in
        SeenNode.Liveness.allCases.map { liveness in (liveness.rawValue, Int64(now.nodes.count { $0.liveness == liveness })) }
      },
      one(
        "trunkline_cluster_differing_configurations", help: "Nodes whose shared configuration differs from this one's.", .gauge
      ) { now in .integer(Int64(now.nodes.count { $0.liveness == .living && $0.lease.configuration != now.own })) },
      one("trunkline_cluster_tasks_led", help: "Tasks of the cluster that this node runs.", .gauge) {
        .integer(Int64($0.leads.count))
      },
    ]
  }

  private var callFamilies: [MetricFamily] {
    typealias Outcome = ClusterStatistics.Outcome
    return [
      labelled(
        "trunkline_cluster_locates_total", help: "INVITEs looked up in the shared store, by outcome.", .counter, label: "outcome"
      ) {
        now in Outcome.allCases.map { ($0.rawValue, Int64(clamping: now.cluster.locates[$0] ?? 0)) }
      },
      labelled(
        "trunkline_cluster_claims_total", help: "call.starts that were entered in the cluster, by outcome.", .counter,
        label: "outcome"
      ) {
        now in Outcome.allCases.map { ($0.rawValue, Int64(clamping: now.cluster.claims[$0] ?? 0)) }
      },
      labelled(
        "trunkline_cluster_wakes_total", help: "call.wake to devices at other nodes: sent, connected, pushed to instead.",
        .counter,
        label: "outcome"
      ) { now in
        [
          ("sent", Int64(now.calls.wakesSent)), ("come", Int64(now.calls.wakesCome)), ("push", Int64(now.calls.wakesFallenBack)),
        ]
      },
      counted("trunkline_cluster_wakes_dropped_total", help: "call.wake messages that found no node or no socket.") {
        $0.wakesDropped
      },
      labelled(
        "trunkline_cluster_calls_reaped_total", help: "Calls of dead nodes that this one closed, by kind.", .counter,
        label: "kind"
      ) {
        now in ClusterStatistics.ReapedKind.allCases.map { ($0.rawValue, Int64(clamping: now.cluster.reaped[$0] ?? 0)) }
      },
      counted(
        "trunkline_cluster_calls_reaped_by_others_total", help: "Calls here that another node closed, holding this one for dead."
      ) {
        $0.reapedByOthers
      },
      counted("trunkline_cluster_hints_dropped_total", help: "Dropped device locations and calls of dead processes.") {
        $0.hintsDropped
      },
      counted("trunkline_cluster_values_dropped_total", help: "Values in the shared store that were unreadable.") {
        $0.valuesDropped
      },
      counted("trunkline_cluster_messages_dropped_total", help: "Messages of other nodes that were malformed, or too late.") {
        $0.messagesDropped
      },
      labelled(
        "trunkline_cluster_refusals_total", help: "Calls refused by a limit of all nodes together.", .counter, label: "limit"
      ) { now in
        [
          ("trunk", Int64(clamping: now.cluster.trunkRefusals)), ("user", Int64(clamping: now.cluster.userRefusals)),
        ]
      },
    ]
  }

  private var grantFamilies: [MetricFamily] {
    [
      counted(
        "trunkline_cluster_grants_accepted_total", help: "Users' grants of login tokens that were read from the shared store."
      ) {
        $0.grantsRead
      },
      counted(
        "trunkline_cluster_grants_given_total", help: "Users' grants of login tokens that were written to the shared store."
      ) {
        $0.grantsPut
      },
      one(
        "trunkline_cluster_grants_stale",
        help: "Users whose grant of a login token the shared store lacks: this node serves its copy until the next login.", .gauge
      ) { .integer(Int64($0.staleGrants)) },
    ]
  }

  private var sharedStoreFamilies: [MetricFamily] {
    [
      counted("trunkline_cluster_timeouts_total", help: "Requests to the shared store without an answer in time.") {
        $0.timeouts
      },
      counted("trunkline_cluster_failures_total", help: "Requests to the shared store that failed.") { $0.failures },
      counted("trunkline_cluster_flushes_total", help: "Times that the shared store lost its data, while connected.") {
        $0.flushes
      },
      counted("trunkline_cluster_restored_total", help: "Entries restored to the shared store after an outage.") { $0.restored },
      one("trunkline_cluster_unwritten", help: "Entries to be restored to the shared store.", .gauge) {
        .integer(Int64($0.unwritten))
      },
      one(
        "trunkline_cluster_records_waiting",
        help: "Calls that ended without a lease: their records wait until it is known whether other nodes closed them.", .gauge
      ) { .integer(Int64($0.unconfirmedEnds)) },
      counted("trunkline_cluster_unwritten_lost_total", help: "Entries dropped because too many were waiting to be restored.") {
        $0.forgotten
      },
      counted(
        "trunkline_cluster_blind_welcomes_total", help: "Sessions that were welcomed without an answer of the shared store."
      ) {
        $0.blindWelcomes
      },
    ]
  }

  private func one(
    _ name: String, help: String, _ kind: MetricFamily.Kind, _ read: @escaping @Sendable (Snapshot) -> MetricSample.Value
  )
    -> MetricFamily
  {
    MetricFamily(name: name, help: help, kind: kind) { [self] in [MetricSample([], read(snapshot.withLock { $0 }))] }
  }

  private func labelled(
    _ name: String, help: String, _ kind: MetricFamily.Kind, label: String,
    _ read: @escaping @Sendable (Snapshot) -> [(String, Int64)]
  ) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: kind, labelNames: [label]) { [self] in
      read(snapshot.withLock { $0 }).map { MetricSample([$0.0], .integer($0.1)) }
    }
  }

  private func counted(_ name: String, help: String, _ read: @escaping @Sendable (ClusterStatistics) -> UInt64) -> MetricFamily {
    one(name, help: help, .counter) { .integer(Int64(clamping: read($0.cluster))) }
  }
}
