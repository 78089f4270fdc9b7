import CTrunklineOpenSSL

/// An RSA or P-256 key in OpenSSL's hands, with which any thread may sign and verify.
final class SigningKey: Sendable {
  /// Unsafe only for the compiler: the key is immutable after its creation, and OpenSSL's own contexts are made per operation.
  nonisolated(unsafe) let handle: OpaquePointer
  let algorithm: Algorithm
  let isPrivate: Bool

  /// Takes over `handle`, and frees it also when it is refused.
  init(_ handle: OpaquePointer, for algorithm: Algorithm, isPrivate: Bool) throws(KeyError) {
    func refuse(_ error: KeyError) -> KeyError {
      EVP_PKEY_free(handle)
      return error
    }
    switch algorithm {
    case .HS256: throw refuse(.notAKey("HS256 has a secret, not a key pair"))
    case .RS256:
      guard EVP_PKEY_is_a(handle, "RSA") == 1 else { throw refuse(.notAKey("RS256 needs an RSA key")) }
      guard EVP_PKEY_get_bits(handle) >= Limits.rsaBits else { throw refuse(.unsuitable("RSA below \(Limits.rsaBits) bits")) }
    case .ES256:
      guard EVP_PKEY_is_a(handle, "EC") == 1 else { throw refuse(.notAKey("ES256 needs an EC key")) }
      var name = [CChar](repeating: 0, count: 64)
      var length = 0
      guard EVP_PKEY_get_group_name(handle, &name, name.count, &length) == 1,
        String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
      else { throw refuse(.unsuitable("the curve is not P-256")) }
    }
    (self.handle, self.algorithm, self.isPrivate) = (handle, algorithm, isPrivate)
  }

  deinit { EVP_PKEY_free(handle) }

  /// The first key of a PEM text: private, public, or that of a certificate.
  static func pem(_ bytes: [UInt8], for algorithm: Algorithm) throws(KeyError) -> SigningKey {
    defer { ERR_clear_error() }
    func read(_ parse: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
      bytes.withUnsafeBytes { raw in
        guard let bio = BIO_new_mem_buf(raw.baseAddress, Int32(clamping: raw.count)) else { return nil }
        defer { BIO_free(bio) }
        return parse(bio)
      }
    }
    // The password callback refuses: a passphrase prompt on the terminal would hang a service.
    if let key = read({ PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil) }) {
      return try SigningKey(key, for: algorithm, isPrivate: true)
    }
    if let key = read({ PEM_read_bio_PUBKEY($0, nil, { _, _, _, _ in -1 }, nil) }) {
      return try SigningKey(key, for: algorithm, isPrivate: false)
    }
    let certified = read { bio in
      guard let certificate = PEM_read_bio_X509(bio, nil, { _, _, _, _ in -1 }, nil) else { return nil }
      defer { X509_free(certificate) }
      return X509_get_pubkey(certificate)
    }
    guard let certified else { throw .notAKey("no PEM of a private key, public key or certificate") }
    return try SigningKey(certified, for: algorithm, isPrivate: false)
  }

  /// An RSA public key from modulus and exponent (RFC 7518 §6.3.1).
  static func rsa(modulus: [UInt8], exponent: [UInt8]) throws(KeyError) -> SigningKey {
    let key = build("RSA") { builder in
      guard let n = BN_bin2bn(modulus, Int32(clamping: modulus.count), nil) else { return nil }
      defer { BN_free(n) }
      guard let e = BN_bin2bn(exponent, Int32(clamping: exponent.count), nil) else { return nil }
      defer { BN_free(e) }
      guard OSSL_PARAM_BLD_push_BN(builder, cText("n"), n) == 1, OSSL_PARAM_BLD_push_BN(builder, cText("e"), e) == 1 else {
        return nil
      }
      return OSSL_PARAM_BLD_to_param(builder)
    }
    guard let key else { throw .notAKey("RSA numbers") }
    return try SigningKey(key, for: .RS256, isPrivate: false)
  }

  /// A P-256 public key from its coordinates, 32 bytes each (RFC 7518 §6.2.1). OpenSSL checks that the point is on the curve.
  static func p256(x: [UInt8], y: [UInt8]) throws(KeyError) -> SigningKey {
    guard x.count == 32, y.count == 32 else { throw .notAKey("P-256 coordinates have 32 bytes") }
    let point = [4] + x + y
    let key = build("EC") { builder in
      point.withUnsafeBytes { raw in
        guard OSSL_PARAM_BLD_push_utf8_string(builder, cText("group"), cText("prime256v1"), 0) == 1,
          OSSL_PARAM_BLD_push_octet_string(builder, cText("pub"), raw.baseAddress, raw.count) == 1
        else { return nil }
        return OSSL_PARAM_BLD_to_param(builder)
      }
    }
    guard let key else { throw .notAKey("no point of P-256") }
    return try SigningKey(key, for: .ES256, isPrivate: false)
  }

  /// The builder keeps pointers to names and values until `to_param`, longer than Swift's implicit C strings live: static
  /// ones do.
  private static func cText(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
  }

  /// `EVP_PKEY_PUBLIC_KEY`, a macro that Swift does not import: the public key with domain and other parameters.
  private static var publicKeySelection: Int32 { 0x02 | 0x04 | 0x80 }

  private static func build(
    _ type: String, _ parameters: (OpaquePointer) -> UnsafeMutablePointer<OSSL_PARAM>?
  ) -> OpaquePointer? {
    defer { ERR_clear_error() }
    guard let builder = OSSL_PARAM_BLD_new() else { return nil }
    defer { OSSL_PARAM_BLD_free(builder) }
    guard let list = parameters(builder) else { return nil }
    defer { OSSL_PARAM_free(list) }
    guard let context = EVP_PKEY_CTX_new_from_name(nil, type, nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_fromdata_init(context) == 1, EVP_PKEY_fromdata(context, &key, publicKeySelection, list) == 1 else {
      return nil
    }
    return key
  }
}

