/// Why a text is not a session description. Never caused by what it says, only by how it is written.
public struct DescriptionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Counted from 1; 0 when the whole is meant.
  public let line: Int
  /// The rule that was broken, such as `RFC 8866 §5.14: m=`.
  public let rule: String

  public init(line: Int, rule: String) { (self.line, self.rule) = (line, rule) }
  public var description: String { line == 0 ? rule : "line \(line): \(rule)" }
}

/// Why an offer or answer cannot be used.
public enum NegotiationError: Error, Hashable, Sendable, CustomStringConvertible {
  case malformed(DescriptionError)
  /// No audio section, or none that is switched on.
  case noAudio
  /// The peer's answer refused our audio section.
  case audioRefused
  case noCommonCodec
  /// The audio section's transport is not one this leg takes: plain RTP toward an app, SRTP on a trunk.
  case transportProfile(String)
  /// Plain audio on a trunk that requires SRTP.
  case notProtected
  /// SRTP is required, and the signalling is not over TLS.
  case keysNeedTLS
  /// SRTP without a key that can be used: another suite, several keys, session parameters that we refuse.
  case noUsableKey
  /// SDES keys instead of a DTLS fingerprint (RFC 4568).
  case keysInDescription
  case noFingerprint
  /// Only hash functions that are no longer safe, or a hash of the wrong length.
  case unusableFingerprint(String)
  /// The peer wants the DTLS role that we have.
  case setupRole(String)
  /// Both agents are ICE-lite: neither would send checks.
  case iceLite
  case noICECredentials
  case noRTCPMultiplexing
  /// A host name, a multicast address, or another address family than ours.
  case unusableAddress(String)
  /// An answer without an offer of ours.
  case noOffer

  /// What a SIP peer is told: 400 for what is not SDP, else 488 (RFC 3261 §21.4.26).
  public var sipStatus: Int { if case .malformed = self { 400 } else { 488 } }

  public var description: String {
    switch self {
    case .malformed(let error): "malformed SDP: \(error)"
    case .noAudio: "no audio in the SDP"
    case .audioRefused: "the peer refused audio"
    case .noCommonCodec: "no common codec"
    case .transportProfile(let profile): "transport \(profile.prefix(40)) is not accepted here"
    case .notProtected: "this trunk requires SRTP"
    case .keysNeedTLS: "this trunk requires SRTP, whose keys go over TLS only"
    case .noUsableKey: "no usable a=crypto line"
    case .keysInDescription: "SDES keys are not accepted: DTLS-SRTP is required"
    case .noFingerprint: "no DTLS fingerprint"
    case .unusableFingerprint(let algorithm): "no usable fingerprint: \(algorithm.prefix(40))"
    case .setupRole(let role): "a=setup:\(role.prefix(40)) does not fit our role"
    case .iceLite: "the peer is ICE-lite as we are"
    case .noICECredentials: "no ICE ufrag and password"
    case .noRTCPMultiplexing: "a=rtcp-mux is required"
    case .unusableAddress(let address): "unusable media address \(address.prefix(60))"
    case .noOffer: "an answer came without an offer"
    }
  }
}
