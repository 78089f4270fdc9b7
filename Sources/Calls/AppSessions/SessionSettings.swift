import JSONWebToken
import TrunklineAppProtocol
public import TrunklineBytes

/// The configuration of sessions. Replaced as a whole by `SessionMachine.reconfigure`.
public struct SessionSettings: Sendable {
  public var verifier: TokenVerifier
  /// For keys from a URL: when the fetch began that returned those of `verifier`; nil: none has, or the last is too long ago.
  public var keysFetchedAt: Instant?
  /// Who may connect.
  public var users: SessionUsers
  /// What login tokens may grant; nil: nothing, and a token with the claim is refused.
  public var grants: GrantRules?
  public var heartbeat: Duration
  /// `welcome.ice`; the servers of `turn` follow them.
  public var ice: [ICEServer]
  /// Nil: there is no TURN server.
  public var turn: TURNServers?
  /// `welcome.caps`. Without `dir` and `hist` those requests are answered `unsupported`.
  public var caps: [String]
  /// Sessions in all, resumable ones included; beyond it `hello` gets `err{overload}`.
  public var sessions = Limits.sessions
  /// Without one, `hello{wake}` gets `err{auth}`. In a cluster: `cluster.wakeTokens`.
  public var wakeTokens: WakeTokens?
  /// Nil: this is a single node, and resume tokens are random numbers. Must not change between nil and not nil while sessions
  /// exist.
  public var cluster: SessionCluster?
  /// `welcome.push.webpush`; nil: no pushes to browsers.
  public var webPushKey: String?

  public init(
    verifier: TokenVerifier, users: SessionUsers, heartbeat: Duration = Limits.heartbeat, ice: [ICEServer] = [],
    caps: [String] = ["media.active"], wakeTokens: WakeTokens? = nil, webPushKey: String? = nil
  ) {
    (self.verifier, self.users, self.heartbeat, self.ice, self.caps) = (verifier, users, heartbeat, ice, caps)
    (self.wakeTokens, self.webPushKey) = (wakeTokens, webPushKey)
  }
}
