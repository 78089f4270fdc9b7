import CTrunklineOpenSSL
import TrunklineSRTP

/// Our certificate, made at start, and the OpenSSL settings shared by all associations of a process.
///
/// Self-signed P-256: what browsers use and expect (RFC 8827 §6.5). Making one takes about 1 ms. May be shared between threads:
/// an `SSL_CTX` that is no longer changed is safe to use from several (OpenSSL's ssl(7)).
public final class DTLSIdentity: Sendable {
  /// SHA-256 of the certificate, for `a=fingerprint`.
  public let fingerprint: DTLSFingerprint
  /// Not changed after `init`; freed in deinit.
  nonisolated(unsafe) let context: OpaquePointer

  /// Makes a key and a certificate. `profiles` in order of preference. Throws `unavailable` or OpenSSL's reason.
  public init(profiles: [SRTPProfile] = SRTPProfile.offered) throws(DTLSFailure) {
    ERR_clear_error()
    guard let key = cossl_ec_p256_generate() else { throw .drainQueue() }
    defer { EVP_PKEY_free(key) }
    guard let certificate = selfSigned(key) else { throw .drainQueue() }
    defer { X509_free(certificate) }
    guard let fingerprint = DTLSFingerprint(of: certificate, .sha256) else { throw .unavailable }
    guard let context = SSL_CTX_new(DTLS_method()) else { throw .drainQueue() }
    guard configure(context, key: key, certificate: certificate, profiles: profiles) else {
      SSL_CTX_free(context)
      throw .drainQueue()
    }
    self.fingerprint = fingerprint
    self.context = context
  }

  deinit { SSL_CTX_free(context) }
}

private func configure(_ context: OpaquePointer, key: OpaquePointer, certificate: OpaquePointer, profiles: [SRTPProfile])
  -> Bool
{
  SSL_CTX_set_options(context, cossl_op_no_query_mtu() | cossl_op_no_renegotiation() | cossl_op_no_ticket())
  _ = cossl_set_session_cache_off(context)
  _ = cossl_set_release_buffers(context)
  // Any certificate passes here, but one is required: the fingerprint is compared after the handshake (RFC 5763 §5).
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT) { _, _ in 1 }
  let names = profiles.map(\.openSSLName).joined(separator: ":")
  return cossl_set_min_proto_version(context, DTLS1_2_VERSION) == 1
    && SSL_CTX_use_certificate(context, certificate) == 1
    && SSL_CTX_use_PrivateKey(context, key) == 1
    // Authenticated encryption with forward secrecy only. RSA suites are for peers that are the server and have an RSA
    // certificate.
    && SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
    && cossl_set1_groups_list(context, "X25519:P-256:P-384") == 1
    && SSL_CTX_set_tlsext_use_srtp(context, names) == 0  // zero is success here
}

/// A certificate that contains only the key: RFC 8827 §6.5 requires that it names no identity.
private func selfSigned(_ key: OpaquePointer) -> OpaquePointer? {
  guard let certificate = X509_new() else { return nil }
  var serial: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]
  RAND_bytes(&serial, 8)
  let number = serial.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
  let name = X509_get_subject_name(certificate)
  let isMade =
    X509_set_version(certificate, 2) == 1 && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), number) == 1
    && X509_gmtime_adj(X509_getm_notBefore(certificate), -Limits.certificateBacklogSeconds) != nil
    && X509_gmtime_adj(X509_getm_notAfter(certificate), Limits.certificateSeconds) != nil
    && X509_NAME_add_entry_by_txt(name, "CN", asciiText, "trunkline", -1, -1, 0) == 1
    && X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1
    && X509_sign(certificate, key, EVP_sha256()) > 0
  if isMade { return certificate }
  X509_free(certificate)
  return nil
}

/// MBSTRING_ASC is an expression of macros, which Swift does not import.
private let asciiText: Int32 = 0x1000 | 1
