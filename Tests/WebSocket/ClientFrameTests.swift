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

  @Test(arguments: [1, 2, 3, 7, 1_000_000])
  func `messages of any length come at any split of the stream, control frames also between fragments`(piece: Int) {
    let long = (0..<70_000).map { UInt8(truncatingIfNeeded: $0) }
    let stream =
      frame(0x81, [65, 66]) + frame(0x82, long) + frame(0x01, [1]) + frame(0x89, [7]) + frame(0x00, [2]) + frame(0x8a, [])
      + frame(0x80, [3]) + frame(0x82, [UInt8](repeating: 4, count: 200)) + frame(0x88, [3, 0xe8])
    var reader = ClientFrameReader(messageBytes: 100_000)
    var events: [ClientFrameReader.Event] = []
    for start in stride(from: 0, to: stream.count, by: piece) {
      events += reader.read(stream[start..<min(stream.count, start + piece)])
    }
    #expect(
      events == [
        .text([65, 66]), .binary(long), .ping([7]), .pong, .text([1, 2, 3]), .binary([UInt8](repeating: 4, count: 200)),
        .close(1000),
      ])
    #expect(reader.read([0x81, 0]) == [], "nothing is read behind a close")
  }

  @Test(
    arguments: [
      ([0x81, 0x80, 0, 0, 0, 0], 1002), ([0xc1, 0], 1002), ([0x83, 0], 1002), ([0x80, 0], 1002), ([0x09, 0], 1002),
      ([0x89, 126, 0, 126], 1002), ([0x81, 126, 0, 5], 1002), ([0x82, 127, 0, 0, 0, 0, 0, 0, 1, 0], 1002),
      ([0x82, 126, 0xff, 0xff], 1009),
      ([0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0], 1002), ([0x01, 0, 0x81, 0], 1002),
    ] as [([UInt8], UInt16)])
  func `what a server may not send is a typed failure`(octets: [UInt8], code: UInt16) {
    var reader = ClientFrameReader(messageBytes: 1_000)
    #expect(reader.read(octets).last == .failed(code))
    #expect(reader.read([0x81, 0]) == [])
  }

  @Test(arguments: [0, 1, 125, 126, 65_535, 65_536]) func `what a client writes a server reads`(count: Int) {
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    var out: [UInt8] = []
    ClientFrameWriter.append(.text, payload, mask: 0x1234_abcd, to: &out)
    ClientFrameWriter.append(.pong, payload, mask: 0xff00_ff00, to: &out)
    ClientFrameWriter.append(.close, [3, 0xe8], mask: 1, to: &out)
    var reader = FrameReader(messageBytes: 100_000)
    var events: [FrameReader.Event] = []
    out.withUnsafeBytes {
      reader.read($0) {
        events.append($0)
        return true
      }
    }
    #expect(events == [.text(payload), .pong, .close(1000)])
  }
}
