import AppProtocol
import AppSessions
import Bytes
import JSONWebToken
import Logging
import Platform

/// What an operator asks of the admin port: `/healthz`, `/readyz`, `/metrics`, `/v1/calls…`.
public typealias AdminRequest = HTTPRequest
public typealias AdminResponse = HTTPResponse

/// The admin port, on a thread of its own, so that it answers also when the app thread does not.
///
///     let admin = try AdminServer.start(.init(address: address, token: token), logger: logger) { request, answer in
///       answer(.text(200, "ok"))          // now, or later from any thread; exactly once
///     }
public final class AdminServer: Sendable {
  public struct Settings: Sendable {
    public var address: SocketAddress
    /// Required of every request but `/healthz`; must be set off loopback.
    public var token: Redacted<[UInt8]>?
    public var tls: TLSFiles?
    public init(address: SocketAddress, token: Redacted<[UInt8]>? = nil, tls: TLSFiles? = nil) {
      (self.address, self.token, self.tls) = (address, token, tls)
    }
  }
  public typealias Handler = @Sendable (AdminRequest, @escaping @Sendable (AdminResponse) -> Void) -> Void

  private let server: HTTPServer
  private let delegate: AdminDelegate

  /// Throws `SystemError` with the setting's name if the address cannot be bound.
  public static func start(_ settings: Settings, logger: Logger, handler: @escaping Handler) throws -> AdminServer {
    let delegate = AdminDelegate(token: settings.token?.exposed, handler: handler)
    let server = try HTTPServer(
      .init(
        name: "admin", address: settings.address, setting: "listen.admin", tls: settings.tls,
        connections: Limits.adminConnections,
        connectionsPerAddress: Limits.adminConnections), delegate: delegate, logger: logger)
    try server.start()
    return AdminServer(server, delegate)
  }

  private init(_ server: HTTPServer, _ delegate: AdminDelegate) { (self.server, self.delegate) = (server, delegate) }

  public var address: SocketAddress { server.address }
  /// Reads the TLS files again. `done` gets what is wrong with them, in which case the old ones stay in use.
  public func reloadCertificates(_ done: @escaping @Sendable (TLSError?) -> Void) { server.reload(done) }
  /// Any thread: streams of answers may have more to say.
  public func wakeStreams() { server.wake() }
  /// Ends the thread and every connection.
  public func stop() { server.stop() }
}

/// Checks who may ask, then hands the request to the handler.
private final class AdminDelegate: TransportDelegate, Sendable {
  private let token: [UInt8]?
  private let handler: AdminServer.Handler

  init(token: [UInt8]?, handler: @escaping AdminServer.Handler) { (self.token, self.handler) = (token, handler) }

  func requestReceived(_ request: HTTPRequest, answer: @escaping @Sendable (HTTPResponse) -> Void) {
    guard ["GET", "HEAD", "POST"].contains(request.method) else { return answer(.text(405, "GET or POST")) }
    if let refusal = refusal(request) { return answer(refusal) }
    handler(request, answer)
  }

  private func refusal(_ request: HTTPRequest) -> HTTPResponse? {
    // Neither says anything of a call; the page asks for the rest with the token.
    if request.path == "/healthz" || request.path == "/" { return nil }
    if let token {
      let given = request.authorization.map { Array($0.exposed.utf8) } ?? []
      return constantTimeEqual(given, Array("Bearer ".utf8) + token) ? nil : .text(401, "authorization: Bearer <token>")
    }
    // Without a token only programs on this machine: a web page could reach loopback through its user's browser, by name
    // (DNS rebinding) or across origins.
    guard request.peer.unmapped.isLoopback else {
      return .text(403, "set listen.admin token_file to ask from another machine")
    }
    guard request.origin == nil, Self.isPlain(host: request.host) else { return .text(403, "not from a web page") }
    return nil
  }

  private static func isPlain(host: String) -> Bool {
    if let address = SocketAddress(host) { return address.ip.isLoopback }
    return host == "localhost" || host.hasPrefix("localhost:") || IPAddress(host)?.isLoopback ?? false
  }

  func webSocketOpened(_ id: ConnectionID, from address: IPAddress) {}
  func webSocketReceived(_ id: ConnectionID, _ bytes: [UInt8]) {}
  func webSocketAlive(_ id: ConnectionID) {}
  func webSocketCongested(_ id: ConnectionID) {}
  func webSocketClosed(_ id: ConnectionID, _ code: CloseCode?) {}
  func allows(origin: String) -> Bool { false }
  func turn(_ now: Instant) -> Instant? { nil }
}
