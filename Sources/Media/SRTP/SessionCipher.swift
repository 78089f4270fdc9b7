import CTrunklineOpenSSL

/// The keyed cipher of one direction and one protocol: an EVP context that gets a new IV per packet, and for counter mode the
/// HMAC pads.
///
/// It knows neither a packet's layout nor its replay state: those are in `SRTPSender` and `SRTPReceiver`. No allocation after
/// `init`. Why not EVP_MAC or libsrtp2: docs/design/srtp.md.
struct SessionCipher: ~Copyable {
  let isAEAD: Bool
  /// Owned; freed in deinit.
  private let context: OpaquePointer
  /// Inner pad, outer pad and a working copy. Owned, `hashes` initialised elements.
  private let hash: UnsafeMutablePointer<SHA_CTX>
  /// 64 owned bytes: the IV of counter mode at 0, associated data at 16, a tag at 32 (20 bytes for SHA-1).
  private let scratch: UnsafeMutableRawPointer
  /// The session salt, left-aligned in 16 bytes as two big-endian numbers.
  private let saltHigh: UInt64
  private let saltLow: UInt64

  private var hashes: Int { isAEAD ? 0 : 3 }
  private var iv: UnsafeMutablePointer<UInt8> { scratch.assumingMemoryBound(to: UInt8.self) }
  private var associated: UnsafeMutablePointer<UInt8> { (scratch + 16).assumingMemoryBound(to: UInt8.self) }
  private var tag: UnsafeMutablePointer<UInt8> { (scratch + 32).assumingMemoryBound(to: UInt8.self) }

  init(_ profile: SRTPProfile, _ keys: SessionKeys, encrypts: Bool) throws(SRTPError) {
    guard keys.key.count == profile.keyBytes, keys.salt.count == profile.saltBytes else { throw .keyLength }
    guard profile.isAEAD || keys.authentication.count == 20 else { throw .keyLength }
    guard let context = EVP_CIPHER_CTX_new() else { throw .cryptoFailed }
    let cipher =
      switch profile {
      case .aeadAES128GCM: EVP_aes_128_gcm()
      case .aeadAES256GCM: EVP_aes_256_gcm()
      case .aes128CM_HMAC_SHA1_80, .aes128CM_HMAC_SHA1_32: EVP_aes_128_ctr()
      }
    let ready =
      encrypts || !profile.isAEAD
      ? EVP_EncryptInit_ex(context, cipher, nil, keys.key.base, nil)
      : EVP_DecryptInit_ex(context, cipher, nil, keys.key.base, nil)
    guard ready == 1 else {
      EVP_CIPHER_CTX_free(context)
      throw .cryptoFailed
    }
    isAEAD = profile.isAEAD
    self.context = context
    let hashes = profile.isAEAD ? 0 : 3
    hash = .allocate(capacity: hashes)
    hash.initialize(repeating: SHA_CTX(), count: hashes)
    scratch = .allocate(byteCount: 64, alignment: 16)
    scratch.initializeMemory(as: UInt8.self, repeating: 0, count: 64)
    var (high, low): (UInt64, UInt64) = (0, 0)
    for k in 0..<8 { high = high << 8 | UInt64(keys.salt[k]) }
    for k in 8..<16 { low = low << 8 | (k < keys.salt.count ? UInt64(keys.salt[k]) : 0) }
    (saltHigh, saltLow) = (high, low)
    if !profile.isAEAD { setPads(keys.authentication) }
  }

  deinit {
    EVP_CIPHER_CTX_free(context)
    OPENSSL_cleanse(hash, hashes * MemoryLayout<SHA_CTX>.stride)
    hash.deallocate()
    OPENSSL_cleanse(scratch, 64)
    scratch.deallocate()
  }

