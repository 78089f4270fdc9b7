/// The range decoder of Opus (RFC 6716 §4.1), of a packet's one frame: as much as a CELT frame's beginning takes. It keeps its place and
/// gets the packet anew each time; behind the packet's end there are zeros.
struct RangeDecoder {
  private var range: UInt32
  /// The top of the range less the code, as in the RFC.
  private var value: UInt32
  private var last: UInt8
  private var place: Int
  private var total: Int

  /// - Parameter packet: the whole packet, whose first octet is its table of contents.
  init(packet: Span<UInt8>) {
    (range, total, place) = (128, 9, 1)
    last = packet.count > 1 ? packet[1] : 0
    value = 127 &- UInt32(last >> 1)
    place = 2
    normalise(packet)
  }

  /// Bits that are used up, rounded up (`ec_tell`).
  var used: Int { total &- (32 &- range.leadingZeroBitCount) }

  /// Bits at the packet's end that are not looked at.
  mutating func skip(_ bits: Int) { total &+= bits }

  /// A bit that is set once in 2 to the power of `rarity`.
  mutating func bit(rarity: UInt32, _ packet: Span<UInt8>) -> Bool {
    let share = range >> rarity
    let isSet = value < share
    if isSet {
      range = share
    } else {
      value &-= share
      range &-= share
    }
    normalise(packet)
    return isSet
  }

  /// One of `count` that are alike, at most 256.
  mutating func uniform(_ count: UInt32, _ packet: Span<UInt8>) -> Int {
    let share = range / count
    let symbol = count &- min(value / share &+ 1, count)
    take(symbol, symbol &+ 1, of: count, share, packet)
    return Int(symbol)
  }

  /// 0 in half of all cases, 1 and 2 in a quarter each.
  mutating func oneOfThree(_ packet: Span<UInt8>) -> Int {
    let quarter = range >> 2
    var (high, low) = (range, quarter &* 2)
    var symbol = 0
    while value < low, symbol < 2 {
      (high, low) = (low, symbol == 0 ? quarter : 0)
      symbol &+= 1
    }
    value &-= low
    range = high &- low
    normalise(packet)
    return symbol
  }

  /// A value of two-sided geometric distribution (§4.3.2.1, `ec_laplace_decode`).
  /// - Parameters:
  ///   - zero: the share of 0, of 32768.
  ///   - decay: how much rarer each value is than the one before it, of 16384.
  mutating func laplace(_ zero: UInt32, _ decay: UInt32, _ packet: Span<UInt8>) -> Int {
    let unit = range >> 15
    let code = 32_768 &- min(value / unit &+ 1, 32_768)
    var (result, low, share): (Int, UInt32, UInt32) = (0, 0, zero)
    if code >= share {
      (result, low) = (1, share)
      share = ((32_768 &- 32 &- zero) &* (16_384 &- decay)) >> 15 &+ 1
      while share > 1, code >= low &+ 2 &* share {
        share &*= 2
        low &+= share
        share = ((share &- 2) &* decay) >> 15 &+ 1
        result &+= 1
      }
      if share <= 1 {
        let more = (code &- low) >> 1
        result &+= Int(more)
        low &+= 2 &* more
      }
      if code < low &+ share { result = 0 &- result } else { low &+= share }
    }
    take(low, min(low &+ share, 32_768), of: 32_768, unit, packet)
    return result
  }

  private mutating func take(_ low: UInt32, _ high: UInt32, of count: UInt32, _ share: UInt32, _ packet: Span<UInt8>) {
    let above = share &* (count &- high)
    value &-= above
    range = low > 0 ? share &* (high &- low) : range &- above
    normalise(packet)
  }

  private mutating func normalise(_ packet: Span<UInt8>) {
    while range <= 1 << 23, range > 0 {
      total &+= 8
      range <<= 8
      let next: UInt8 = place < packet.count ? packet[place] : 0
      place &+= 1
      let symbol = last << 7 | next >> 1
      last = next
      value = ((value << 8) &+ UInt32(~symbol)) & 0x7fff_ffff
    }
  }
}
