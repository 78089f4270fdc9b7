import CTrunklineOpenSSL

/// The opening handshake of RFC 6455 §4.2, without the request's own checks (method, path, origin are the server's business).
public enum Handshake {
  /// The value of `Sec-WebSocket-Accept` for a client's key; nil if the key is not 16 octets in Base64.
  ///
  ///     Handshake.accept(key: "dGhlIHNhbXBsZSBub25jZQ==")     // "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
  public static func accept(key: String) -> String? {
    guard isKey(key) else { return nil }
    var digest = [UInt8](repeating: 0, count: Int(SHA_DIGEST_LENGTH))
    let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
    guard SHA1(text, text.count, &digest) != nil else { return nil }
    var out = [UInt8](repeating: 0, count: 4 * ((digest.count + 2) / 3) + 1)
    let count = EVP_EncodeBlock(&out, digest, Int32(digest.count))
    return String(decoding: out.prefix(Int(max(0, count))), as: UTF8.self)
  }

  /// 22 digits of Base64 and two `=`: 16 octets.
  private static func isKey(_ key: String) -> Bool {
    let octets = Array(key.utf8)
    guard octets.count == 24, octets[22] == UInt8(ascii: "="), octets[23] == UInt8(ascii: "=") else { return false }
    return octets.prefix(22).allSatisfy { octet in
      switch octet {
      case 48...57, 65...90, 97...122, UInt8(ascii: "+"), UInt8(ascii: "/"): true
      default: false
      }
    }
  }
}
