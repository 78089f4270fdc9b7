import CTrunklineOpenSSL

/// Why an association cannot carry media.
public enum DTLSFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// OpenSSL's reason, for instance "peer did not return a certificate".
  case openSSL(String)
  /// The peer's certificate is not the one its description names.
  case fingerprintMismatch
  /// The handshake ended without an SRTP profile: the peer offers none of ours, or no `use_srtp` at all.
  case noSRTPProfile
  /// OpenSSL could not create an object: out of memory, or a library without a feature that we need.
  case unavailable

  public var description: String {
    switch self {
    case .openSSL(let reason): reason
    case .fingerprintMismatch: "the certificate's fingerprint is not the one in the description"
    case .noSRTPProfile: "no SRTP profile in common"
    case .unavailable: "OpenSSL could not set the handshake up"
    }
  }

  /// Returns the first error of the thread's queue and empties it: errors stay there, and the next call would report them as
  /// its own.
  static func drainQueue() -> DTLSFailure {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0 else { return .openSSL("the handshake was cut off") }
    guard let text = ERR_reason_error_string(code) else { return .openSSL("error \(code)") }
    return .openSSL(String(cString: text))
  }
}
