public import TrunklineBytes

/// The supported crypto-suites of RFC 4568 §6.2 and RFC 7714 §14.2, by their names in SDP.
public enum CryptoSuite: String, Hashable, Sendable, CaseIterable {
  case aes128CM_HMAC_SHA1_80 = "AES_CM_128_HMAC_SHA1_80"
  case aes128CM_HMAC_SHA1_32 = "AES_CM_128_HMAC_SHA1_32"
  case aeadAES128GCM = "AEAD_AES_128_GCM"
  case aeadAES256GCM = "AEAD_AES_256_GCM"

  public var keyBytes: Int { self == .aeadAES256GCM ? 32 : 16 }
  public var saltBytes: Int { self == .aeadAES128GCM || self == .aeadAES256GCM ? 12 : 14 }

  /// The suites that we offer, by preference. The 32-bit tag is last: for peers that support no other.
  static let offered: [CryptoSuite] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CM_HMAC_SHA1_80, .aes128CM_HMAC_SHA1_32]
}

/// One master key and salt, and the length of its packets' key identifier. Prints as a mask.
public struct MediaKey: Hashable, Sendable {
  /// Key and salt, concatenated, with the suite's length.
  public let bytes: Redacted<[UInt8]>
  /// Bytes of the master key identifier in each packet of its sender (RFC 3711 §3.1); mostly 0.
  public let identifierBytes: Int

  public init(_ bytes: [UInt8], identifierBytes: Int = 0) {
    (self.bytes, self.identifierBytes) = (Redacted(bytes), identifierBytes)
  }
}

/// `a=crypto` (RFC 4568 §9.1): a tag, a suite and one key in line.
///
/// An unusable line is skipped. Unusable are other suites, keys of a wrong length, several keys in one line, and session
/// parameters that change the packet format (`KDR`, `UNENCRYPTED_SRTP`, `UNENCRYPTED_SRTCP`, `UNAUTHENTICATED_SRTP`, `FEC_ORDER`,
/// `FEC_KEY`) or that are unknown. `WSH` is a hint, and `-…` may be ignored (§6.3.7).
public struct CryptoAttribute: Hashable, Sendable {
  public var tag: Int
  public var suite: CryptoSuite
  public var key: MediaKey

  public init(tag: Int, suite: CryptoSuite, key: MediaKey) { (self.tag, self.suite, self.key) = (tag, suite, key) }

  /// Reads the attribute's value; nil for an unusable line.
  public init?(_ value: String) {
    guard value.utf8.count <= Limits.cryptoLineBytes else { return nil }
    let parts = value.split(whereSeparator: { $0 == " " || $0 == "\t" })
    guard parts.count >= 3, parts.count <= 3 + Limits.sessionParameters, (1...9).contains(parts[0].utf8.count),
      let tag: Int = number(parts[0]), let suite = CryptoSuite(rawValue: parts[1].uppercased()),
      let key = Self.key(parts[2], suite), parts[3...].allSatisfy(Self.isHarmless)
    else { return nil }
    self.init(tag: tag, suite: suite, key: key)
  }

  /// `inline:BASE64["|"lifetime]["|"mki:length]`. A lifetime is accepted and ignored: 2^48 packets outlast every call.
  private static func key(_ text: Substring, _ suite: CryptoSuite) -> MediaKey? {
    guard text.utf8.count > 7, text.prefix(7).lowercased() == "inline:", !text.contains(";") else { return nil }
    let parts = text.dropFirst(7).split(separator: "|", omittingEmptySubsequences: false)
    guard parts.count <= 3, let bytes = base64Bytes(parts[0]), bytes.count == suite.keyBytes + suite.saltBytes else { return nil }
    var identifierBytes = 0
    for (index, part) in parts.dropFirst().enumerated() {
      if part.contains(":") {
        let pair = part.split(separator: ":", omittingEmptySubsequences: false)
        guard index == parts.count - 2, pair.count == 2, !pair[0].isEmpty, pair[0].utf8.allSatisfy({ (48...57).contains($0) }),
          let length: Int = number(pair[1]), Limits.identifierBytes.contains(length)
        else { return nil }
        identifierBytes = length
      } else {
        let digits = part.hasPrefix("2^") ? part.dropFirst(2) : part
        guard index == 0, let lifetime: UInt64 = number(digits), lifetime > 0 else { return nil }
      }
    }
    return MediaKey(bytes, identifierBytes: identifierBytes)
  }

  private static func isHarmless(_ parameter: Substring) -> Bool {
    if parameter.hasPrefix("-") { return true }
    guard parameter.uppercased().hasPrefix("WSH="), let window: Int = number(parameter.dropFirst(4)) else { return false }
    return window >= 64
  }

  /// The attribute's value, with the key in clear: for the wire only.
  var text: String { "\(tag) \(suite.rawValue) inline:\(base64Text(key.bytes.exposed))" }
}

extension MediaDescription {
  /// The usable lines, in order; a tag counts once (RFC 4568 §4.1).
  var cryptoAttributes: [CryptoAttribute] {
    var seen: Set<Int> = []
    let lines = attributes.values("crypto").prefix(Limits.cryptoLines).compactMap(CryptoAttribute.init)
    return lines.filter { seen.insert($0.tag).inserted }
  }
}

private let base64Alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

/// RFC 4648 §4, with padding.
func base64Text(_ bytes: [UInt8]) -> String {
  var out: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    let word = group.enumerated().reduce(0) { $0 | Int($1.element) << (16 - 8 * $1.offset) }
    for index in 0..<4 { out.append(index <= group.count ? base64Alphabet[word >> (18 - 6 * index) & 63] : UInt8(ascii: "=")) }
  }
  return String(decoding: out, as: UTF8.self)
}

/// RFC 4648 §4; the padding may be missing, as from some phones. nil for other characters or an impossible length.
func base64Bytes(_ text: Substring) -> [UInt8]? {
  var letters = Array(text.utf8)
  while letters.last == UInt8(ascii: "="), letters.count > text.utf8.count - 2 { letters.removeLast() }
  guard letters.count % 4 != 1 else { return nil }
  var (out, word, bits): ([UInt8], UInt32, Int) = ([], 0, 0)
  for letter in letters {
    guard let value = base64Alphabet.firstIndex(of: letter) else { return nil }
    word = word << 6 | UInt32(value)
    bits = bits + 6
    if bits >= 8 {
      bits -= 8
      out.append(UInt8(truncatingIfNeeded: word >> UInt32(bits)))
    }
  }
  return out
}
