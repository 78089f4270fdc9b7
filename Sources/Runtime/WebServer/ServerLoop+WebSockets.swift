import HTTP
import TrunklineBytes
import TrunklinePlatform
import WebSocket

/// Upgrades (RFC 6455 §4.2) and the traffic of an upgraded connection.
extension ServerLoop {
  /// Those of RFC 6455 §7.4 that the server itself sends.
  enum StatusCode {
    static let policy: UInt16 = 1008
    static let restart: UInt16 = 1012
  }

  /// Refuses everything but the endpoint's protocol: no other one is spoken here, `h2c` least of all.
  func upgrade(_ connection: HTTPConnection, _ head: RequestHead) {
    func refuse(_ why: ConnectionRefusal, _ status: Int, _ reason: String, _ fields: [RequestHead.Field] = []) {
      metrics.refused[why].increment()
      // a refused origin has its own log line
      if why != .origin { noteLost(connection, head, reason) }
      refuseRequest(connection, status: status, reason: reason, fields: fields)
    }
    guard let endpoint = webSocketPort?.endpoint, head.list("upgrade").map({ $0.lowercased() }) == ["websocket"],
      head.method == "GET", head.minorVersion == 1, head.framing == .none,
      head.list("connection").contains(where: { $0.lowercased() == "upgrade" })
    else {
      return refuse(.upgrade, 400, "the only upgrade is GET, HTTP/1.1, Connection: Upgrade, Upgrade: websocket, and no body")
    }
    guard head.target.path == endpoint.path else {
      return refuse(
        .path, 404, "not a WebSocket path; use \(settings.path + endpoint.path); \(endpoint.pathSetting) sets that path")
    }
    guard head.all("sec-websocket-version") == ["13"] else {
      return refuse(.upgrade, 426, "Sec-WebSocket-Version must be 13", [.init("sec-websocket-version", "13")])
    }
    guard head.list("sec-websocket-protocol").contains(endpoint.subprotocol) else {
      return refuse(.subprotocol, 400, "Sec-WebSocket-Protocol must offer \(endpoint.subprotocol)")
    }
    guard allows(head, connection, endpoint) else {
      return refuse(.origin, 403, "pages of this origin may not connect; \(endpoint.originsSetting) lists those that may")
    }
    let keys = head.all("sec-websocket-key")
    guard keys.count == 1, let accept = Handshake.accept(key: keys[0]) else {
      return refuse(.upgrade, 400, "Sec-WebSocket-Key must be 16 octets in Base64")
    }
    let answer = ResponseHead(
      101,
      [
        .init("upgrade", "websocket"), .init("connection", "Upgrade"), .init("sec-websocket-accept", accept),
        .init("sec-websocket-protocol", endpoint.subprotocol),
      ])
    send(connection, answer.encoded)
    let rest = connection.reader?.drainRest() ?? []
    connection.reader = nil
    open(connection, endpoint)
    if !rest.isEmpty { rest.withUnsafeBytes { framesReceived(connection, $0) } }
  }

  /// Logs a refused WebSocket request: a page learns only that it failed.
  func noteLost(_ connection: HTTPConnection, _ head: RequestHead, _ why: String) {
    guard mayLog() else { return }
    logger.notice(
      "a request for a WebSocket was refused",
      metadata: [
        "why": "\(why)", "path": "\(head.target.path.prefix(100))", "host": "\(head.host.prefix(100))",
        "address": "\(connection.address)", "by_proxy": "\(connection.isProxy)",
      ])
  }

  private func allows(_ head: RequestHead, _ connection: HTTPConnection, _ endpoint: WebSocketEndpoint) -> Bool {
    let origins = head.all("origin")
    guard let origin = origins.first else { return true }
    guard origins.count == 1, origin.utf8.count <= Limits.originBytes else { return false }
    // A proxy of ours ends TLS before us, so that both schemes are our own.
    let schemes = connection.isProxy ? ["http", "https"] : [tls == nil ? "http" : "https"]
    // compared in one spelling: a proxy may forward the host with its port or as the user typed it, a browser does neither
    let own = WebOrigin(origin)
    if own != nil, schemes.contains(where: { WebOrigin(scheme: $0, host: head.host) == own }) { return true }
    if webSocketPort?.delegate.allows(origin: WebOrigin.canonical(origin)) == true { return true }
    if mayLog() {
      logger.notice(
        "a page of another origin was refused; \(endpoint.originsSetting) lists those allowed",
        metadata: [
          "origin": "\(origin.prefix(100))", "host": "\(head.host.prefix(100))", "scheme": "\(schemes.joined(separator: " or "))",
        ])
    }
    return false
  }

