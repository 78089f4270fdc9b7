public import AppSessions
public import JSONWebToken
public import Logging
import TrunklineAppProtocol
public import TrunklineBytes
public import TrunklinePlatform
public import WebServer

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
    var closeTime = WebServer.Limits.closeTime
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
    @Sendable (DeviceKey, [String], HTTPRequest, @escaping HTTPRequest.Answer) -> Void
  /// Called on the app thread. False: control's inbox is full, and the event will be offered again.
  public typealias EventHandler = @Sendable (SessionEvent) -> Bool

  private let server: HTTPServer
  private let orders: Mailbox<AppRequest>
  private let lostCommands: LostCommands
  private let figures: SessionFigures

  /// Throws `SystemError` with the setting's name if the address cannot be bound, `TLSFailure` if the files do not fit.
  public static func start(_ settings: Settings, logger: Logger, events: @escaping EventHandler) throws -> AppServer {
    var serving = HTTPServer.Settings(
      name: "app-0", address: settings.address, setting: "listen.app", connections: settings.connections,
      connectionsPerAddress: settings.connectionsPerAddress)
    serving.tls = settings.tls
    serving.path = settings.path
    serving.proxies = settings.proxies
    serving.closeTime = settings.closeTime
    serving.boundsRefusals = true
    let endpoint = WebSocketEndpoint(
      path: "/v1/connect", subprotocol: "trunkline.v1", messageBytes: TrunklineAppProtocol.Limits.frameBytes,
      pathSetting: "listen.app.path", originsSetting: "auth.origins")
    let (lostCommands, figures) = (LostCommands(), SessionFigures(settings))
    var orders: Mailbox<AppRequest>!
    let server = try HTTPServer.start(serving, webSockets: endpoint, logger: logger) { sender, wake in
      let queue = try Mailbox<AppRequest>(capacity: Limits.commands, wake: wake)
      orders = queue
      return AppLoop(
        settings, sender: sender, requests: queue, lostCommands: lostCommands, figures: figures, logger: logger, events: events)
    }
    return AppServer(server, requests: orders, lostCommands: lostCommands, figures: figures)
  }

  private init(_ server: HTTPServer, requests orders: Mailbox<AppRequest>, lostCommands: LostCommands, figures: SessionFigures) {
    (self.server, self.orders, self.lostCommands, self.figures) = (server, orders, lostCommands, figures)
  }

  /// Sessions after the last step, resumable ones included. Any thread.
  public var sessions: Int { figures.sessionCount }

  /// The bound address.
  public var address: SocketAddress { server.address }

  /// Any thread; in order. False: the queue is full, and the session concerned ends, so that its client reconnects for a
  /// snapshot.
  @discardableResult public func post(_ command: SessionCommand) -> Bool {
    if orders.post(.command(command)) { return true }
    lostCommands.note(command)
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
  public func reloadCertificates(_ done: @escaping @Sendable (TLSFailure?) -> Void) { server.reload(done) }

  /// Closes every socket (1012), ends the thread and waits for it.
  public func stop() { server.stop() }

  public var metrics: [MetricFamily] { figures.families(server.metrics) }
  public var queue: MailboxReading { orders.reading("app") }
}

enum AppRequest: Sendable {
  case command(SessionCommand)
  case reconfigure(SessionSettings, Set<String>)
  case keys(TokenVerifier, fetchedAt: Instant?)
}
