import AppProtocol
import AppSessions
import Bytes
import Glibc
import HTTP
import Logging
import Platform
import Synchronization

/// HTTP/1.1 on one port, and if asked for the WebSocket sub-protocol `trunkline.v1`, on an event loop and thread of its own.
///
/// A connection is served one request at a time: what is pipelined behind it is read once it is answered. Every wait has a
/// deadline and every buffer a bound (`Limits`); what a peer may use before it is authenticated is in docs/design/app-protocol.md.
///
/// Unchecked: every field but `shared` and the constants belongs to the server's thread (before it starts, to the starter).
final class HTTPServer: Transport, @unchecked Sendable {
  struct Settings: Sendable {
    var name: String
    var address: SocketAddress
    var setting: String
    var tls: TLSFiles?
    /// Below which everything is, where a proxy hands its path on: `/phone`. Empty: at the root.
    var path = ""
    /// The path on which `trunkline.v1` is served; nil: plain HTTP only.
    var webSocketPath: String?
    /// Whose last X-Forwarded-For is the address that counts.
    var proxies: [IPNetwork] = []
    var connections: Int
    var connectionsPerAddress: Int
    /// The idlest connection gives way to a new one, at its address's share and at the whole; each time all are looked at. False: where they
    /// are many, none is kept alive beyond half of them.
    var makesRoom = false
    /// Of `connections`, for those whose last request had a good token.
    var reserved = 0
    var closeTime = Limits.closeTime
    /// What the server itself refuses is told as problem details (RFC 9457), else as a line of text.
    var reportsProblems = false
    /// Whether an address that shows bad tokens is held up (`Limits.refusedTokens`).
    var boundsRefusals = false
    /// The most of a request's body.
    var bodyBytes: @Sendable (RequestHead) -> Int = { _ in Limits.bodyBytes }
    /// Whether a request's body is taken as it comes, and by what.
    var hasSink: @Sendable (RequestHead) -> Bool = { _ in false }
    var sink: @Sendable (RequestHead) -> (any BodySink)? = { _ in nil }
  }

  /// What other threads write.
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
  /// Given back and taken again to close a connection that there is no descriptor for.
  var reserve: Int32 = -1

  let delegate: any TransportDelegate
  var tls: TLSContext?
  var connections: [UInt64: HTTPConnection] = [:]
  /// Those with a deadline.
  var waiting: Set<UInt64> = []
  /// By age, also those that have spoken since; `silentCount` of them have not.
  var silent: [UInt64] = []
  var silentHead = 0
  var silentCount = 0
  var admission: Admission
  /// Refused requests by address; a token costs a signature to look at, and a connection that stays could show any number.
  var refusals = RefusedTokens()
  /// Handshakes that wait for processor time, by age, and what is left of that.
  var handshakes: [UInt64] = []
  var handshakeTime = TimeBudget(perSecond: Limits.handshakeTimePerSecond)
  var webSockets: [ConnectionID: HTTPConnection] = [:]
  var exchanges: [UInt64: HTTPConnection] = [:]
  /// Those whose answer has no stated end.
  var endless = StreamSlots()
  /// Those whose answer has one, and comes in pieces.
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
    stepTimer = loop.addTimer("sessions") {}  // what is due is done at the end of every turn
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

  /// The end of a turn: what other threads asked for, what the delegate has to say, and what is to be written.
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
      drop(connection, nil)
    }
  }

  func setDeadline(_ connection: HTTPConnection, _ deadline: Instant?) {
    connection.deadline = deadline ?? .distantFuture
    if deadline == nil { waiting.remove(connection.number) } else { waiting.insert(connection.number) }
  }

  // MARK: any thread

  func wake() {
    // Coalesced; the turn that runs this, and what was posted before, takes all.
    guard !wakes.exchange(true, ordering: .acquiringAndReleasing) else { return }
    // Weak: a loop that has ended keeps what is posted to it.
    let posted = loop.post { [weak self] in self?.wakes.store(false, ordering: .releasing) }
    if !posted { wakes.store(false, ordering: .releasing) }
  }

  /// Tokens have changed: streams are looked at now, and a connection is trusted again with its next request.
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
