public import TrunklineBytes
public import TrunklineSIPDialogs

/// A trunk's settings in the configuration that are needed to reach it.
public struct TrunkSettings: Sendable, Equatable {
  public struct Registration: Sendable, Equatable {
    /// The user part of the address of record.
    public var user: String
    /// The user part of our Contact.
    public var contactUser: String
    /// The requested expiry in seconds; the registrar decides.
    public var expires: Int
    /// Over UDP, the time between two CRLFs that keep the way back open through NATs and firewalls, which forget it after 30
    /// to 120 s; zero: none.
    public var keepAlive: Duration
    public init(user: String, contactUser: String? = nil, expires: Int = 600, keepAlive: Duration = .seconds(25)) {
      (self.user, self.contactUser, self.expires, self.keepAlive) = (user, contactUser ?? user, expires, keepAlive)
    }
  }
  public struct Probe: Sendable, Equatable {
    public var interval: Duration
    /// Probes in a row without an answer before the trunk is down, and with one before it is up again.
    public var downAfter: Int
    public var upAfter: Int
    public init(interval: Duration = .seconds(30), downAfter: Int = 3, upAfter: Int = 2) {
      (self.interval, self.downAfter, self.upAfter) = (interval, downAfter, upAfter)
    }
  }

  public var name: String
  /// `host` or `host:port` as written in Request-URI, From and To.
  public var domain: String
  public var server: ServerURI
  /// The proxy's URI, for Route: `server` is the proxy, and `domain` is behind it; nil: `server` is the trunk itself.
  public var outboundProxy: String?
  /// The URI, for Route, of the edge that all requests go through first: then `server` is the edge.
  public private(set) var edge: String?
  private var uriParameter: String?
  public var credentials: Credentials?
  public var registration: Registration?
  public var probe: Probe?

  public init(
    name: String, domain: String, server: ServerURI, credentials: Credentials? = nil, registration: Registration? = nil,
    probe: Probe? = nil
  ) {
    (self.name, self.domain, self.server, self.credentials) = (name, domain, server, credentials)
    (self.registration, self.probe) = (registration, probe)
  }

  func peer(at target: TrunkTarget) -> TrunkPeer {
    var peer = TrunkPeer(name: name, domain: domain, target: target, credentials: credentials)
    peer.proxies = [edge, outboundProxy].compactMap(\.self)
    peer.uriParameter = uriParameter
    return peer
  }

  /// Requests go to `edge`, which finds the trunk by the Request-URI, or its proxy by the Route behind its own.
  /// - Parameter uri: the edge's URI in the Route.
  public mutating func go(through edge: ServerURI, uri: String) {
    uriParameter = outboundProxy == nil ? (server.isSecure ? .tls : server.transport)?.uriParameter ?? "" : ""
    server = edge
    self.edge = uri
  }
}

/// A change of a trunk: for log, metrics and the transport's allow-list.
public enum TrunkNews: Sendable, Equatable {
  /// All present addresses of its servers, or of its peers that are given by name.
  case located(trunk: String, [SocketAddress])
  case notLocated(trunk: String)
  /// Its servers are known, and no listener reaches one of them.
  case unreached(trunk: String, [SocketAddress])
  case registered(trunk: String, seconds: Int)
  case registrationFailed(trunk: String, code: Int, retry: Duration)
  /// The registrar did not remove the binding of a former address of ours: it ends at its expiry.
  case formerContactKept(trunk: String, contact: String, code: Int)
  /// The registrar's Service-Route is malformed, or longer than we follow: calls go without it.
  case serviceRouteRefused(trunk: String)
  /// OPTIONS probes are answered again, or no longer.
  case probed(trunk: String, isUp: Bool)
  /// Calls failed in a row by the trunk's fault, and it is not used for a while; or it is tried again.
  case breaker(trunk: String, isOpen: Bool)

  public var trunk: String {
    switch self {
    case .located(let trunk, _), .notLocated(let trunk), .unreached(let trunk, _), .registered(let trunk, _),
      .registrationFailed(let trunk, _, _), .formerContactKept(let trunk, _, _), .serviceRouteRefused(let trunk),
      .probed(let trunk, _), .breaker(let trunk, _):
      trunk
    }
  }
}
