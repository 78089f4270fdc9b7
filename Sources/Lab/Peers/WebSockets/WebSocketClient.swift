/// One WebSocket to the gateway, with a thread of its own: a pool of one. Events arrive on that thread, in order; `connect`,
/// `send` and `close` may be called from any.
final class WebSocketClient: Sendable {
  enum Event: Sendable {
    case opened
    /// One whole text message.
    case received([UInt8])
    /// 1006 when no close frame came; the text says why a connection attempt failed.
    case closed(UInt16, String?)
  }

  struct Endpoint: Sendable {
    var host: String
    var port: UInt16
    var path: String
    var isSecure: Bool
    var subprotocol: String
    /// Takes self-signed certificates: for tests.
    var isInsecure: Bool

    /// Parses `ws://host:port/path` or `wss://…`; nil for anything else.
    init?(url: String, subprotocol: String, isInsecure: Bool = false) {
      let isSecure = url.hasPrefix("wss://")
      guard isSecure || url.hasPrefix("ws://") else { return nil }
      let rest = url.dropFirst(isSecure ? 6 : 5)
      let authority = rest.prefix { $0 != "/" }
      let path = rest.dropFirst(authority.count)
      var host = String(authority)
      var port: UInt16 = isSecure ? 443 : 80
      if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") {
        guard let number = UInt16(authority[authority.index(after: colon)...]) else { return nil }
        (host, port) = (String(authority[..<colon]), number)
      }
      host = host.trimming("[", "]")
      guard !host.isEmpty else { return nil }
      (self.host, self.port, self.path) = (host, port, path.isEmpty ? "/" : String(path))
      (self.isSecure, self.subprotocol, self.isInsecure) = (isSecure, subprotocol, isInsecure)
    }
  }

  private let pool: WebSocketPool

  init(endpoint: Endpoint, handler: @escaping @Sendable (Event) -> Void) throws {
    pool = try WebSocketPool(endpoint: endpoint, count: 1) { handler($1) }
  }

  func connect() { pool.connect(0) }
  func send(_ text: [UInt8]) { pool.send(0, text) }
  func close(_ code: UInt16) { pool.close(0, code) }

  /// Closes the socket if one is open and joins the thread.
  func stop() { pool.stop() }
}

extension String {
  fileprivate func trimming(_ first: Character, _ last: Character) -> String {
    hasPrefix(String(first)) && hasSuffix(String(last)) ? String(dropFirst().dropLast()) : self
  }
}