extension SigningKey {
  /// Of a P-256 key: 04 ‖ x ‖ y.
  var publicPoint: [UInt8]? {
    defer { ERR_clear_error() }
    var bytes: UnsafeMutablePointer<UInt8>?
    let length = EVP_PKEY_get1_encoded_public_key(handle, &bytes)
    guard let bytes else { return nil }
    defer { CRYPTO_free(bytes, #file, #line) }
    return length == 65 && bytes[0] == 4 ? Array(UnsafeBufferPointer(start: bytes, count: length)) : nil
  }

  /// Whether `signature` (in the form of RFC 7518 §3) is of this key over `message`.
  func verify(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    defer { ERR_clear_error() }
    guard let der = algorithm == .ES256 ? Self.derSignature(signature) : signature, let context = EVP_MD_CTX_new() else {
      return false
    }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, handle) == 1 else { return false }
    return EVP_DigestVerify(context, der, der.count, message, message.count) == 1
  }

  /// Nil only if OpenSSL fails, such as out of memory.
  func sign(_ message: [UInt8]) -> [UInt8]? {
    defer { ERR_clear_error() }
    guard isPrivate, let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    var length = 0
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle) == 1,
      EVP_DigestSign(context, nil, &length, message, message.count) == 1
    else { return nil }
    var out = [UInt8](repeating: 0, count: length)
    guard EVP_DigestSign(context, &out, &length, message, message.count) == 1 else { return nil }
    let signature = Array(out.prefix(length))
    return algorithm == .ES256 ? Self.rawSignature(signature) : signature
  }

  /// r ‖ s of 32 bytes each → the DER that OpenSSL reads.
  private static func derSignature(_ raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 64, let signature = ECDSA_SIG_new() else { return nil }
    defer { ECDSA_SIG_free(signature) }
    guard let r = BN_bin2bn(Array(raw.prefix(32)), 32, nil) else { return nil }
    guard let s = BN_bin2bn(Array(raw.suffix(32)), 32, nil) else {
      BN_free(r)
      return nil
    }
    guard ECDSA_SIG_set0(signature, r, s) == 1 else {  // on success the signature owns both numbers
      BN_free(r)
      BN_free(s)
      return nil
    }
    let length = i2d_ECDSA_SIG(signature, nil)
    guard length > 0 else { return nil }
    var out = [UInt8](repeating: 0, count: Int(length))
    let written = out.withUnsafeMutableBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return i2d_ECDSA_SIG(signature, &cursor)
    }
    return written == length ? out : nil
  }

  private static func rawSignature(_ der: [UInt8]) -> [UInt8]? {
    der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      guard let signature = d2i_ECDSA_SIG(nil, &cursor, buffer.count) else { return nil }
      defer { ECDSA_SIG_free(signature) }
      var out = [UInt8](repeating: 0, count: 64)
      let filled = out.withUnsafeMutableBufferPointer { raw -> Bool in
        guard let base = raw.baseAddress else { return false }
        return BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32) == 32
          && BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32) == 32
      }
      return filled ? out : nil
    }
  }
}

/// HMAC-SHA256 (RFC 2104); empty only if OpenSSL fails.
func hmacSHA256(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
  var out = [UInt8](repeating: 0, count: 32)
  var length: UInt32 = 0
  guard HMAC(EVP_sha256(), key, Int32(clamping: key.count), message, message.count, &out, &length) != nil, length == 32 else {
    return []
  }
  return out
}

/// Equality in time that does not depend on where two texts differ; for tokens and signatures. Lengths are not secret.
public func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  a.count == b.count && (a.isEmpty || CRYPTO_memcmp(a, b, a.count) == 0)
}
