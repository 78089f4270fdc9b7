import Cluster
import RESP

/// The leases of one reading after the other. Most are those of the last time, to the byte: only the others are decoded.
///
/// Of more than `Cluster.Limits.nodes` this node's own stays, and those that the last reading had: who writes leases of nodes that are none
/// takes nobody's place.
struct LeaseReading {
  private let own: Incarnation?
  /// By their bytes; nil: they are no lease.
  private var last: [[UInt8]: NodeLease?] = [:]
  private var known: Set<Incarnation> = []

  init(own: Incarnation? = nil) { self.own = own }

  /// By incarnation; `dropped`: what is no lease, and what was too much.
  mutating func read(_ values: [RESPValue]) -> (leases: [NodeLease], dropped: Int) {
    var next: [[UInt8]: NodeLease?] = [:]
    var leases: [NodeLease] = []
    for value in values.prefix(Limits.leases) {
      guard let content = value.content else { continue }
      let lease: NodeLease?
      if let before = last[content] {
        lease = before
      } else {
        // of whatever format: what the machine makes of nodes that it cannot share with needs to know that they are there
        lease = ValueCoding.decode(StoredLease.self, content, formats: .min...(.max))?.value
      }
      next[content] = .some(lease)
      if let lease { leases.append(lease) }
    }
    if leases.count > Cluster.Limits.nodes {
      func stays(_ lease: NodeLease) -> Bool { lease.incarnation == own || known.contains(lease.incarnation) }
      leases = Array((leases.filter(stays) + leases.filter { !stays($0) }).prefix(Cluster.Limits.nodes))
    }
    last = next
    known = Set(leases.lazy.map(\.incarnation))
    return (leases.sorted { $0.incarnation < $1.incarnation }, values.count - leases.count)
  }
}
