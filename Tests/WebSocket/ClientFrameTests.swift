import Testing

@testable import WebSocket

/// A server's frames at a client, and a client's frames at a server.
@Suite struct ClientFrameTests {
  private func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
    let count = payload.count
    if count < 126 { return [first, UInt8(count)] + payload }
    if count <= 0xffff { return [first, 126, UInt8(count >> 8), UInt8(count & 255)] + payload }
    return [first, 127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) } + payload
  }

  private static func read(_ reader: inout FrameReader, _ octets: [UInt8]) -> [FrameReader.Event] {
    var events: [FrameReader.Event] = []
    octets.withUnsafeBytes {
      reader.read($0) {
        events.append($0)
        return true
      }
    }
    return events
  }

  @Test(arguments: [1, 2, 3, 7, 1_000_000])
  func `messages of any length come at any split of the stream, control frames also between fragments`(piece: Int) {
    let long = (0..<70_000).map { UInt8(truncatingIfNeeded: $0) }
    let stream =
      frame(0x81, [65, 66]) + frame(0x82, long) + frame(0x01, [1]) + frame(0x89, [7]) + frame(0x00, [2]) + frame(0x8a, [])
      + frame(0x80, [3]) + frame(0x82, [UInt8](repeating: 4, count: 200)) + frame(0x88, [3, 0xe8])
    var reader = FrameReader(.client, messageBytes: 100_000)
    var events: [FrameReader.Event] = []
    for start in stride(from: 0, to: stream.count, by: piece) {
      events += Self.read(&reader, Array(stream[start..<min(stream.count, start + piece)]))
    }
    #expect(
      events == [
        .text([65, 66]), .binary(long), .fragment, .ping([7]), .fragment, .pong, .text([1, 2, 3]),
        .binary([UInt8](repeating: 4, count: 200)), .close(1000),
      ])
    #expect(Self.read(&reader, [0x81, 0]) == [], "nothing is read after a close")
  }

  @Test(
    arguments: [
      ([0x81, 0x80, 0, 0, 0, 0], 1002), ([0xc1, 0], 1002), ([0x83, 0], 1002), ([0x80, 0], 1002), ([0x09, 0], 1002),
      ([0x89, 126, 0, 126], 1002), ([0x81, 126, 0, 5], 1002), ([0x82, 127, 0, 0, 0, 0, 0, 0, 1, 0], 1002),
      ([0x82, 126, 0xff, 0xff], 1009),
      ([0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0], 1002), ([0x01, 0, 0x81, 0], 1002), ([0x01, 0, 0x82, 0], 1002),
      ([0x02, 126, 0x03, 0xe8] + [UInt8](repeating: 1, count: 1_000) + [0x80, 1], 1009), ([0x88, 1, 3], 1002),
      ([0x88, 2, 3, 237], 1002), ([0x88, 3, 3, 232, 0xff], 1007),
    ] as [([UInt8], UInt16)])
  func `what a server may not send is a typed failure`(octets: [UInt8], code: UInt16) {
    for piece in [octets.count, 1] {
      var reader = FrameReader(.client, messageBytes: 1_000)
      let events = stride(from: 0, to: octets.count, by: piece).flatMap {
        Self.read(&reader, Array(octets[$0..<min(octets.count, $0 + piece)]))
      }
      #expect(events.last == .failed(code))
      #expect(Self.read(&reader, [0x81, 0]) == [])
    }
  }

  @Test(arguments: [0, 1, 125, 126, 65_535, 65_536]) func `what a client writes a server reads`(count: Int) {
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    var out: [UInt8] = []
    FrameWriter.append(.text, payload, mask: 0x1234_abcd, to: &out)
    FrameWriter.append(.pong, payload, mask: 0xff00_ff00, to: &out)
    FrameWriter.append(.close, [3, 0xe8], mask: 1, to: &out)
    var reader = FrameReader(.server, messageBytes: 100_000)
    let events = Self.read(&reader, out)
    #expect(events == [.text(payload), .pong, .close(1000)])
    // a client must not get masked frames, nor a server others
    var other = FrameReader(.client, messageBytes: 100_000)
    #expect(Self.read(&other, out) == [.failed(1002)])
    var unmasked: [UInt8] = []
    FrameWriter.append(.text, payload, to: &unmasked)
    reader = FrameReader(.server, messageBytes: 100_000)
    #expect(Self.read(&reader, unmasked) == [.failed(1002)])
    other = FrameReader(.client, messageBytes: 100_000)
    #expect(Self.read(&other, unmasked) == [.text(payload)])
  }

  @Test func `the masked sample of RFC 6455 §5.7`() {
    var out: [UInt8] = []
    FrameWriter.append(.text, Array("Hello".utf8), mask: 0x37fa_213d, to: &out)
    #expect(out == [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58])
  }
}
