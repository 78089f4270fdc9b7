import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes

extension SessionMachine {
  /// - Parameter device: the device that the token must name; nil: any device.
  mutating func verify(
    _ token: String, device: String?, _ now: Instant, _ output: inout Output
  ) throws(RefusedHello) -> Claims {
    let claims: Claims
    do {
      claims = try settings.verifier.verify(token, unixSeconds: unixMilliseconds(now) / 1_000)
    } catch {
      if error == .unknownKey { throw unknownKey(of: token, now, &output) }
      let word = error == .expiryInMilliseconds ? "exp counts milliseconds, it must be seconds since 1970" : error.rawValue
      throw RefusedHello(error.refusal, "token: \(word)")
    }
    guard device == nil || claims.dev == device else {
      throw RefusedHello(.deviceMismatch, "dev is not device.id", user: claims.sub)
    }
    guard settings.users.contains(claims.sub) else { throw RefusedHello(.unknownUser, "unknown sub", user: claims.sub) }
    try check(claims)
    return claims
  }

  /// Whether an unknown key will exist is certain only if keys were fetched after the token arrived: until then the client must
  /// try again, and this does not count as a refused login.
  private mutating func unknownKey(of token: String, _ now: Instant, _ output: inout Output) -> RefusedHello {
    guard let fetchedAt = settings.keysFetchedAt else {
      output.wantsKeys = true
      return RefusedHello(.keysUnavailable, "token: the keys that tokens are checked with (auth.jwt.jwks_url) are not here yet")
    }
    switch unknownKeys.verdict(of: TokenVerifier.keyID(of: token) ?? "", fetchedAt: fetchedAt, at: now) {
    case .refused: return RefusedHello(.tokenKeyUnknown, "token: no key of auth.jwt.jwks_url has its kid")
    case .awaited:
      output.wantsKeys = true
      return RefusedHello(.keysUnavailable, "token: its key is not among those of auth.jwt.jwks_url, which are fetched again")
    }
  }

  /// Checks the claim `trunkline`. Control checks who already has its numbers.
  private func check(_ claims: Claims) throws(RefusedHello) {
    guard let claim = claims.grant else { return }
    do throws(TokenGrant.Fault) {
      let grant = try claim.get()
      guard let rules = settings.grants else { throw .init("", "tokens may grant nothing here: see users[].claims") }
      try rules.check(grant)
    } catch {
      throw RefusedHello(.tokenClaims, error.description, user: claims.sub)
    }
  }

  /// The first message of a connection.
  mutating func helloReceived(_ frame: ClientFrame, on id: ConnectionID, _ now: Instant, _ output: inout Output) {
    do throws(RefusedHello) {
      switch frame.body {
      case .message(.hello(let hello)):
        guard let request = frame.id else { throw RefusedHello(.helloMalformed, "id: missing") }
        try accept(hello, answering: request, on: id, now, &output)
      case .malformed(.hello, let rule): throw RefusedHello(.helloMalformed, rule)
      default:
        stats.refusals[.helloMissing, default: 0] += 1
        close(id, .authFailed, now, &output)
      }
    } catch {
      stats.refusals[error.refusal, default: 0] += 1
      var device: String?
      if case .message(.hello(let hello)) = frame.body { device = hello.device.id }
      output.refusedLogins.append(error.login(from: connections[id]?.address, device: device))
      output.actions.append(.send(id, ServerFrame(.err(failure(error)), re: frame.id).encoded()))
      stats.messagesSent += 1
      close(id, error.close, now, &output)
    }
  }

  private mutating func accept(
    _ hello: Hello, answering request: Identifier, on id: ConnectionID, _ now: Instant, _ output: inout Output
  ) throws(RefusedHello) {
    var info = DeviceInfo(hello)
    switch hello.proof {
    case .resume(let resume): try self.resume(resume, hello, answering: request, on: id, now, &output)
    case .auth(let token):
      let claims = try verify(token, device: hello.device.id, now, &output)
      info.accounts = claims.acct.flatMap { $0.isEmpty ? nil : $0 } ?? ["default"]
      let expiresAt = claims.exp * 1_000 + Limits.expiryLeewayMilliseconds
      let device = DeviceKey(user: claims.sub, device: claims.dev)
      // A single node has no other where a session could be.
      info.isFurther = hello.further == true && settings.cluster != nil
      try begin(device, info, expiresAt: expiresAt, grant: try? claims.grant?.get(), answering: request, on: id, now, &output)
    case .wake(let token):
      // Before the first unlock a device may be unable to read its own id: the token contains it.
      let (wake, isHere) = try verify(wake: token, device: hello.device.id.isEmpty ? nil : hello.device.id, now)
      if !isHere { try checkLocation(wake.device, for: wake.call, &output) }
      info.onlyCall = wake.call
      // A token that was used in time is valid as long as its call, and the session ends with the call.
      let time = isHere ? max(wake.firstUseBefore - now, Limits.wakeSession) : Limits.wakeSession
      let expiresAt = unixMilliseconds(now) + time.milliseconds
      try begin(wake.device, info, expiresAt: expiresAt, callIsHere: isHere, answering: request, on: id, now, &output)
    }
  }

