public import HTTP
public import JSONWebToken
import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How one Firebase project is used: FCM HTTP v1 with the OAuth2 token of a service account (RFC 7523).
public struct FCMProvider: Sendable {
  public var project: String
  /// The account's address: `client_email` of its key file.
  public var account: String
  /// RS256, with the `private_key` of the file.
  public var signer: TokenSigner
  public var service: (host: String, port: UInt16)
  /// The address that issues tokens, `token_uri` of the file.
  public var tokens: (host: String, port: UInt16, path: String)
  /// Requested at the first push and again before it expires.
  private var access = AccessToken()

  public init(
    project: String, account: String, signer: TokenSigner, service: (host: String, port: UInt16) = ("fcm.googleapis.com", 443),
    tokens: (host: String, port: UInt16, path: String) = ("oauth2.googleapis.com", 443, "/token")
  ) {
    (self.project, self.account, self.signer, self.service, self.tokens) = (project, account, signer, service, tokens)
  }
}

private struct AccessToken {
  var text: String?
  /// Seconds since 1970.
  var ends: Int64 = 0
  var isAsked = false
  /// Renewed this long before its end, so that no push waits for it.
  static let margin: Int64 = 300
}

extension FCMProvider: PushProvider {
  public static let service = PushService.fcm
  public static let registrationKind = "fcm"
  public static let tokenBytes = Limits.fcmTokenBytes
  public static let tokenRule = "must be the registration token as Firebase gave it"

  public static func checked(_ target: PushTarget) throws(TargetProblem) -> PushTarget {
    guard target.token.exposed.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { throw .malformed }
    return target
  }

  public func connection(_ environment: PushTarget.Environment) -> String? { "fcm/\(project)" }

  private struct Message: Encodable {
    struct Android: Encodable {
      var priority = "HIGH"
      var ttl = "0s"
    }
    struct Content: Encodable {
      var token: String
      var data: [String: String]
      var android = Android()
    }
    var message: Content
  }

  public mutating func request(_ attempt: PushAttempt) throws(KeyError) -> PushStep {
    guard let bearer = access.text, attempt.now < access.ends else { return .waitForToken }
    let token = attempt.target.token.exposed
    guard !token.isEmpty, token.utf8.count <= Limits.tokenBytes else { return .unusable }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let body = Payload.fitting(Limits.dataBytes, attempt.content, withCaller: attempt.withCaller) { payload in
      (try? encoder.encode(Message(message: .init(token: token, data: payload.strings)))).map { Array($0) } ?? []
    }
    guard let body else { return .unusable }
    return .send(
      HTTPClientRequest(
        connection: "fcm/\(project)", url: "https://\(service.host):\(service.port)/v1/projects/\(project)/messages:send",
        headers: [("authorization", "Bearer " + bearer), ("content-type", "application/json")], body: body,
        timeout: Limits.attemptTime))
  }

  private struct Assertion: Encodable {
    var iss, scope, aud: String
    var iat, exp: Int64
  }

  /// RFC 7523 §2.1.
  public mutating func tokenRequest(at now: Int64) throws(KeyError) -> HTTPClientRequest? {
    guard now >= access.ends - AccessToken.margin, !access.isAsked else { return nil }
    let port = tokens.port == 443 ? "" : ":\(tokens.port)"
    let assertion = try signer.sign(
      Assertion(
        iss: account, scope: "https://www.googleapis.com/auth/firebase.messaging",
        aud: "https://\(tokens.host)\(port)\(tokens.path)",
        iat: now, exp: now + 3600))
    access.isAsked = true
    return HTTPClientRequest(
      connection: "oauth/\(tokens.host)", url: "https://\(tokens.host):\(tokens.port)\(tokens.path)",
      headers: [("content-type", "application/x-www-form-urlencoded")],
      body: Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)".utf8),
      timeout: Limits.attemptTime, goesAgain: true)
  }

  private struct TokenAnswer: Decodable {
    var accessToken: String
    var expiresIn: Int64?
    private enum CodingKeys: String, CodingKey {
      case accessToken = "access_token"
      case expiresIn = "expires_in"
    }
  }

  public mutating func tokenAnswered(_ answer: HTTPClientResponse?, at now: Int64) -> String? {
    access.isAsked = false
    if let answer, answer.status == 200, let body = try? JSONDecoder().decode(TokenAnswer.self, from: Data(answer.body)),
      !body.accessToken.isEmpty, body.accessToken.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    {
      (access.text, access.ends) = (body.accessToken, now + min(max(body.expiresIn ?? 3600, 60), 86_400))
      return nil
    }
    // An old token that is still valid stays in use.
    if access.text != nil, now < access.ends { return nil }
    return answer.map { "accessToken: status \($0.status)" } ?? "accessToken: broke"
  }

  public mutating func renewToken(at now: Int64) -> Bool {
    access.text = nil
    access.ends = 0
    return true
  }

  public mutating func adoptTokens(of old: any PushProvider) {
    if let old = old as? FCMProvider, old.account == account, old.project == project { access = old.access }
  }
}

/// Firebase's table of errors (*FCM error codes*); the code is in `error.details[].errorCode` or `error.status`.
extension FCMProvider {
  private struct AnswerBody: Decodable {
    struct Problem: Decodable {
      struct Detail: Decodable { var errorCode: String? }
      var status: String?
      var details: [Detail]?
    }
    var error: Problem?
  }

  public static func verdict(_ answer: HTTPClientResponse) -> PushVerdict {
    if answer.status == 200 { return .accepted }
    let error = (try? JSONDecoder().decode(AnswerBody.self, from: Data(answer.body)))?.error
    let code = error?.details?.lazy.compactMap(\.errorCode).first ?? error?.status
    let reason = code.map { String($0.prefix(64)) } ?? "status \(answer.status)"
    switch (answer.status, code) {
    case (404, _):
      return code == nil || code == "UNREGISTERED" || code == "NOT_FOUND"
        ? .unregistered(before: nil, reason: reason) : .refused(reason: reason, isFault: true)
    case (403, "SENDER_ID_MISMATCH"): return .tokenMismatch(reason: reason)
    case (401, _): return .retry(.newToken, reason: reason)
    case (429, _), (500..., _): return .retry(.after(seconds: answer.retryAfter ?? 1), reason: reason)
    default: return .refused(reason: reason, isFault: true)
    }
  }

  public static func advice(_ report: PushReport) -> String? {
    switch report.reason {
    case let text where text.hasPrefix("accessToken"):
      "Google gave no access token: check push.fcm.service_account, its key may be deleted, and this machine's clock"
    case "UNREGISTERED", "NOT_FOUND": PushAdvice.registrationGone
    case "QUOTA_EXCEEDED": PushAdvice.tooMany
    case "SENDER_ID_MISMATCH": "the token is of another Firebase project: check push.fcm.service_account"
    case "INVALID_ARGUMENT": "Firebase cannot read token or message: does the app send its registration token unchanged?"
    default: nil
    }
  }
}
