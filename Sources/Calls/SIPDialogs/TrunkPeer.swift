public import TrunklineBytes

/// User name and password for a trunk's digest challenge (RFC 3261 §22.4).
public struct Credentials: Hashable, Sendable {
  public var username: String
  public var password: Redacted<String>

  public init(username: String, password: String) {
    (self.username, self.password) = (username, Redacted(password))
  }
}

/// One server of a trunk, as RFC 3263 located it.
public struct TrunkTarget: Hashable, Sendable {
  public var flow: Flow
  /// The flow for requests over 1,300 bytes that would use UDP (RFC 3261 §18.1.1); nil: they use `flow`, too. If this one is
  /// refused or silent, `flow` is tried nevertheless.
  public var large: Flow?

  public init(_ flow: Flow, large: Flow? = nil) { (self.flow, self.large) = (flow, large) }
}

/// A trunk as the target of outbound requests.
public struct TrunkPeer: Hashable, Sendable {
  /// The trunk's name in the configuration; messages from another trunk never match a leg of this one.
  public var name: String
  /// `host` or `host:port` of the trunk's URI, as written in Request-URI and To: `sip:NUMBER@domain`.
  public var domain: String
  /// The first server for a request. The transport resolves names before this is made.
  public var target: TrunkTarget
  /// The next servers when the one before has answered 503, cannot be reached, or is silent (RFC 3263 §4.3), in this order.
  public var further: [TrunkTarget]
  /// Sent only in answer to challenges from the address that the request was sent to.
  public var credentials: Credentials?
  /// The URIs of the proxies on the path, the next first: the routes of requests that start a dialog or have none (RFC 3261
  /// §8.1.2).
  public var proxies: [String] = []
  /// The Service-Route of our registration, as the registrar wrote it: after `proxies`, on all but REGISTER (RFC 3608 §6.1).
  /// Requests with it are sent where REGISTER was sent, which is on the path.
  public var serviceRoutes: [String] = []
  /// The transport parameter of our Request-URIs if there is an edge between: the transport that the edge uses next. nil: that of
  /// the flow.
  public var uriParameter: String?

  /// The transport parameter of a Request-URI sent on `flow`.
  public func uriParameter(on flow: Flow) -> String { uriParameter ?? flow.transport.uriParameter }

  public var flow: Flow {
    get { target.flow }
    set { target.flow = newValue }
  }

  public init(name: String, domain: String, flow: Flow, credentials: Credentials? = nil) {
    self.init(name: name, domain: domain, target: TrunkTarget(flow), credentials: credentials)
  }

  public init(name: String, domain: String, target: TrunkTarget, further: [TrunkTarget] = [], credentials: Credentials? = nil) {
    (self.name, self.domain, self.target, self.further, self.credentials) = (name, domain, target, further, credentials)
  }
}
