import TrunklineClient

extension WebSocketPool {
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
    let subprotocol = "trunkline.v1"
    /// Takes self-signed certificates: for tests.
    var isInsecure: Bool

    /// Parses `ws://host:port/path` or `wss://…`; throws for anything else.
    init(url: String, isInsecure: Bool) throws(AppPhone.SetupError) {
      let error = AppPhone.SetupError(description: "\(url): a ws:// or wss:// address is wanted")
      let isSecure = url.hasPrefix("wss://")
      guard isSecure || url.hasPrefix("ws://") else { throw error }
      let rest = url.dropFirst(isSecure ? 6 : 5)
      let authority = rest.prefix { $0 != "/" }
      let path = rest.dropFirst(authority.count)
      var host = String(authority)
      var port: UInt16 = isSecure ? 443 : 80
      if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") {
        guard let number = UInt16(authority[authority.index(after: colon)...]) else { throw error }
        (host, port) = (String(authority[..<colon]), number)
      }
      host = host.trimming("[", "]")
      guard !host.isEmpty else { throw error }
      (self.host, self.port, self.path) = (host, port, path.isEmpty ? "/" : String(path))
      (self.isSecure, self.isInsecure) = (isSecure, isInsecure)
    }
  }

  /// Performs what concerns the socket `number`, and tells the app the rest.
  func perform(_ actions: [ClientSession.Action], _ number: Int, tell: (ClientSession.Event) -> Void = { _ in }) {
    for action in actions {
      switch action {
      case .connect: connect(number)
      case .write(let bytes): send(number, bytes)
      case .close(let code): close(number, code)
      case .event(let event): tell(event)
      }
    }
  }
}

extension WebSocketPool.Event {
  /// What the session hears of it.
  var input: ClientSession.Input {
    switch self {
    case .opened: .socketOpened
    case .received(let bytes): .frame(bytes)
    case .closed(let code, _): .socketClosed(code)
    }
  }
}

extension String {
  fileprivate func trimming(_ first: Character, _ last: Character) -> String {
    hasPrefix(String(first)) && hasSuffix(String(last)) ? String(dropFirst().dropLast()) : self
  }
}
