public import Bytes

/// User name and password for a trunk's digest challenge (RFC 3261 §22.4).
public struct Credentials: Hashable, Sendable {
  public var username: String
  public var password: Redacted<String>

  public init(username: String, password: String) {
    (self.username, self.password) = (username, Redacted(password))
  }
}

/// A trunk as the target of outbound INVITEs.
public struct TrunkPeer: Hashable, Sendable {
  /// The trunk's name in the configuration; messages that came from another trunk never match a leg of this one.
  public var name: String
  /// `host` or `host:port` of the trunk's URI, as written in Request-URI and To: `sip:NUMBER@domain`.
  public var domain: String
  /// Where the INVITE goes. The transport resolves names before this is made.
  public var flow: Flow
  /// Given only to challenges that come from the address the request was sent to.
  public var credentials: Credentials?

  public init(name: String, domain: String, flow: Flow, credentials: Credentials? = nil) {
    (self.name, self.domain, self.flow, self.credentials) = (name, domain, flow, credentials)
  }
}
