/// Frames of a server: whole, not masked (RFC 6455 §5.1).
public enum FrameWriter {
  public enum Kind: UInt8, Sendable { case text = 1, close = 8, ping = 9, pong = 10 }

  /// Appends one frame. A control frame's payload is cut at 125 octets.
  public static func append(_ kind: Kind, _ payload: [UInt8], to out: inout [UInt8]) {
    let payload = kind == .text ? payload[...] : payload.prefix(Limits.controlBytes)
    out.append(0x80 | kind.rawValue)
    switch payload.count {
    case ...125: out.append(UInt8(payload.count))
    case ...0xffff:
      out.append(126)
      out.append(UInt8(payload.count >> 8))
      out.append(UInt8(payload.count & 0xff))
    default:
      out.append(127)
      for shift in stride(from: 56, through: 0, by: -8) { out.append(UInt8(truncatingIfNeeded: payload.count >> shift)) }
    }
    out += payload
  }

  /// A close frame with this code and no reason.
  public static func appendClose(_ code: UInt16, to out: inout [UInt8]) {
    append(.close, [UInt8(code >> 8), UInt8(code & 0xff)], to: &out)
  }
}
