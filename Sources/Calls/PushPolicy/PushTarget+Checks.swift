import Bytes

/// Why a registration can never be pushed to, known without asking the service.
public enum TargetProblem: Error, Hashable, Sendable {
  case empty
  case tooLong(limit: Int)
  /// APNs: not an even number of hexadecimal digits. FCM: white space or control characters. Web Push: not a subscription.
  case malformed
  /// APNs needs the app's bundle identifier with `.voip`.
  case topicMissing
  case topicTooLong(limit: Int)
  case topicMalformed
  /// Not an X25519 public key as Base64url.
  case sealKey
  /// The gateway has no keys for this service.
  case notConfigured
  /// Web Push: an endpoint of a host that is not pushed to.
  case host
}

/// What a gateway pushes to at all, by its configuration: the services that it has keys for, and the hosts of browsers' services.
public struct PushReach: Hashable, Sendable {
  public var services: Set<PushService>
  /// As in `WebPushProvider.hosts`.
  public var webPushHosts: [String]
  public init(services: Set<PushService>, webPushHosts: [String] = WebPushProvider.browsers) {
    (self.services, self.webPushHosts) = (services, webPushHosts)
  }

  /// - Parameter target: as `checked()` gave it.
  public func check(_ target: PushTarget) throws(TargetProblem) {
    guard services.contains(target.service) else { throw .notConfigured }
    guard target.service == .webPush else { return }
    guard let host = WebPushProvider.host(ofSubscription: target.token.exposed), WebPushProvider.allows(host, among: webPushHosts)
    else { throw .host }
  }
}

extension PushTarget {
  /// The registration as it is kept: APNs' token in lower case, nothing else changed. The service alone knows whether it works.
  public func checked() throws(TargetProblem) -> PushTarget {
    let bytes = Array(token.exposed.utf8)
    guard !bytes.isEmpty else { throw .empty }
    let limit =
      switch service {
      case .apns: Limits.apnsTokenBytes.upperBound
      case .fcm: Limits.fcmTokenBytes
      case .webPush: Limits.tokenBytes
      }
    guard bytes.count <= limit else { throw .tooLong(limit: limit) }
    try checkTopic()
    if let sealKey, !CallerSealing.isUsable(key: sealKey) { throw .sealKey }
    switch service {
    case .apns:
      guard bytes.count % 2 == 0, bytes.count >= Limits.apnsTokenBytes.lowerBound, bytes.allSatisfy({ hexDigit($0) != nil })
      else {
        throw .malformed
      }
      return PushTarget(.apns, token: token.exposed.lowercased(), environment: environment, topic: topic, sealKey: sealKey)
    case .fcm:
      guard bytes.allSatisfy({ (0x21...0x7e).contains($0) }) else { throw .malformed }
    case .webPush:
      guard WebPushProvider.host(ofSubscription: token.exposed) != nil else { throw .malformed }
    }
    return self
  }

  /// Letters, digits, `-`, `.` and `_`: it becomes a header.
  private func checkTopic() throws(TargetProblem) {
    let bytes = Array(topic.utf8)
    guard bytes.count <= Limits.topicBytes else { throw .topicTooLong(limit: Limits.topicBytes) }
    let isPlain = bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
      default: false
      }
    }
    guard isPlain else { throw .topicMalformed }
    guard service == .apns else { return }
    guard !bytes.isEmpty else { throw .topicMissing }
    guard topic.hasSuffix(".voip"), topic.count > ".voip".count else { throw .topicMalformed }
  }
}
