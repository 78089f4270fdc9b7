public import Bytes

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
  /// The way of requests over 1,300 bytes that would go by UDP (RFC 3261 §18.1.1); nil: they go by `flow` too. Where this one
  /// is refused or silent, `flow` is tried after all.
  public var large: Flow?

  public init(_ flow: Flow, large: Flow? = nil) { (self.flow, self.large) = (flow, large) }
}

/// A trunk as the target of outbound requests.
public struct TrunkPeer: Hashable, Sendable {
  /// The trunk's name in the configuration; messages that came from another trunk never match a leg of this one.
  public var name: String
  /// `host` or `host:port` of the trunk's URI, as written in Request-URI and To: `sip:NUMBER@domain`.
  public var domain: String
  /// Where the request goes first. The transport resolves names before this is made.
  public var target: TrunkTarget
  /// Where it goes when the server before has answered 503, can not be reached, or is silent (RFC 3263 §4.3), in this order.
  public var further: [TrunkTarget]
  /// Given only to challenges that come from the address the request was sent to.
  public var credentials: Credentials?
  /// The URIs of the proxies on the way, the next first: the routes of requests that make a dialog or none (RFC 3261 §8.1.2).
  public var proxies: [String] = []
  /// The Service-Route of our registration, as the registrar wrote it: behind `proxies`, on all but REGISTER (RFC 3608 §6.1). They go where
  /// REGISTER went, which is on the way.
  public var serviceRoutes: [String] = []
  /// The transport parameter of our Request-URIs where an edge stands between: how the edge continues. nil: as the flow goes.
  public var uriParameter: String?

  /// The transport parameter of a Request-URI that is sent on `flow`.
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
