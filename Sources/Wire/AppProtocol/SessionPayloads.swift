import TrunklineBytes

/// A party: `k` is `phone` (E.164 with +), `email` or `generic`; `h` the handle, `n` a display name.
public struct Handle: Hashable, Sendable, Codable {
  /// The kind of a handle.
  public enum Kind: String, Sendable, Codable {
    /// A telephone number: E.164 with +, or the digits of a local one, such as a PBX's extension.
    case phone
    /// An e-mail address.
    case email
    /// Any other party, including "Unknown".
    case generic
  }
  /// The kind of ``h``.
  public var k: Kind
  /// The number, the address or the text.
  public var h: String
  /// A display name; nil: unknown.
  public var n: String?

  /// A party.
  public init(k: Kind, h: String, n: String? = nil) {
    (self.k, self.h, self.n) = (k, h, n)
  }

  /// The kind of a number, wherever it occurs: in an offer, a push or the history.
  public static func kind(ofNumber text: String) -> Kind {
    let digits = text.hasPrefix("+") ? text.dropFirst(1) : text[...]
    return !digits.isEmpty && digits.utf8.allSatisfy { (48...57).contains($0) } ? .phone : .generic
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    k = try values.decode(Kind.self, forKey: .k)
    h = try values.text(.h)
    n = try values.optionalText(.n)
  }
}

/// `fg` or `bg`: whether the app is in the foreground.
public enum AppState: String, Sendable, Codable { case fg, bg }

public struct Hello: Hashable, Sendable, Codable {
  public struct Resume: Hashable, Sendable, Codable {
    public var sid: String
    public var token: String
    /// The highest S→C `seq` received in order; acks like `ack`. 0 if none.
    public var lastSeq: Int
    public init(sid: String, token: String, lastSeq: Int) { (self.sid, self.token, self.lastSeq) = (sid, token, lastSeq) }
  }
  public struct Device: Hashable, Sendable, Codable {
    /// Empty if the device cannot read it: before the first unlock its keychain is closed. A wake or resume token then identifies
    /// the device.
    public var id: String
    public var platform: String?
    public var model: String?
    public var os: String?
    public var sdk: String?
    public init(id: String, platform: String? = nil, model: String? = nil, os: String? = nil, sdk: String? = nil) {
      (self.id, self.platform, self.model, self.os, self.sdk) = (id, platform, model, os, sdk)
    }
    public init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      guard let id = try values.optionalText(.id) else { throw values.problem(.id, "text") }
      self.id = id
      platform = try values.optionalText(.platform)
      model = try values.optionalText(.model)
      os = try values.optionalText(.os)
      sdk = try values.optionalText(.sdk)
    }
  }
  /// Exactly one of these three is present.
  public enum Proof: Hashable, Sendable {
    case auth(String)
    case wake(String)
    case resume(Resume)
  }

  public var proof: Proof
  public var device: Device
  public var caps: [String]
  public var state: AppState
  /// With `auth`: the device's own session is at another node, and this one is for calls at this node.
  public var further: Bool?

  public init(_ proof: Proof, device: Device, caps: [String] = [], state: AppState = .fg, further: Bool? = nil) {
    (self.proof, self.device, self.caps, self.state, self.further) = (proof, device, caps, state, further)
  }

  private enum CodingKeys: String, CodingKey { case auth, wake, resume, device, caps, state, further }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let auth = try values.optionalText(.auth, limit: Limits.tokenCharacters)
    let wake = try values.optionalText(.wake, limit: Limits.tokenCharacters)
    let resume = try values.decodeIfPresent(Resume.self, forKey: .resume)
    switch (auth, wake, resume) {
    case (let auth?, nil, nil) where !auth.isEmpty: proof = .auth(auth)
    case (nil, let wake?, nil) where !wake.isEmpty: proof = .wake(wake)
    case (nil, nil, let resume?): proof = .resume(resume)
    default: throw values.problem(.auth, "exactly one of auth, wake, resume")
    }
    device = try values.decode(Device.self, forKey: .device)
    if case .auth = proof, device.id.isEmpty { throw values.problem(.device, "an id beside auth") }
    caps = try values.optionalList(.caps) ?? []
    state = try values.decodeIfPresent(AppState.self, forKey: .state) ?? .fg
    further = try values.decodeIfPresent(Bool.self, forKey: .further)
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    switch proof {
    case .auth(let token): try values.encode(token, forKey: .auth)
    case .wake(let token): try values.encode(token, forKey: .wake)
    case .resume(let resume): try values.encode(resume, forKey: .resume)
    }
    try values.encode(device, forKey: .device)
    try values.encode(caps, forKey: .caps)
    try values.encode(state, forKey: .state)
    try values.encodeIfPresent(further, forKey: .further)
  }
}

