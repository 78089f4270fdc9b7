public import HTTP
public import Logging
public import TrunklineBytes
public import TrunklinePlatform

/// HTTP/1.1 on one port, and on request WebSockets of one sub-protocol, on its own event loop and thread.
///
///     var settings = HTTPServer.Settings(name: "admin", address: address, setting: "listen.admin", connections: 64)
///     let server = try HTTPServer.start(settings, logger: logger, delegate: delegate)
///     server.wake()      // any thread: the delegate's `step` runs soon, and streams are read
///     server.stop()
///
/// A connection is served one request at a time: a pipelined request is read once the one before it is answered. Every wait has a
/// deadline and every buffer a bound (`Limits`); docs/design/app-protocol.md lists the bounds before authentication.
public final class HTTPServer: Sendable {
  public struct Settings: Sendable {
    /// The thread's.
    public var name: String
    public var address: SocketAddress
    /// The setting that the address is from, for errors and the log.
    public var setting: String
    public var tls: TLSFiles?
    /// The path that all others start with, where a proxy forwards it: `/phone`. Empty: the root.
    public var path = ""
    /// Proxies whose last X-Forwarded-For is the client's address.
    public var proxies: [IPNetwork] = []
    public var connections: Int
    public var connectionsPerAddress: Int
    /// Whether the idlest connection is closed for a new one at the limits of its address and of the server; each time all are
    /// checked. False: with more than half of the connections open, none is kept alive.
    public var makesRoom = false
    /// The part of `connections` for clients whose last request had good credentials.
    public var reserved = 0
    public var closeTime = Limits.closeTime
    /// How long a request, or one whose body has a sink, may wait for its answer: then it gets 504.
    public var answerTime = Limits.answerTime
    public var sinkAnswerTime = Limits.sinkTime
    /// Whether the server's own refusals are problem details (RFC 9457), else a line of text.
    public var reportsProblems = false
    /// Whether an address that sends bad credentials is slowed down (`Limits.refusedCredentials`).
    public var boundsRefusals = false
    /// The longest body of a request.
    public var bodyBytes: @Sendable (RequestHead) -> Int = { _ in Limits.bodyBytes }
    /// Whether `sink` returns one. Makes no sink.
    public var hasSink: @Sendable (RequestHead) -> Bool = { _ in false }
    /// The sink that reads a request's body piece by piece; nil: the body is part of the request.
    public var sink: @Sendable (RequestHead) -> (any BodySink)? = { _ in nil }

    /// - Parameter connectionsPerAddress: nil: as many as there are.
    public init(name: String, address: SocketAddress, setting: String, connections: Int, connectionsPerAddress: Int? = nil) {
      (self.name, self.address, self.setting, self.connections) = (name, address, setting, connections)
      self.connectionsPerAddress = connectionsPerAddress ?? connections
    }
  }

  /// The bound address.
  public let address: SocketAddress
  public let metrics: HTTPServerMetrics
  private let inbox: ServerInbox
  private let thread: NamedThread

  /// Binds and starts the thread. Throws `SystemError` with the setting's name if the address cannot be bound, `TLSFailure` if the
  /// files do not fit.
  public static func start(_ settings: Settings, logger: Logger, delegate: any HTTPServerDelegate) throws -> HTTPServer {
    let state = ServerLoop(settings, try ServerInbox(EventLoop(name: settings.name)), logger)
    state.delegate = delegate
    return try HTTPServer(state)
  }

  /// The same with WebSockets.
  /// - Parameter delegate: makes it, of what writes to WebSockets and of `wake`; called once, on this thread, before the server's
  ///   runs.
  public static func start(
    _ settings: Settings, webSockets endpoint: WebSocketEndpoint, logger: Logger,
    delegate: (any WebSocketSender, _ wake: @escaping @Sendable () -> Void) throws -> any WebSocketDelegate
  ) throws -> HTTPServer {
    let inbox = try ServerInbox(EventLoop(name: settings.name))
    let state = ServerLoop(settings, inbox, logger)
    let made = try delegate(state) { inbox.wake() }
    state.delegate = made
    state.webSocketPort = .init(endpoint: endpoint, delegate: made)
    return try HTTPServer(state)
  }

  private init(_ state: ServerLoop) throws {
    ProcessSignals.ignoreBrokenPipes()  // OpenSSL writes to the socket itself
    address = try state.listen()
    (inbox, metrics) = (state.inbox, state.metrics)
    let bound = LoopBound(state, to: state.loop)
    do {
      thread = try NamedThread.start(name: state.settings.name, logger: state.logger) { bound.value.run() }
    } catch {
      state.stopListening()
      throw error
    }
  }

  // MARK: any thread

  /// Makes the delegate's `step` run soon; streams of answers may have more data.
  public func wake() { inbox.wake() }

  /// Credentials have changed: streams are checked now, and a connection is trusted again with its next request.
  public func distrust() { inbox.update { $0.distrusts = true } }

  /// Closes every socket, WebSockets with 1012, ends the thread and waits for it.
  public func stop() {
    inbox.update { $0.stops = true }
    thread.join()
  }

  /// New connections use the files' present content; the old ones keep theirs. `done` is called on the server's thread with their
  /// fault, in which case the old ones stay in use.
  public func reload(_ done: @escaping @Sendable (TLSFailure?) -> Void) { inbox.update { $0.reloads.append(done) } }
}
