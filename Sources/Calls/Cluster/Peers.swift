import TrunklineBytes

/// The other nodes with a lease, by the last renewal, and incarnations that no renewal has shown yet.
///
/// | input | gives |
/// |---|---|
/// | `see` the leases of a renewal | nodes that have lost their lease; incarnations that were unknown before it was asked, and have none: they are long dead |
/// | `meet` | true the first time: a renewal is to show it |
/// | `keep` a message of an unknown incarnation | false if `Limits.earlyMessages` wait |
/// | `dequeueEarly` | the messages, in the order of their arrival; after each renewal |
/// | `reportTroubles`, `reportNodes` | an action, if it has changed since the last report |
struct Peers: Sendable {
  struct Change: Sendable {
    var lost: [NodeLease] = []
    var departed: [Incarnation] = []
  }

  private var leases: [Incarnation: NodeLease] = [:]
  private var ofName: [String: Incarnation] = [:]
  /// Incarnations in a hint or a message that were not in the last renewal; and when they were seen first.
  private var unknown: [Incarnation: Instant] = [:]
  private var early: [(message: ClusterMessage, from: Incarnation)] = []
  /// The last reported troubles of other nodes' trunks, and the last reported number of nodes.
  private var troubles: [String: String] = [:]
  private var reportedCount = 1

  var count: Int { leases.count }
  var all: [NodeLease] { Array(leases.values) }
  subscript(other: Incarnation) -> NodeLease? { leases[other] }
  func has(name: String) -> Bool { ofName[name] != nil }
  /// It has a lease, and does not drain.
  func isFit(_ other: Incarnation) -> Bool { leases[other].map { !$0.isDraining } ?? false }
  /// Another incarnation of its name has a lease.
  func isReplaced(_ other: Incarnation) -> Bool { ofName[other.node].map { $0 != other } ?? false }

  /// - Parameter sent: when the renewal was sent that shows these leases.
  mutating func see(_ now: [NodeLease], askedAt sent: Instant) -> Change {
    var next: [Incarnation: NodeLease] = [:]
    for lease in now { next[lease.incarnation] = lease }
    var change = Change()
    change.lost = leases.keys.filter { next[$0] == nil }.sorted().compactMap { leases[$0] }
    leases = next
    ofName = Dictionary(now.map { ($0.incarnation.node, $0.incarnation) }, uniquingKeysWith: { a, _ in a })
    for lease in now { unknown[lease.incarnation] = nil }
    change.departed = unknown.filter { $0.value <= sent }.map(\.key)
    for other in change.departed { unknown[other] = nil }
    return change
  }

  mutating func meet(_ other: Incarnation, at now: Instant) -> Bool {
    guard unknown[other] == nil, unknown.count < Limits.departed else { return false }
    unknown[other] = now
    return true
  }

  mutating func keep(_ message: ClusterMessage, from other: Incarnation) -> Bool {
    guard early.count < Limits.earlyMessages else { return false }
    early.append((message, other))
    return true
  }

  mutating func dequeueEarly() -> [(message: ClusterMessage, from: Incarnation)] {
    var messages: [(message: ClusterMessage, from: Incarnation)] = []
    swap(&messages, &early)
    return messages
  }

  /// If two nodes report a trunk, the one that reports a trouble wins: the other led it before, or is about to.
  mutating func reportTroubles(_ step: inout Step) {
    var received: [String: String] = [:]
    for lease in leases.values.filter({ !$0.troubles.isEmpty }).sorted(by: { $0.incarnation < $1.incarnation }) {
      received.merge(lease.troubles.prefix(Limits.troubles).map { ($0.key, $0.value) }) { first, _ in first }
    }
    report(received, &step)
  }

  /// Without a lease this node knows none.
  mutating func reportNoTroubles(_ step: inout Step) { report([:], &step) }

  private mutating func report(_ received: [String: String], _ step: inout Step) {
    guard received != troubles else { return }
    troubles = received
    step.actions.append(.troubles(received))
  }

  /// - Parameter held: nodes that keep their share without a lease.
  mutating func reportNodes(held: Int, _ step: inout Step) {
    let accepting = max(1, count + 1 + held - leases.values.count(where: \.isDraining))
    guard accepting != reportedCount else { return }
    reportedCount = accepting
    step.actions.append(.nodes(accepting))
  }
}
