import Cluster
import RESP

/// Decodes the leases of each reading. Most have the same bytes as in the last reading: only the others are decoded.
///
/// If there are more than `Cluster.Limits.nodes`, this node's own lease and those of the last reading stay: a client that writes
/// leases of invented nodes displaces none of them.
struct LeaseReading {
  private struct Known {
    var lease: NodeLease
    var until: Int64?
  }
  private let own: Incarnation?
  private let keys: SharedStoreKeys?
  /// By their bytes; nil: not a lease, or not one with our signature.
  private var last: [[UInt8]: Known?] = [:]
  private var known: Set<Incarnation> = []

  init(own: Incarnation? = nil, keys: SharedStoreKeys? = nil) { (self.own, self.keys) = (own, keys) }

  /// Accepts any format: the machine must know of the nodes with which it cannot share.
  private func decode(_ content: [UInt8]) -> Known? {
    guard let stored = ValueCoding.decode(StoredLease.self, content, formats: .min...(.max)), let lease = stored.value,
      keys?.isGenuine(content, at: keys?.lease(of: lease.incarnation) ?? "") != false
    else { return nil }
    return Known(lease: lease, until: stored.end)
  }

  /// Sorted by incarnation; `dropped`: values that are not leases, and leases above the limit.
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
