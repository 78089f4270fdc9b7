import TrunklineBytes

/// Splits a TCP or TLS stream into STUN messages and ChannelData (RFC 8489 §6.2.2, RFC 8656 §12.5), which is padded to four
/// octets there.
///
/// Append received bytes, then call `next` until it returns nil. One allocation per message.
public struct TURNFraming: Sendable {
  private var buffer: [UInt8] = []
  private var start = 0
  public init() {}

  /// - Throws: `malformed` if more bytes wait than any message has.
  public mutating func append(_ bytes: some Collection<UInt8>) throws(TURNFailure) {
    guard buffer.count - start + bytes.count <= Limits.streamBytes else { throw .malformed }
    if start > 0 {
      buffer.removeFirst(start)
      start = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next message, without padding; nil: it is not complete yet.
  /// - Throws: `malformed` if the bytes begin neither, or the length exceeds a message's limit: the rest of the stream is
  ///   unreadable.
  public mutating func next() throws(TURNFailure) -> [UInt8]? {
    let count = buffer.count - start
    guard count >= 4 else { return nil }
    let length = Int(buffer[start + 2]) << 8 | Int(buffer[start + 3])
    let (message, whole): (Int, Int)
    switch buffer[start] >> 6 {
    case 0:
      guard length % 4 == 0 else { throw .malformed }
      message = 20 + length
      whole = 20 + length
    case 1: (message, whole) = (4 + length, 4 + (length + 3) & ~3)
    default: throw .malformed
    }
    guard message <= Limits.frameBytes else { throw .malformed }
    guard count >= whole else { return nil }
    defer { start += whole }
    return Array(buffer[start..<start + message])
  }
}