/// One STUN or TURN server for the client (RFC 8489, 8656); `ttlMs` is the lifetime of its credential.
public struct ICEServer: Hashable, Sendable, Codable {
  public var urls: [String]
  public var username: String?
  public var credential: String?
  public var ttlMs: Int?
  public init(urls: [String], username: String? = nil, credential: String? = nil, ttlMs: Int? = nil) {
    (self.urls, self.username, self.credential, self.ttlMs) = (urls, username, credential, ttlMs)
  }
}

public struct Welcome: Hashable, Sendable, Codable {
  /// Parameters that a client needs to register with a push service.
  public struct Push: Hashable, Sendable, Codable {
    /// The VAPID key (RFC 8292): Base64url, unpadded, of the uncompressed point on P-256, as `PushManager.subscribe` requires it
    /// for `applicationServerKey`. Absent: the gateway does not push to browsers.
    public var webpush: String?
    public init(webpush: String? = nil) { self.webpush = webpush }
  }
  public var sid: String
  public var resumeToken: String
  public var resumed: Bool
  /// The first C→S `seq` that the server lacks.
  public var replayFrom: Int
  /// Milliseconds since 1970.
  public var time: Int64
  /// The heartbeat interval, in milliseconds.
  public var hb: Int
  public var ice: [ICEServer]
  /// The snapshot; absent when resumed.
  public var calls: [CallSnapshot]?
  public var dirVersion: Int
  public var caps: [String]
  public var push: Push?
  /// The node's name, if there are several.
  public var node: String?
  /// The address of this node: `wss://…/v1/connect`.
  public var url: String?
  /// After a lost connection, a client without a call reconnects at a random time within this many milliseconds.
  public var spreadMs: Int?
  public init(
    sid: String, resumeToken: String, resumed: Bool, replayFrom: Int, time: Int64, hb: Int, ice: [ICEServer],
    calls: [CallSnapshot]?,
    dirVersion: Int = 0, caps: [String] = [], push: Push? = nil, node: String? = nil, url: String? = nil, spreadMs: Int? = nil
  ) {
    (self.sid, self.resumeToken, self.resumed, self.replayFrom, self.time) = (sid, resumeToken, resumed, replayFrom, time)
    (self.hb, self.ice, self.calls, self.dirVersion, self.caps) = (hb, ice, calls, dirVersion, caps)
    (self.push, self.node, self.url, self.spreadMs) = (push, node, url, spreadMs)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    sid = try values.decode(String.self, forKey: .sid)
    resumeToken = try values.decode(String.self, forKey: .resumeToken)
    resumed = try values.decode(Bool.self, forKey: .resumed)
    replayFrom = try values.decode(Int.self, forKey: .replayFrom)
    time = try values.decode(Int64.self, forKey: .time)
    hb = try values.decode(Int.self, forKey: .hb)
    ice = try values.decode([ICEServer].self, forKey: .ice)
    calls = try values.decodeIfPresent([CallSnapshot].self, forKey: .calls)
    dirVersion = try values.decode(Int.self, forKey: .dirVersion)
    caps = try values.decode([String].self, forKey: .caps)
    push = try values.decodeIfPresent(Push.self, forKey: .push)
    node = try values.optionalText(.node)
    url = try values.optionalText(.url, limit: Limits.urlCharacters)
    spreadMs = try values.optionalNumber(.spreadMs, in: 0...Limits.spanMilliseconds)
  }
}

/// `auth.refresh`: a new JWT for the same `sub` and `dev`.
public struct AuthRefresh: Hashable, Sendable, Codable {
  public var auth: String
  /// The session is one at a further node, for calls there: the device stays registered at the node of its own session
  /// (docs/reference/protocol.md, Many nodes).
  public var further: Bool?
  public init(auth: String, further: Bool? = nil) { (self.auth, self.further) = (auth, further) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    auth = try values.text(.auth, limit: Limits.tokenCharacters)
    further = try values.decodeIfPresent(Bool.self, forKey: .further)
  }
}

/// `auth.expiring`: when the token expires, milliseconds since 1970.
public struct AuthExpiring: Hashable, Sendable, Codable {
  public var at: Int64
  public init(at: Int64) { self.at = at }
}

