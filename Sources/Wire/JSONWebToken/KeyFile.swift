#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The keys that tokens are checked with, read from the bytes of a file.
public struct KeySet: Sendable {
  enum Material: Sendable {
    case secret([UInt8])
    /// By `kid`; a key without one serves every token that the set has no better key for.
    case keys([(kid: String?, key: SigningKey)])
  }
  public let algorithm: Algorithm
  let material: Material
  /// They come from a URL: a `kid` that is not among them may be there at the next fetch.
  public private(set) var isFetched = false

  /// `key_file`: for HS256 the bytes without trailing white space are the secret, otherwise a PEM.
  public init(_ algorithm: Algorithm, keyFile bytes: [UInt8]) throws(KeyError) {
    guard bytes.count <= Limits.keyFileBytes else { throw .tooBig }
    self.algorithm = algorithm
    if algorithm == .HS256 {
      var secret = bytes
      while let last = secret.last, last == 0x20 || (0x09...0x0d).contains(last) { secret.removeLast() }
      guard !secret.isEmpty else { throw .empty }
      material = .secret(secret)
    } else {
      guard !bytes.isEmpty else { throw .empty }
      material = .keys([(nil, try SigningKey.pem(bytes, for: algorithm))])
    }
  }

  /// `jwks_file` (RFC 7517 §5). Keys of another algorithm or use are passed over; at least one must remain.
  public init(_ algorithm: Algorithm, jwksFile bytes: [UInt8]) throws(KeyError) {
    guard bytes.count <= Limits.keyFileBytes else { throw .tooBig }
    guard algorithm != .HS256 else { throw .jwks("HS256 needs key_file") }
    guard let file = try? JSONDecoder().decode(JWKS.self, from: Data(bytes)) else {
      throw .jwks("no object with a list `keys`")
    }
    guard file.keys.count <= Limits.keys else { throw .jwks("more than \(Limits.keys) keys") }
    var found: [(kid: String?, key: SigningKey)] = []
    for entry in file.keys where entry.serves(algorithm) {
      if let kid = entry.kid, kid.utf8.count > Limits.claimBytes { throw .jwks("a kid above \(Limits.claimBytes) bytes") }
      found.append((entry.kid, try entry.key(algorithm)))
    }
    guard !found.isEmpty else { throw .jwks("no key for \(algorithm.rawValue)") }
    self.algorithm = algorithm
    material = .keys(found)
  }

  /// What a `jwks_url` answered. Unlike in a file, which the operator can correct, an unusable key is skipped: it must not lock out
  /// those whose tokens the others have signed. At least one must remain.
  public init(_ algorithm: Algorithm, fetched bytes: [UInt8]) throws(KeyError) {
    guard bytes.count <= Limits.keyFileBytes else { throw .tooBig }
    guard algorithm != .HS256 else { throw .jwks("HS256 needs key_file") }
    guard let file = try? JSONDecoder().decode(JWKS.self, from: Data(bytes)) else { throw .jwks("no object with a list `keys`") }
    guard file.keys.count <= Limits.keys else { throw .jwks("more than \(Limits.keys) keys") }
    var found: [(kid: String?, key: SigningKey)] = []
    var fault: KeyError?
    for entry in file.keys where entry.serves(algorithm) && entry.kid?.utf8.count ?? 0 <= Limits.claimBytes {
      do throws(KeyError) {
        found.append((entry.kid, try entry.key(algorithm)))
      } catch {
        fault = error
      }
    }
    guard !found.isEmpty else { throw fault ?? .jwks("no key for \(algorithm.rawValue)") }
    self.algorithm = algorithm
    (material, isFetched) = (.keys(found), true)
  }

  /// Before the first answer of a `jwks_url`: no token is signed with any of these.
  public init(awaited algorithm: Algorithm) {
    self.algorithm = algorithm
    (material, isFetched) = (.keys([]), true)
  }

  /// How many keys there are.
  public var count: Int { if case .keys(let keys) = material { keys.count } else { 1 } }

  /// HS256 with a key of its own for one purpose: HMAC-SHA256 of `purpose` under a secret that others share. No token of one purpose is one
  /// of another. Nil: the secret is empty, or OpenSSL fails.
  public init?(deriving purpose: String, from secret: [UInt8]) {
    guard !secret.isEmpty else { return nil }
    let key = hmacSHA256(Array(purpose.utf8), key: secret)
    guard !key.isEmpty else { return nil }
    (algorithm, material) = (.HS256, .secret(key))
  }

  /// An HMAC secret shorter than the hash can be found by trying (RFC 7518 §3.2).
  public var isWeak: Bool {
    if case .secret(let secret) = material { secret.count < Limits.strongSecretBytes } else { false }
  }

  /// Whether a key has this very `kid`.
  func has(_ kid: String?) -> Bool {
    guard case .keys(let keys) = material, let kid else { return false }
    return keys.contains { $0.kid == kid }
  }

  func key(_ kid: String?) -> SigningKey? {
    guard case .keys(let keys) = material else { return nil }
    if let kid, let named = keys.first(where: { $0.kid == kid }) { return named.key }
    if let unnamed = keys.first(where: { $0.kid == nil }) { return unnamed.key }
    return kid == nil && keys.count == 1 ? keys[0].key : nil
  }
}

private struct JWKS: Decodable {
  var keys: [Entry]

  struct Entry: Decodable {
    var kty: String?
    var kid: String?
    var use: String?
    var alg: String?
    var crv: String?
    var n: String?
    var e: String?
    var x: String?
    var y: String?

    func serves(_ algorithm: Algorithm) -> Bool {
      guard use == nil || use == "sig", alg == nil || alg == algorithm.rawValue else { return false }
      return algorithm == .RS256 ? kty == "RSA" : kty == "EC" && crv == "P-256"
    }

    func key(_ algorithm: Algorithm) throws(KeyError) -> SigningKey {
      func number(_ text: String?, named name: String) throws(KeyError) -> [UInt8] {
        guard let text, let bytes = Base64URL.decode(text.utf8), !bytes.isEmpty, bytes.count <= 1_024 else {
          throw .jwks("\(kid ?? "a key"): \(name) is not a base64url number")
        }
        return bytes
      }
      if algorithm == .RS256 { return try SigningKey.rsa(modulus: number(n, named: "n"), exponent: number(e, named: "e")) }
      return try SigningKey.p256(x: number(x, named: "x"), y: number(y, named: "y"))
    }
  }
}
