import AppSessions
import Glibc
import HTTP
import Logging
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// HTTP/1.1 on one port, and on request the WebSocket sub-protocol `trunkline.v1`, on its own event loop and thread.
///
/// A connection is served one request at a time: a pipelined request is read once the one before it is answered. Every wait has a
/// deadline and every buffer a bound (`Limits`); docs/design/app-protocol.md lists the bounds before authentication.
///
/// Unchecked: every field but `shared` and the constants belongs to the server's thread (before it starts, to the starter).
final class HTTPServer: Transport, @unchecked Sendable {
  struct Settings: Sendable {
    var name: String
    var address: SocketAddress
    var setting: String
    var tls: TLSFiles?
    /// The path that all others start with, where a proxy forwards it: `/phone`. Empty: the root.
    var path = ""
    /// The path on which `trunkline.v1` is served; nil: plain HTTP only.
    var webSocketPath: String?
    /// Proxies whose last X-Forwarded-For is the client's address.
    var proxies: [IPNetwork] = []
    var connections: Int
    var connectionsPerAddress: Int
    /// Whether the idlest connection is closed for a new one at the limits of its address and of the server; each time all are
    /// checked. False: with more than half of the connections open, none is kept alive.
    var makesRoom = false
    /// The part of `connections` for clients whose last request had a good token.
    var reserved = 0
    var closeTime = Limits.closeTime
    /// How long a request, or one whose body has a sink, may wait for its answer: then it gets 504.
    var answerTime = Limits.answerTime
    var importAnswerTime = Limits.importTime
    /// Whether the server's own refusals are problem details (RFC 9457), else a line of text.
    var reportsProblems = false
    /// Whether an address that sends bad tokens is slowed down (`Limits.refusedTokens`).
    var boundsRefusals = false
    /// The longest body of a request.
    var bodyBytes: @Sendable (RequestHead) -> Int = { _ in Limits.bodyBytes }
    /// Whether a request's body is read piece by piece, and by which sink.
    var hasSink: @Sendable (RequestHead) -> Bool = { _ in false }
    var sink: @Sendable (RequestHead) -> (any BodySink)? = { _ in nil }
  }

  /// Values that other threads write.
  struct Shared {
    var answers: [(UInt64, HTTPResponse)] = []
    var stops = false
    var distrusts = false
    var reloads: [@Sendable (TLSError?) -> Void] = []
  }

  let settings: Settings
  let metrics = TransportMetrics()
  let logger: Logger
  let shared = Mutex(Shared())
  let loop: EventLoop
  private(set) var address: SocketAddress
  private let wakes = Atomic<Bool>(false)
  private var thread: NamedThread?
  var listener: TCPListener?
  /// A descriptor that is released and opened again to accept and close a connection when there is no other.
  var reserve: Int32 = -1

  let delegate: any TransportDelegate
  var tls: TLSContext?
  var connections: [UInt64: HTTPConnection] = [:]
  /// Connections with a deadline.
  var waiting: Set<UInt64> = []
  /// Connections by age, including those that have sent data since; `silentCount` of them have not.
  var silent: [UInt64] = []
  var silentHead = 0
  var silentCount = 0
  var admission: Admission
  /// Refused requests by address: checking a token costs a signature, and an open connection could send any number.
  var refusals = RefusedTokens()
  /// Handshakes that wait for processor time, by age, and the time that is left.
  var handshakes: [UInt64] = []
  var handshakeTime = TimeBudget(perSecond: Limits.handshakeTimePerSecond)
  var webSockets: [ConnectionID: HTTPConnection] = [:]
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

  init(_ settings: Settings, delegate: any TransportDelegate, logger: Logger) throws {
    (self.settings, self.delegate, self.logger, address) = (settings, delegate, logger, settings.address)
    loop = try EventLoop(name: settings.name)
    admission = Admission(perAddress: settings.connectionsPerAddress, boundsAttempts: !settings.makesRoom)
  }

  deinit { buffer.deallocate() }

  /// Binds and starts the thread.
  func start() throws {
    ProcessSignals.ignoreBrokenPipes()  // OpenSSL writes to the socket itself
    tls = try settings.tls.map { files throws(TLSError) in try TLSContext(files) }
    let listener = try TCPListener(
      bind: settings.address, setting: settings.setting, dualStack: true, deferAcceptSeconds: Limits.deferAcceptSeconds,
      waitsForAddress: true)
    (self.listener, address) = (listener, listener.localAddress)
    reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
    try loop.register(listener.fd, .readable) { [unowned self] _ in accept() }
    stepTimer = loop.addTimer("sessions") {}  // due work is done at the end of every step
    sweepTimer = loop.addTimer("sweep") { [unowned self] in sweep() }
    loop.addFlush { [unowned self] in step() }
    do {
      thread = try NamedThread.start(name: settings.name, logger: logger) { [self] in run() }
    } catch {
      loop.unregister(listener.fd)
      self.listener = nil
      throw error
    }
  }

  private func run() {
    loop.run()
    for connection in Array(connections.values) { drop(connection, nil) }
    if let listener { loop.unregister(listener.fd) }
    (listener, tls) = (nil, nil)
    if reserve >= 0 { Glibc.close(reserve) }
  }

  /// The end of a loop's step: requests of other threads, the delegate's output, and writes.
  private func step() {
    let (answers, stops, reloads, distrusts) = shared.withLock { shared in
      defer { (shared.answers, shared.reloads, shared.distrusts) = ([], [], false) }
      return (shared.answers, shared.stops, shared.reloads, shared.distrusts)
    }
    if distrusts { for connection in connections.values { connection.isTrusted = false } }
    for (number, response) in answers { exchanges[number].map { answer($0, response) } }
    for done in reloads { done(reloadCertificates()) }
    var next = delegate.step(loop.now)
    if stops {
      if stopDeadline == nil {
        stopDeadline = loop.now + Limits.stopTime
        for socket in Array(webSockets.values) { beginClose(socket, .draining) }
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

  // MARK: any thread

  func wake() {
    // Coalesced; the step that runs this, and the posts before it, handles everything.
    guard !wakes.exchange(true, ordering: .acquiringAndReleasing) else { return }
    // Weak, as a loop that has ended keeps its posts.
    let posted = loop.post { [weak self] in self?.wakes.store(false, ordering: .releasing) }
    if !posted { wakes.store(false, ordering: .releasing) }
  }

  /// Tokens have changed: streams are checked now, and a connection is trusted again with its next request.
  func distrust() {
    shared.withLock { $0.distrusts = true }
    wake()
  }

  func stop() {
    shared.withLock { $0.stops = true }
    wake()
    thread?.join()
  }

  /// New connections use the files' present content; the old ones keep theirs. `done` is called on the server's thread.
  func reload(_ done: @escaping @Sendable (TLSError?) -> Void) {
    shared.withLock { $0.reloads.append(done) }
    wake()
  }

  private func reloadCertificates() -> TLSError? {
    guard let files = settings.tls else { return nil }
    do {
      tls = try TLSContext(files)
      return nil
    } catch {
      return error  // the old ones stay in use
    }
  }
}
