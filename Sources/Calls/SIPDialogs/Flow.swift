public import TrunklineBytes

public enum TransportProtocol: String, Hashable, Sendable, Codable, CaseIterable {
  case udp, tcp, tls

  /// A stream: no retransmissions, messages framed by Content-Length.
  public var isReliable: Bool { self != .udp }
  /// As written in Via (RFC 3261 §20.42).
  public var viaName: String { rawValue.uppercased() }
  /// The parameter that names it in our URIs; UDP goes without.
  public var uriParameter: String { self == .udp ? "" : ";transport=\(rawValue)" }
}

/// How a message came or is to go.
///
/// `local` is a concrete address that the peer can reach (never 0.0.0.0): it is written into Via and Contact. For TCP `remote`
/// names the connection to reuse; the transport opens one if none is left.
public struct Flow: Hashable, Sendable, CustomStringConvertible {
  public var transport: TransportProtocol
  public var local: SocketAddress
  public var remote: SocketAddress

  public init(transport: TransportProtocol, local: SocketAddress, remote: SocketAddress) {
    (self.transport, self.local, self.remote) = (transport, local, remote)
  }

  public var description: String { "\(transport) \(local) ↔ \(remote)" }
}
