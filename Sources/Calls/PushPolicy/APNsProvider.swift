import Bytes
public import JSONWebToken

/// How one team speaks to APNs (Apple, *establishing a token-based connection*). A value; replaced whole when the key rotates.
public struct APNsProvider: Sendable {
  public enum Credentials: Sendable {
    /// The `.p8` key, signing ES256; `keyID` goes into `kid`, `team` into `iss`.
    case key(TokenSigner, keyID: String, team: String)
    /// A VoIP Services certificate on the TLS connection; no token. `name` tells certificates apart.
    case certificate(name: String)
  }

  public var credentials: Credentials
  /// Host and port of the environments; replaced in tests and by a stand-in.
  public var production: (host: String, port: UInt16)
  public var sandbox: (host: String, port: UInt16)

  public init(
    _ credentials: Credentials, production: (host: String, port: UInt16) = ("api.push.apple.com", 443),
    sandbox: (host: String, port: UInt16) = ("api.sandbox.push.apple.com", 443)
  ) {
    (self.credentials, self.production, self.sandbox) = (credentials, production, sandbox)
  }

  /// One team and one key per connection: Apple counts and refuses by connection.
  func connection(_ environment: PushTarget.Environment) -> String {
    switch credentials {
    case .key(_, let keyID, let team): "apns/\(environment.rawValue)/\(team)/\(keyID)"
    case .certificate(let name): "apns/\(environment.rawValue)/certificate/\(name)"
    }
  }

  /// The request of one call push; nil if even the bare payload is too large or the token cannot be a path.
  /// - Parameters:
  ///   - id: `apns-id`: the same for every attempt of one (call, device), so that Apple's logs and the app join them.
  ///   - bearer: the provider token; nil with a certificate.
  func request(
    _ push: CallPush, to target: PushTarget, id: Identifier, bearer: String?, withCaller: Bool
  ) -> PushRequest? {
    let token = target.token.exposed
    guard !token.isEmpty, token.utf8.count <= Limits.tokenBytes, token.utf8.allSatisfy({ hexDigit($0) != nil }) else {
      return nil
    }
    let body = Payload.fitting(Limits.voipBodyBytes, push, withCaller: withCaller) { payload in
      var payload = payload
      payload.aps = Payload.Empty()
      return payload.json()
    }
    guard let body else { return nil }
    let place = target.environment == .production ? production : sandbox
    var headers = [
      ("apns-topic", target.topic), ("apns-push-type", "voip"), ("apns-priority", "10"), ("apns-expiration", "0"),
      ("apns-id", id.description),
    ]
    if let bearer { headers.append(("authorization", "bearer " + bearer)) }
    return PushRequest(
      connection: connection(target.environment), host: place.host, port: place.port, path: "/3/device/" + token.lowercased(),
      headers: headers, body: body)
  }
}

/// A team's provider token: signed once, used by all its connections, renewed every 50 minutes. Apple refuses one that is older
/// than an hour, and teams that renew more often than every 20 minutes (DTS counts by team, whatever the key).
struct ProviderToken {
  private struct Content: Encodable {
    var iss: String
    var iat: Int64
  }
  private var text: String?
  private var issued: Int64 = 0
  private var frozenUntil: Int64 = 0

  /// - Parameter now: seconds since 1970.
  mutating func current(_ signer: TokenSigner, team: String, at now: Int64) throws(KeyError) -> String {
    if let text, now - issued < Self.life || now < frozenUntil, now >= issued - Self.clockStep { return text }
    let fresh = try signer.sign(Content(iss: team, iat: now))
    (text, issued) = (fresh, now)
    return fresh
  }

  /// `ExpiredProviderToken`: signs anew at the next use, unless that happened moments ago. False: it was fresh already, so the clock is wrong.
  mutating func expire(at now: Int64) -> Bool {
    guard now - issued >= Self.shortest || now < issued, now >= frozenUntil else { return false }
    text = nil
    return true
  }

  /// `TooManyProviderTokenUpdates`: what there is must do for a while.
  mutating func freeze(at now: Int64) { frozenUntil = now + Self.shortest }

  private static let life: Int64 = 50 * 60
  private static let shortest: Int64 = 20 * 60
  /// A clock that was set back this far makes a token from the future.
  private static let clockStep: Int64 = 60
}
