import CTrunklineOpus

/// Properties of an Opus packet that can be read without decoding it (RFC 6716 §3).
public enum OpusPacket {
  /// Duration in samples at 48 kHz, which is also RTP clock units; nil for a packet that breaks a rule of RFC 6716 §3.4: empty,
  /// more than 120 ms, no frame, or frames that do not fit into it.
  public static func duration(_ packet: Span<UInt8>) -> Int? {
    guard !packet.isEmpty else { return nil }
    let units = packet.withUnsafeBufferPointer { source in
      withUnsafeTemporaryAllocation(of: Int16.self, capacity: 48) { sizes in
        guard let base = source.baseAddress, let sizes = sizes.baseAddress else { return OPUS_BAD_ARG }
        let frames = opus_packet_parse(base, Int32(clamping: source.count), nil, nil, sizes, nil)
        return frames > 0 ? frames &* opus_packet_get_samples_per_frame(base, 48_000) : frames
      }
    }
    return units > 0 ? Int(units) : nil
  }

  /// A pause of the talker: with DTX, libopus makes packets of at most 2 octets of silence, and most senders send only the first
  /// (RFC 7587 §3.1.3).
  public static func isPause(_ packet: Span<UInt8>) -> Bool { packet.count <= 2 }

  /// True when the packet carries a copy of the frame before it (LBRR, RFC 6716 §4.2.4): only then can FEC repair a loss.
  public static func carriesRepair(_ packet: Span<UInt8>) -> Bool {
    // CELT-only packets (configurations 16…31) have no SILK layer.
    guard packet.count >= 2, packet[0] & 0x80 == 0 else { return false }
    guard let first = firstFrameOctet(packet) else { return false }
    // The SILK header: one VAD flag per 20 ms (one in a 10 ms frame), then the LBRR flag.
    let configuration = packet[0] >> 3
    let frames: UInt8 = configuration < 12 ? max(1, configuration & 3) : 1
    return first & (0x80 >> frames) != 0
  }

  /// One SILK frame without voice activity (RFC 6716 §4.2.3) and without a copy of the previous frame.
  public static func isSilence(_ packet: Span<UInt8>) -> Bool {
    packet.count > 2 && packet[0] & 0x83 == 0 && packet[1] & 0xc0 == 0
  }

  /// The first octet of the first frame, after the table of contents and frame lengths (§3.2).
  private static func firstFrameOctet(_ packet: Span<UInt8>) -> UInt8? {
    func lengthSize(_ offset: Int) -> Int { offset < packet.count && packet[offset] >= 252 ? 2 : 1 }
    var offset = 1
    switch packet[0] & 3 {
    case 0, 1: break
    case 2: offset &+= lengthSize(1)
    default:
      let frames = Int(packet[1] & 0x3f)
      offset = 2
      if packet[1] & 0x40 != 0 {
        while offset < packet.count, packet[offset] == 255 { offset &+= 1 }
        offset &+= 1
      }
      if packet[1] & 0x80 != 0 { for _ in 1..<max(1, frames) { offset &+= lengthSize(offset) } }
    }
    return offset < packet.count ? packet[offset] : nil
  }
}
