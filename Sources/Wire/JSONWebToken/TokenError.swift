/// Why a token was refused; the raw value is safe to log, count and send.
public enum TokenError: String, Error, CaseIterable, Hashable, Sendable {
  /// Not three parts of base64url with JSON inside, or above a limit.
  case malformed
  /// `alg` is not the configured one; `none` is never.
  case algorithm
  /// The signature does not fit the key, or no key has this `kid`.
  case signature
  /// No fetched key has this `kid`: the issuer may have added the key a moment ago.
  case unknownKey
  case expired
  /// `exp` is in milliseconds: RFC 7519 §4.1.4 counts seconds.
  case expiryInMilliseconds
  case notYetValid
  case audience
  /// A claim is missing or outside its limits.
  case claims
  /// The header names an extension that must be understood (`crit`, RFC 7515 §4.1.11).
  case critical
}

/// Why key material was refused, for the operator.
public enum KeyError: Error, Hashable, Sendable, CustomStringConvertible {
  case empty
  case tooBig
  /// No PEM of a key or certificate, or a key of another kind than the algorithm needs.
  case notAKey(String)
  /// RSA below 2048 bits, or a curve other than P-256.
  case unsuitable(String)
  /// Signing needs the private key.
  case noPrivateKey
  case jwks(String)

  public var description: String {
    switch self {
    case .empty: "the key file is empty"
    case .tooBig: "the key file has more than \(Limits.keyFileBytes) bytes"
    case .notAKey(let why): "no usable key: \(why)"
    case .unsuitable(let why): "unsuitable key: \(why)"
    case .noPrivateKey: "signing needs a private key, the file holds a public one"
    case .jwks(let why): "not a JSON Web Key Set: \(why)"
    }
  }
}

/// The supported signature algorithms of RFC 7518 §3.1. The configuration pins one; the token cannot choose.
public enum Algorithm: String, CaseIterable, Hashable, Sendable { case HS256, RS256, ES256 }
