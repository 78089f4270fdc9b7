/// Opens WebSockets with the sub-protocol `trunkline.v1`. On Linux `ClientSockets` does, on Apple's systems URLSession.
public protocol SocketConnector: Sendable {
  /// One socket; `events` come in order, from any thread, until `closed`.
  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket
  /// `POST` with a bearer token; nobody waits for the answer.
  func post(_ url: String, bearer: String, body: [UInt8])
}

public protocol Socket: Sendable {
  /// One text message.
  func send(_ text: [UInt8])
  func close(_ code: UInt16)
}

public enum SocketEvent: Sendable {
  case opened
  /// One whole text message.
  case received([UInt8])
  /// 1006 when no close frame came; the text says why a connection attempt failed.
  case closed(UInt16, String?)
}
