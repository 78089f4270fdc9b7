public import HTTP
public import JSONWebToken
import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How one team uses APNs (Apple, *establishing a token-based connection*). A value; replaced whole when the key rotates.
public struct APNsProvider: Sendable {
  public enum Credentials: Sendable {
    /// The `.p8` key, signing ES256; `keyID` goes into `kid`, `team` into `iss`.
    case key(TokenSigner, keyID: String, team: String)
    /// A VoIP Services certificate on the TLS connection; no token. `name` tells certificates apart.
    case certificate(name: String)
  }

  public var credentials: Credentials
  private var token = ProviderToken()
  /// Host and port of the environments; replaced in tests and by a stand-in.
  public var production: (host: String, port: UInt16)
  public var sandbox: (host: String, port: UInt16)

  public init(
    _ credentials: Credentials, production: (host: String, port: UInt16) = ("api.push.apple.com", 443),
    sandbox: (host: String, port: UInt16) = ("api.sandbox.push.apple.com", 443)
  ) {
    (self.credentials, self.production, self.sandbox) = (credentials, production, sandbox)
  }
}

extension APNsProvider: PushProvider {
  public static let service = PushService.apns
  public static let registrationKind = "apns-voip"
  public static let tokenBytes = Limits.apnsTokenBytes.upperBound
  public static let tokenRule = "must be the token's bytes as hexadecimal digits"
  public static let hasEnvironments = true

  public static func checked(_ target: PushTarget) throws(TargetProblem) -> PushTarget {
    guard !target.topic.isEmpty else { throw .topicMissing }
    guard target.topic.hasSuffix(".voip"), target.topic.count > ".voip".count else { throw .topicMalformed }
    let bytes = Array(target.token.exposed.utf8)
    guard bytes.count % 2 == 0, bytes.count >= Limits.apnsTokenBytes.lowerBound, bytes.allSatisfy({ hexDigit($0) != nil }) else {
      throw .malformed
    }
    var target = target
    target.token = Redacted(target.token.exposed.lowercased())
    return target
  }

  /// One team and one key per connection: Apple counts and refuses by connection.
  public func connection(_ environment: PushTarget.Environment) -> String? {
    switch credentials {
    case .key(_, let keyID, let team): "apns/\(environment.rawValue)/\(team)/\(keyID)"
    case .certificate(let name): "apns/\(environment.rawValue)/certificate/\(name)"
    }
  }

  public mutating func request(_ attempt: PushAttempt) throws(KeyError) -> PushStep {
    let target = attempt.target
    var headers = [
      ("apns-topic", target.topic), ("apns-push-type", "voip"), ("apns-priority", "10"), ("apns-expiration", "0"),
      // The same for every attempt of one (call, device), so that Apple's logs and the app join them.
      ("apns-id", PushMachine.identifier(of: attempt.key).description),
    ]
    var showsCertificate = true
    if case .key(let signer, _, let team) = credentials {
      let bearer = try token.current(signer, team: team, at: attempt.now)
      headers.append(("authorization", "bearer " + bearer))
      showsCertificate = false
    }
    let text = target.token.exposed
    guard !text.isEmpty, text.utf8.count <= Limits.tokenBytes, text.utf8.allSatisfy({ hexDigit($0) != nil }) else {
      return .unusable
    }
    let body = Payload.fitting(Limits.voipBodyBytes, attempt.content, withCaller: attempt.withCaller) { payload in
      var payload = payload
      payload.aps = Payload.Empty()
      return payload.json()
    }
    guard let body, let connection = connection(target.environment) else { return .unusable }
    let endpoint = target.environment == .production ? production : sandbox
    return .send(
      HTTPClientRequest(
        connection: connection, url: "https://\(endpoint.host):\(endpoint.port)/3/device/\(text.lowercased())", headers: headers,
        body: body, timeout: Limits.attemptTime, showsCertificate: showsCertificate))
  }

  public mutating func renewToken(at now: Int64) -> Bool {
    guard case .key = credentials else { return false }
    return token.expire(at: now)
  }

  public mutating func freezeToken(at now: Int64) { token.freeze(at: now) }

  public mutating func adoptTokens(of old: any PushProvider) {
    if let old = old as? APNsProvider, old.connection(.production) == connection(.production) { token = old.token }
  }
}

