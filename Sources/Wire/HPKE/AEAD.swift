import CTrunklineOpenSSL

/// AEAD_AES_128_GCM (RFC 5116 §5.1) of short messages, over OpenSSL. Stateless, any thread; about 2 µs.
public enum AEAD {
  public static let keyBytes = 16
  public static let nonceBytes = 12
  static let tagBytes = 16

  /// Text and tag; nil if OpenSSL is out of memory.
  public static func seal(_ text: [UInt8], key: [UInt8], nonce: [UInt8], authenticating data: [UInt8] = []) -> [UInt8]? {
    guard key.count == keyBytes, nonce.count == nonceBytes, let context = EVP_CIPHER_CTX_new() else { return nil }
    defer { EVP_CIPHER_CTX_free(context) }
    var out = [UInt8](repeating: 0, count: text.count + tagBytes)
    var (written, finished): (Int32, Int32) = (0, 0)
    guard EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce) == 1,
      data.isEmpty || EVP_EncryptUpdate(context, nil, &written, data, Int32(data.count)) == 1,
      EVP_EncryptUpdate(context, &out, &written, text, Int32(text.count)) == 1, written == Int32(text.count)
    else { return nil }
    let isSealed = out.withUnsafeMutableBufferPointer { bytes -> Bool in
      guard let base = bytes.baseAddress else { return false }
      return EVP_EncryptFinal_ex(context, base + text.count, &finished) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), base + text.count) == 1
    }
    return isSealed ? out : nil
  }

  /// The text; nil for anything that this key did not seal.
  public static func open(_ sealed: [UInt8], key: [UInt8], nonce: [UInt8], authenticating data: [UInt8] = []) -> [UInt8]? {
    defer { ERR_clear_error() }
    guard key.count == keyBytes, nonce.count == nonceBytes, sealed.count >= tagBytes, let context = EVP_CIPHER_CTX_new() else {
      return nil
    }
    defer { EVP_CIPHER_CTX_free(context) }
    let count = sealed.count - tagBytes
    var tag = Array(sealed.suffix(tagBytes))
    var out = [UInt8](repeating: 0, count: count + tagBytes)
    var (written, finished): (Int32, Int32) = (0, 0)
    guard EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce) == 1,
      data.isEmpty || EVP_DecryptUpdate(context, nil, &written, data, Int32(data.count)) == 1,
      EVP_DecryptUpdate(context, &out, &written, sealed, Int32(count)) == 1,
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), &tag) == 1,
      EVP_DecryptFinal_ex(context, &tag, &finished) == 1
    else { return nil }
    return Array(out.prefix(count))
  }
}

/// HMAC-SHA-256 (RFC 2104).
public func hmacSHA256(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
  var out = [UInt8](repeating: 0, count: 32)
  var length: UInt32 = 0
  _ = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &out, &length)
  return out
}
