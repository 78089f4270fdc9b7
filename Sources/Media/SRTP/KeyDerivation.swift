import CTrunklineOpenSSL

/// The session keys of one direction and one protocol (RTP or RTCP), derived with rate zero: once per master key.
struct SessionKeys {
  let key: SecretBytes
  let salt: SecretBytes
  /// 20 bytes for HMAC-SHA1, empty for an AEAD profile.
  let authentication: SecretBytes

  /// The labels of RFC 3711 §4.3.2.
  enum Purpose: UInt8 {
    case rtp = 0x00
    case rtcp = 0x03
  }

  init(key: [UInt8], salt: [UInt8], authentication: [UInt8] = []) {
    (self.key, self.salt, self.authentication) = (SecretBytes(key), SecretBytes(salt), SecretBytes(authentication))
  }

  /// Derives from a master key (RFC 3711 §4.3; for GCM, RFC 7714 §11 with the salt padded by two zero bytes).
  init(_ profile: SRTPProfile, _ master: SRTPMasterKey, _ purpose: Purpose) throws(SRTPError) {
    guard master.fits(profile) else { throw .keyLength }
    let label = purpose.rawValue
    key = try deriveKey(master, label: label, count: profile.keyBytes)
    authentication = try deriveKey(master, label: label + 1, count: profile.isAEAD ? 0 : 20)
    salt = try deriveKey(master, label: label + 2, count: profile.saltBytes)
  }
}

/// The AES counter-mode PRF of RFC 3711 §4.3.3 (RFC 6188 for 256 bits): `count` bytes of key stream at the counter label ⊕ salt.
func deriveKey(_ master: SRTPMasterKey, label: UInt8, count: Int) throws(SRTPError) -> SecretBytes {
  let iv = SecretBytes(count: 16) { iv in
    for k in 0..<min(16, master.secretSalt.count) { iv[k] = master.secretSalt[k] }
    iv[7] ^= label
  }
  guard let context = EVP_CIPHER_CTX_new() else { throw .cryptoFailed }
  defer { EVP_CIPHER_CTX_free(context) }
  let cipher = master.secretKey.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
  guard EVP_EncryptInit_ex(context, cipher, nil, master.secretKey.base, iv.base) == 1 else { throw .cryptoFailed }
  return try SecretBytes(count: count) { (out) throws(SRTPError) in
    guard count > 0, let base = out.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    var written: Int32 = 0
    guard EVP_EncryptUpdate(context, base, &written, base, Int32(truncatingIfNeeded: count)) == 1, Int(written) == count
    else { throw .cryptoFailed }
  }
}
