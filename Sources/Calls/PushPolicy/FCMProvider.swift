import Bytes
public import JSONWebToken

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How one Firebase project is spoken to: FCM HTTP v1 with the OAuth2 token of a service account (RFC 7523).
public struct FCMProvider: Sendable {
  public var project: String
  /// The account's address: `client_email` of its key file.
  public var account: String
  /// RS256, with the `private_key` of the file.
  public var signer: TokenSigner
  public var service: (host: String, port: UInt16)
  /// Where tokens come from, `token_uri` of the file.
  public var tokens: (host: String, port: UInt16, path: String)

  public init(
    project: String, account: String, signer: TokenSigner, service: (host: String, port: UInt16) = ("fcm.googleapis.com", 443),
    tokens: (host: String, port: UInt16, path: String) = ("oauth2.googleapis.com", 443, "/token")
  ) {
    (self.project, self.account, self.signer, self.service, self.tokens) = (project, account, signer, service, tokens)
  }

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

  func request(_ push: CallPush, to target: PushTarget, bearer: String, withCaller: Bool) -> PushRequest? {
    let token = target.token.exposed
    guard !token.isEmpty, token.utf8.count <= Limits.tokenBytes else { return nil }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let body = Payload.fitting(Limits.dataBytes, push, withCaller: withCaller) { payload in
      (try? encoder.encode(Message(message: .init(token: token, data: payload.strings)))).map { Array($0) } ?? []
    }
    guard let body else { return nil }
    return PushRequest(
      connection: "fcm/\(project)", host: service.host, port: service.port, path: "/v1/projects/\(project)/messages:send",
      headers: [("authorization", "Bearer " + bearer), ("content-type", "application/json")], body: body)
  }

  private struct Assertion: Encodable {
    var iss, scope, aud: String
    var iat, exp: Int64
  }

  /// Asks for an access token (RFC 7523 §2.1).
  /// - Parameter now: seconds since 1970.
  func tokenRequest(at now: Int64) throws(KeyError) -> PushRequest {
    let port = tokens.port == 443 ? "" : ":\(tokens.port)"
    let assertion = try signer.sign(
      Assertion(
        iss: account, scope: "https://www.googleapis.com/auth/firebase.messaging",
        aud: "https://\(tokens.host)\(port)\(tokens.path)",
        iat: now, exp: now + 3600))
    return PushRequest(
      connection: "oauth/\(tokens.host)", host: tokens.host, port: tokens.port, path: tokens.path,
      headers: [("content-type", "application/x-www-form-urlencoded")],
      body: Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)".utf8))
  }

  private struct TokenAnswer: Decodable {
    var accessToken: String
    var expiresIn: Int64?
    private enum CodingKeys: String, CodingKey {
      case accessToken = "access_token"
      case expiresIn = "expires_in"
    }
  }

  /// The access token and its life in seconds; nil if the answer holds none.
  static func accessToken(_ answer: PushAnswer) -> (text: String, seconds: Int64)? {
    guard answer.status == 200, let body = try? JSONDecoder().decode(TokenAnswer.self, from: Data(answer.body)),
      !body.accessToken.isEmpty, body.accessToken.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else { return nil }
    return (body.accessToken, min(max(body.expiresIn ?? 3600, 60), 86_400))
  }
}

/// Firebase's table of errors (*FCM error codes*); the code stands in `error.details[].errorCode` or `error.status`.
enum FCMAnswer {
  private struct Body: Decodable {
    struct Problem: Decodable {
      struct Detail: Decodable { var errorCode: String? }
      var status: String?
      var details: [Detail]?
    }
    var error: Problem?
  }

  static func verdict(_ answer: PushAnswer) -> PushVerdict {
    if answer.status == 200 { return .accepted }
    let error = (try? JSONDecoder().decode(Body.self, from: Data(answer.body)))?.error
    let code = error?.details?.lazy.compactMap(\.errorCode).first ?? error?.status
    let reason = code.map { String($0.prefix(64)) } ?? "status \(answer.status)"
    switch (answer.status, code) {
    case (404, _):
      return code == nil || code == "UNREGISTERED" || code == "NOT_FOUND"
        ? .unregistered(before: nil, reason: reason) : .refused(reason: reason, isFault: true)
    case (403, "SENDER_ID_MISMATCH"): return .wrongPlace(reason: reason)
    case (401, _): return .retry(.newToken, reason: reason)
    case (429, _), (500..., _): return .retry(.after(seconds: answer.retryAfter ?? 1), reason: reason)
    default: return .refused(reason: reason, isFault: true)
    }
  }
}
