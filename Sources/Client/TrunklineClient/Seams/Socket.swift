/// Opens WebSockets with the sub-protocol `trunkline.v1`. On Linux `ClientSockets` does, on Apple's systems URLSession.
public protocol SocketConnector: Sendable {
  /// One socket; `events` come in order, from any thread, until `closed`.
  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket
  /// `POST` with a bearer token; nobody waits for the answer.
  func post(_ url: String, bearer: String, body: [UInt8])
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
