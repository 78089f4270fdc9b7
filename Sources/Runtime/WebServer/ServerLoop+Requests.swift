import Glibc
import HTTP
import TrunklineBytes
import TrunklinePlatform

/// Reading, requests and their answers.
extension ServerLoop {
  /// epoll reports the socket as ready.
  func ready(_ connection: HTTPConnection, _ events: IOEvents) {
    if connection.phase == .handshaking {
      // A connection that waits for processor time is watched for nothing: this is its end.
      return connection.waitsForAnswer ? drop(connection, nil) : handshake(connection)
    }
    if events.contains(.writable) || connection.tls?.writeWantsRead == true { dirty.insert(connection.number) }
    if events.contains(.readable), connection.wanted.contains(.readable) {
      readable(connection)
    } else if events.hasFailure {
      drop(connection, nil)
    }
  }

  /// Counts the processor time of TLS handshakes: in a flood, four fifths of the thread stay for the established connections.
  private func handshake(_ connection: HTTPConnection) {
    firstOctetsCame(connection)
    guard handshakeTime.has(at: loop.now) else {
      connection.waitsForAnswer = true
      handshakes.append(connection.number)
      return watch(connection)
    }
    let before = MonotonicClock.threadCPU()
    let progress = connection.handshake()
    handshakeTime.spend(MonotonicClock.threadCPU() - before, at: loop.now)
    switch progress {
    case .done:
      connection.phase = .request
      watch(connection)
      readable(connection)  // Octets that came with the handshake's last flight.
    case .wantsRead, .wantsWrite: watch(connection)
    case .closed, .failed:
      metrics.refused[.handshake].increment()
      drop(connection, nil)
    }
  }

  /// Resumes waiting handshakes, as many as fit; returns when to try again.
  func resumeHandshakes() -> Instant {
    var next = handshakes[...]
    while let number = next.first, handshakeTime.has(at: loop.now) {
      next = next.dropFirst()
      guard let connection = connections[number], connection.waitsForAnswer else { continue }
      connection.waitsForAnswer = false
      handshake(connection)
    }
    handshakes = Array(next)
    return handshakes.isEmpty
      ? .distantFuture : max(loop.now + .milliseconds(1), handshakeTime.time(of: Limits.handshakeResumeShare))
  }

  /// The first octets of a connection: from now on it has the time of a request.
  private func firstOctetsCame(_ connection: HTTPConnection) {
    guard !connection.hasSpoken else { return }
    connection.hasSpoken = true
    setDeadline(connection, connection.began + Limits.requestTime)
  }

