import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineTURN

/// A stream of TCP or TLS, cut anywhere.
@Suite struct TURNFramingTests {
  private func message(_ count: Int) -> [UInt8] {
    [0x01, 0x17, UInt8(count >> 8), UInt8(count & 255), 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 3, count: 12 + count)
  }
  private func channel(_ count: Int) -> (bytes: [UInt8], message: [UInt8]) {
    let message: [UInt8] =
      [0x40, 0x01, UInt8(count >> 8), UInt8(count & 255)] + (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    return (message + [UInt8](repeating: 0xee, count: -count & 3), message)
  }

  @Test func `messages of every length come out whole, wherever the stream is cut`() throws {
    let frames = (0...9).map { channel($0) }
    let stream = message(0) + frames.flatMap(\.bytes) + message(8)
    let expected = [message(0)] + frames.map(\.message) + [message(8)]
    for size in 1...stream.count {
      var framing = TURNFraming()
      var got: [[UInt8]] = []
      for start in stride(from: 0, to: stream.count, by: size) {
        try framing.append(stream[start..<min(stream.count, start + size)])
        while let next = try framing.next() { got.append(next) }
      }
      #expect(got == expected, "cut each \(size) octets")
    }
  }

  @Test(
    arguments: [[0x80, 0, 0, 0], [0xff, 0, 0, 0], [0x00, 0x01, 0x00, 0x03], [0x40, 0, 0xff, 0xff], [0x01, 1, 0xff, 0xfc]]
      as [[UInt8]])
  func `what begins no message, or too long a one, is the end of the stream`(start: [UInt8]) throws {
    var framing = TURNFraming()
    try framing.append(start)
    #expect(throws: TURNFailure.malformed) { try framing.next() }
  }

  @Test func `a stream without a reader is refused, not kept`() throws {
    var framing = TURNFraming()
    try framing.append([UInt8](repeating: 0x40, count: Limits.streamBytes))
    #expect(throws: TURNFailure.malformed) { try framing.append([1]) }
  }
}
