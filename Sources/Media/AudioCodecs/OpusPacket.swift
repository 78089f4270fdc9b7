import COpus

/// What can be read off an Opus packet without decoding it (RFC 6716 §3).
public enum OpusPacket {
  /// Duration in samples at 48 kHz, which is also RTP clock units; nil for what is no Opus packet (empty, more than 120 ms, bad
  /// code).
  public static func duration(_ packet: Span<UInt8>) -> Int? {
    guard !packet.isEmpty else { return nil }
    let count = packet.withUnsafeBufferPointer { source in
      guard let base = source.baseAddress else { return OPUS_BAD_ARG }
      return opus_packet_get_nb_samples(base, Int32(clamping: source.count), 48_000)
    }
    return count > 0 ? Int(count) : nil
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

  /// A SILK layer says that there is a voice (RFC 6716 §4.2.3), in any of its 20 ms; true where more than one frame would have to be asked.
  static func mayHaveVoice(_ packet: Span<UInt8>) -> Bool {
    guard packet.count > 1, packet[0] & 3 == 0 else { return true }
    let configuration = packet[0] >> 3
    let frames: UInt8 = configuration < 12 ? max(1, configuration & 3) : 1
    return packet[1] >> (8 &- frames) != 0
  }

  /// One frame with a SILK layer (configurations 0…15, code 0) that fills the packet.
  public static func isOneSILKFrame(_ packet: Span<UInt8>) -> Bool { packet.count > 2 && packet[0] & 0x83 == 0 }

  /// It has a CELT layer (configurations 12…31), alone or above a SILK layer.
  public static func hasCELT(_ packet: Span<UInt8>) -> Bool { !packet.isEmpty && packet[0] >= 12 << 3 }
  /// It has nothing but CELT (configurations 16…31).
  public static func isCELT(_ packet: Span<UInt8>) -> Bool { !packet.isEmpty && packet[0] >= 16 << 3 }

  /// What stays for seconds: the first octet, and how many frames there are where a second one says so. Two frames are of one length
  /// or not as it happens (codes 1 and 2): that is no difference. Below 16,384.
  public static func mark(_ packet: Span<UInt8>) -> Int16 {
    guard !packet.isEmpty else { return -1 }
    let first = packet[0]
    guard first & 3 == 3 else { return Int16(first & 3 == 2 ? first ^ 3 : first) }
    return Int16(first) | Int16(packet.count > 1 ? packet[1] & 0x3f : 0) << 8
  }

  /// An encoder goes from one to the other by itself, as a voice or the network asks for it (§2.1.1): layers and bandwidth differ, channels
  /// and duration do not. From 40 ms on frames may: SILK has one of 60 ms, CELT three of 20 ms instead.
  /// - Parameters: marks.
  public static func isSwitch(_ first: Int16, _ second: Int16) -> Bool {
    guard first & 4 == second & 4, duration(first) == duration(second) else { return false }
    return duration(first) >= 16 || first & 3 == second & 3 && first >> 8 == second >> 8
  }

  /// Of a mark, in units of 2.5 ms.
  private static func duration(_ mark: Int16) -> Int16 {
    let frames = mark & 3 == 0 ? 1 : mark & 3 == 3 ? mark >> 8 : 2
    return frames &* Int16(frameLength(UInt8(truncatingIfNeeded: mark)))
  }

  /// Of a first octet, in units of 2.5 ms.
  private static func frameLength(_ first: UInt8) -> UInt8 {
    let configuration = first >> 3
    if configuration >= 16 { return 1 << (configuration & 3) }
    if configuration >= 12 { return 4 << (configuration & 1) }
    return configuration & 3 == 3 ? 24 : 4 << (configuration & 3)
  }

  /// The first octet of the first frame, behind the table of contents and frame lengths (§3.2).
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