  private func open(_ connection: HTTPConnection, _ endpoint: WebSocketEndpoint) {
    lastNumber += 1
    let id = WebSocketID(number: lastNumber)
    connection.phase = .webSocket
    connection.webSocket = .init(
      id: id, frames: FrameReader(.server, messageBytes: endpoint.messageBytes),
      control: TokenBucket(perSecond: Limits.controlPerSecond, burst: Limits.controlBurst, at: loop.now))
    setDeadline(connection, nil)  // now the delegate's
    webSockets[id] = connection
    metrics.webSockets.set(Int64(webSockets.count))
    webSocketPort?.delegate.webSocketOpened(id, from: connection.address)
    watch(connection)
  }

  func framesReceived(_ connection: HTTPConnection, _ octets: UnsafeRawBufferPointer) {
    // Moved out and back in, so that the reader is not copied while it is read and the delegate may call `send` and `close`
    // meanwhile.
    guard let id = connection.webSocket?.id, var frames = connection.webSocket?.frames else { return }
    connection.webSocket?.frames = FrameReader(.server, messageBytes: 0)
    frames.read(octets) { event in
      frameReceived(connection, id, event)
      return connection.phase == .webSocket
    }
    connection.webSocket?.frames = frames
  }

  private func frameReceived(_ connection: HTTPConnection, _ id: WebSocketID, _ event: FrameReader.Event) {
    switch event {
    case .text(let message): webSocketPort?.delegate.webSocketReceived(id, message)
    // a server's reader refuses binary messages
    case .fragment, .binary: countControl(connection)
    case .ping(let payload):
      connection.webSocket?.ping = payload
      dirty.insert(connection.number)
      if countControl(connection) { webSocketPort?.delegate.webSocketAlive(id) }
    case .pong: if countControl(connection) { webSocketPort?.delegate.webSocketAlive(id) }
    case .failed(let code): fail(connection, code)
    case .close(let code):
      metrics.closes.counter(code.map { String($0) } ?? "none", "peer").increment()
      if let code { connection.appendClose(code) } else { connection.appendFrame(.close, []) }
      close(connection)
      report(connection, code)
    }
  }

  /// Counts a frame that is no message. It costs the sender as little as it costs us much: a few are usual, a flood ends the
  /// connection.
  @discardableResult private func countControl(_ connection: HTTPConnection) -> Bool {
    metrics.controlFrames.increment()
    guard connection.webSocket?.control.consume(at: loop.now) == true else {
      fail(connection, StatusCode.policy)
      return false
    }
    return true
  }

  /// Closes for the transport's own reasons: the delegate learns at once that its socket is unusable.
  private func fail(_ connection: HTTPConnection, _ code: UInt16) {
    beginClose(connection, code)
    report(connection, nil)
  }

  private func report(_ connection: HTTPConnection, _ code: UInt16?) {
    guard let socket = connection.webSocket, !socket.isReported else { return }
    connection.webSocket?.isReported = true
    webSocketPort?.delegate.webSocketClosed(socket.id, code)
  }

  /// Forgets a closed connection.
  func forget(_ connection: HTTPConnection, _ code: UInt16?) {
    guard let socket = connection.webSocket, webSockets.removeValue(forKey: socket.id) != nil else { return }
    metrics.webSockets.set(Int64(webSockets.count))
    if connection.phase == .webSocket { metrics.closes.counter("none", "peer").increment() }
    report(connection, code)
  }

  // MARK: WebSocketSender

  func send(_ id: WebSocketID, _ bytes: [UInt8]) {
    guard let connection = webSockets[id], connection.phase == .webSocket else { return }
    guard connection.queuedBytes + bytes.count <= Limits.queueBytes else {
      webSocketPort?.delegate.webSocketCongested(id)
      return
    }
    metrics.bytesSent.increment(by: UInt64(bytes.count))
    connection.appendFrame(.text, bytes)
    dirty.insert(connection.number)
  }

  func ping(_ id: WebSocketID) {
    guard let connection = webSockets[id], connection.phase == .webSocket else { return }
    connection.appendFrame(.ping, [])
    dirty.insert(connection.number)
  }

  func close(_ id: WebSocketID, _ code: UInt16) {
    guard let connection = webSockets[id] else { return }
    beginClose(connection, code)
  }

  func beginClose(_ connection: HTTPConnection, _ code: UInt16) {
    guard connection.phase == .webSocket else { return }
    metrics.closes.counter(String(code), "gateway").increment()
    connection.appendClose(code)
    close(connection)
  }
}