  private func readable(_ connection: HTTPConnection) {
    for _ in 0..<Limits.readsPerStep {
      switch connection.read(into: buffer) {
      case .wait: return
      case .closed: return drop(connection, nil)
      case .bytes(let count):
        metrics.bytesReceived.increment(by: UInt64(count))
        received(connection, UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        guard connections[connection.number] != nil, connection.wanted.contains(.readable) else { return }
      }
    }
  }

  private func received(_ connection: HTTPConnection, _ octets: UnsafeRawBufferPointer) {
    switch connection.phase {
    case .request:
      firstOctetsCame(connection)
      let wasIdle = connection.reader?.isMidRequest == false
      connection.reader?.append(octets)
      if wasIdle, !connection.isSilent { setDeadline(connection, loop.now + Limits.requestTime) }
      nextRequest(connection)
    case .webSocket: framesReceived(connection, octets)
    case .closing:
      connection.lingered += octets.count
      if connection.lingered > Limits.lingerBytes { drop(connection, nil) }
    case .streaming:
      // The client of a stream should send nothing.
      connection.lingered += octets.count
      if connection.lingered > Limits.lingerBytes { drop(connection, nil) }
    case .handshaking, .answering: break
    }
  }

  /// One request at a time: the next is read when this one is answered and the answer written.
  private func nextRequest(_ connection: HTTPConnection) {
    while connection.phase == .request, connection.queuedBytes == 0 {
      switch connection.reader?.next() {
      case .none, .needsMore: return
      case .continueExpected:
        send(connection, ResponseHead(100).encoded)
        return
      case .part(let head, let octets):
        partReceived(connection, head, octets)
      case .request(let request): requested(connection, request)
      case .refused(let refusal):
        metrics.refused[.malformed].increment()
        refuseRequest(connection, status: refusal.status, reason: refusal.reason)
      }
    }
  }

  /// A body with a sink earns time by its octets, since reading them costs time; one that trickles has a request's time.
  private func partReceived(_ connection: HTTPConnection, _ head: RequestHead, _ octets: [UInt8]) {
    if connection.sink == nil {
      (connection.sink, connection.sinkDeadline) = (settings.sink(head), loop.now + Limits.sinkTime)
    }
    connection.sink?.receive(octets)
    let earned = Duration.nanoseconds(Int64(octets.count) * 1_000_000_000 / Limits.sinkBytesPerSecond)
    setDeadline(connection, min(connection.deadline + earned, connection.sinkDeadline))
  }

  private func requested(_ connection: HTTPConnection, _ request: RequestReader.Request) {
    var head = request.head
    noLongerSilent(connection)
    connection.served = loop.now
    guard countForwarded(connection, head.list("x-forwarded-for")) else {
      return refuseRequest(connection, status: 429, reason: "too many connections from this address")
    }
    if !settings.path.isEmpty, let target = head.target.below(settings.path) {
      // Relative links of a page refer to its folder.
      if head.target.path == settings.path, ["GET", "HEAD"].contains(head.method), head.first("upgrade") == nil {
        return refuseRequest(
          connection, status: 308, reason: "the page is at \(settings.path)/", fields: [.init("location", settings.path + "/")])
      }
      head.target = target
    }
    if head.first("upgrade") != nil { return upgrade(connection, head) }
    if let endpoint = webSocketPort?.endpoint, head.target.path == endpoint.path {
      noteLost(connection, head, "the request has no Upgrade: a proxy before the gateway has to forward Upgrade and Connection")
      return refuseRequest(
        connection, status: 426,
        reason:
          "a WebSocket is expected here; if the client requested one, a proxy before the gateway does not forward Upgrade and Connection",
        fields: [.init("upgrade", "websocket")])
    }
    let showsCredentials = settings.boundsRefusals && head.first("authorization") != nil
    if showsCredentials, !refusals.admits(connection.address, at: loop.now) {
      metrics.refused[.token].increment()
      return refuseRequest(
        connection, status: 429, reason: "too many refused credentials from this address",
        fields: [.init("retry-after", "\(RefusedCredentials.retrySeconds)")])
    }
    lastNumber += 1
    connection.phase = .answering
    // If connections are scarce, one that has its answer makes room, unless `makesRoom` does.
    let keepsAlive = head.keepsAlive && (settings.makesRoom || connections.count <= settings.connections / 2)
    connection.exchange = .init(
      number: lastNumber, isHead: head.method == "HEAD", isOld: head.minorVersion == 0, keepsAlive: keepsAlive,
      showsCredentials: showsCredentials)
    exchanges[lastNumber] = connection
    let sink = connection.removeSink() ?? settings.sink(head)
    setDeadline(connection, loop.now + (sink == nil ? settings.answerTime : settings.sinkAnswerTime))
    watch(connection)
    let number = lastNumber
    let asked = HTTPRequest(
      method: head.method, target: head.target, host: head.host, origin: head.first("origin"),
      authorization: head.first("authorization").map { Redacted($0) },
      fields: head.fields.filter { $0.name != "authorization" }.map { ($0.name, $0.value) },
      body: request.body, sink: sink, peer: connection.address, received: loop.now)
    connection.isTrusted = delegate.trusts(asked)
    delegate.requestReceived(asked) { [inbox] response in
      inbox.update { $0.answers.append((number, response)) }
    }
  }

  func answer(_ connection: HTTPConnection, _ response: HTTPResponse) {
    guard let exchange = connection.exchange else { return }
    exchanges[exchange.number] = nil
    connection.exchange = nil
    if exchange.showsCredentials, response.status == 401 || response.status == 403 {
      refusals.note(connection.address, at: loop.now)
    }
    if let stream = response.stream, !exchange.isHead {
      return stream.hasEnd ? begin(whole: stream, connection, response, exchange) : begin(stream, connection, response)
    }
    respond(connection, response, isHead: exchange.isHead, keepsAlive: exchange.keepsAlive)
  }

  /// The handler has not answered in time. Its later answer is dropped.
  func answerIsLate(_ connection: HTTPConnection) {
    if let exchange = connection.exchange { exchanges[exchange.number] = nil }
    connection.exchange = nil
    refuseRequest(
      connection, status: 504,
      reason: "the request was not answered in time; it may still be carried out: check before you repeat it")
  }

  /// An answer of the server itself; it ends the connection.
  func refuseRequest(_ connection: HTTPConnection, status: Int, reason: String, fields: [RequestHead.Field] = []) {
    var response = settings.reportsProblems ? HTTPProblem(status: status, reason).response : .text(status, reason)
    response.headers = fields.map { ($0.name, $0.value) }
    respond(connection, response, isHead: false, keepsAlive: false)
  }

  func respond(_ connection: HTTPConnection, _ response: HTTPResponse, isHead: Bool, keepsAlive: Bool) {
    // HEAD of an answer in pieces: its length is unknown.
    let head = head(response, length: response.stream == nil ? response.body.count : nil, keepsAlive: keepsAlive)
    send(connection, head.encoded + (isHead ? [] : response.body))
    guard keepsAlive else { return close(connection) }
    connection.phase = .request
    setDeadline(connection, loop.now + Limits.answerTime)
  }

  func head(_ response: HTTPResponse, length: Int?, keepsAlive: Bool) -> ResponseHead {
    metrics.requests.counter(String(response.status)).increment()
    var head = ResponseHead(
      response.status, [.init("date", HTTPDate.now()), .init("content-type", response.contentType)])
    if let length { head.fields.append(.init("content-length", String(length))) }
    head.fields += [.init("x-content-type-options", "nosniff"), .init("referrer-policy", "no-referrer")]
    head.fields += response.headers.map { .init($0.name.lowercased(), $0.value) }
    if !keepsAlive { head.fields.append(.init("connection", "close")) }
    return head
  }

  func send(_ connection: HTTPConnection, _ octets: [UInt8]) {
    metrics.bytesSent.increment(by: UInt64(octets.count))
    connection.append(octets)
    dirty.insert(connection.number)
  }

  /// Writes what is queued, ends our side, and closes the socket when the peer has ended too or its time is over.
  func close(_ connection: HTTPConnection) {
    connection.phase = .closing
    connection.reader = nil
    connection.sink = nil
    setDeadline(connection, loop.now + (connection.webSocket == nil ? Limits.answerTime : settings.closeTime))
    dirty.insert(connection.number)
  }

  // MARK: writing

  /// Writes for all connections with queued octets, once per step; then reads the requests that waited for an answer.
  func writeDirty() {
    let now = dirty
    dirty = []
    for number in now {
      guard let connection = connections[number] else { continue }
      guard connection.flush() else {
        drop(connection, nil)
        continue
      }
      guard connection.queuedBytes == 0 else {
        watch(connection)
        continue
      }
      switch connection.phase {
      case .closing where !connection.hasShutDown:
        connection.shutDown()
        if connection.webSocket == nil { setDeadline(connection, loop.now + Limits.lingerTime) }
      case .request:
        // One request per step and connection: the pipelined requests of one peer delay no other.
        nextRequest(connection)
        if connection.phase == .request, connection.queuedBytes == 0, !connection.isSilent {
          let isMidRequest = connection.reader?.isMidRequest == true
          setDeadline(connection, loop.now + (isMidRequest ? Limits.requestTime : Limits.keepAliveTime))
        }
      default: break
      }
      watch(connection)
    }
  }

  /// Sets the epoll events of this connection.
  func watch(_ connection: HTTPConnection) {
    guard connections[connection.number] != nil, connection.wanted != connection.interest else { return }
    connection.interest = connection.wanted
    try? loop.modify(connection.socket.fd, connection.interest)
  }
}
