import CTrunklineOpenSSL

/// The certificate that we present to a push service (`push.apns.certificate`), checked as far as its files allow.
public struct ClientCertificate: Sendable, Equatable {
  public enum Problem: Error, Equatable, CustomStringConvertible {
    case noCertificate, noKey, otherKey
    public var description: String {
      switch self {
      case .noCertificate: "the file holds no certificate in PEM"
      case .noKey: "the file holds no private key in PEM without a password"
      case .otherKey: "the key is not the certificate's"
      }
    }
  }
  /// Seconds since 1970.
  public var expires: Int64

  public init(certificate: [UInt8], key: [UInt8]) throws(Problem) {
    guard let read = Self.read(certificate, { PEM_read_bio_X509($0, nil, nil, nil) }) else { throw .noCertificate }
    defer { X509_free(read) }
    guard let secret = Self.read(key, { PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in 0 }, nil) }) else { throw .noKey }
    defer { EVP_PKEY_free(secret) }
    guard X509_check_private_key(read, secret) == 1 else { throw .otherKey }
    var (days, seconds): (Int32, Int32) = (0, 0)
    guard let epoch = ASN1_TIME_set(nil, 0) else { throw .noCertificate }
    defer { ASN1_TIME_free(epoch) }
    guard ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(read)) == 1 else { throw .noCertificate }
    expires = Int64(days) * 86_400 + Int64(seconds)
  }

  private static func read(_ pem: [UInt8], _ body: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
    pem.withUnsafeBytes { bytes in
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
      defer { BIO_free(bio) }
      ERR_clear_error()
      return body(bio)
    }
  }
}
