/// Opens WebSockets with the sub-protocol `trunkline.v1`. Implemented by `ClientSockets` on Linux, by URLSession on Apple's
/// systems.
public protocol SocketConnector: Sendable {
  /// One socket; `events` are called in order, from any thread, until `closed`.
  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket
  /// As ``open(_:events:)``, over another interface than that of the default route, which may be dead without an event: a Wi-Fi
  /// whose router has failed, with cellular beside it. Nil: there is no other interface.
  func openAlternate(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)?
  /// `POST` with a bearer token; the answer is ignored.
  func post(_ url: String, bearer: String, body: [UInt8])
  /// A connection to a TURN server, which carries media where UDP is blocked. The name is looked up, and TLS requires a
  /// certificate for `RelayAddress.certificateHost`. `events` are called in order, from any thread, until `closed`, and may start
  /// before this returns. Nil: no connection is possible.
  func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)?
}

extension SocketConnector {
  /// Nil: sockets use the default route only.
  public func openAlternate(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)? { nil }
  /// Nil: calls have no TURN.
  public func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)? { nil }
}

/// The address of a TURN server (RFC 7065).
public struct RelayAddress: Sendable, Hashable {
  /// The transport to the server.
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
  /// Port of UDP or TCP.
  public var port: UInt16
  /// The transport to the server.
  public var transport: Transport
  /// The name that the certificate must have: ``host``, unless the server has redirected to another address.
  public var certificateHost: String
  /// Without `certificateHost` the certificate must have the host's name.
  public init(host: String, port: UInt16, transport: Transport, certificateHost: String? = nil) {
    (self.host, self.port, self.transport) = (host, port, transport)
    self.certificateHost = certificateHost ?? host
  }
}

/// A connection to a TURN server.
public protocol RelaySocket: Sendable {
  /// One datagram, or whole messages of the stream. A message that cannot be sent is lost, but never a part of it.
  func send(_ bytes: [UInt8])
  /// Sends waiting messages, if it can at once, and ends; `RelayEvent.closed` follows.
  func close()
}

/// Events of a connection to a TURN server.
public enum RelayEvent: Sendable {
  /// Connected, and with TLS verified; with UDP: the address is known.
  case opened
  /// One datagram, or the next octets of the stream.
  case received([UInt8])
  /// Why it ended, or could not be opened.
  case closed(String)
}

/// A WebSocket as the phone uses it.
public protocol Socket: Sendable {
  /// One text message.
  func send(_ text: [UInt8])
  /// Closes with this code (RFC 6455 §7.4); `SocketEvent.closed` follows.
  func close(_ code: UInt16)
}

/// Events of a socket.
public enum SocketEvent: Sendable {
  /// The upgrade succeeded.
  case opened
  /// One whole text message.
  case received([UInt8])
  /// 1006 if no close frame was received; the text states why a connection attempt failed.
  case closed(UInt16, String?)
}
