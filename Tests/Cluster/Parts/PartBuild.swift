import CallFlow
import Testing
import TrunklineBytes

@testable import Cluster

// One part of the machine alone: each step is made by hand, and what it gave is compared.

let us = Incarnation(node: "n0", started: 5)
let other = Incarnation(node: "n1", started: 3)
let third = Incarnation(node: "n2", started: 4)

func lease(_ incarnation: Incarnation, draining: Bool = false) -> NodeLease {
  var lease = NodeLease(incarnation, url: "wss://\(incarnation.node)", sip: "sip:\(incarnation.node)", version: "1")
  lease.isDraining = draining
  return lease
}
func machineSettings(predecessor: Incarnation? = nil) -> ClusterMachine.Settings {
  var settings = ClusterMachine.Settings(us, url: "wss://n0", sip: "sip:n0", version: "1")
  settings.predecessor = predecessor
  return settings
}
func seconds(_ count: Double) -> Instant { .zero + .nanoseconds(Int64(count * 1e9)) }

extension Step {
  /// The first step, or the next one: requests and deadlines stay, outputs begin empty.
  static func at(_ time: Double, after last: Step? = nil, connected: Bool = true) -> Step {
    var step = Step(now: seconds(time), random: RandomSource { 0 })
    if let last { (step.requests, step.timers) = (last.requests, last.timers) }
    if connected { step.requests.connect() } else { step.requests.disconnect() }
    return step
  }

  var sent: [SharedStoreRequest] {
    actions.compactMap { if case .sharedStore(_, let request) = $0 { request } else { nil } }
  }
  /// Actions but requests, as text.
  var others: [String] {
    actions.compactMap { if case .sharedStore = $0 { nil } else { "\($0)" } }
  }
  /// Deadlines in their order.
  var due: [ClusterMachine.Timer] {
    var (queue, out) = (timers, [ClusterMachine.Timer]())
    while let next = queue.popDue(at: .distantFuture) { out.append(next) }
    return out
  }
}

/// As `#expect`, for a condition that changes a part: the macro cannot call mutating functions.
func holds(_ condition: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, comment, sourceLocation: sourceLocation)
}
