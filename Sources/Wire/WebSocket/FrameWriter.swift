/// Writes frames: whole, a server's without a mask, a client's with one (RFC 6455 §5.1).
public enum FrameWriter {
  public enum Kind: UInt8, Sendable { case text = 1, binary = 2, close = 8, ping = 9, pong = 10 }

  /// Appends one frame. A control frame's payload is truncated to 125 octets. `mask`: a client's, a new random number for each frame
  /// (§5.3).
  public static func append(_ kind: Kind, _ payload: [UInt8], mask: UInt32? = nil, to out: inout [UInt8]) {
    let payload = kind.rawValue < 8 ? payload[...] : payload.prefix(Limits.controlBytes)
    let bit: UInt8 = mask == nil ? 0 : 0x80
    out.append(0x80 | kind.rawValue)
    switch payload.count {
    case ...125: out.append(bit | UInt8(payload.count))
    case ...0xffff:
      out.append(bit | 126)
      append(payload.count, octets: 2, to: &out)
    default:
      out.append(bit | 127)
      append(payload.count, octets: 8, to: &out)
    }
    guard let mask else { return out += payload }
    append(Int(mask), octets: 4, to: &out)
    out.reserveCapacity(out.count + payload.count)
    var shift: UInt32 = 24
    for octet in payload {
      out.append(octet ^ UInt8(truncatingIfNeeded: mask >> shift))
      shift = (shift &- 8) & 31
    }
  }

  /// A close frame with this code and no reason.
  public static func appendClose(_ code: UInt16, mask: UInt32? = nil, to out: inout [UInt8]) {
    append(.close, [UInt8(code >> 8), UInt8(code & 0xff)], mask: mask, to: &out)
  }

  private static func append(_ number: Int, octets: Int, to out: inout [UInt8]) {
    for index in (0..<octets).reversed() { out.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
  }
}
