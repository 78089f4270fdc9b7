/// Every timer of a user agent.
enum TimerKey: Hashable {
  case server(UInt64, ServerTimer)
  case client(UInt64, ClientTimer)
  case leg(LegID, LegTimer)
  /// The next legs of a dead process are closed.
  case orphans
}

/// G: retransmission of a final response. End: H, I, J and L, of which a transaction has one at a time.
enum ServerTimer: Hashable { case g, end }
/// Retransmission: A and E. End: B, D, F, K and M, of which a transaction has one at a time. Unreachable: only errors were
/// received since the first of them.
enum ClientTimer: Hashable { case retransmission, end, unreachable }

enum LegTimer: Hashable, CaseIterable {
  /// Our 2xx is sent again.
  case answer
  /// Our 2xx got no ACK.
  case acknowledgement
  /// The last 18x is sent again.
  case provisional
  /// A cancelled INVITE got no final response (RFC 3261 §9.1).
  case cancelled
  /// The server of an outbound INVITE has sent nothing.
  case silence
  /// The reliable provisional response again, and its 64·T1 (RFC 3262 §3).
  case reliable, unacknowledged
  /// A session refresh is due; the session has had none (RFC 4028).
  case refresh, sessionEnd
  /// The wait after a glare (RFC 3261 §14.1).
  case glare
  /// No NOTIFY has reported the outcome of our REFER.
  case refer
}
