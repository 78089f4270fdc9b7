/// Finds where the encrypted part of a packet begins. Reads only the first `count` bytes.
enum PacketShape {
  /// The fixed header of RTCP that stays in clear: header word and SSRC.
  static let controlHeaderBytes = 8

  /// Bytes of the RTP header with CSRCs and extension (RFC 3550 §5.1, §5.3.1); nil if not version 2 or cut short.
  @inline(__always) static func headerBytes(_ packet: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int? {
    guard count >= 12, packet[0] >> 6 == 2 else { return nil }
    var length = 12 + 4 * Int(packet[0] & 0x0f)
    if packet[0] & 0x10 != 0 {
      guard count >= length + 4 else { return nil }
      length += 4 + 4 * Int(packet.loadBigEndian16(length + 2))
    }
    return length <= count ? length : nil
  }

  /// The buffer's start as a pointer, if the buffer holds `count` bytes and no datagram is longer.
  @inline(__always)
  static func bytes(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int) -> UnsafeMutablePointer<UInt8>? {
    guard count > 0, count <= min(buffer.count, Limits.packetBytes), let base = buffer.baseAddress else { return nil }
    return base.assumingMemoryBound(to: UInt8.self)
  }
}
