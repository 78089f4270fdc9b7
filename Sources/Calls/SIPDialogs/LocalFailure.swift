/// Why a request of ours had no response. Our own findings have separate names, so that they are not mistaken for a code of the carrier.
public enum LocalFailure: String, Sendable, Codable, CaseIterable {
  /// No listener there: a reset instead of a connection, or ICMP port unreachable.
  case connectionRefused = "connection refused"
  /// The peer took the connection and closed it before it answered.
  case connectionClosed = "connection closed"
  /// Host or network unreachable.
  case noRoute = "no route"
  /// No TLS with the peer: the transport's own log line says why.
  case noTLS = "no TLS"
  /// It could not be sent for another reason, which the transport's own log line says.
  case notSent = "not sent"
  /// It was sent, and nothing came within the transaction's time.
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