/// `device.put`: the device's push registration and the user's preferences.
public struct DevicePut: Hashable, Sendable, Codable {
  /// The destination of pushes for this device.
  public struct Push: Hashable, Sendable, Codable {
    /// A push service; the gateway announces those that it supports.
    public struct Kind: RawRepresentable, Hashable, Sendable, Codable {
      /// The name on the wire.
      public var rawValue: String
      /// A service by its name on the wire.
      public init(rawValue: String) { self.rawValue = rawValue }
      /// Apple's VoIP pushes.
      public static let apnsVoIP = Kind(rawValue: "apns-voip")
      /// Firebase Cloud Messaging, Android.
      public static let fcm = Kind(rawValue: "fcm")
      /// A browser's push service, RFC 8030.
      public static let webpush = Kind(rawValue: "webpush")
    }
    /// Which push service.
    public var kind: Kind
    /// The service's identifier of this installation: Apple's in hexadecimal, a browser's subscription as JSON.
    public var token: String
    /// For Apple's service: `production` or `sandbox`.
    public var env: String?
    /// For Apple's service: the bundle identifier and `.voip`.
    public var topic: String?
    /// X25519 public key as Base64url: callers are sealed for it (docs/design/devices-and-push.md). Belongs to this registration.
    public var sealKey: String?
    /// A registration with a push service.
    public init(kind: Kind, token: String, env: String? = nil, topic: String? = nil, sealKey: String? = nil) {
      (self.kind, self.token, self.env, self.topic, self.sealKey) = (kind, token, env, topic, sealKey)
    }
  }
  public struct Preferences: Hashable, Sendable, Codable {
    public var ring: Bool?
    public var dnd: Bool?
    public init(ring: Bool? = nil, dnd: Bool? = nil) { (self.ring, self.dnd) = (ring, dnd) }
  }
  public var push: Push?
  public var prefs: Preferences?
  public init(push: Push? = nil, prefs: Preferences? = nil) { (self.push, self.prefs) = (push, prefs) }
}

public struct DeviceState: Hashable, Sendable, Codable {
  public var state: AppState
  public init(state: AppState) { self.state = state }
}

public struct Bye: Hashable, Sendable, Codable {
  public var code: Int?
  /// Another node to connect to, and the delay in milliseconds.
  public var url: String?
  public var afterMs: Int?
  public init(code: Int? = nil, url: String? = nil, afterMs: Int? = nil) {
    (self.code, self.url, self.afterMs) = (code, url, afterMs)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    code = try values.decodeIfPresent(Int.self, forKey: .code)
    url = try values.optionalText(.url, limit: Limits.urlCharacters)
    afterMs = try values.optionalNumber(.afterMs, in: 0...Limits.spanMilliseconds)
  }
}

/// `err`. `reason` is the end reason in the call's tombstone, with `gone`.
public struct Failure: Error, Hashable, Sendable, Codable {
  public var code: ErrorCode
  public var reason: EndReason?
  public var sip: Int?
  public var msg: String?
  public var retryMs: Int?
  public var fatal: Bool?
  /// The node that can handle the request.
  public var url: String?
  public init(
    _ code: ErrorCode, reason: EndReason? = nil, sip: Int? = nil, msg: String? = nil, retryMs: Int? = nil, fatal: Bool? = nil,
    url: String? = nil
  ) {
    (self.code, self.reason, self.sip, self.msg, self.retryMs, self.fatal) = (code, reason, sip, msg, retryMs, fatal)
    self.url = url
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    code = try values.decode(ErrorCode.self, forKey: .code)
    reason = try values.decodeIfPresent(EndReason.self, forKey: .reason)
    sip = try values.decodeIfPresent(Int.self, forKey: .sip)
    msg = try values.decodeIfPresent(String.self, forKey: .msg)
    retryMs = try values.decodeIfPresent(Int.self, forKey: .retryMs)
    fatal = try values.decodeIfPresent(Bool.self, forKey: .fatal)
    url = try values.optionalText(.url, limit: Limits.urlCharacters)
  }
}

/// The `user` of the `ok` of `user.get`: the logged-in user, as known to the gateway.
public struct UserInformation: Hashable, Sendable, Codable {
  /// The user's own numbers, E.164 with `+`: each can be `from` of `call.start`; the first is the default.
  public var numbers: [String]
  /// The name shown to trunks with the number; nil: none.
  public var name: String?
  /// A user's numbers and name.
  public init(numbers: [String], name: String? = nil) { (self.numbers, self.name) = (numbers, name) }
}

/// The `d` of an `ok`: each request's result; empty for most.
public struct Success: Hashable, Sendable, Codable {
  public var won: Bool?
  public var sdp: String?
  /// For `call.start`: the identifier of the call.
  public var call: Identifier?
  /// For `dir.get`.
  public var dir: DirectoryAnswer?
  /// For `hist.list`.
  public var hist: HistoryPage?
  /// For `hist.resolve`: the handles that have a name, with it.
  public var names: [Handle]?
  /// For `auth.refresh`: replaces `welcome.ice` if its credentials were temporary.
  public var ice: [ICEServer]?
  /// For `call.start`: the callee that the gateway read from `to`, as dialled.
  public var to: Handle?
  /// For `user.get`.
  public var user: UserInformation?
  public init(
    won: Bool? = nil, sdp: String? = nil, call: Identifier? = nil, dir: DirectoryAnswer? = nil, hist: HistoryPage? = nil,
    names: [Handle]? = nil, ice: [ICEServer]? = nil, to: Handle? = nil, user: UserInformation? = nil
  ) {
    (self.won, self.sdp, self.call, self.dir, self.hist, self.names) = (won, sdp, call, dir, hist, names)
    (self.ice, self.to, self.user) = (ice, to, user)
  }
}
