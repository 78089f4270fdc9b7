import TrunklineBytes

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

extension PushTarget {
  /// The registration as it is kept: APNs' token in lower case, nothing else changed. The service alone knows whether it works.
  public func checked() throws(TargetProblem) -> PushTarget {
    guard !token.exposed.isEmpty else { throw .empty }
    let limit = service.provider.tokenBytes
    guard token.exposed.utf8.count <= limit else { throw .tooLong(limit: limit) }
    try checkTopic()
    if let sealKey, !CallerSealing.isUsable(key: sealKey) { throw .sealKey }
    return try service.provider.checked(self)
  }

  /// Letters, digits, `-`, `.` and `_`: it becomes a header.
  private func checkTopic() throws(TargetProblem) {
    let bytes = Array(topic.utf8)
    guard bytes.count <= Limits.topicBytes else { throw .topicTooLong(limit: Limits.topicBytes) }
    guard bytes.allSatisfy({ isHostByte($0) || $0 == UInt8(ascii: "_") }) else { throw .topicMalformed }
  }
}
