import Foundation
public import JSONWebToken
import TrunklineBytes

/// An accepted push, for the app that waits for it.
public struct SandboxPush: Sendable, Hashable {
  public enum Service: String, Sendable { case apns, fcm }
  public var service: Service
  public var token: String
  /// The JSON of the payload: APNs' body, FCM's `data`.
  public var payload: [UInt8]
  /// `apns-id`, or the message's number.
  public var id: String
}

/// The checks of APNs and FCM before they accept a push. No clock, no socket: seconds since 1970 are an argument.
public struct SandboxRules: Sendable {
  /// The public half of the `.p8` key; nil: tokens are read, their signatures are not checked.
  public var key: KeySet?
  /// Topics that exist; empty: any that ends in `.voip`.
  public var topics: Set<String> = []
  /// Clients have presented a certificate: an APNs request needs no token.
  public var acceptsCertificates = false
  private var messages = 0

  public init(key: KeySet? = nil, topics: Set<String> = []) { (self.key, self.topics) = (key, topics) }

  struct Outcome {
    var status: Int
    var headers: [(String, String)] = []
    var body: [UInt8] = []
    var push: SandboxPush?
  }

  mutating func judge(_ request: ReceivedRequest, at now: Int64) -> Outcome {
    let path = request.headers[":path"] ?? ""
    if path == "/token" { return accessToken(request) }
    if path.hasPrefix("/v1/projects/"), path.hasSuffix("/messages:send") { return firebase(request) }
    return apns(request, path, at: now)
  }

  /// The answer with a requested status.
  /// - Parameter milliseconds: since 1970; a 410 concerns registrations before it.
  static func forced(_ status: Int, _ request: ReceivedRequest, milliseconds: Int64) -> Outcome {
    if request.headers[":path"]?.hasPrefix("/v1/projects/") == true {
      return failure(SandboxAnswer.codes[status] ?? "INTERNAL", status)
    }
    let reason = SandboxAnswer.reasons[status] ?? "InternalServerError"
    var outcome = refusal(status, reason, request)
    if status == 410 { outcome.body = Array(#"{"reason":"\#(reason)","timestamp":\#(milliseconds)}"#.utf8) }
    if status == 429 || status == 503 { outcome.headers.append(("retry-after", "1")) }
    return outcome
  }

  // MARK: APNs

  private struct Provider: Decodable {
    var iss: String
    var iat: Int64
  }

  private func apns(_ request: ReceivedRequest, _ path: String, at now: Int64) -> Outcome {
    let headers = request.headers
    guard headers[":method"] == "POST" else { return Self.refusal(405, "MethodNotAllowed", request) }
    guard path.hasPrefix("/3/device/") else { return Self.refusal(404, "BadPath", request) }
    let token = String(path.dropFirst("/3/device/".count))
    guard !token.isEmpty, token.utf8.allSatisfy({ hexDigit($0) != nil }) else {
      return Self.refusal(400, "BadDeviceToken", request)
    }
    if let problem = providerProblem(headers["authorization"], at: now) { return Self.refusal(403, problem, request) }
    if let problem = headerProblem(headers) { return Self.refusal(400, problem, request) }
    guard !request.body.isEmpty else { return Self.refusal(400, "PayloadEmpty", request) }
    guard request.body.count <= 5_120, !request.isTooLarge else { return Self.refusal(413, "PayloadTooLarge", request) }
    let id = headers["apns-id"] ?? ""
    return Outcome(
      status: 200, headers: [("apns-id", id)],
      push: SandboxPush(service: .apns, token: token.lowercased(), payload: request.body, id: id))
  }

  private func providerProblem(_ authorization: String?, at now: Int64) -> String? {
    if acceptsCertificates, authorization == nil { return nil }
    guard let authorization, authorization.lowercased().hasPrefix("bearer ") else { return "MissingProviderToken" }
    guard let key else { return nil }
    guard let provider = try? key.claims(of: String(authorization.dropFirst(7)), as: Provider.self) else {
      return "InvalidProviderToken"
    }
    // Apple accepts tokens up to an hour old, and clocks a little ahead.
    if now - provider.iat > 3_600 { return "ExpiredProviderToken" }
    return provider.iat - now > 300 ? "InvalidProviderToken" : nil
  }

  private func headerProblem(_ headers: [String: String]) -> String? {
    guard let topic = headers["apns-topic"], !topic.isEmpty else { return "MissingTopic" }
    guard headers["apns-push-type"] == "voip" else { return "InvalidPushType" }
    guard topic.hasSuffix(".voip") else { return "BadTopic" }
    guard topics.isEmpty || topics.contains(topic) else { return "TopicDisallowed" }
    if let priority = headers["apns-priority"], !["1", "5", "10"].contains(priority) { return "BadPriority" }
    if let expiration = headers["apns-expiration"], Int64(expiration) == nil { return "BadExpirationDate" }
    if let id = headers["apns-id"], Identifier(id) == nil { return "BadMessageId" }
    if let collapse = headers["apns-collapse-id"], collapse.utf8.count > 64 { return "BadCollapseId" }
    return nil
  }

  private static func refusal(_ status: Int, _ reason: String, _ request: ReceivedRequest) -> Outcome {
    Outcome(
      status: status, headers: [("apns-id", request.headers["apns-id"] ?? "")], body: Array(#"{"reason":"\#(reason)"}"#.utf8))
  }

  // MARK: FCM

  private struct Message: Decodable {
    struct Content: Decodable {
      var token: String
      var data: [String: String]
    }
    var message: Content
  }

  private func accessToken(_ request: ReceivedRequest) -> Outcome {
    let body = String(decoding: request.body, as: UTF8.self)
    guard body.contains("assertion="), body.contains("jwt-bearer") else {
      return Outcome(status: 400, body: Array(#"{"error":"invalid_grant"}"#.utf8))
    }
    return Outcome(status: 200, body: Array(#"{"access_token":"sandbox","token_type":"Bearer","expires_in":3600}"#.utf8))
  }

  private mutating func firebase(_ request: ReceivedRequest) -> Outcome {
    guard request.headers["authorization"] == "Bearer sandbox" else { return Self.failure("UNAUTHENTICATED", 401) }
    guard !request.isTooLarge, let message = try? JSONDecoder().decode(Message.self, from: Data(request.body)).message,
      let payload = try? JSONEncoder().encode(message.data), payload.count <= 4_096
    else { return Self.failure("INVALID_ARGUMENT", 400) }
    messages += 1
    let id = "projects/sandbox/messages/\(messages)"
    return Outcome(
      status: 200, body: Array(#"{"name":"\#(id)"}"#.utf8),
      push: SandboxPush(service: .fcm, token: message.token, payload: Array(payload), id: id))
  }

  private static func failure(_ code: String, _ status: Int) -> Outcome {
    let body = #"{"error":{"code":\#(status),"status":"\#(code)","details":[{"errorCode":"\#(code)"}]}}"#
    return Outcome(status: status, body: Array(body.utf8))
  }
}