  /// Removes a session without a socket and without a call for a connected device. Scans all sessions, so at most once a second.
  private mutating func makeRoom(for user: String, _ now: Instant, _ output: inout Output) {
    let isUserFull = sessionsOfUser[user, default: 0] >= Limits.sessionsPerUser
    guard isUserFull || sessions.count >= settings.sessions, now >= roomAgain else { return }
    roomAgain = now + .seconds(1)
    var oldest: (id: SessionID, until: Instant)?
    for (id, session) in sessions where !isUserFull || session.device.user == user {
      guard let until = session.resumableUntil, until < oldest?.until ?? .distantFuture else { continue }
      oldest = (id, until)
    }
    if let oldest { end(oldest.id, nil, now, &output) }
  }

  /// - Parameter callIsHere: whether `info.onlyCall` is at this node.
  mutating func begin(
    _ device: DeviceKey, _ info: DeviceInfo, expiresAt: Int64, callIsHere: Bool = false, grant: TokenGrant? = nil,
    answering request: Identifier, on id: ConnectionID, _ now: Instant, _ output: inout Output
  ) throws(RefusedHello) {
    let old = sessionOfDevice[device]
    // While draining, only a device that has a call here, or is woken for one, may connect.
    if isDraining, !callIsHere, old.flatMap({ sessions[$0]?.live.isEmpty }) ?? true {
      throw RefusedHello(.draining, "draining", user: device.user)
    }
    if old == nil {
      makeRoom(for: device.user, now, &output)
      guard sessions.count < settings.sessions else { throw RefusedHello(.overload, "too many sessions", user: device.user) }
      guard sessionsOfUser[device.user, default: 0] < Limits.sessionsPerUser else {
        throw RefusedHello(.tooManySessions, "too many devices of this user", user: device.user)
      }
    }
    // Calls continue on the old session only.
    if let old, sessions[old]?.closesAfterCalls == .revoked {
      throw RefusedHello(.deviceRevoked, Failure.deviceRevoked().msg ?? "", user: device.user)
    }
    // Its own session has moved here meanwhile, and has all calls of this node.
    if info.isFurther, let old = old.flatMap({ sessions[$0] }), !old.info.isFurther, old.info.onlyCall == nil,
      old.connection != nil
    {
      throw RefusedHello(.ownSessionIsHere, "the device's own session is at this node", user: device.user)
    }
    if let old { end(old, .replaced, now, &output) }
    var session = Session(
      id: SessionID(hexString(random.bytes(16))), device: device,
      resumeToken: settings.cluster == nil ? Array(hexString(random.bytes(32)).utf8) : [], info: info, connection: id,
      expiresAt: expiresAt)
    session.awaitsWelcome = request
    // A wake token's expiry bounds its first use; there is no login that could be refreshed.
    if info.onlyCall == nil { session.announceExpiry(after: unixMilliseconds(now)) }
    if isDraining { session.closesAfterCalls = .draining }
    sessions[session.id] = session
    connectedCount += 1
    sessionOfDevice[device] = session.id
    sessionsOfUser[device.user, default: 0] += 1
    timers.cancel(.answers(device))
    connections[id]?.phase = .bound(session.id)
    if let grant { output.events.append(.granted(device, session.id, grant)) }
    output.events.append(.connected(device, session.id, info, resumed: false))
    rearm(connection: id)
    rearm(session: session.id, now)
  }
}

/// A `hello` that is answered with `err{…, fatal}` and a close.
struct RefusedHello: Error {
  var refusal: SessionRefusal
  var message: String
  /// Only from a genuine token.
  var user: String?
  /// For `otherNode`: the node that accepts it; nil: not to be sent now.
  var url: String?

  init(_ refusal: SessionRefusal, _ message: String, user: String? = nil, url: String? = nil) {
    (self.refusal, self.message, self.user, self.url) = (refusal, message, user, url)
  }

  func login(from address: IPAddress?, device: String?) -> RefusedLogin {
    RefusedLogin(refusal: refusal, why: message, address: address, user: user, device: device)
  }

  var reason: EndReason? { refusal == .deadNode ? .unknown : nil }
  var code: ErrorCode {
    switch refusal {
    case .draining, .overload, .otherNode, .keysUnavailable: .overload
    case .deadNode, .ownSessionIsHere: .gone
    case .tooManySessions: .tooMany
    case .deviceRevoked: .revoked
    default: .auth
    }
  }
  var close: CloseCode {
    switch refusal {
    case .draining, .otherNode: .draining
    case .deadNode, .ownSessionIsHere: .replaced
    case .overload, .tooManySessions, .keysUnavailable: .tryAgainLater
    case .deviceRevoked: .revoked
    default: .authFailed
    }
  }
}

extension Failure {
  /// The answer to any request of a device that an operator revoked. `fatal` if its session ends with it.
  public static func deviceRevoked(fatal: Bool? = nil) -> Failure {
    Failure(.revoked, msg: "this device was revoked by the operator", fatal: fatal)
  }
}

extension TokenError {
  var refusal: SessionRefusal {
    switch self {
    case .malformed: .tokenMalformed
    case .algorithm: .tokenAlgorithm
    case .signature: .tokenSignature
    case .unknownKey: .tokenKeyUnknown
    case .expired: .tokenExpired
    case .expiryInMilliseconds: .tokenExpiryInMilliseconds
    case .notYetValid: .tokenNotYetValid
    case .audience: .tokenAudience
    case .claims: .tokenClaims
    case .critical: .tokenCritical
    }
  }
}
