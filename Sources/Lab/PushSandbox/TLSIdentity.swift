import CTrunklineOpenSSL
import Glibc

/// A certificate for tests, made at start: P-256, self-signed, for localhost and 127.0.0.1 and ::1. A client trusts its PEM
/// instead of the system's authorities.
final class TLSIdentity: Sendable {
  let pem: String
  nonisolated(unsafe) let context: OpaquePointer

  /// - Parameter clientAuthorities: a PEM file: only clients with a valid certificate of one of these are accepted.
  init(clientAuthorities: String? = nil) throws(SandboxFailure) {
    guard let key = cossl_ec_p256_generate() else { throw SandboxFailure("no key could be made") }
    defer { EVP_PKEY_free(key) }
    guard let certificate = Self.certificate(key) else { throw SandboxFailure("no certificate could be made") }
    defer { X509_free(certificate) }
    guard let pem = Self.pem(certificate), let context = SSL_CTX_new(TLS_server_method()) else {
      throw SandboxFailure("out of memory")
    }
    let isReady =
      cossl_set_min_proto_version(context, TLS1_2_VERSION) == 1 && SSL_CTX_use_certificate(context, certificate) == 1
      && SSL_CTX_use_PrivateKey(context, key) == 1
    guard isReady else {
      SSL_CTX_free(context)
      throw SandboxFailure("OpenSSL refuses its own certificate")
    }
    if let clientAuthorities {
      guard SSL_CTX_load_verify_locations(context, clientAuthorities, nil) == 1 else {
        SSL_CTX_free(context)
        throw SandboxFailure("no certificates can be read from \(clientAuthorities)")
      }
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    }
    SSL_CTX_set_alpn_select_cb(
      context,
      { _, out, outLength, offered, length, _ in
        // The protocol we speak, as a length and a name; a client that does not offer it is refused.
        var index: UInt32 = 0
        while index + 2 < length, let offered, let out, let outLength {
          if offered[Int(index)] == 2, offered[Int(index) + 1] == UInt8(ascii: "h"), offered[Int(index) + 2] == UInt8(ascii: "2")
          {
            out.pointee = offered + Int(index) + 1
            outLength.pointee = 2
            return SSL_TLSEXT_ERR_OK
          }
          index += UInt32(offered[Int(index)]) + 1
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
      }, nil)
    (self.pem, self.context) = (pem, context)
  }

  deinit { SSL_CTX_free(context) }

  private static func certificate(_ key: OpaquePointer) -> OpaquePointer? {
    guard let certificate = X509_new() else { return nil }
    let name = X509_get_subject_name(certificate)
    var serial: UInt64 = 0
    withUnsafeMutableBytes(of: &serial) { _ = RAND_bytes($0.bindMemory(to: UInt8.self).baseAddress, 8) }
    let isMade =
      X509_set_version(certificate, 2) == 1 && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1
      && X509_gmtime_adj(X509_getm_notBefore(certificate), -3_600) != nil
      && X509_gmtime_adj(X509_getm_notAfter(certificate), 30 * 86_400) != nil
      && X509_NAME_add_entry_by_txt(name, "CN", 0x1000 | 1, "localhost", -1, -1, 0) == 1
      && X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1
      && cossl_add_subject_names(certificate, "DNS:localhost,IP:127.0.0.1,IP:::1") == 1
      && X509_sign(certificate, key, EVP_sha256()) > 0
    if isMade { return certificate }
    X509_free(certificate)
    return nil
  }

  private static func pem(_ certificate: OpaquePointer) -> String? {
    guard let bio = BIO_new(BIO_s_mem()) else { return nil }
    defer { BIO_free(bio) }
    var bytes: UnsafeMutablePointer<CChar>?
    guard PEM_write_bio_X509(bio, certificate) == 1 else { return nil }
    let length = cossl_bio_memory(bio, &bytes)
    guard let bytes, length > 0 else { return nil }
    return String(decoding: UnsafeRawBufferPointer(start: bytes, count: length), as: UTF8.self)
  }
}

/// Why the stand-in cannot run.
public struct SandboxFailure: Error, CustomStringConvertible {
  public let description: String
  init(_ text: String) { description = text }
}