  /// HMAC (RFC 2104): the two pads are hashed once, each packet starts from copies of the states.
  private func setPads(_ key: SecretBytes) {
    var pad = [UInt8](repeating: 0x36, count: 64)
    for k in 0..<min(64, key.count) { pad[k] = key[k] ^ 0x36 }
    SHA1_Init(hash)
    SHA1_Update(hash, pad, 64)
    for k in 0..<64 { pad[k] ^= 0x36 ^ 0x5c }
    SHA1_Init(hash + 1)
    SHA1_Update(hash + 1, pad, 64)
    pad.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, 64) }
  }

  // MARK: AEAD (RFC 7714)

  /// Encrypts `count` bytes in place and writes the 16-byte tag to `tagAt`. HOT
  @inline(__always)
  borrowing func seal(
    ssrc: UInt32, index: UInt64, header: UnsafeMutablePointer<UInt8>, headerCount: Int, indexWord: UInt32? = nil,
    text: UnsafeMutablePointer<UInt8>, count: Int, tagAt: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    var written: Int32 = 0
    guard withNonce(ssrc: ssrc, index: index, { EVP_EncryptInit_ex(context, nil, nil, nil, $0) }) == 1,
      EVP_EncryptUpdate(context, nil, &written, header, Int32(truncatingIfNeeded: headerCount)) == 1
    else { return false }
    if let indexWord {
      associated.storeBigEndian(indexWord)
      guard EVP_EncryptUpdate(context, nil, &written, associated, 4) == 1 else { return false }
    }
    if count > 0 {
      guard EVP_EncryptUpdate(context, text, &written, text, Int32(truncatingIfNeeded: count)) == 1 else { return false }
    }
    // Finishing GCM writes no data.
    return EVP_EncryptFinal_ex(context, text, &written) == 1
      && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tagAt) == 1
  }

  /// Decrypts `count` bytes in place and compares the tag, in constant time, inside OpenSSL. If it does not match, restores the
  /// bytes. HOT
  @inline(__always)
  borrowing func open(
    ssrc: UInt32, index: UInt64, header: UnsafeMutablePointer<UInt8>, headerCount: Int, indexWord: UInt32? = nil,
    text: UnsafeMutablePointer<UInt8>, count: Int, tagAt: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    var written: Int32 = 0
    guard withNonce(ssrc: ssrc, index: index, { EVP_DecryptInit_ex(context, nil, nil, nil, $0) }) == 1,
      EVP_DecryptUpdate(context, nil, &written, header, Int32(truncatingIfNeeded: headerCount)) == 1
    else { return false }
    if let indexWord {
      associated.storeBigEndian(indexWord)
      guard EVP_DecryptUpdate(context, nil, &written, associated, 4) == 1 else { return false }
    }
    if count > 0 {
      guard EVP_DecryptUpdate(context, text, &written, text, Int32(truncatingIfNeeded: count)) == 1 else { return false }
    }
    if EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tagAt) == 1, EVP_DecryptFinal_ex(context, text, &written) == 1 {
      return true
    }
    putBack(text, count, ssrc: ssrc, index: index)
    return false
  }

  /// GCM encrypts by XOR with a key stream: applying the same IV again restores the received bytes.
  private borrowing func putBack(_ text: UnsafeMutablePointer<UInt8>, _ count: Int, ssrc: UInt32, index: UInt64) {
    var written: Int32 = 0
    guard count > 0, withNonce(ssrc: ssrc, index: index, { EVP_DecryptInit_ex(context, nil, nil, nil, $0) }) == 1 else { return }
    _ = EVP_DecryptUpdate(context, text, &written, text, Int32(truncatingIfNeeded: count))
  }

  /// RFC 7714 §8.1 and §9.1: 0 ‖ SSRC ‖ 48-bit index (or 0 ‖ 31-bit index), exclusive-or salt. On the stack, which is in the near
  /// cache. HOT
  @inline(__always)
  private borrowing func withNonce(ssrc: UInt32, index: UInt64, _ body: (UnsafePointer<UInt8>) -> Int32) -> Int32 {
    let (high, low) = (saltHigh ^ UInt64(ssrc) << 16 ^ index >> 32, saltLow ^ index << 32)
    return withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { nonce in
      nonce.storeBytes(of: high.bigEndian, as: UInt64.self)
      nonce.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
      guard let base = nonce.baseAddress else { return 0 }
      return body(UnsafePointer(base.assumingMemoryBound(to: UInt8.self)))
    }
  }

  // MARK: Counter mode and HMAC-SHA1 (RFC 3711)

  /// Encrypts or decrypts in place: (salt ⊕ SSRC ⊕ index) · 2^16 is the first counter (RFC 3711 §4.1.1). HOT
  @inline(__always)
  borrowing func applyKeyStream(ssrc: UInt32, index: UInt64, text: UnsafeMutablePointer<UInt8>, count: Int) -> Bool {
    guard count > 0 else { return true }
    scratch.storeBytes(of: (saltHigh ^ UInt64(ssrc)).bigEndian, as: UInt64.self)
    scratch.storeBytes(of: (saltLow ^ index << 16).bigEndian, toByteOffset: 8, as: UInt64.self)
    var written: Int32 = 0
    return EVP_EncryptInit_ex(context, nil, nil, nil, iv) == 1
      && EVP_EncryptUpdate(context, text, &written, text, Int32(truncatingIfNeeded: count)) == 1
  }

  /// HMAC-SHA1 over the bytes and, for SRTP, the roll-over counter; the result's first bytes are the tag. Valid until the next
  /// call. HOT
  @inline(__always)
  borrowing func authenticate(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, rolloverCounter: UInt32?)
    -> UnsafeMutablePointer<UInt8>
  {
    let work = hash + 2
    work.update(from: hash, count: 1)
    SHA1_Update(work, bytes, count)
    if let rolloverCounter {
      associated.storeBigEndian(rolloverCounter)
      SHA1_Update(work, associated, 4)
    }
    SHA1_Final(tag, work)
    work.update(from: hash + 1, count: 1)
    SHA1_Update(work, tag, 20)
    SHA1_Final(tag, work)
    return tag
  }
}

extension UnsafeMutablePointer<UInt8> {
  @inline(__always) func storeBigEndian(_ value: UInt32) {
    UnsafeMutableRawPointer(self).storeBytes(of: value.bigEndian, as: UInt32.self)
  }
  @inline(__always) func loadBigEndian32(_ offset: Int) -> UInt32 {
    UInt32(bigEndian: UnsafeRawPointer(self + offset).loadUnaligned(as: UInt32.self))
  }
  @inline(__always) func loadBigEndian16(_ offset: Int) -> UInt16 {
    UInt16(bigEndian: UnsafeRawPointer(self + offset).loadUnaligned(as: UInt16.self))
  }
}
