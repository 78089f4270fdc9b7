/// A key for one purpose, of a secret that several share: HKDF-SHA256 (RFC 5869) with the purpose as label, so that a tag of one purpose is
/// none of another. Immutable; any thread. A tag costs about 2 µs.
///
///     let key = PurposeKey("trunkline shared store values 1", from: clusterKey)
///     key?.tag(message)      // 16 bytes
public struct PurposeKey: Sendable {
  private let key: [UInt8]

  /// Nil: the secret is empty, or OpenSSL fails.
  public init?(_ purpose: String, from secret: [UInt8]) {
    guard !secret.isEmpty else { return nil }
    // without a salt: zeros of the hash's length (§2.2); of one block only T(1) is needed (§2.3)
    let pseudorandom = hmacSHA256(secret, key: [UInt8](repeating: 0, count: 32))
    guard !pseudorandom.isEmpty else { return nil }
    key = hmacSHA256(Array(purpose.utf8) + [1], key: pseudorandom)
    if key.isEmpty { return nil }
  }

  /// HMAC-SHA256, the first 128 bits (RFC 2104 §5); empty only if OpenSSL fails.
  public func tag(_ message: [UInt8]) -> [UInt8] { Array(hmacSHA256(message, key: key).prefix(Self.tagBytes)) }
  public static let tagBytes = 16

  /// In time that does not depend on where they differ.
  public func isTag(_ tag: [UInt8], of message: [UInt8]) -> Bool {
    tag.count == Self.tagBytes && constantTimeEqual(tag, self.tag(message))
  }
}
