/// Why a request of ours had no response. Our own findings have their own names, so that they are not confused with a carrier's
/// codes.
public enum LocalFailure: String, Sendable, Codable, CaseIterable {
  /// No process listens there: a reset instead of a connection, or ICMP port unreachable.
  case connectionRefused = "connection refused"
  /// The peer accepted the connection and closed it before it answered.
  case connectionClosed = "connection closed"
  /// Host or network unreachable.
  case noRoute = "no route"
  /// No TLS with the peer: the transport logs why.
  case noTLS = "no TLS"
  /// It could not be sent for another reason, which the transport logs.
  case notSent = "not sent"
  /// It was sent, and no response came within the transaction's time.
  case timeout = "timeout"

  init(byTransport: Bool, _ peer: UserAgent.PeerFailure?) {
    self =
      switch peer {
      case _ where !byTransport: .timeout
      case .refused: .connectionRefused
      case .closed: .connectionClosed
      case .noRoute: .noRoute
      case .noTLS: .noTLS
      case nil: .notSent
      }
  }
}
