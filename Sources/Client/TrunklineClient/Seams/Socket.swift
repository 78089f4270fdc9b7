/// Opens WebSockets with the sub-protocol `trunkline.v1`. On Linux `ClientSockets` does, on Apple's systems URLSession.
public protocol SocketConnector: Sendable {
  /// One socket; `events` come in order, from any thread, until `closed`.
  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket
  /// As ``open(_:events:)``, over another interface than that of the default route, which may be dead without an event that says so: a Wi-Fi whose
  /// router is gone, with cellular beside it. Nil: there is no other.
  func openAlternate(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)?
  /// `POST` with a bearer token; the answer is not awaited.
  func post(_ url: String, bearer: String, body: [UInt8])
  /// A connection to a TURN server, which takes media where UDP does not pass. The name is looked up, and TLS insists on a certificate for
  /// `RelayAddress.certificateHost`. `events` come in order, from any thread, until `closed`, and may begin before this returns. Nil: there is none to be
  /// had.
  func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)?
}

extension SocketConnector {
  /// None: sockets go over the default route alone.
  public func openAlternate(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)? { nil }
  /// None: calls are without TURN.
  public func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)? { nil }
}

/// Where a TURN server is (RFC 7065).
public struct RelayAddress: Sendable, Hashable {
  /// What the server is spoken to over.
  public enum Transport: String, Sendable, CaseIterable {
    /// Datagrams.
    case udp
    /// A stream.
    case tcp
    /// TLS over TCP.
    case tls
  }
  /// A name or an address.
  public var host: String
  /// Of UDP or TCP.
  public var port: UInt16
  /// What the server is spoken to over.
  public var transport: Transport
  /// What a certificate must be for: ``host``, but where the server has sent us to another address.
  public var certificateHost: String
  /// Without `certificateHost` a certificate must be for the host itself.
  public init(host: String, port: UInt16, transport: Transport, certificateHost: String? = nil) {
    (self.host, self.port, self.transport) = (host, port, transport)
    self.certificateHost = certificateHost ?? host
  }
}

/// A connection to a TURN server.
public protocol RelaySocket: Sendable {
  /// One datagram, or whole messages of the stream. What does not get away is lost, but never a part of it.
  func send(_ bytes: [UInt8])
  /// Sends what waits, if it can at once, and ends; `RelayEvent.closed` follows.
  func close()
}

/// What becomes of a connection to a TURN server.
public enum RelayEvent: Sendable {
  /// Connected, and over TLS verified; of UDP: the address is known.
  case opened
  /// One datagram, or the next octets of the stream.
  case received([UInt8])
  /// Why it ended, or did not come about.
  case closed(String)
}

/// A WebSocket as the phone uses it.
public protocol Socket: Sendable {
  /// One text message.
  func send(_ text: [UInt8])
  /// Closes with this code (RFC 6455 §7.4); `SocketEvent.closed` follows.
  func close(_ code: UInt16)
}

/// What becomes of a socket.
public enum SocketEvent: Sendable {
  /// The upgrade succeeded.
  case opened
  /// One whole text message.
  case received([UInt8])
  /// 1006 when no close frame came; the text says why a connection attempt failed.
  case closed(UInt16, String?)
}
