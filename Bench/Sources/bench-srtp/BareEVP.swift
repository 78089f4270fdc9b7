import BenchKit
import CTrunklineOpenSSL
import TrunklineSRTP

/// The OpenSSL calls that one packet cannot do without, and nothing else: a new IV, the cipher, the tag. One header length, one
/// SSRC, no roll-over, no replay window, no bounds. Counter mode's HMAC goes by saved SHA-1 states, the quickest form there is:
/// against EVP_MAC, which allocates twice a packet, the limit would be a third slower.
final class BareEVP {
  private let context: OpaquePointer
  private let isAEAD: Bool
  private let payloadBytes: Int
  private let tagBytes: Int
  private let ssrc: UInt64
  private var saltHigh: UInt64 = 0
  private var saltLow: UInt64 = 0
  private let iv = UnsafeMutablePointer<UInt8>.allocate(capacity: 16)
  private let tag = UnsafeMutablePointer<UInt8>.allocate(capacity: 20)
  private let hash = UnsafeMutablePointer<SHA_CTX>.allocate(capacity: 3)

  init(_ fixture: Fixture, encrypts: Bool) throws {
    let profile = fixture.profile
    isAEAD = profile == .aeadAES128GCM || profile == .aeadAES256GCM
    (payloadBytes, tagBytes) = (fixture.payloadBytes, profile.overheadBytes)
    let sample = fixture.makeBuffer()
    ssrc = UInt64(UInt32(bigEndian: sample.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
    sample.deallocate()
    guard let context = EVP_CIPHER_CTX_new() else { throw BenchError(text: "no context") }
    self.context = context
    let key = try Self.derive(fixture, 0, profile.keyBytes)
    let authentication = try Self.derive(fixture, 1, 20)
    let salt = try Self.derive(fixture, 2, profile.saltBytes) + [0, 0, 0, 0]
    for k in 0..<8 { saltHigh = saltHigh << 8 | UInt64(salt[k]) }
    for k in 8..<16 { saltLow = saltLow << 8 | UInt64(salt[k]) }
    let cipher =
      switch profile {
      case .aeadAES128GCM: EVP_aes_128_gcm()
      case .aeadAES256GCM: EVP_aes_256_gcm()
      default: EVP_aes_128_ctr()
      }
    let ready = encrypts ? EVP_EncryptInit_ex(context, cipher, nil, key, nil) : EVP_DecryptInit_ex(context, cipher, nil, key, nil)
    guard ready == 1 else { throw BenchError(text: "no cipher") }
    for (index, fill) in [UInt8(0x36), 0x5c].enumerated() {
      let pad = (0..<64).map { ($0 < 20 ? authentication[$0] : 0) ^ fill }
      SHA1_Init(hash + index)
      SHA1_Update(hash + index, pad, 64)
    }
  }

  deinit {
    EVP_CIPHER_CTX_free(context)
    iv.deallocate()
    tag.deallocate()
    hash.deallocate()
  }

  /// RFC 3711 §4.3.3.
  private static func derive(_ fixture: Fixture, _ label: UInt8, _ count: Int) throws -> [UInt8] {
    var iv = fixture.salt + [UInt8](repeating: 0, count: 16 - fixture.salt.count)
    iv[7] ^= label
    var out = [UInt8](repeating: 0, count: count)
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    var written: Int32 = 0
    guard EVP_EncryptInit_ex(context, fixture.key.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr(), nil, fixture.key, iv) == 1,
      EVP_EncryptUpdate(context, &out, &written, [UInt8](repeating: 0, count: count), Int32(count)) == 1
    else { throw BenchError(text: "no key derivation") }
    return out
  }

  func protect(_ buffer: UnsafeMutableRawBufferPointer, index: UInt64) throws {
    guard let base = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    let text = base + 12
    var written: Int32 = 0
    setIV(index)
    if isAEAD {
      guard EVP_EncryptInit_ex(context, nil, nil, nil, iv) == 1, EVP_EncryptUpdate(context, nil, &written, base, 12) == 1,
        EVP_EncryptUpdate(context, text, &written, text, Int32(payloadBytes)) == 1,
        EVP_EncryptFinal_ex(context, tag, &written) == 1,
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, text + payloadBytes) == 1
      else { throw BenchError(text: "bare protect") }
    } else {
      guard EVP_EncryptInit_ex(context, nil, nil, nil, iv) == 1,
        EVP_EncryptUpdate(context, text, &written, text, Int32(payloadBytes)) == 1
      else { throw BenchError(text: "bare protect") }
      authenticate(base, index)
      (text + payloadBytes).update(from: tag, count: tagBytes)
    }
  }

  func unprotect(_ buffer: UnsafeMutableRawBufferPointer, index: UInt64) throws {
    guard let base = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    let text = base + 12
    var written: Int32 = 0
    setIV(index)
    if isAEAD {
      guard EVP_DecryptInit_ex(context, nil, nil, nil, iv) == 1, EVP_DecryptUpdate(context, nil, &written, base, 12) == 1,
        EVP_DecryptUpdate(context, text, &written, text, Int32(payloadBytes)) == 1,
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, text + payloadBytes) == 1,
        EVP_DecryptFinal_ex(context, tag, &written) == 1
      else { throw BenchError(text: "bare unprotect") }
    } else {
      authenticate(base, index)
      guard CRYPTO_memcmp(tag, text + payloadBytes, tagBytes) == 0, EVP_DecryptInit_ex(context, nil, nil, nil, iv) == 1,
        EVP_DecryptUpdate(context, text, &written, text, Int32(payloadBytes)) == 1
      else { throw BenchError(text: "bare unprotect") }
    }
  }

  @inline(__always) private func setIV(_ index: UInt64) {
    let raw = UnsafeMutableRawPointer(iv)
    let (high, low) =
      isAEAD ? (saltHigh ^ ssrc << 16 ^ index >> 32, saltLow ^ index << 32) : (saltHigh ^ ssrc, saltLow ^ index << 16)
    raw.storeBytes(of: high.bigEndian, as: UInt64.self)
    raw.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
  }

  @inline(__always) private func authenticate(_ base: UnsafeMutablePointer<UInt8>, _ index: UInt64) {
    var rollover = UInt32(truncatingIfNeeded: index >> 16).bigEndian
    (hash + 2).update(from: hash, count: 1)
    SHA1_Update(hash + 2, base, 12 + payloadBytes)
    SHA1_Update(hash + 2, &rollover, 4)
    SHA1_Final(tag, hash + 2)
    (hash + 2).update(from: hash + 1, count: 1)
    SHA1_Update(hash + 2, tag, 20)
    SHA1_Final(tag, hash + 2)
  }
}
