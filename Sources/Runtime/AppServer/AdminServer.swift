import AppSessions
public import JSONWebToken
import Logging
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// A request of an operator at the admin port: `/healthz`, `/readyz`, `/metrics`, `/v1/calls…`.
public typealias AdminRequest = HTTPRequest
public typealias AdminResponse = HTTPResponse

/// The admin port, on its own thread, so that it answers even when the app thread does not.
///
///     let admin = try AdminServer.start(.init(address: address, token: token), routes: RouteTable(rows), logger: logger)
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
    var answerTime = Limits.answerTime
    var importAnswerTime = Limits.importTime
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
  private let delegate: AdminDelegate
  private let settings: Settings

  /// Throws `SystemError` with the setting's name if the address cannot be bound.
  public static func start(_ settings: Settings, routes: RouteTable, logger: Logger) throws -> AdminServer {
    let endpoint = AdminEndpoint(access: AdminAccess(settings.all(settings.tokens)), routes: routes)
    let delegate = AdminDelegate(endpoint)
    let server = try HTTPServer(
      .init(
        name: "admin", address: settings.address, setting: "listen.admin", tls: settings.tls,
        connections: Limits.adminConnections,
        connectionsPerAddress: Limits.adminConnectionsPerAddress, makesRoom: true, reserved: Limits.adminReserved,
        answerTime: settings.answerTime, importAnswerTime: settings.importAnswerTime, reportsProblems: true,
        bodyBytes: { endpoint.access.bodyBytes(of: $0, routes) }, hasSink: { endpoint.access.hasSink($0, routes) },
        sink: { endpoint.access.sink(of: $0, routes) }), delegate: delegate, logger: logger)
    try server.start()
    return AdminServer(server, delegate, settings)
  }

  private init(_ server: HTTPServer, _ delegate: AdminDelegate, _ settings: Settings) {
    (self.server, self.delegate, self.settings) = (server, delegate, settings)
  }

  /// Replaces `Settings.tokens`, from the next request on, and for streams from now on; any thread. `Settings.token` stays.
  public func replace(_ tokens: [APIToken]) {
    delegate.endpoint.access.replace(settings.all(tokens))
    server.distrust()
  }

  public var address: SocketAddress { server.address }
  /// Reads the TLS files again. `done` gets their fault, in which case the old ones stay in use.
  public func reloadCertificates(_ done: @escaping @Sendable (TLSError?) -> Void) { server.reload(done) }
  /// Any thread: streams of answers may have more data.
  public func wakeStreams() { server.wake() }
  /// Ends the thread and every connection.
  public func stop() { server.stop() }
}

private final class AdminDelegate: TransportDelegate, Sendable {
  let endpoint: AdminEndpoint

  init(_ endpoint: AdminEndpoint) { self.endpoint = endpoint }

  func requestReceived(_ request: HTTPRequest, answer: @escaping @Sendable (HTTPResponse) -> Void) {
    endpoint.handle(request, at: request.received, answer)
  }

  func trusts(_ request: HTTPRequest) -> Bool { endpoint.access.knows(request) }
  func webSocketOpened(_ id: ConnectionID, from address: IPAddress) {}
  func webSocketReceived(_ id: ConnectionID, _ bytes: [UInt8]) {}
  func webSocketAlive(_ id: ConnectionID) {}
  func webSocketCongested(_ id: ConnectionID) {}
  func webSocketClosed(_ id: ConnectionID, _ code: CloseCode?) {}
  func allows(origin: String) -> Bool { false }
  func step(_ now: Instant) -> Instant? { nil }
}
