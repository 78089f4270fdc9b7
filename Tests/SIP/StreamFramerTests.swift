import Testing
import TrunklineBytes
import TrunklineSIP

@Suite struct StreamFramerTests {
  private let first = message(["OPTIONS sip:a@b SIP/2.0", "Content-Length: 4"], body: "\r\n\r\n")
  private let second = message(["SIP/2.0 200 OK", "l: 0"])

  private func frames(_ pieces: [ArraySlice<UInt8>]) -> [String] {
    var framer = StreamFramer()
    var out: [String] = []
    for piece in pieces {
      framer.append(piece)
      while let frame = framer.next() {
        switch frame {
        case .message(let bytes): out.append(String(decoding: bytes, as: UTF8.self))
        case .ping: out.append("ping")
        case .broken(_, let error): out.append("broken \(error.rule)")
        }
      }
    }
    return out
  }

  @Test func `any split of a stream gives the same frames`() {
    let stream = first + Array("\r\n\r\n".utf8) + second + Array("\r\n".utf8) + carrierInvite + first
    let texts = [first, second, carrierInvite, first].map { String(decoding: $0, as: UTF8.self) }
    let expected = [texts[0], "ping", texts[1], texts[2], texts[3]]
    #expect(frames([stream[...]]) == expected)
    #expect(frames(stream.indices.map { stream[$0...$0] }) == expected)
    for split in 1..<stream.count { #expect(frames([stream[..<split], stream[split...]]) == expected, "split at \(split)") }
  }

  @Test(arguments: [
    "Content-Length: -1", "Content-Length: 5x", "X: 1", "Content-Length: 99999999999", "Content-Length: 70000", "l: 1\r\nl: 1",
  ])
  func `bad framing ends the stream with the head for a 400`(line: String) {
    var framer = StreamFramer()
    framer.append(message(["OPTIONS sip:a@b SIP/2.0", line]) + second)
    guard case .broken(let head, let error) = framer.next() else { return #expect(Bool(false), "not broken") }
    #expect(error.status == 400 || error.status == 513)
    #expect(String(decoding: head, as: UTF8.self).hasPrefix("OPTIONS"))
    #expect(framer.next() == nil)
    framer.append(second)
    #expect(framer.next() == nil && !framer.isMidMessage)
  }

  @Test func `a head without end breaks the stream at its limit`() {
    var framer = StreamFramer()
    var broken = false
    for _ in 0..<Limits.headBytes {
      framer.append("XX".utf8)
      if case .broken = framer.next() {
        broken = true
        break
      }
    }
    #expect(broken)
  }

  @Test func `the torture messages on a stream keep or lose framing as they must`() throws {
    var waiting = StreamFramer()
    waiting.append(try torture("clerr"))
    #expect(waiting.next() == nil && waiting.isMidMessage)
    for name in ["mcl01", "ncl"] {
      var framer = StreamFramer()
      framer.append(try torture(name))
      guard case .broken = framer.next() else { return #expect(Bool(false), "\(name) kept framing") }
    }
  }
}

func == (frame: StreamFramer.Frame?, _: _OptionalNilComparisonType) -> Bool { if case .none = frame { true } else { false } }
