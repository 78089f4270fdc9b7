#if canImport(Darwin) || APPLE_SURFACE
  import Dispatch
  import Foundation
  import Network
  import Synchronization

  /// A WebSocket by NWConnection over one kind of interface, which URLSession cannot choose.
  final class NetworkSocket: Socket, @unchecked Sendable {
    // Unchecked: not every SDK marks the connection Sendable. Its functions may be called from any thread.
    private struct State {
      var unsent = 0
      var isOpen = false
      var isOver = false
    }

    /// Limit of messages that wait for the connection: a socket that exceeds it is broken.
    private static let messages = 256
    private static let longestMessage = 65_536
    /// Seconds for opening the connection.
    private static let setupTime = 10

    private let connection: NWConnection
    private let queue = DispatchQueue(label: "trunkline.socket")
    private let state = Mutex(State())
    private let events: @Sendable (SocketEvent) -> Void

    /// The URL's scheme, `ws` or `wss`, selects TLS.
    init(_ url: URL, over interface: NWInterface.InterfaceType, events: @escaping @Sendable (SocketEvent) -> Void) {
      let tcp = NWProtocolTCP.Options()
      tcp.noDelay = true
      let parameters = NWParameters(tls: url.scheme == "wss" ? NWProtocolTLS.Options() : nil, tcp: tcp)
      parameters.requiredInterfaceType = interface
      let options = NWProtocolWebSocket.Options()
      options.autoReplyPing = true
      options.maximumMessageSize = Self.longestMessage
      options.setSubprotocols(["trunkline.v1"])
      parameters.defaultProtocolStack.applicationProtocols.insert(options, at: 0)
      connection = NWConnection(to: .url(url), using: parameters)
      self.events = events
      // retained until `end`
      connection.stateUpdateHandler = { [self] in changed($0) }
      connection.start(queue: queue)
      queue.asyncAfter(deadline: .now() + .seconds(Self.setupTime)) { [weak self] in
        if self?.state.withLock({ $0.isOpen }) == false { self?.end(1006, "no answer") }
      }
    }

    func send(_ text: [UInt8]) {
      let isRoom = state.withLock { state in
        guard !state.isOver, state.unsent < Self.messages else { return false }
        state.unsent += 1
        return true
      }
      // an incomplete session is useless: the gateway has all messages again after a resume
      guard isRoom else { return queue.async { [self] in end(1006, "the connection stopped sending") } }
      send(text, .text)
    }

    private func send(_ bytes: [UInt8], _ opcode: NWProtocolWebSocket.Opcode, _ code: UInt16 = 1000) {
      let metadata = NWProtocolWebSocket.Metadata(opcode: opcode)
      if opcode == .close {
        metadata.closeCode = code < 4000 ? .protocolCode(.init(rawValue: code) ?? .normalClosure) : .privateCode(code)
      }
      let context = NWConnection.ContentContext(identifier: "trunkline.v1", metadata: [metadata])
      // the connection's state reports a failure
      connection.send(
        content: Data(bytes), contentContext: context, isComplete: true,
        completion: .contentProcessed { [self] _ in
          if opcode == .close { return end(code, nil) }
          state.withLock { $0.unsent -= 1 }
        })
    }

    func close(_ code: UInt16) {
      queue.async { [self] in
        if state.withLock({ $0.isOpen && !$0.isOver }) { send([], .close, code) } else { end(code, nil) }
      }
    }

    // MARK: on the queue

    private func changed(_ new: NWConnection.State) {
      switch new {
      case .ready:
        state.withLock { $0.isOpen = true }
        events(.opened)
        receive()
      // no interface, or no listening server: it would be tried again for ever
      case .waiting(let error), .failed(let error): end(1006, "\(error)")
      case .cancelled: end(1006, "closed")
      default: break
      }
    }

    private func receive() {
      connection.receiveMessage { [weak self] bytes, context, _, error in self?.received(bytes, context, error) }
    }

    private func received(_ bytes: Data?, _ context: NWConnection.ContentContext?, _ error: NWError?) {
      if let error { return end(1006, "\(error)") }
      let metadata = context?.protocolMetadata(definition: NWProtocolWebSocket.definition) as? NWProtocolWebSocket.Metadata
      switch metadata?.opcode {
      case .text: events(.received(Array(bytes ?? Data())))
      case .close: return end(metadata.map { Self.number($0.closeCode) } ?? 1005, nil)
      case .binary: return close(1003)
      // no metadata: the connection has ended
      case nil: return end(1006, "the gateway has ended it")
      default: break
      }
      receive()
    }

    private static func number(_ code: NWProtocolWebSocket.CloseCode) -> UInt16 {
      switch code {
      case .protocolCode(let defined): defined.rawValue
      case .applicationCode(let code), .privateCode(let code): code
      @unknown default: 1006
      }
    }

    private func end(_ code: UInt16, _ why: String?) {
      let isFirst = state.withLock { state in
        defer { state.isOver = true }
        return !state.isOver
      }
      guard isFirst else { return }
      connection.stateUpdateHandler = nil
      connection.cancel()
      events(.closed(code, why))
    }
  }
#endif
