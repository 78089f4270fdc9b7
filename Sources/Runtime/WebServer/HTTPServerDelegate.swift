public import TrunklineBytes

/// What a server's owner decides: all on the server's thread.
public protocol HTTPServerDelegate: AnyObject {
  /// Whether it has good credentials: its connection is evicted last.
  func trusts(_ request: HTTPRequest) -> Bool
  /// Exactly one answer must follow, from any thread.
  func requestReceived(_ request: HTTPRequest, answer: @escaping HTTPRequest.Answer)
  /// After each round of socket work, and after `wake`. Returns when it must be called at the latest.
  func step(_ now: Instant) -> Instant?
}

/// A WebSocket of a server; no number is used twice.
public struct WebSocketID: Hashable, Sendable {
  public let number: UInt64
  public init(number: UInt64) { self.number = number }
}

/// What a WebSocket's owner is notified of: all on the server's thread.
public protocol WebSocketDelegate: HTTPServerDelegate {
  /// Whether a page of this origin, which is in the canonical spelling of `WebOrigin`, may open a WebSocket.
  func allows(origin: String) -> Bool
  func webSocketOpened(_ id: WebSocketID, from address: IPAddress)
  /// A whole text message.
  func webSocketReceived(_ id: WebSocketID, _ bytes: [UInt8])
  /// A ping or pong arrived.
  func webSocketAlive(_ id: WebSocketID)
  /// A message did not fit its queue and was dropped.
  func webSocketCongested(_ id: WebSocketID)
  /// Once for each opened one; nothing follows for this id. The status code of RFC 6455 §7.4, if the peer sent one.
  func webSocketClosed(_ id: WebSocketID, _ code: UInt16?)
}

/// Writes to the WebSockets of a server. It belongs to the server's thread: it is used from the delegate's methods only.
public protocol WebSocketSender: AnyObject {
  func send(_ id: WebSocketID, _ bytes: [UInt8])
  func ping(_ id: WebSocketID)
  /// Sends the queued frames, then the close frame; cuts the socket if that lasts too long.
  func close(_ id: WebSocketID, _ code: UInt16)
}

/// Where a server has WebSockets, and of which sub-protocol.
public struct WebSocketEndpoint: Sendable {
  public var path: String
  public var subprotocol: String
  /// The longest message.
  public var messageBytes: Int
  /// The settings that the texts of refusals name.
  public var pathSetting: String
  public var originsSetting: String

  public init(path: String, subprotocol: String, messageBytes: Int, pathSetting: String, originsSetting: String) {
    (self.path, self.subprotocol, self.messageBytes) = (path, subprotocol, messageBytes)
    (self.pathSetting, self.originsSetting) = (pathSetting, originsSetting)
  }
}
