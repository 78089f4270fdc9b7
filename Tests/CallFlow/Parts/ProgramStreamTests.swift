import Testing

@testable import CallFlow
@testable import CallModel

@Suite struct ProgramStreamTests {
  private func target(_ name: String) throws -> StreamTarget {
    StreamTarget(try #require(StreamURL("wss://\(name).example/audio?key=1")))
  }

  @Test func `a stream opens once and ends once`() throws {
    var stream = ProgramStream()
    let audio = stream.begin(try target("a"))
    #expect(stream.audio === audio && !stream.isOpen && stream.url == "wss://a.example/audio")
    holds(stream.opened() && stream.isOpen && stream.audio === audio)
    holds(!stream.opened() && stream.isOpen && stream.audio === audio, "repeated")
    holds(stream.end() && stream.audio == nil && !stream.isOpen)
    holds(!stream.end() && stream.url == "wss://a.example/audio", "the record names the stream that had the call")
  }

  @Test func `without a stream none opens or ends, and one that ended while it was opening does not open`() throws {
    var stream = ProgramStream()
    holds(!stream.opened() && !stream.end() && stream.audio == nil && !stream.isOpen && stream.url == nil)
    _ = stream.begin(try target("a"))
    holds(stream.end() && !stream.opened())
    #expect(stream.audio == nil && !stream.isOpen)
  }

  @Test func `the next stream has its own audio, and is to be opened again`() throws {
    var stream = ProgramStream()
    let first = stream.begin(try target("a"))
    holds(stream.opened())
    for isEnded in [false, true] {
      if isEnded { holds(stream.end()) }
      let next = stream.begin(try target("b"))
      #expect(next !== first && stream.audio === next && !stream.isOpen && stream.url == "wss://b.example/audio")
      holds(stream.opened() && stream.isOpen)
    }
  }
}
