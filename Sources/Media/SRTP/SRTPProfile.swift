/// A DTLS-SRTP protection profile (RFC 5764 §4.1.2, RFC 7714 §14.2). The raw value is the id in the `use_srtp` extension.
public enum SRTPProfile: UInt16, Sendable, CaseIterable {
  case aes128CM_HMAC_SHA1_80 = 0x0001
  /// For SDES trunks only; DTLS never offers a 32-bit tag.
  case aes128CM_HMAC_SHA1_32 = 0x0002
  case aeadAES128GCM = 0x0007
  case aeadAES256GCM = 0x0008

  /// The profiles that a leg offers and accepts, in order of preference (docs/reference/protocol.md, Media on the app leg).
  public static let offered: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CM_HMAC_SHA1_80]

  /// The name for OpenSSL's `SSL_CTX_set_tlsext_use_srtp`.
  public var openSSLName: String {
    switch self {
    case .aes128CM_HMAC_SHA1_80: "SRTP_AES128_CM_SHA1_80"
    case .aes128CM_HMAC_SHA1_32: "SRTP_AES128_CM_SHA1_32"
    case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
    case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
    }
  }
  /// The name in the IANA registry, for logs and records.
  public var name: String {
    switch self {
    case .aes128CM_HMAC_SHA1_80: "SRTP_AES128_CM_HMAC_SHA1_80"
    case .aes128CM_HMAC_SHA1_32: "SRTP_AES128_CM_HMAC_SHA1_32"
    case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
    case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
    }
  }

  /// The profile of a suite that `a=crypto` names (RFC 4568 §6.2, RFC 7714 §14.2); nil for an unsupported one.
  public init?(suite: String) {
    switch suite {
    case "AES_CM_128_HMAC_SHA1_80": self = .aes128CM_HMAC_SHA1_80
    case "AES_CM_128_HMAC_SHA1_32": self = .aes128CM_HMAC_SHA1_32
    case "AEAD_AES_128_GCM": self = .aeadAES128GCM
    case "AEAD_AES_256_GCM": self = .aeadAES256GCM
    default: return nil
    }
  }

  /// Bytes of a master (and session) key.
  public var keyBytes: Int { self == .aeadAES256GCM ? 32 : 16 }
  /// Bytes of a master (and session) salt.
  public var saltBytes: Int { isAEAD ? 12 : 14 }
  /// Bytes that `SRTPSender.protect` adds to an RTP packet.
  public var overheadBytes: Int { rtpTagBytes }

  @inline(__always) var isAEAD: Bool { self == .aeadAES128GCM || self == .aeadAES256GCM }
  var rtpTagBytes: Int {
    switch self {
    case .aes128CM_HMAC_SHA1_80: 10
    case .aes128CM_HMAC_SHA1_32: 4
    case .aeadAES128GCM, .aeadAES256GCM: 16
    }
  }
  /// The 32-bit profile keeps the long tag for SRTCP (RFC 5764 §4.1.2).
  var rtcpTagBytes: Int { isAEAD ? 16 : 10 }
}
