/// Writes a client's frames: unfragmented and masked (RFC 6455 §5.3).
public enum ClientFrameWriter {
  public enum Kind: UInt8, Sendable { case text = 1, binary = 2, close = 8, pong = 10 }

  /// Appends one frame. `mask` must be a new random number for each. A control frame's payload is truncated to 125 octets.
  public static func append(_ kind: Kind, _ payload: [UInt8], mask: UInt32, to out: inout [UInt8]) {
    let payload = kind.rawValue < 8 ? payload[...] : payload.prefix(Limits.controlBytes)
    out.append(0x80 | kind.rawValue)
    switch payload.count {
    case ...125: out.append(0x80 | UInt8(payload.count))
    case ...0xffff: out += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
    default:
      out.append(0x80 | 127)
      for shift in stride(from: 56, through: 0, by: -8) { out.append(UInt8(truncatingIfNeeded: payload.count >> shift)) }
    }
    let key = (0..<4).map { UInt8(truncatingIfNeeded: mask >> UInt32(24 - 8 * $0)) }
    out += key
    out.reserveCapacity(out.count + payload.count)
    for (index, octet) in payload.enumerated() { out.append(octet ^ key[index & 3]) }
  }
}
