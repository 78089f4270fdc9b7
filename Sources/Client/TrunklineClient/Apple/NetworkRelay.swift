#if canImport(Darwin) || APPLE_SURFACE
  import Dispatch
  import Foundation
  import Network
  import Security
  import Synchronization

  /// A connection to a TURN server by NWConnection, which looks the name up, tries its addresses and verifies TLS as the system does.
  final class NetworkRelay: RelaySocket, @unchecked Sendable {
    // Unchecked: not every SDK marks the connection Sendable. Its functions may be called from any thread.
    private struct State {
      /// Messages that the connection has not accepted.
      var unsent = 0
      var isOpen = false
      var isClosing = false
      var isOver = false
    }

    /// Limit of waiting messages: more are lost, as on any slow network.
    private static let messages = 64
    private static let chunkBytes = 16_384
    /// Seconds for opening the connection, and for sending waiting messages when it is closed.
    private static let (setupTime, farewellTime) = (10, 1)

    private let connection: NWConnection
    private let transport: RelayAddress.Transport
    private let queue = DispatchQueue(label: "trunkline.relay")
    private let state = Mutex(State())
    private let events: @Sendable (RelayEvent) -> Void
    private let ended: @Sendable () -> Void

    /// Nil: the port is invalid.
    /// - Parameter ended: called once, after `RelayEvent.closed`.
    init?(
      _ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void, ended: @escaping @Sendable () -> Void
    ) {
      guard address.port > 0, let port = NWEndpoint.Port(rawValue: address.port) else { return nil }
      connection = NWConnection(host: NWEndpoint.Host(address.host), port: port, using: Self.parameters(address))
      (transport, self.events, self.ended) = (address.transport, events, ended)
      // retained until `end`
      connection.stateUpdateHandler = { [self] in changed($0) }
      connection.start(queue: queue)
      queue.asyncAfter(deadline: .now() + .seconds(Self.setupTime)) { [weak self] in
        if self?.state.withLock({ $0.isOpen }) == false { self?.end("no answer") }
      }
    }

    private static func parameters(_ address: RelayAddress) -> NWParameters {
      if address.transport == .udp { return .udp }
      let tcp = NWProtocolTCP.Options()
      tcp.noDelay = true
      guard address.transport == .tls else { return NWParameters(tls: nil, tcp: tcp) }
      let tls = NWProtocolTLS.Options()
      sec_protocol_options_set_tls_server_name(tls.securityProtocolOptions, address.certificateHost)
      return NWParameters(tls: tls, tcp: tcp)
    }

    func send(_ bytes: [UInt8]) {
      let isRoom = state.withLock { state in
        guard !state.isOver, !state.isClosing, state.unsent < Self.messages else { return false }
        state.unsent += 1
        return true
      }
      guard isRoom else { return }
      // the connection's state reports a failure
      connection.send(content: Data(bytes), completion: .contentProcessed { [weak self] _ in self?.sent() })
    }

    private func sent() {
      let isDone = state.withLock { state in
        state.unsent -= 1
        return state.unsent == 0 && state.isClosing
      }
      if isDone { connection.cancel() }
    }

    func close() {
      let waits = state.withLock { state in
        state.isClosing = true
        return state.isOpen && state.unsent > 0
      }
      guard waits else { return connection.cancel() }
      queue.asyncAfter(deadline: .now() + .seconds(Self.farewellTime)) { [connection] in connection.cancel() }
    }

    // MARK: on the queue

    private func changed(_ new: NWConnection.State) {
      switch new {
      case .ready:
        state.withLock { $0.isOpen = true }
        events(.opened)
        receive()
      // no path, or no listening server: it would be tried again for ever, and there are other servers
      case .waiting(let error), .failed(let error): end("\(error)")
      case .cancelled: end("closed")
      default: break
      }
    }

    private func receive() {
      if transport == .udp {
        connection.receiveMessage { [weak self] bytes, _, _, error in self?.received(bytes, isLast: false, error) }
      } else {
        connection.receive(minimumIncompleteLength: 1, maximumLength: Self.chunkBytes) { [weak self] bytes, _, isLast, error in
          self?.received(bytes, isLast: isLast, error)
        }
      }
    }

    private func received(_ bytes: Data?, isLast: Bool, _ error: NWError?) {
      if let bytes, !bytes.isEmpty { events(.received(Array(bytes))) }
      if let error { return end("\(error)") }
      if isLast { return end("the server has ended it") }
      receive()
    }

    private func end(_ why: String) {
      let isFirst = state.withLock { state in
        defer { state.isOver = true }
        return !state.isOver
      }
      guard isFirst else { return }
      connection.stateUpdateHandler = nil
      connection.cancel()
      events(.closed(why))
      ended()
    }
  }
#endif
