import COpenSSL

/// The session keys of one direction and one protocol (RTP or RTCP), derived with rate zero: once per master key.
struct SessionKeys {
  var key: [UInt8]
  var salt: [UInt8]
  /// 20 bytes for HMAC-SHA1, empty for an AEAD profile.
  var authentication: [UInt8]

  /// The labels of RFC 3711 §4.3.2.
  enum Purpose: UInt8 {
    case rtp = 0x00
    case rtcp = 0x03
  }

  init(key: [UInt8], salt: [UInt8], authentication: [UInt8] = []) {
    (self.key, self.salt, self.authentication) = (key, salt, authentication)
  }

  /// Derives from a master key (RFC 3711 §4.3; for GCM, RFC 7714 §11 with the salt padded by two zero bytes).
  init(_ profile: SRTPProfile, _ master: SRTPMasterKey, _ purpose: Purpose) throws(SRTPError) {
    guard master.key.count == profile.keyBytes, master.salt.count == profile.saltBytes else { throw .keyLength }
    let label = purpose.rawValue
    key = try deriveKey(master, label: label, count: profile.keyBytes)
    authentication = profile.isAEAD ? [] : try deriveKey(master, label: label + 1, count: 20)
    salt = try deriveKey(master, label: label + 2, count: profile.saltBytes)
  }

  /// Overwrites the key bytes, so that they do not stay in freed memory.
  mutating func wipe() {
    func clear(_ bytes: inout [UInt8]) { bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
    clear(&key)
    clear(&authentication)
  }
}

/// The AES counter-mode PRF of RFC 3711 §4.3.3 (RFC 6188 for 256 bits): `count` bytes of key stream at the counter label ⊕ salt.
func deriveKey(_ master: SRTPMasterKey, label: UInt8, count: Int) throws(SRTPError) -> [UInt8] {
  var iv = master.salt + Array(repeating: 0, count: 16 - min(16, master.salt.count))
  iv[7] ^= label
  var out = [UInt8](repeating: 0, count: count)
  guard let context = EVP_CIPHER_CTX_new() else { throw .cryptoFailed }
  defer { EVP_CIPHER_CTX_free(context) }
  let cipher = master.key.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
  var written: Int32 = 0
  guard EVP_EncryptInit_ex(context, cipher, nil, master.key, iv) == 1,
    EVP_EncryptUpdate(context, &out, &written, out, Int32(truncatingIfNeeded: count)) == 1, Int(written) == count
  else { throw .cryptoFailed }
  return out
}
