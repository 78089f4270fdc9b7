#if os(Linux) && !APPLE_SURFACE
  package import TrunklineClientMachines

  extension WebSocketPool {
    package enum Event: Sendable {
      case opened
      /// One whole text message.
      case received([UInt8])
      /// 1006 without a close frame; the text states why a connection attempt failed.
      case closed(UInt16, String?)
    }

    /// The server to connect to.
    package struct Endpoint: Sendable {
      package var host: String
      package var port: UInt16
      package var path: String
      package var isSecure: Bool
      var authority: String { "\(host):\(port)" }
      static let subprotocol = "trunkline.v1"
      /// Accepts self-signed certificates: for tests.
      var isInsecure: Bool

      /// Parses `ws://host:port/path` or `wss://…`; throws for anything else.
      package init(url: String, isInsecure: Bool = false) throws(AddressError) {
        let error = AddressError(description: "\(url): a ws:// or wss:// address is wanted")
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

    package struct AddressError: Error, CustomStringConvertible { package let description: String }

    /// Performs the actions on the socket `number`, and reports the events.
    /// - Parameter gateway: the session's address; nil: the pool's own endpoint.
    package func perform(
      _ actions: [ClientSession.Action], _ number: Int, gateway: String?, report: (ClientSession.Event) -> Void = { _ in }
    ) {
      for action in actions {
        switch action {
        // an invalid address: the pool's own endpoint has the call, or knows the node that has it
        case .connect: connect(number, to: gateway.flatMap { try? endpoint(of: $0) })
        // a pool's sockets are those of many phones on one machine: they use its default route
        case .connectAlternate: break
        case .write(let bytes): send(number, bytes)
        case .close(let code): close(number, code)
        case .event(let event): report(event)
        }
      }
    }
  }

  extension WebSocketPool.Event {
    /// The event as the session's input.
    package var input: ClientSession.Input {
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
#endif
