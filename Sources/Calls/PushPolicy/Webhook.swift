import CTrunklineOpenSSL
public import HTTP
public import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A server of the operator that decides which users a call is for.
public struct Webhook: Sendable, Hashable {
  public var url: String
  /// Shared with the server; requests are signed with it.
  public var key: Redacted<[UInt8]>
  public init(url: String, key: Redacted<[UInt8]>) { (self.url, self.key) = (url, key) }
}

/// The question to a webhook, as JSON. A withheld number is not included.
public struct RouteQuestion: Sendable, Equatable, Encodable {
  public var call: Identifier
  public var sipCallId: String?
  public var trunk: String
  public var from: String?
  public var name: String?
  public var to: String
  /// The parties that the call was for before it was diverted to us, the latest first.
  public var diverted: [String]
  /// The INVITE's parameters that the trunk lists; nil: none.
  public var parameters: [String: String]?
  /// Milliseconds since 1970.
  public var at: Int64

  public init(
    call: Identifier, sipCallId: String?, trunk: String, from: String?, name: String?, to: String, diverted: [String], at: Int64
  ) {
    (self.call, self.sipCallId, self.trunk, self.from, self.name) = (call, sipCallId, trunk, from, name)
    (self.to, self.diverted, self.at) = (to, diverted, at)
  }

  public var body: [UInt8] { (try? JSONEncoder().encode(self)).map { [UInt8]($0) } ?? [] }
}

/// What a webhook may answer: `{"users": ["alice"], "name": "Carol", "from": "+15550000042", "code": 404, "parameters": {"X-Ticket": "4711"}}`,
/// each of them or none.
public struct RouteAnswer: Sendable, Equatable {
  /// The users whose devices ring, all at once; nil: the answer does not name any.
  public var users: [String]?
  /// The caller as the apps show it.
  public var name: String?
  public var from: String?
  /// The call is refused with this final response.
  public var code: Int?
  /// Parameters of the call for the app, by name; their consumer checks them.
  public var parameters: [String: String]?

  public init(
    users: [String]? = nil, name: String? = nil, from: String? = nil, code: Int? = nil, parameters: [String: String]? = nil
  ) {
    (self.users, self.name, self.from, self.code, self.parameters) = (users, name, from, code, parameters)
  }

  /// Nil for an invalid answer: not 200, not such an object, a field of another type or beyond its limit.
  public init?(_ answer: HTTPClientResponse) {
    guard answer.status == 200, answer.body.count <= Limits.routeAnswerBytes,
      let read = try? JSONDecoder().decode(Body.self, from: Data(answer.body))
    else { return nil }
    guard (read.users ?? []).count <= Limits.routeUsers, read.code.map({ (400...699).contains($0) }) ?? true else { return nil }
    for text in [read.name, read.from] + (read.users ?? []) {
      if let text, text.utf8.count > Limits.routeTextBytes || text.unicodeScalars.contains(where: { $0.value < 32 }) {
        return nil
      }
    }
    self.init(users: read.users, name: read.name, from: read.from, code: read.code, parameters: read.parameters)
  }

  private struct Body: Decodable {
    var users: [String]?
    var name: String?
    var from: String?
    var code: Int?
    var parameters: [String: String]?
  }
}

extension Webhook {
  /// The request's headers. `signature` is `t=SECONDS,v1=HEX`, HMAC-SHA256 with the key over `SECONDS.BODY`: an old request is
  /// recognised by its signed time.
  public func headers(_ body: [UInt8], at unixSeconds: Int64) -> [(name: String, value: String)] {
    var out = [UInt8](repeating: 0, count: 32)
    var length: UInt32 = 0
    let text = Array("\(unixSeconds).".utf8) + body
    let secret = key.exposed
    guard HMAC(EVP_sha256(), secret, Int32(clamping: secret.count), text, text.count, &out, &length) != nil, length == 32 else {
      return []
    }
    return [("content-type", "application/json"), ("trunkline-signature", "t=\(unixSeconds),v1=\(hexString(out))")]
  }
}

/// Admission of requests to webhooks: a circuit breaker for each URL, and the number of open requests. Belongs to the webhook
/// thread.
///
///     guard gate.admits(url, at: now) else { answer nothing }
///     …
///     gate.ended(url, answered: true, at: now)
public struct WebhookGate: Sendable {
  private var breakers: [String: CircuitBreaker] = [:]
  public private(set) var underWay = 0
  public init() {}

  public mutating func admits(_ url: String, at now: Instant) -> Bool {
    guard underWay < Limits.webhooksUnderWay else { return false }
    if breakers[url] == nil {
      if breakers.count >= Limits.webhooks { breakers.removeAll() }
      breakers[url] = CircuitBreaker(Limits.breaker)
    }
    guard breakers[url]?.allows(at: now) == true else { return false }
    breakers[url]?.attempted(at: now)
    underWay += 1
    return true
  }

  /// - Parameter answered: in time and below 500, whatever its content.
  public mutating func ended(_ url: String, answered: Bool, at now: Instant) {
    underWay -= 1
    if answered { _ = breakers[url]?.succeeded() } else { _ = breakers[url]?.failed(at: now) }
  }

  public func isOpen(_ url: String) -> Bool { breakers[url]?.isOpen ?? false }
}
