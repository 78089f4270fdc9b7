public import JSONWebToken
public import Logging
public import TrunklineBytes
public import TrunklinePlatform
public import WebServer

/// The admin port, on its own thread, so that it answers even when the app thread does not.
///
///     let admin = try AdminServer.start(.init(address: address, token: token), routes: AdminRoutes(rows), logger: logger)
///
/// A row's handler answers now, or later from any thread; exactly once.
public final class AdminServer: Sendable {
  public struct Settings: Sendable {
    public var address: SocketAddress
    /// Permits everything; it, or one of `tokens`, is required of every request whose route has a scope, and must be set off
    /// loopback.
    public var token: Redacted<[UInt8]>?
    public var tokens: [APIToken]
    public var tls: TLSFiles?
    var answerTime = WebServer.Limits.answerTime
    var importAnswerTime = WebServer.Limits.sinkTime
    public init(
      address: SocketAddress, token: Redacted<[UInt8]>? = nil, tokens: [APIToken] = [], tls: TLSFiles? = nil
    ) {
      (self.address, self.token, self.tokens, self.tls) = (address, token, tokens, tls)
    }
    fileprivate func all(_ tokens: [APIToken]) -> [APIToken] {
      token.map { [APIToken(name: "listen.admin", secrets: [$0])] + tokens } ?? tokens
    }
  }

  private let server: HTTPServer
  private let access: AdminAccess
  private let settings: Settings

  /// Throws `SystemError` with the setting's name if the address cannot be bound.
  public static func start(_ settings: Settings, routes: AdminRoutes, logger: Logger) throws -> AdminServer {
    let endpoint = AdminEndpoint(access: AdminAccess(settings.all(settings.tokens)), routes: routes)
    var serving = HTTPServer.Settings(
      name: "admin", address: settings.address, setting: "listen.admin", connections: Limits.adminConnections,
      connectionsPerAddress: Limits.adminConnectionsPerAddress)
    serving.tls = settings.tls
    serving.makesRoom = true
    serving.reserved = Limits.adminReserved
    serving.answerTime = settings.answerTime
    serving.sinkAnswerTime = settings.importAnswerTime
    serving.reportsProblems = true
    serving.bodyBytes = { endpoint.access.bodyBytes(of: $0, routes) }
    serving.hasSink = { endpoint.access.hasSink($0, routes) }
    serving.sink = { endpoint.access.sink(of: $0, routes) }
    let delegate = AdminDelegate(endpoint)
    return AdminServer(try HTTPServer.start(serving, logger: logger, delegate: delegate), endpoint.access, settings)
  }

  private init(_ server: HTTPServer, _ access: AdminAccess, _ settings: Settings) {
    (self.server, self.access, self.settings) = (server, access, settings)
  }

  /// Replaces `Settings.tokens`, from the next request on, and for streams from now on; any thread. `Settings.token` stays.
  public func replace(_ tokens: [APIToken]) {
    access.replace(settings.all(tokens))
    server.distrust()
  }

  public var address: SocketAddress { server.address }
  /// Reads the TLS files again. `done` gets their fault, in which case the old ones stay in use.
  public func reloadCertificates(_ done: @escaping @Sendable (TLSFailure?) -> Void) { server.reload(done) }
  /// Any thread: streams of answers may have more data.
  public func wakeStreams() { server.wake() }
  /// Ends the thread and every connection.
  public func stop() { server.stop() }
}

private final class AdminDelegate: HTTPServerDelegate {
  let endpoint: AdminEndpoint

  init(_ endpoint: AdminEndpoint) { self.endpoint = endpoint }

  func requestReceived(_ request: HTTPRequest, answer: @escaping HTTPRequest.Answer) {
    endpoint.handle(request, at: request.received, answer)
  }

  func trusts(_ request: HTTPRequest) -> Bool { endpoint.access.knows(request) }
  func step(_ now: Instant) -> Instant? { nil }
}
