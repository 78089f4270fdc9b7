import TrunklineBytes

/// Servers that accepted no connection for a large request (RFC 3261 §18.1.1): such requests go to them by UDP.
///
/// | state of a server | refused | `Limits.datagramOnlyTime` passes | a large request |
/// |---|---|---|---|
/// | unknown | datagram only, if the table has room | – | on a connection |
/// | datagram only | the time begins again | unknown | by UDP |
struct DatagramOnlyServers {
  private var until: [SocketAddress: Instant] = [:]

  var count: Int { until.count }

  /// A connection for a large request was refused, or got no answer.
  mutating func refused(_ server: SocketAddress, at now: Instant) {
    if until.count >= Limits.datagramOnlyServers { until = until.filter { $0.value > now } }
    if until.count < Limits.datagramOnlyServers { until[server] = now + Limits.datagramOnlyTime }
  }

  func mayAccept(_ server: SocketAddress, at now: Instant) -> Bool { until[server].map { $0 <= now } ?? true }
}
