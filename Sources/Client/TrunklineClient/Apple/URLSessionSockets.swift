#if canImport(Darwin) || APPLE_SURFACE
  import Dispatch
  import Foundation
  import Network
  import Synchronization

  /// WebSockets and the one POST by URLSession, TURN servers by Network: the system provides and verifies TLS; test certificates
  /// are not accepted.
  public final class URLSessionSockets: SocketConnector, @unchecked Sendable {
    // Unchecked: not every SDK marks the monitor Sendable. It is started and cancelled once.
    private let monitor = NWPathMonitor()
    private let events: SocketDelegate
    private let session: URLSession
    /// Seconds: time limit of a connection attempt, and of a POST.
    private static let timeout = 10.0
    private static let longestMessage = 65_536
    /// Limit of simultaneous connections to TURN servers: two paths of two calls, and connections being opened.
    private static let mostRelays = 24
    private let relays = Mutex(0)

    public init() {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForRequest = Self.timeout
      events = SocketDelegate()
      // the session makes a serial queue: events of a socket arrive in order
      session = URLSession(configuration: configuration, delegate: events, delegateQueue: nil)
      // the monitor knows the path only after a start
      monitor.start(queue: DispatchQueue(label: "trunkline.default-route"))
    }

    /// Lets closing sockets end.
    deinit {
      session.finishTasksAndInvalidate()
      monitor.cancel()
    }

    public func open(_ url: String, events handler: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
      // URLSession raises an exception for a WebSocket task of another scheme
      guard let url = URL(string: url), ["ws", "wss"].contains(url.scheme), url.host != nil else {
        handler(.closed(1006, "\(url): a ws:// or wss:// address is wanted"))
        return NoSocket()
      }
      let task = session.webSocketTask(with: url, protocols: ["trunkline.v1"])
      task.maximumMessageSize = Self.longestMessage
      events.add(task, handler)
      task.resume()
      return TaskSocket(task: task)
    }

    /// Over cellular if the default route is not cellular, else over Wi-Fi.
    public func openAlternate(_ url: String, events handler: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)? {
      guard let url = URL(string: url), ["ws", "wss"].contains(url.scheme), url.host != nil else { return nil }
      return NetworkSocket(url, over: monitor.currentPath.usesInterfaceType(.cellular) ? .wifi : .cellular, events: handler)
    }

    public func post(_ url: String, bearer: String, body: [UInt8]) {
      guard let url = URL(string: url), ["http", "https"].contains(url.scheme) else { return }
      var request = URLRequest(url: url, timeoutInterval: Self.timeout)
      request.httpMethod = "POST"
      request.httpBody = Data(body)
      request.setValue("Bearer " + bearer, forHTTPHeaderField: "Authorization")
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      session.dataTask(with: request) { _, _, _ in }.resume()
    }

    public func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)? {
      let isRoom = relays.withLock { count in
        guard count < Self.mostRelays else { return false }
        count += 1
        return true
      }
      guard isRoom else { return nil }
      let made = NetworkRelay(address, events: events) { [weak self] in self?.relays.withLock { $0 -= 1 } }
      if made == nil { relays.withLock { $0 -= 1 } }
      return made
    }

    private struct TaskSocket: Socket {
      let task: URLSessionWebSocketTask
      /// The task's end reports a message that could not be sent.
      func send(_ text: [UInt8]) { task.send(.string(String(decoding: text, as: UTF8.self))) { _ in } }
      func close(_ code: UInt16) {
        task.cancel(with: URLSessionWebSocketTask.CloseCode(rawValue: Int(code)) ?? .normalClosure, reason: nil)
      }
    }
    private struct NoSocket: Socket {
      func send(_ text: [UInt8]) {}
      func close(_ code: UInt16) {}
    }
  }

  /// Events of one session's tasks, by task: each is closed once.
  private final class SocketDelegate: NSObject, URLSessionWebSocketDelegate {
    private let handlers = Mutex<[Int: @Sendable (SocketEvent) -> Void]>([:])

    func add(_ task: URLSessionWebSocketTask, _ handler: @escaping @Sendable (SocketEvent) -> Void) {
      handlers.withLock { $0[task.taskIdentifier] = handler }
    }

    /// Reads message by message until the task ends: a task returns one at a time.
    private func listen(_ task: URLSessionWebSocketTask) {
      task.receive { [weak self] result in
        guard let self, let handler = self.handlers.withLock({ $0[task.taskIdentifier] }) else { return }
        switch result {
        case .success(.string(let text)): handler(.received(Array(text.utf8)))
        case .success: return task.cancel(with: .unsupportedData, reason: nil)
        case .failure: return  // the task's end follows
        }
        self.listen(task)
      }
    }

    private func end(_ task: URLSessionTask, _ code: Int, _ why: String?) {
      let handler = handlers.withLock { $0.removeValue(forKey: task.taskIdentifier) }
      handler?(.closed(UInt16(clamping: code), why))
    }

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
      handlers.withLock { $0[webSocketTask.taskIdentifier] }?(.opened)
      listen(webSocketTask)
    }

    func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
      reason: Data?
    ) { end(webSocketTask, closeCode.rawValue, nil) }

    /// Follows a 307 to another node (docs/reference/protocol.md, Many nodes), with the token: URLSession omits it for another
    /// host.
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      guard response.statusCode == 307, let first = task.originalRequest,
        request.url?.scheme == "https" || first.url?.scheme == "http"
      else { return completionHandler(nil) }
      var next = request
      next.setValue(first.value(forHTTPHeaderField: "Authorization"), forHTTPHeaderField: "Authorization")
      completionHandler(next)
    }

    /// Ends a task without a close frame.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      end(task, 1006, error.map { "\($0.localizedDescription)" })
    }
  }
#endif
