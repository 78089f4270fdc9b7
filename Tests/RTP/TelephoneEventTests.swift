import Testing
import TrunklineRTP

@Suite struct TelephoneEventTests {
  @Test func `an event reads back as it was written`() throws {
    var payload = [UInt8](repeating: 0, count: 4)
    let event = TelephoneEvent(event: 11, isEnd: true, volume: 10, duration: 0x0320)
    var span = payload.mutableSpan
    #expect(event.write(into: &span) == 4)
    #expect(payload == [11, 0x8a, 0x03, 0x20])
    #expect(TelephoneEvent(parsing: payload.span) == event)
  }

  @Test func `the reserved bit is ignored and a short payload refused`() {
    let reserved: [UInt8] = [1, 0x4a, 0, 160, 9, 9]
    #expect(TelephoneEvent(parsing: reserved.span) == TelephoneEvent(event: 1, isEnd: false, volume: 10, duration: 160))
    let short: [UInt8] = [1, 2, 3]
    #expect(TelephoneEvent(parsing: short.span) == nil)
  }

  @Test func `codes and digits map both ways`() {
    let digits = Array("0123456789*#ABCD".utf8)
    #expect(digits.map { TelephoneEvent.code(of: $0) } == (0...15).map { $0 })
    #expect((0...15).map { TelephoneEvent.digit(of: $0) } == digits)
    #expect(TelephoneEvent.code(of: UInt8(ascii: "d")) == 15)
    #expect(TelephoneEvent.code(of: UInt8(ascii: "E")) == nil)
    #expect(TelephoneEvent.digit(of: 16) == nil)
  }
}