/// A team's provider token: signed once, used by all its connections, renewed every 50 minutes. Apple refuses a token older than
/// an hour, and teams that renew more often than every 20 minutes (DTS counts by team, regardless of the key).
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
    text = fresh
    issued = now
    return fresh
  }

  /// `ExpiredProviderToken`: signs again at the next use, unless that happened moments ago. False: the token was fresh, so the
  /// clock is wrong.
  mutating func expire(at now: Int64) -> Bool {
    guard now - issued >= Self.shortest || now < issued, now >= frozenUntil else { return false }
    text = nil
    return true
  }

  /// `TooManyProviderTokenUpdates`: the present token is used for a while.
  mutating func freeze(at now: Int64) { frozenUntil = now + Self.shortest }

  private static let life: Int64 = 50 * 60
  private static let shortest: Int64 = 20 * 60
  /// A clock that was set back this far makes the token one from the future.
  private static let clockStep: Int64 = 60
}

/// Apple's table of statuses and reasons (*handling notification responses from APNs*).
///
/// | status | reasons | verdict |
/// |---|---|---|
/// | 200 | – | accepted |
/// | 400 | BadDeviceToken, DeviceTokenNotForTopic | token mismatch |
/// | 400 | IdleTimeout | retry on another connection |
/// | 400 | all others | refused, a fault |
/// | 403 | ExpiredProviderToken | retry with a new token |
/// | 403, 404, 405 | all others | refused, a fault; the device stays |
/// | 410 | Unregistered, ExpiredToken | unregistered, if it registered before `timestamp` |
/// | 413 | PayloadTooLarge | retry without the caller |
/// | 429 | TooManyRequests, TooManyProviderTokenUpdates | refused; the second freezes the token |
/// | 500, 503 | InternalServerError, ServiceUnavailable, Shutdown | retry on another connection |
extension APNsProvider {
  private struct AnswerBody: Decodable {
    var reason: String?
    var timestamp: Int64?
  }

  public static func verdict(_ answer: HTTPClientResponse) -> PushVerdict {
    if answer.status == 200 { return .accepted }
    // A middlebox may answer with anything; then only the status counts.
    let body = try? JSONDecoder().decode(AnswerBody.self, from: Data(answer.body))
    let reason = body?.reason.map { String($0.prefix(64)) } ?? "status \(answer.status)"
    switch (answer.status, body?.reason) {
    case (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"): return .tokenMismatch(reason: reason)
    case (400, "IdleTimeout"): return .retry(.otherConnection, reason: reason)
    case (403, "ExpiredProviderToken"): return .retry(.newToken, reason: reason)
    case (410, _): return .unregistered(before: body?.timestamp, reason: reason)
    case (413, _): return .retry(.withoutCaller, reason: reason)
    case (429, "TooManyProviderTokenUpdates"): return .refused(reason: reason, isFault: true, freezesToken: true)
    case (429, _): return .refused(reason: reason, isFault: false)
    case (500..., _): return .retry(.otherConnection, reason: reason)
    default: return .refused(reason: reason, isFault: true)
    }
  }

  public static func advice(_ report: PushReport) -> String? {
    let (environment, topic) = (report.target.environment, report.target.topic)
    let other: PushTarget.Environment = environment == .production ? .sandbox : .production
    switch report.reason {
    case "BadDeviceToken":
      return
        "not a \(environment.rawValue) token: it is most likely of \(other.rawValue) (builds from Xcode have sandbox tokens); "
        + "the app must send env: \(other.rawValue) in device.put"
    case "DeviceTokenNotForTopic":
      return "the token is of another app than \(topic): the app must send its own topic in device.put"
    case "TopicDisallowed", "BadTopic", "MissingTopic":
      return "this key or certificate may not push to \(topic): check topic, team and the key's scope"
    case "InvalidProviderToken", "UnrelatedKeyIdInToken":
      return "Apple has no such key: push.apns.key_id, team_id and key_file do not match, or the key was revoked"
    case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
      return "the key is limited to the other environment than \(environment.rawValue): make one for both, or set push.apns.url"
    case "ExpiredProviderToken": return "this machine's clock is wrong: Apple accepts only provider tokens of the last hour"
    case "MissingProviderToken", "BadCertificate", "BadCertificateEnvironment", "Forbidden":
      return "the certificate is refused: is it a VoIP Services certificate for this app and environment, and not expired?"
    case "Unregistered", "ExpiredToken": return PushAdvice.registrationGone
    case "PayloadTooLarge": return "the push is too large even without name and number: shorten push.gateway"
    case "TooManyRequests": return PushAdvice.tooMany
    case "TooManyProviderTokenUpdates":
      return "another program signs provider tokens for this team too often: one of them must stop"
    default: return nil
    }
  }
}
