public import TrunklineBytes

/// The servers of a name from DNS. Each call draws its own order from it (RFC 2782).
public struct TargetPlan: Equatable, Sendable {
  public struct Row: Equatable, Sendable {
    /// The index of its service among the NAPTR records.
    public var order = 0
    public var priority = 0
    public var weight: UInt64 = 0
    public var transport: TransportProtocol
    /// The SRV target; nil without SRV.
    public var host: String?
    public var addresses: [SocketAddress]
  }
  public struct Server: Hashable, Sendable {
    public var transport: TransportProtocol
    public var address: SocketAddress
  }

  public var rows: [Row] = []
  /// SRV states that the service does not exist: no fall-back to A and AAAA.
  public var isRefused = false

  public init() {}

  public var servers: Set<Server> {
    Set(rows.flatMap { row in row.addresses.map { Server(transport: row.transport, address: $0) } })
  }

  /// An order of all servers: by service, priority, and at random by weight within one priority.
  public func draw(_ random: RandomSource) -> [Server] {
    var out: [Server] = []
    let groups = Dictionary(grouping: rows.indices) { [rows[$0].order, rows[$0].priority] }
    for key in groups.keys.sorted(by: { ($0[0], $0[1]) < ($1[0], $1[1]) }) {
      let members = (groups[key] ?? []).sorted()
      for index in weightedOrder(members.map { rows[$0].weight }, random) {
        let row = rows[members[index]]
        for address in row.addresses {
          let server = Server(transport: row.transport, address: address)
          if !out.contains(server) { out.append(server) }
        }
      }
    }
    return out
  }
}

/// RFC 2782's algorithm: the indices of `weights` in the order of use. A weight of 0 has a very small chance to come before
/// others; among zeros alone the order is random.
public func weightedOrder(_ weights: [UInt64], _ random: RandomSource) -> [Int] {
  var left = weights.indices.sorted { (weights[$0] == 0 ? 0 : 1, $0) < (weights[$1] == 0 ? 0 : 1, $1) }
  var out: [Int] = []
  while let first = left.first {
    let sum = left.reduce(UInt64(0)) { $0 &+ weights[$1] }
    guard sum > 0 else {
      out.append(left.remove(at: Int(random.next() % UInt64(left.count))))
      continue
    }
    // From 1, so that the first of several has no more than its share, except for the chance of a zero.
    let mark = weights[first] == 0 ? random.next() % (sum &+ 1) : random.next() % sum &+ 1
    var running: UInt64 = 0
    let pick =
      left.firstIndex { index in
        running &+= weights[index]
        return running >= mark
      } ?? 0
    out.append(left.remove(at: pick))
  }
  return out
}
