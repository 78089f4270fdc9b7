/// What a datagram on a multiplexed socket is, by its first byte (RFC 7983 §7) and, between RTP and RTCP, the second (RFC 5761
/// §4).
public enum PacketKind: UInt8, Sendable {
  case stun, zrtp, dtls, turnChannel, rtp, rtcp, unknown

  /// Reads two bytes only: the result is a claim that the protocol's parser must check.
  @inlinable public init(_ datagram: Span<UInt8>) {
    guard let first = datagram.isEmpty ? nil : datagram[0] else {
      self = .unknown
      return
    }
    switch first {
    case 0...3: self = .stun
    case 16...19: self = .zrtp
    case 20...63: self = .dtls
    case 64...79: self = .turnChannel
    case 128...191: self = datagram.count > 1 && datagram[1] >= 192 && datagram[1] <= 223 ? .rtcp : .rtp
    default: self = .unknown
    }
  }
}
