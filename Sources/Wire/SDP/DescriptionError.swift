/// Why a text is not a session description. Caused by its syntax only, never by its content.
public struct DescriptionError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Counted from 1; 0 if the error concerns the whole text.
  public let line: Int
  /// The rule that was broken, such as `RFC 8866 §5.14: m=`.
  public let rule: String

  public init(line: Int, rule: String) { (self.line, self.rule) = (line, rule) }
  public var description: String { line == 0 ? rule : "line \(line): \(rule)" }
}

/// Why an offer or answer cannot be used.
public enum NegotiationError: Error, Hashable, Sendable, CustomStringConvertible {
  case malformed(DescriptionError)
  /// No audio section, or none that is enabled.
  case noAudio
  /// The peer's answer refused our audio section.
  case audioRefused
  case noCommonCodec
  /// This leg does not accept the audio section's transport: plain RTP toward an app, SRTP on a trunk.
  case transportProfile(String)
  /// Plain audio on a trunk that requires SRTP.
  case notProtected
  /// SRTP is required, and the signalling is not over TLS.
  case keysNeedTLS
  /// SRTP without a usable key: another suite, several keys, session parameters that we refuse.
  case noUsableKey
  /// SDES keys instead of a DTLS fingerprint (RFC 4568).
  case keysInDescription
  case noFingerprint
  /// Only hash functions that are no longer safe, or a hash of the wrong length.
  case unusableFingerprint(String)
  /// The peer requires the DTLS role that we have.
  case setupRole(String)
  /// Both agents are ICE-lite: neither would send checks.
  case iceLite
  case noICECredentials
  case noRTCPMultiplexing
  /// A host name, a multicast address, or another address family than ours.
  case unusableAddress(String)
  /// An answer, but we sent no offer.
  case noOffer

  /// The SIP status for the peer: 400 for a text that is not SDP, else 488 (RFC 3261 §21.4.26).
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
