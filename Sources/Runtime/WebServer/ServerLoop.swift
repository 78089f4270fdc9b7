import Glibc
import Logging
import TrunklineBytes
import TrunklinePlatform

/// A server's connections, and what is done with them: all on the server's thread, before it starts on the starter's. `HTTPServer`
/// holds it as `LoopBound`.
final class ServerLoop: WebSocketSender {
  struct WebSocketPort {
    let endpoint: WebSocketEndpoint
    let delegate: any WebSocketDelegate
  }

  let settings: HTTPServer.Settings
  let inbox: ServerInbox
  let metrics = HTTPServerMetrics()
  let logger: Logger
  /// Set before the thread starts, with what the delegate writes to.
  var delegate: (any HTTPServerDelegate)!
  /// Nil: plain HTTP only.
  var webSocketPort: WebSocketPort?
  var loop: EventLoop { inbox.loop }
  var listener: TCPListener?
  /// A descriptor that is released and opened again to accept and close a connection when there is no other.
  var reserve: Int32 = -1

  var tls: TLSContext?
  var connections: [UInt64: HTTPConnection] = [:]
  /// Connections with a deadline.
  var waiting: Set<UInt64> = []
  /// Connections by age, including those that have sent data since; `silentCount` of them have not.
  var silent: [UInt64] = []
  var silentHead = 0
  var silentCount = 0
  var admission: Admission
  /// Refused requests by address: checking credentials costs a signature, and an open connection could send any number.
  var refusals = RefusedCredentials()
  /// Handshakes that wait for processor time, by age, and the time that is left.
  var handshakes: [UInt64] = []
  var handshakeTime = TimeBudget(perSecond: Limits.handshakeTimePerSecond)
  var webSockets: [WebSocketID: HTTPConnection] = [:]
  var exchanges: [UInt64: HTTPConnection] = [:]
  /// Connections whose answer has no stated end.
  var endless = StreamSlots()
  /// Connections whose answer has an end, and is sent in pieces.
  var whole: Set<UInt64> = []
  /// Connections with something to write, or with a request that waits in their reader.
  var dirty: Set<UInt64> = []
  var lastNumber: UInt64 = 0
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Limits.readBytes, alignment: 16)
  var refusalsLoggedAt = Instant.zero
  private var stepTimer: EventLoop.TimerID?
  private var sweepTimer: EventLoop.TimerID?
  private var sweepIsSet = false
  private var stopDeadline: Instant?

  init(_ settings: HTTPServer.Settings, _ inbox: ServerInbox, _ logger: Logger) {
    (self.settings, self.inbox, self.logger) = (settings, inbox, logger)
    admission = Admission(perAddress: settings.connectionsPerAddress, boundsAttempts: !settings.makesRoom)
  }

  deinit { buffer.deallocate() }

  /// Binds; returns the bound address.
  func listen() throws -> SocketAddress {
    tls = try settings.tls.map { files throws(TLSFailure) in try TLSContext(http: files) }
    let listener = try TCPListener(
      bind: settings.address, setting: settings.setting, dualStack: true, deferAcceptSeconds: Limits.deferAcceptSeconds,
      waitsForAddress: true)
    self.listener = listener
    reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
    try loop.register(listener.fd, .readable) { [unowned self] _ in accept() }
    stepTimer = loop.addTimer("sessions") {}  // due work is done at the end of every step
    sweepTimer = loop.addTimer("sweep") { [unowned self] in sweep() }
    loop.addFlush { [unowned self] in step() }
    return listener.localAddress
  }

  func stopListening() {
    if let listener { loop.unregister(listener.fd) }
    listener = nil
    if reserve >= 0 { Glibc.close(reserve) }
    reserve = -1
  }

  func run() {
    loop.run()
    for connection in Array(connections.values) { drop(connection, nil) }
    stopListening()
    tls = nil
  }

  /// The end of a loop's step: requests of other threads, the delegate's output, and writes.
  private func step() {
    let received = inbox.drain()
    if received.distrusts { for connection in connections.values { connection.isTrusted = false } }
    for (number, response) in received.answers { exchanges[number].map { answer($0, response) } }
    for done in received.reloads { done(reloadCertificates()) }
    var next = delegate.step(loop.now)
    if received.stops {
      if stopDeadline == nil {
        stopDeadline = loop.now + Limits.stopTime
        for socket in Array(webSockets.values) { beginClose(socket, StatusCode.restart) }
      }
      next = min(next ?? .distantFuture, stopDeadline ?? .distantFuture)
    }
    feedStreams()
    writeDirty()
    if let feed = nextFeed { next = min(next ?? .distantFuture, feed) }
    if let stopDeadline, loop.now >= stopDeadline || !connections.values.contains(where: \.isLeaving) {
      loop.stop()
    }
    next = min(next ?? .distantFuture, dirty.isEmpty ? .distantFuture : loop.now)
    if !handshakes.isEmpty { next = min(next ?? .distantFuture, resumeHandshakes()) }
    if let stepTimer { loop.setTimer(stepTimer, at: next) }
    if !waiting.isEmpty, !sweepIsSet, let sweepTimer {
      sweepIsSet = true
      loop.setTimer(sweepTimer, at: loop.now + Limits.sweepInterval)
    }
  }

  /// Closes the connections whose deadline has passed.
  private func sweep() {
    sweepIsSet = false
    for number in Array(waiting) {
      guard let connection = connections[number], connection.deadline <= loop.now else { continue }
      if connection.isSilent { metrics.refused[connection.hasSpoken ? .slow : .silent].increment() }
      if connection.phase == .answering, connection.exchange != nil { answerIsLate(connection) } else { drop(connection, nil) }
    }
  }

  func setDeadline(_ connection: HTTPConnection, _ deadline: Instant?) {
    connection.deadline = deadline ?? .distantFuture
    if deadline == nil { waiting.remove(connection.number) } else { waiting.insert(connection.number) }
  }

  private func reloadCertificates() -> TLSFailure? {
    guard let files = settings.tls else { return nil }
    do {
      tls = try TLSContext(http: files)
      return nil
    } catch {
      return error  // the old ones stay in use
    }
  }
}
