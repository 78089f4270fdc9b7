import Testing
import TrunklineBytes
import WebSocket

private func frame(_ first: UInt8, _ payload: [UInt8], mask: [UInt8]? = [1, 2, 3, 4], length: [UInt8]? = nil) -> [UInt8] {
  var out = [first]
  let bit: UInt8 = mask == nil ? 0 : 0x80
  if let length {
    out += [bit | length[0]] + length.dropFirst()
  } else if payload.count < 126 {
    out.append(bit | UInt8(payload.count))
  } else if payload.count < 65_536 {
    out += [bit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
  } else {
    out += [bit | 127, 0, 0, 0, 0, 0, UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 255), UInt8(payload.count & 255)]
  }
  guard let mask else { return out + payload }
  return out + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
}

private func events(_ pieces: [[UInt8]], limit: Int = 65_536) -> [FrameReader.Event] {
  var reader = FrameReader(.server, messageBytes: limit)
  var out: [FrameReader.Event] = []
  for piece in pieces {
    piece.withUnsafeBytes { octets in
      reader.read(octets) {
        out.append($0)
        return true
      }
    }
  }
  return out
}

@Suite struct FrameReaderTests {
  @Test func `the samples of RFC 6455 §5.7`() {
    #expect(events([[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]]) == [.text(Array("Hello".utf8))])
    #expect(events([[0x89, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]]) == [.ping(Array("Hello".utf8))])
    #expect(events([[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]]) == [.failed(1002)])
  }

  @Test func `any split gives the same events`() {
    let long = (0..<70_000).map { UInt8(truncatingIfNeeded: $0) }
    let stream =
      frame(0x01, Array("ab".utf8)) + frame(0x89, [7]) + frame(0x00, []) + frame(0x80, Array("c".utf8)) + frame(0x8a, [])
      + frame(0x81, Array(long.prefix(300))) + frame(0x81, Array(long.prefix(65_536)))
      + frame(0x88, [3, 232] + Array("bye".utf8))
    let whole = events([stream])
    #expect(
      whole.prefix(5) == [.fragment, .ping([7]), .fragment, .text(Array("abc".utf8)), .pong] && whole.last == .close(1000)
        && whole.count == 8)
    #expect(events(stream.map { [$0] }) == whole)
    for cut in 1..<400 { #expect(events([Array(stream[..<cut]), Array(stream[cut...])]) == whole, "cut at \(cut)") }
  }

  @Test(
    arguments: [
      ("not masked", frame(0x81, [65], mask: nil), 1002), ("RSV1", frame(0xc1, [65]), 1002), ("RSV3", frame(0x91, [65]), 1002),
      ("opcode 3", frame(0x83, []), 1002), ("opcode 11", frame(0x8b, []), 1002), ("binary", frame(0x82, [1]), 1003),
      ("a ping in fragments", frame(0x09, []), 1002), ("a long ping", frame(0x89, [UInt8](repeating: 0, count: 126)), 1002),
      ("a continuation of nothing", frame(0x80, []), 1002), ("a message in a message", frame(0x01, []) + frame(0x81, []), 1002),
      ("a length in too many octets", frame(0x81, [65], length: [126, 0, 1]), 1002),
      ("a length in far too many octets", frame(0x81, [65], length: [127, 0, 0, 0, 0, 0, 0, 0, 1]), 1002),
      ("a negative length", frame(0x81, [], length: [127, 0x80, 0, 0, 0, 0, 0, 0, 0]), 1002),
      ("all of memory", frame(0x81, [], length: [127, 0x7f, 255, 255, 255, 255, 255, 255, 255]), 1009),
      ("too long", frame(0x81, [UInt8](repeating: 65, count: 65_537)), 1009),
      ("too long in fragments", frame(0x01, [UInt8](repeating: 65, count: 65_536)) + frame(0x80, [65]), 1009),
      ("a close code of one octet", frame(0x88, [3]), 1002), ("close 1005", frame(0x88, [3, 237]), 1002),
      ("close 999", frame(0x88, [3, 231]), 1002), ("close 5000", frame(0x88, [0x13, 0x88]), 1002),
      ("a close reason that is no text", frame(0x88, [3, 232, 0xff]), 1007),
    ] as [(String, [UInt8], UInt16)])
  func `refused`(what: String, octets: [UInt8], code: UInt16) {
    #expect(events([octets]).last == .failed(code), "\(what)")
    #expect(events(octets.map { [$0] }).last == .failed(code), "\(what), slowly")
    #expect(events([octets, frame(0x81, [65])]).last == .failed(code), "\(what), and then nothing more")
  }

  @Test func `a reader that is told to stop stops`() {
    var reader = FrameReader(.server, messageBytes: 10)
    var seen = 0
    (frame(0x81, [65]) + frame(0x81, [66])).withUnsafeBytes { octets in
      reader.read(octets) { _ in
        seen += 1
        return false
      }
    }
    #expect(seen == 1)
  }

  @Test func `rubbish never traps and never gathers more than a message`() {
    for number in 0..<3_000 {
      var random = SplitMix64(seed: UInt64(number))
      var octets = frame(0x01, [1, 2, 3]) + frame(0x80, [4]) + frame(0x89, [])
      for _ in 0..<4 { octets[Int.random(in: 0..<octets.count, using: &random)] = UInt8.random(in: 0...255, using: &random) }
      for event in events([octets + (0..<40).map { _ in UInt8.random(in: 0...255, using: &random) }], limit: 64) {
        if case .text(let message) = event { #expect(message.count <= 64) }
      }
    }
  }
}

@Suite struct HandshakeTests {
  @Test func `the accept value of RFC 6455 §1.3, and what is no key`() {
    #expect(Handshake.accept(key: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    for key in [
      "", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===", "dGhlIHNhbXBsZSBub25j*Q==", "AAAAAAAAAAAAAAAAAAAAAAAA",
    ] {
      #expect(Handshake.accept(key: key) == nil, "\(key)")
    }
  }

  @Test(arguments: [0, 1, 125, 126, 65_535, 65_536]) func `our frames say their length in as few octets as do`(count: Int) {
    var out: [UInt8] = []
    FrameWriter.append(.text, [UInt8](repeating: 65, count: count), to: &out)
    #expect(out.count == count + (count < 126 ? 2 : count < 65_536 ? 4 : 10))
    #expect(out[0] == 0x81 && out[1] & 0x80 == 0)
  }
}
