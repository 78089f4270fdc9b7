import CTrunklineOpenSSL
import TrunklineBytes

/// The hash of a certificate as `a=fingerprint` carries it (RFC 8122 §5). Our trust in a peer rests on it alone.
public struct DTLSFingerprint: Hashable, Sendable, CustomStringConvertible {
  /// The hashes that are accepted; RFC 8122 forbids MD5 and MD2, and no relevant peer offers SHA-1.
  public enum Algorithm: String, Sendable, CaseIterable {
    case sha256 = "sha-256"
    case sha384 = "sha-384"
    case sha512 = "sha-512"

    var byteCount: Int {
      switch self {
      case .sha256: 32
      case .sha384: 48
      case .sha512: 64
      }
    }
    var digest: OpaquePointer? {
      switch self {
      case .sha256: EVP_sha256()
      case .sha384: EVP_sha384()
      case .sha512: EVP_sha512()
      }
    }
  }

  public let algorithm: Algorithm
  public let bytes: [UInt8]

  /// From a description; the name in any case. nil for another algorithm or a wrong length.
  public init?(algorithm name: String, bytes: [UInt8]) {
    guard let algorithm = Algorithm(rawValue: name.lowercased()), bytes.count == algorithm.byteCount else { return nil }
    self.algorithm = algorithm
    self.bytes = bytes
  }

  /// The fingerprint of a certificate; nil only if OpenSSL is out of memory.
  init?(of certificate: OpaquePointer, _ algorithm: Algorithm) {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    guard X509_digest(certificate, algorithm.digest, &digest, &count) == 1, Int(count) == algorithm.byteCount else { return nil }
    self.algorithm = algorithm
    bytes = Array(digest[..<Int(count)])
  }

  /// As in SDP: `sha-256 AB:CD:…`.
  public var description: String {
    algorithm.rawValue + " " + bytes.map { hexString([$0]).uppercased() }.joined(separator: ":")
  }
}
