import Testing

@testable import TrunklineResolver

@Suite struct TimesToLiveTests {
  /// Header, one question and answers with these times; each answer's name is a pointer to the question.
  private func message(_ times: [UInt32], cut: Int = 0) -> [UInt8] {
    var out: [UInt8] = [0, 1, 0x81, 0x80, 0, 1, 0, UInt8(times.count), 0, 0, 0, 0]
    out += [7] + Array("carrier".utf8) + [7] + Array("example".utf8) + [0, 0, 33, 0, 1]
    for time in times {
      out += [0xc0, 12, 0, 33, 0, 1] + (0..<4).map { UInt8(truncatingIfNeeded: time >> (24 - 8 * UInt32($0))) }
      out += [0, 9, 0, 1, 0, 1, 0x13, 0xc4, 1, 97, 0]
    }
    return Array(out.dropLast(cut))
  }
  private func shortest(_ bytes: [UInt8]) -> UInt32? { bytes.withUnsafeBufferPointer { shortestTimeToLive($0) } }

  @Test func `the shortest of all answers counts`() {
    #expect(shortest(message([300, 60, 3_600])) == 60)
    #expect(shortest(message([0xffff_ffff])) == 0, "RFC 2181 §8")
    #expect(shortest(message([])) == nil)
  }

  @Test func `what is cut off, or points anywhere, is no trap`() {
    let whole = message([300, 60])
    for length in 0...whole.count { _ = shortest(Array(whole[..<length])) }
    var state: UInt64 = 9
    for _ in 0..<20_000 {
      var bytes = whole
      for _ in 0..<4 {
        state = state &* 6_364_136_223_846_793_005 &+ 1
        bytes[Int(state >> 33) % bytes.count] = UInt8(truncatingIfNeeded: state >> 20)
      }
      _ = shortest(bytes)
    }
  }
}
