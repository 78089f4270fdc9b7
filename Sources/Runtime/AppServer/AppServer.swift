import AppSessions
public import JSONWebToken
import Logging
import TrunklineAppProtocol
public import TrunklineBytes
import TrunklinePlatform

/// The app port: WebSocket sessions on `/v1/connect` and the web phone's pages, on the thread `app-0`.
///
///     let app = try AppServer.start(settings, logger: logger) { control.post(.session($0)) }
///     app.post(.send(device, offer, call: id))       // control's thread, or any other
///     app.stop()
public final class AppServer: Sendable {
  public struct Settings: Sendable {
    public var address: SocketAddress
    public var tls: TLSFiles?
    /// Origins whose pages may connect, in addition to the gateway's own (`https://phone.example`).
    public var origins: Set<String>
    /// The path prefix of all resources, if a proxy passes its path on: `/phone`. Empty: at the root.
    public var path = ""
    /// By path.
    public var pages: [String: Page]
    public var sessions: SessionSettings
    public var connections = Limits.connections
    public var connectionsPerAddress = Limits.connectionsPerAddress
    /// Reverse proxies: for connections from these alone the last X-Forwarded-For is the client's address.
    public var proxies: [IPNetwork] = []
    /// Whether this node accepts new calls and sessions, for `GET /v1/ready`. Any thread; must not wait.
    public var isReady: @Sendable () -> Bool = { true }
    /// Present versions of directories; later ones arrive as `SessionCommand.directory`.
    public var directoryVersions: [String: Int] = [:]
    /// Answers `GET /v1/directory` of a device and its accounts, whose login token was checked; nil: the page does not exist. Any
    /// thread.
    public var directory: DirectoryHandler?
    /// A token names an unknown key: keys should be fetched. On the app thread; must not wait.
    public var keysWanted: @Sendable () -> Void = {}
    /// Shorter in tests.
    var closeTime = Limits.closeTime
    public init(
      address: SocketAddress, tls: TLSFiles? = nil, origins: Set<String> = [], pages: [String: Page] = [:],
      sessions: SessionSettings
    ) {
      (self.address, self.tls, self.origins, self.pages, self.sessions) = (address, tls, origins, pages, sessions)
    }
  }
  /// Concurrent connections, unless the settings state less.
  public static let mostConnections = Limits.connections
  public typealias DirectoryHandler =
    @Sendable (DeviceKey, [String], HTTPRequest, @escaping @Sendable (HTTPResponse) -> Void) -> Void
  /// Called on the app thread. False: control's inbox is full, and the event will be offered again.
  public typealias EventHandler = @Sendable (SessionEvent) -> Bool

  private let server: HTTPServer
  private let loop: AppLoop
  private let orders: Mailbox<AppRequest>

  /// Throws `SystemError` with the setting's name if the address cannot be bound, `TLSError` if the files do not fit.
  public static func start(_ settings: Settings, logger: Logger, events: @escaping EventHandler) throws -> AppServer {
    let loop = AppLoop(settings, logger: logger, events: events)
    let server = try HTTPServer(
      .init(
        name: "app-0", address: settings.address, setting: "listen.app", tls: settings.tls, path: settings.path,
        webSocketPath: "/v1/connect",
        proxies: settings.proxies, connections: settings.connections, connectionsPerAddress: settings.connectionsPerAddress,
        closeTime: settings.closeTime, boundsRefusals: true),
      delegate: loop,
      logger: logger)
    let orders = try Mailbox<AppRequest>(capacity: Limits.commands) { [unowned server] in server.wake() }
    loop.attach(server, orders)
    try server.start()
    return AppServer(server, loop, orders)
  }

  private init(_ server: HTTPServer, _ loop: AppLoop, _ orders: Mailbox<AppRequest>) {
    (self.server, self.loop, self.orders) = (server, loop, orders)
  }

  /// Sessions after the last step, resumable ones included. Any thread.
  public var sessions: Int { loop.sessionCount }

  /// The bound address.
  public var address: SocketAddress { server.address }

  /// Any thread; in order. False: the queue is full, and the session concerned ends, so that its client reconnects for a
  /// snapshot.
  @discardableResult public func post(_ command: SessionCommand) -> Bool {
    if orders.post(.command(command)) { return true }
    loop.lost(command)
    server.wake()
    return false
  }

  /// New users, keys, ICE servers and origins, for future connections; sessions of removed users end with 4003.
  @discardableResult public func reconfigure(_ sessions: SessionSettings, origins: Set<String>) -> Bool {
    orders.post(.reconfigure(sessions, origins))
  }

  /// Keys fetched from their URL, for future tokens. False: the queue is full; call again.
  @discardableResult public func replaceKeys(_ verifier: TokenVerifier, fetchedAt: Instant?) -> Bool {
    orders.post(.keys(verifier, fetchedAt: fetchedAt))
  }

  /// Reads the TLS files again. `done` gets their fault, in which case the old ones stay in use.
  public func reloadCertificates(_ done: @escaping @Sendable (TLSError?) -> Void) { server.reload(done) }

  /// Closes every socket (1012), ends the thread and waits for it.
  public func stop() { server.stop() }

  public var metrics: [MetricFamily] { loop.families(server.metrics) }
  public var queue: MailboxReading { orders.reading("app") }
}

enum AppRequest: Sendable {
  case command(SessionCommand)
  case reconfigure(SessionSettings, Set<String>)
  case keys(TokenVerifier, fetchedAt: Instant?)
}
