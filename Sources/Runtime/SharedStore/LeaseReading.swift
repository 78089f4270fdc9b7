import Cluster
import RESP

/// The leases of one reading after the other. Most are those of the last time, to the byte: only the others are decoded.
///
/// Of more than `Cluster.Limits.nodes` this node's own stays, and those that the last reading had: who writes leases of nodes that are none
/// takes nobody's place.
struct LeaseReading {
  private struct Known {
    var lease: NodeLease
    var until: Int64?
  }
  private let own: Incarnation?
  private let keys: SharedStoreKeys?
  /// By their bytes; nil: they are no lease, or none of ours.
  private var last: [[UInt8]: Known?] = [:]
  private var known: Set<Incarnation> = []

  init(own: Incarnation? = nil, keys: SharedStoreKeys? = nil) { (self.own, self.keys) = (own, keys) }

  /// Of whatever format: what the machine makes of nodes that it cannot share with needs to know that they are there.
  private func decode(_ content: [UInt8]) -> Known? {
    guard let stored = ValueCoding.decode(StoredLease.self, content, formats: .min...(.max)), let lease = stored.value,
      keys?.isGenuine(content, keys?.lease(of: lease.incarnation) ?? "") != false
    else { return nil }
    return Known(lease: lease, until: stored.e)
  }

  /// By incarnation; `dropped`: what is no lease, and what was too much.
  mutating func read(_ values: [RESPValue]) -> (leases: [NodeLease], dropped: Int) {
    var next: [[UInt8]: Known?] = [:]
    var leases: [NodeLease] = []
    for value in values.prefix(Limits.leases) {
      guard let content = value.content else { continue }
      let lease = last[content] ?? decode(content)
      next[content] = .some(lease)
      if let lease, keys?.isOver(lease.until, keys?.lease(of: lease.lease.incarnation) ?? "") != true {
        leases.append(lease.lease)
      }
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
