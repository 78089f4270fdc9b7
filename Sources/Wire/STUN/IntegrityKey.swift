import CTrunklineOpenSSL

/// A password in the form that HMAC-SHA1 uses (RFC 8489 §14.5): the two padded states, computed once. Prints as a mask. No
/// allocation per message.
///
/// The low-level SHA-1 functions allocate nothing, unlike those that OpenSSL 3 does not deprecate (docs/design/srtp.md).
public struct IntegrityKey: Sendable, CustomStringConvertible, CustomReflectable {
  private var inner = SHA_CTX()
  private var outer = SHA_CTX()

  /// From the bytes of a short-term password (`ice-pwd`), or of the MD5 of a long-term credential.
  public init(_ password: some Collection<UInt8>) {
    var key = Array(password)
    if key.count > 64 {
      var digest = [UInt8](repeating: 0, count: 20)
      SHA1(key, key.count, &digest)
      key = digest
    }
    key += Array(repeating: 0, count: 64 - key.count)
    SHA1_Init(&inner)
    SHA1_Update(&inner, key.map { $0 ^ 0x36 }, 64)
    SHA1_Init(&outer)
    SHA1_Update(&outer, key.map { $0 ^ 0x5c }, 64)
  }
  public init(password: String) { self.init(password.utf8) }

  /// From a long-term credential (RFC 8489 §9.2.2): MD5 of `username:realm:password`, as bytes that are prepared already.
  public init(username: [UInt8], realm: [UInt8], password: String) {
    let text = username + [UInt8(ascii: ":")] + realm + [UInt8(ascii: ":")] + Array(password.utf8)
    var digest = [UInt8](repeating: 0, count: 16)
    MD5(text, text.count, &digest)
    self.init(digest)
  }

  public var description: String { "‹redacted›" }
  public var customMirror: Mirror { Mirror(self, children: []) }

  /// MESSAGE-INTEGRITY over `message`, which ends where that attribute begins; the length field is computed as if the message
  /// ended after the attribute.
  func withDigest<Result>(of message: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
    guard message.count >= headerBytes, message.count <= Limits.messageBytes, let base = message.baseAddress else { return nil }
    var state = inner
    let length = UInt16(truncatingIfNeeded: message.count - headerBytes + integrityBytes)
    var start = (base.load(as: UInt8.self), (base + 1).load(as: UInt8.self), UInt8(length >> 8), UInt8(length & 255))
    SHA1_Update(&state, &start, 4)
    SHA1_Update(&state, base + 4, message.count - 4)
    var digest = (UInt64(0), UInt64(0), UInt32(0))
    return withUnsafeMutableBytes(of: &digest) { digest in
      let bytes = digest.baseAddress?.assumingMemoryBound(to: UInt8.self)
      SHA1_Final(bytes, &state)
      state = outer
      SHA1_Update(&state, bytes, 20)
      SHA1_Final(bytes, &state)
      return body(UnsafeRawBufferPointer(rebasing: digest[0..<20]))
    }
  }
}
