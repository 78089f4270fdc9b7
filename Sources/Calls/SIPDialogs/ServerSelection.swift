import TrunklineBytes

/// The servers that one INVITE of ours tries one after the other (RFC 3263 §4.3), and whether a large message goes to each on a
/// connection (RFC 3261 §18.1.1).
///
/// | state | large INVITE | no connection, no answer | 503, refused datagram |
/// |---|---|---|---|
/// | by UDP | the server's connection, if it has one and is not known to refuse | next server; none left: nil | next server; none left: nil |
/// | on a connection | – | the same server by UDP, also if the INVITE is large | next server; none left: nil |
///
/// A leg without servers (inbound, or of a dead process) has no next one.
struct ServerSelection {
  private var current: TrunkTarget?
  private var further: ArraySlice<TrunkTarget> = []
  /// This try uses `current.large`.
  private var isOnConnection = false
  /// `current.large` was refused.
  private var isDatagramOnly = false

  init() {}
  init(_ trunk: TrunkPeer) {
    current = trunk.target
    further = trunk.further.prefix(Limits.targets)
  }

  /// Whether a failure of this try leaves another.
  var hasNext: Bool { !further.isEmpty || isOnConnection }

  /// The connection for a message of this size; nil: it goes on the present flow.
  mutating func connection(bytes: Int, from flow: Flow, refusing: DatagramOnlyServers, at now: Instant) -> Flow? {
    guard bytes > Limits.datagramRequestBytes, flow.transport == .udp, !isDatagramOnly, let large = current?.large,
      refusing.mayAccept(large.remote, at: now)
    else { return nil }
    isOnConnection = true
    return large
  }

  /// The present try has failed.
  /// - Parameter answered: by a response.
  /// - Returns: where the next one goes, and whether this server refused a connection; nil: none is left.
  mutating func next(answered: Bool) -> (flow: Flow, refusedConnection: Bool)? {
    guard let now = current else { return nil }
    if isOnConnection, !answered {
      isOnConnection = false
      isDatagramOnly = true
      return (now.flow, true)
    }
    guard let next = further.popFirst() else { return nil }
    current = next
    isOnConnection = false
    isDatagramOnly = false
    return (next.flow, false)
  }
}
