/// One direction's master key and salt. Prints as a mask, compares in constant time, and is overwritten in memory when its last
/// copy is released: it must not reach a log or a core dump.
public struct SRTPMasterKey: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  let secretKey: SecretBytes
  let secretSalt: SecretBytes

  public init(key: some Collection<UInt8>, salt: some Collection<UInt8>) {
    (secretKey, secretSalt) = (SecretBytes(key), SecretBytes(salt))
  }

  /// Key and salt, concatenated as in a description (RFC 4568 §6.1); nil if the length is not the profile's.
  public init?(_ bytes: [UInt8], for profile: SRTPProfile) {
    guard bytes.count == profile.keyBytes + profile.saltBytes else { return nil }
    self.init(key: bytes.prefix(profile.keyBytes), salt: bytes.dropFirst(profile.keyBytes))
  }

  /// Copies for callers that must write them out (SDES, RFC 4568); these are never wiped.
  public var key: [UInt8] { secretKey.array }
  public var salt: [UInt8] { secretSalt.array }

  /// Whether the lengths are the profile's.
  public func fits(_ profile: SRTPProfile) -> Bool {
    secretKey.count == profile.keyBytes && secretSalt.count == profile.saltBytes
  }

  public static func == (left: SRTPMasterKey, right: SRTPMasterKey) -> Bool {
    let (key, salt) = (left.secretKey.isEqual(to: right.secretKey), left.secretSalt.isEqual(to: right.secretSalt))
    return key && salt
  }
  public var description: String { "‹redacted›" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The result of a DTLS handshake: the profile and the keys of both directions (RFC 5764 §4.2). `client` protects what the DTLS
/// client sends.
public struct SRTPKeyMaterial: Sendable, Equatable {
  public let profile: SRTPProfile
  public let client: SRTPMasterKey
  public let server: SRTPMasterKey

  public init(profile: SRTPProfile, client: SRTPMasterKey, server: SRTPMasterKey) {
    (self.profile, self.client, self.server) = (profile, client, server)
  }

  /// Splits the block exported under `EXTRACTOR-dtls_srtp`: client key, server key, client salt, server salt; nil if its length
  /// is wrong.
  public init?(profile: SRTPProfile, exported block: [UInt8]) {
    let (key, salt) = (profile.keyBytes, profile.saltBytes)
    guard block.count == 2 * (key + salt) else { return nil }
    self.init(
      profile: profile, client: SRTPMasterKey(key: block[..<key], salt: block[(2 * key)..<(2 * key + salt)]),
      server: SRTPMasterKey(key: block[key..<(2 * key)], salt: block[(2 * key + salt)...]))
  }
}

/// Why a packet was refused, or keys could not be used. A refused packet changes no state.
public enum SRTPError: Error, Sendable, Equatable {
  /// The key or salt does not have the profile's length.
  case keyLength
  /// OpenSSL refused an operation that fails only without memory.
  case cryptoFailed
  /// Not version 2, or shorter than its header, tag or index requires.
  case malformed
  /// The caller's buffer has no room for tag and index.
  case noRoom
  /// The index was received before.
  case replayed
  /// The index is older than the replay window.
  case tooOld
  /// The tag does not match: forged, damaged, or under other keys.
  case authenticationFailed
  /// SRTCP without encryption (E bit clear), which none of our profiles allows.
  case notEncrypted
  /// More SSRCs than `Limits.sourcesSent`, or than `Limits.sourcesReceived` and `Limits.sourcesRetired` together.
  case tooManySources
  /// 2^48 packets or 2^31 RTCP packets were sent under this key.
  case keyExhausted
}
