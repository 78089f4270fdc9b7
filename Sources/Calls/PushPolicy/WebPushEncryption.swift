import CTrunklineOpenSSL
import TrunklineHPKE

/// RFC 8291: a message that only the browser can read. Stateless; about 0.15 ms (two multiplications on P-256).
enum WebPushEncryption {
  /// `aes128gcm` content (RFC 8188) of one record.
  /// - Parameters:
  ///   - receiver: the subscription's `p256dh`, an uncompressed point of 65 bytes.
  ///   - secret: the subscription's `auth`, 16 bytes.
  ///   - salt: 16 fresh random bytes.
  ///   - scalar: 32 fresh random bytes, the sender's one-time private key.
  /// - Returns: nil if `receiver` is not a point of the curve, or `scalar` not a private key.
  static func encrypt(_ text: [UInt8], receiver: [UInt8], secret: [UInt8], salt: [UInt8], scalar: [UInt8]) -> [UInt8]? {
    guard receiver.count == 65, secret.count == 16, salt.count == 16, scalar.count == 32,
      let exchange = exchange(receiver: receiver, scalar: scalar)
    else { return nil }
    let keyInfo = Array("WebPush: info".utf8) + [0] + receiver + exchange.publicKey
    let input = hmacSHA256(key: hmacSHA256(key: secret, exchange.shared), keyInfo + [1])
    let pseudoRandom = hmacSHA256(key: salt, input)
    let key = Array(hmacSHA256(key: pseudoRandom, Array("Content-Encoding: aes128gcm".utf8) + [0, 1]).prefix(16))
    let nonce = Array(hmacSHA256(key: pseudoRandom, Array("Content-Encoding: nonce".utf8) + [0, 1]).prefix(12))
    // 2 marks the last record (RFC 8188 §2); without padding, the length reveals only that it is a call.
    guard let sealed = AEAD.seal(text + [2], key: key, nonce: nonce) else { return nil }
    let recordSize: [UInt8] = [0, 0, 0x10, 0]
    return salt + recordSize + [UInt8(exchange.publicKey.count)] + exchange.publicKey + sealed
  }

  /// Whether `encrypt` accepts this subscription's keys: a point of the curve, and 16 bytes.
  static func canEncrypt(to receiver: [UInt8], secret: [UInt8]) -> Bool {
    defer { ERR_clear_error() }
    guard receiver.count == 65, secret.count == 16, let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else {
      return false
    }
    defer { EC_GROUP_free(group) }
    guard let point = EC_POINT_new(group) else { return false }
    defer { EC_POINT_free(point) }
    return EC_POINT_oct2point(group, point, receiver, receiver.count, nil) == 1 && EC_POINT_is_at_infinity(group, point) == 0
  }

  private static func exchange(receiver: [UInt8], scalar: [UInt8]) -> (publicKey: [UInt8], shared: [UInt8])? {
    defer { ERR_clear_error() }
    guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else { return nil }
    defer { EC_GROUP_free(group) }
    guard let number = BN_bin2bn(scalar, 32, nil) else { return nil }
    defer { BN_clear_free(number) }
    guard let order = EC_GROUP_get0_order(group), BN_is_zero(number) == 0, BN_cmp(number, order) < 0,
      let own = EC_POINT_new(group)
    else { return nil }
    defer { EC_POINT_free(own) }
    guard let peer = EC_POINT_new(group) else { return nil }
    defer { EC_POINT_free(peer) }
    guard let product = EC_POINT_new(group) else { return nil }
    defer { EC_POINT_clear_free(product) }
    // oct2point refuses a point outside the curve.
    guard EC_POINT_oct2point(group, peer, receiver, receiver.count, nil) == 1, EC_POINT_is_at_infinity(group, peer) == 0,
      EC_POINT_mul(group, own, number, nil, nil, nil) == 1, EC_POINT_mul(group, product, nil, peer, number, nil) == 1
    else { return nil }
    var publicKey = [UInt8](repeating: 0, count: 65)
    var point = [UInt8](repeating: 0, count: 65)
    guard EC_POINT_point2oct(group, own, POINT_CONVERSION_UNCOMPRESSED, &publicKey, 65, nil) == 65,
      EC_POINT_point2oct(group, product, POINT_CONVERSION_UNCOMPRESSED, &point, 65, nil) == 65
    else { return nil }
    return (publicKey, Array(point[1...32]))
  }
}
