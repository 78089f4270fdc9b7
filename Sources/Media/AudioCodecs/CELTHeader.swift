/// What a CELT frame of 20 ms says of itself before its first band (RFC 6716 §4.3.1 to §4.3.2.1): flags, and by how much each band's
/// level differs from what the bands before it and the frame before it promise. An encoder says that a sound begins in all bands;
/// random octets say it of one or two, and of one in eight frames that it stands alone.
struct CELTHeader {
  private(set) var isSilent = false
  private(set) var hasPitch = false
  private(set) var isTransient = false
  /// The levels are coded without the frame before it.
  private(set) var standsAlone = false
  /// Steps of 6 dB, of the first channel.
  private(set) var levels: InlineArray<21, Int8> = .init(repeating: 0)
  /// How many of them the bandwidth has.
  let bands: Int

  /// Nil for what is no packet of one frame of 20 ms of CELT alone, in one channel.
  init?(_ packet: Span<UInt8>) {
    guard packet.count > 2, OpusPacket.isCELT(packet), packet[0] & 0x1f == 0x18 else { return nil }
    let bandwidth = (packet[0] >> 5) & 3
    bands = bandwidth == 0 ? 13 : 15 &+ 2 &* Int(bandwidth)
    var coder = RangeDecoder(packet: packet)
    let budget = 8 &* (packet.count &- 1)
    isSilent = coder.bit(rarity: 15, packet)
    guard !isSilent else { return }
    if coder.used &+ 16 <= budget, coder.bit(rarity: 1, packet) {
      hasPitch = true
      // What else is said of the pitch stands at the frame's end, 4 bits more with each octave, and its filter.
      let octave = coder.uniform(6, packet)
      coder.skip(4 &+ octave &+ 3)
      if coder.used &+ 2 <= budget { _ = coder.oneOfThree(packet) }
    }
    if coder.used &+ 3 <= budget { isTransient = coder.bit(rarity: 3, packet) }
    if coder.used &+ 3 <= budget { standsAlone = coder.bit(rarity: 3, packet) }
    for band in 0..<bands { levels[band] = level(band, budget, &coder, packet) }
  }

  private func level(_ band: Int, _ budget: Int, _ coder: inout RangeDecoder, _ packet: Span<UInt8>) -> Int8 {
    let left = budget &- coder.used
    if left >= 15 {
      let model = (standsAlone ? 42 : 0) &+ 2 &* band
      let value = coder.laplace(UInt32(Self.models[model]) << 7, UInt32(Self.models[model &+ 1]) << 6, packet)
      return Int8(clamping: value)
    }
    if left >= 2 {
      let value = coder.oneOfThree(packet)
      return value == 0 ? 0 : value == 1 ? -1 : 1
    }
    if left >= 1 { return coder.bit(rarity: 1, packet) ? -1 : 0 }
    return -1
  }

  /// RFC 6716 §4.3.2.1, e_prob_model for 20 ms, by the frame before it and without: probability of 0, and decay, in turns.
  private static let models: InlineArray<84, UInt8> = [
    42, 121, 96, 66, 108, 43, 111, 40, 117, 44, 123, 32, 120, 36, 119, 33, 127, 33, 134, 34, 139, 21, 147, 23, 152, 20, 158, 25,
    154, 26, 166, 21, 173, 16, 184, 13, 184, 10, 150, 13, 139, 15,  //
    22, 178, 63, 114, 74, 82, 84, 83, 92, 82, 103, 62, 96, 72, 96, 67, 101, 73, 107, 72, 113, 55, 118, 52, 125, 52, 118, 52, 117,
    55, 135, 49, 137, 39, 157, 32, 145, 29, 97, 33, 77, 40,
  ]
}
