import Testing
import TrunklineBytes
import TrunklineRTP

@Suite struct SequenceTests {
  @Test func `a number after the wrap is newer than one before it`() {
    let last = SequenceNumber(raw: 65_535)
    #expect(last.next == SequenceNumber(raw: 0))
    #expect(last.next.isNewer(than: last))
    #expect(!last.isNewer(than: last.next))
    #expect(last.next.distance(from: last) == 1)
    #expect(last.distance(from: SequenceNumber(raw: 2)) == -3)
    #expect(last.advanced(by: -65_536) == last)
  }

  @Test func `a timestamp after the wrap is newer than one before it`() {
    let late = RTPTimestamp(raw: 0xffff_ff00)
    #expect(late.advanced(by: 512).distance(from: late) == 512)
    #expect(late.advanced(by: 512).isNewer(than: late))
  }

  @Test func `extended numbers follow a stream with reordering across wraps`() {
    var random = SplitMix64(seed: 3)
    for start in [0, 5, 65_530, 40_000] {
      var extender = SequenceExtender()
      let first = extender.extend(SequenceNumber(raw: UInt16(start)))
      for step in stride(from: 20, to: 400_000, by: 7) {
        let position = step - Int(random.next() % 20)
        let extended = extender.extend(SequenceNumber(raw: UInt16(truncatingIfNeeded: start + position)))
        #expect(extended - first == position)
      }
    }
  }

  @Test func `an NTP time is seconds since 1900 and a binary fraction`() {
    let time = NTPTimestamp(unixNanoseconds: 500_000_000)
    #expect(time.raw == UInt64(2_208_988_800) << 32 | 0x8000_0000)
    #expect(time.middle == UInt32(truncatingIfNeeded: 2_208_988_800 << 16) | 0x8000)
  }
}
