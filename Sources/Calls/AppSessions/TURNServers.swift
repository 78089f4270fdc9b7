import CTrunklineOpenSSL
import TrunklineAppProtocol
import TrunklineBytes

/// TURN servers (RFC 8656) for clients whose UDP does not reach the gateway, with temporary credentials: `username` is
/// `<expiry in seconds since 1970>:<user>`, `credential` the Base64 of its HMAC-SHA1 with a secret that the server shares. It is
/// the convention of draft-uberti-behave-turn-rest-00, which coturn checks with `use-auth-secret` and `static-auth-secret`.
public struct TURNServers: Sendable, Equatable {
  /// `turn:` and `turns:` URIs (RFC 7065).
  public var urls: [String]
  public var secret: Redacted<[UInt8]>
  /// How long the credentials are valid; the server checks the time again at each refresh of an allocation.
  public var lifetime: Duration

  public init(urls: [String], secret: Redacted<[UInt8]>, lifetime: Duration = .seconds(86_400)) {
    (self.urls, self.secret, self.lifetime) = (urls, secret, lifetime)
  }

  /// The server and credentials that a client of `user` is sent.
  func server(for user: String, unixMilliseconds now: Int64) -> ICEServer {
    let username = "\(now / 1_000 + lifetime.milliseconds / 1_000):\(user)"
    return ICEServer(
      urls: urls, username: username, credential: Self.base64(hmacSHA1(Array(username.utf8), key: secret.exposed)),
      ttlMs: Int(lifetime.milliseconds))
  }

  private func hmacSHA1(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: 20)
    var length: UInt32 = 0
    _ = HMAC(EVP_sha1(), key, Int32(clamping: key.count), message, message.count, &out, &length)
    return out
  }

  /// RFC 4648 §4, with padding.
  private static func base64(_ bytes: [UInt8]) -> String {
    var out = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
    let length = EVP_EncodeBlock(&out, bytes, Int32(clamping: bytes.count))
    return String(decoding: out.prefix(max(0, Int(length))), as: UTF8.self)
  }
}
