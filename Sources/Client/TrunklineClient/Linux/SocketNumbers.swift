#if os(Linux) && !APPLE_SURFACE
  import TrunklineBytes
  import Synchronization

  /// The sockets of one pool, made with the first socket: each has a number and an event handler.
  final class SocketNumbers: Sendable {
    private struct State {
      var pool: WebSocketPool?
      var next = 0
      /// Sockets that were opened so far.
      var count = 0
      /// Event handlers of the sockets that have not closed.
      var handlers: [Int: @Sendable (SocketEvent) -> Void] = [:]

      /// A free number, else the one that was assigned longest ago.
      mutating func number() -> Int {
        let order = (0..<SocketNumbers.sockets).map { (next + $0) % SocketNumbers.sockets }
        let number = order.first { handlers[$0] == nil } ?? next
        next = (number + 1) % SocketNumbers.sockets
        count += 1
        return number
      }
    }
    /// Enough numbers for the phone's own socket, one for each further node, and replaced ones that have not ended.
    private static let sockets = 32
    private let state = Mutex(State())

    deinit { state.withLock { $0.pool }?.stop() }

    var count: Int { state.withLock { $0.count } }

    /// The address at which a socket to the endpoint opened last.
    func address(of endpoint: WebSocketPool.Endpoint) -> IPAddress? { state.withLock { $0.pool }?.address(of: endpoint) }

    func open(
      _ endpoint: WebSocketPool.Endpoint, over interface: WebSocketPool.Interface?,
      _ events: @escaping @Sendable (SocketEvent) -> Void
    ) throws -> any Socket {
      let pool = try pool(endpoint)
      let number = state.withLock { state -> Int in
        let number = state.number()
        state.handlers[number] = events
        return number
      }
      if let interface { pool.connect(number, to: endpoint, over: interface) } else { pool.connect(number, to: endpoint) }
      return PooledSocket(pool: pool, number: number)
    }

    private func pool(_ endpoint: WebSocketPool.Endpoint) throws -> WebSocketPool {
      if let pool = state.withLock({ $0.pool }) { return pool }
      let made = try WebSocketPool(endpoint: endpoint, count: Self.sockets) { [weak self] number, event in
        let handler = self?.state.withLock { state in
          if case .closed = event { return state.handlers.removeValue(forKey: number) }
          return state.handlers[number]
        }
        switch event {
        case .opened: handler?(.opened)
        case .received(let text): handler?(.received(text))
        case .closed(let code, let why): handler?(.closed(code, why))
        }
      }
      state.withLock { $0.pool = made }
      return made
    }

    private struct PooledSocket: Socket {
      let pool: WebSocketPool
      let number: Int
      func send(_ text: [UInt8]) { pool.send(number, text) }
      func close(_ code: UInt16) { pool.close(number, code) }
    }
  }
#endif
