public import HTTP
public import JSONWebToken
import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How browsers' push services are used: RFC 8030 with VAPID (RFC 8292) and encryption (RFC 8291).
public struct WebPushProvider: Sendable {
  /// ES256, with the key whose public half the page subscribes with.
  public var signer: TokenSigner
  /// The public half, base64url of the uncompressed point.
  public var publicKey: String
  /// `mailto:` or `https:` contact for the push service's operator.
  public var subject: String
  /// Endpoints of other hosts are refused: an app chooses the subscription, and must not make us send to our own network. `*.` at
  /// the start matches any name below; `:8443` at the end names that port instead of 443.
  public var hosts: [String]

  public init(signer: TokenSigner, publicKey: String, subject: String, hosts: [String] = WebPushProvider.browsers) {
    (self.signer, self.publicKey, self.subject, self.hosts) = (signer, publicKey, subject, hosts)
  }

  /// The services behind Chrome, Edge, Firefox and Safari.
  public static let browsers = [
    "fcm.googleapis.com", "updates.push.services.mozilla.com", "*.push.apple.com", "*.notify.windows.com",
  ]

  static func allows(_ endpoint: Endpoint, among hosts: [String]) -> Bool {
    hosts.contains { text in
      let parts = text.split(separator: ":", maxSplits: 1)
      guard let name = parts.first, endpoint.port == (parts.count == 2 ? UInt16(parts[1]) : 443) else { return false }
      return name.hasPrefix("*.") ? endpoint.host.hasSuffix(name.dropFirst()) : endpoint.host == name
    }
  }

  private struct Subscription: Decodable {
    struct Keys: Decodable { var p256dh, auth: String }
    var endpoint: String
    var keys: Keys
  }

  /// A subscription's endpoint; nil unless it is JSON with an `https` endpoint and two usable keys. The provider checks whether
  /// its host is allowed.
  static func endpoint(ofSubscription text: String) -> Endpoint? {
    guard let subscription = try? JSONDecoder().decode(Subscription.self, from: Data(text.utf8)),
      let receiver = Base64URL.decode(unpadded(subscription.keys.p256dh)),
      let secret = Base64URL.decode(unpadded(subscription.keys.auth)),
      WebPushEncryption.canEncrypt(to: receiver, secret: secret)
    else { return nil }
    return Endpoint(subscription.endpoint)
  }
}

extension WebPushProvider: PushProvider {
  public static let service = PushService.webPush
  public static let registrationKind = "webpush"
  public static let tokenBytes = Limits.tokenBytes
  public static let tokenRule = "must be the JSON of a PushSubscription: an https endpoint, keys.p256dh and keys.auth"

  public static func checked(_ target: PushTarget) throws(TargetProblem) -> PushTarget {
    guard endpoint(ofSubscription: target.token.exposed) != nil else { throw .malformed }
    return target
  }

  public func accepts(_ target: PushTarget) throws(TargetProblem) {
    guard let endpoint = Self.endpoint(ofSubscription: target.token.exposed), Self.allows(endpoint, among: hosts) else {
      throw .host
    }
  }

  private struct Content: Encodable {
    var aud: String
    var exp: Int64
    var sub: String
  }

  public func request(_ attempt: PushAttempt) throws(KeyError) -> PushStep {
    let token = attempt.target.token.exposed
    guard token.utf8.count <= Limits.tokenBytes,
      let subscription = try? JSONDecoder().decode(Subscription.self, from: Data(token.utf8)),
      let endpoint = Endpoint(subscription.endpoint), Self.allows(endpoint, among: hosts),
      let receiver = Base64URL.decode(Self.unpadded(subscription.keys.p256dh)),
      let secret = Base64URL.decode(Self.unpadded(subscription.keys.auth)),
      let text = Payload.fitting(Self.textBytes, attempt.content, withCaller: attempt.withCaller, { $0.json() }),
      let body = WebPushEncryption.encrypt(
        text, receiver: receiver, secret: secret, salt: attempt.random.bytes(16), scalar: attempt.random.bytes(32))
    else { return .unusable }
    let identity = try signer.sign(Content(aud: endpoint.origin, exp: attempt.now + Self.tokenSeconds, sub: subject))
    return .send(
      HTTPClientRequest(
        connection: "webpush/\(endpoint.host):\(endpoint.port)",
        url: "https://\(endpoint.host):\(endpoint.port)\(endpoint.path)",
        headers: [
          // The service keeps the message no longer than the call rings.
          ("ttl", "\(min(max(attempt.secondsLeft, 0), 30))"), ("urgency", "high"), ("topic", Self.topic(attempt.content.call)),
          ("content-encoding", "aes128gcm"), ("content-type", "application/octet-stream"),
          ("authorization", "vapid t=\(identity), k=\(publicKey)"),
        ], body: body, timeout: Limits.attemptTime))
  }

  /// RFC 8030 §5 and §8: the answers of a browser's push service.
  public static func verdict(_ answer: HTTPClientResponse) -> PushVerdict {
    let reason = "status \(answer.status)"
    switch answer.status {
    case 200...299: return .accepted
    case 404, 410: return .unregistered(before: nil, reason: reason)
    case 413: return .retry(.withoutCaller, reason: reason)
    case 429, 500...: return .retry(.after(seconds: answer.retryAfter ?? 1), reason: reason)
    default: return .refused(reason: reason, isFault: true)
    }
  }

  /// Browsers' services give no reason beyond the status.
  public static func advice(_ report: PushReport) -> String? { nil }

  /// At most 32 characters of base64url (RFC 8030 §5.4): a retry replaces the message, should the first wait somewhere.
  private static func topic(_ call: Identifier) -> String { String(call.description.filter { $0 != "-" }) }
  private static func unpadded(_ text: String) -> [UInt8] { Array(text.utf8.filter { $0 != UInt8(ascii: "=") }) }

  private static let tokenSeconds: Int64 = 12 * 3600
  /// A service must accept 4096 encrypted bytes (RFC 8030 §7.2), of which the header uses 86 and the tag 17.
  private static let textBytes = Limits.dataBytes - 103
}

/// The parts of a push resource's URL.
struct Endpoint {
  var host: String
  var port: UInt16
  var path: String
  var origin: String

  init?(_ text: String) {
    let scheme = "https://"
    guard text.lowercased().hasPrefix(scheme), text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
    let rest = text.dropFirst(scheme.count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.isEmpty, !authority.contains("@"), !authority.contains("[") else { return nil }
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, let name = parts.first, !name.isEmpty,
      name.utf8.allSatisfy({ isHostByte($0) })
    else { return nil }
    if parts.count == 2 {
      guard let port = UInt16(parts[1]), port > 0 else { return nil }
      self.port = port
    } else {
      port = 443
    }
    host = name.lowercased()
    let path = rest.dropFirst(authority.count).prefix { $0 != "#" }
    self.path = path.hasPrefix("/") ? String(path) : "/" + path
    origin = scheme + host + (port == 443 ? "" : ":\(port)")
  }
}

/// Letters, digits, `-` and `.`.
func isHostByte(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
    UInt8(ascii: "-"), UInt8(ascii: "."):
    true
  default: false
  }
}
