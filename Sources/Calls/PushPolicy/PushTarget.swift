public import TrunklineBytes

/// Where a push goes: one registration of one app on one device. Not logged: `token` prints as a mask.
public struct PushTarget: Hashable, Sendable {
  /// APNs has two environments: a development build's token is unknown to production.
  public enum Environment: String, Sendable, Hashable, CaseIterable, Codable { case production, sandbox }

  public var service: PushService
  /// APNs: lower-case hex. FCM: the registration token. Web Push: the subscription's JSON (`endpoint`, `keys`).
  public var token: Redacted<String>
  public var environment: Environment
  /// APNs: the bundle identifier with `.voip`. Others: not used.
  public var topic: String
  /// X25519 public key of the app: the caller is sealed for it. Nil: the push holds the caller in clear text.
  public var sealKey: [UInt8]?

  public init(
    _ service: PushService, token: String, environment: Environment = .production, topic: String = "", sealKey: [UInt8]? = nil
  ) {
    (self.service, self.token, self.environment, self.topic) = (service, Redacted(token), environment, topic)
    self.sealKey = sealKey
  }
}

/// The content of a push for a call (payload version 1). The call's id is the one on every other channel.
public struct CallPush: Sendable, Hashable {
  public enum HandleKind: String, Sendable, Hashable, Codable { case phone, email, generic }

  public var call: Identifier
  /// Seconds since 1970 at which the ring window ends: a later push is of no use.
  public var deadline: Int64
  public var account: String
  public var handleKind: HandleKind
  /// The caller: number, address or name. Not sent in clear text if `sealedCaller` is set.
  public var handle: String
  public var name: String?
  public var isVideo: Bool
  /// Where the woken app connects: `wss://…`.
  public var gateway: String
  /// Lets the woken app take part in this call, and in nothing else.
  public var wake: Redacted<String>
  /// The user's number that was called, and the call's further parameters. Both are left out if the caller is sealed: the app
  /// gets them from the gateway.
  public var called: Called?
  public var parameters: [String: String] = [:]
  public struct Called: Sendable, Hashable {
    public var kind: HandleKind
    public var handle: String
    public var name: String?
    public init(kind: HandleKind, handle: String, name: String? = nil) {
      (self.kind, self.handle, self.name) = (kind, handle, name)
    }
  }
  /// The caller, encrypted for the app (`CallerSealing`); empty: sealing failed, so the push has no caller.
  public var sealedCaller: String?

  public init(
    call: Identifier, deadline: Int64, account: String = "default", handleKind: HandleKind = .phone, handle: String,
    name: String? = nil,
    isVideo: Bool = false, gateway: String, wake: String, sealedCaller: String? = nil
  ) {
    (self.call, self.deadline, self.account, self.handleKind, self.handle) = (call, deadline, account, handleKind, handle)
    (self.name, self.isVideo, self.gateway, self.wake) = (name, isVideo, gateway, Redacted(wake))
    self.sealedCaller = sealedCaller
  }
}
