import CHiredis
import Testing
import TrunklineBytes

@testable import RESP

private func read(_ stream: [UInt8], step: Int, _ bounds: RESPReader.Bounds = Limits.reply) -> ([RESPValue], RESPFailure?) {
  guard let reader = RESPReader(bounds) else { return ([], .malformed("no memory")) }
  var values: [RESPValue] = []
  var offset = 0
  do throws(RESPFailure) {
    while offset < stream.count {
      let end = min(stream.count, offset + step)
      let chunk = Array(stream[offset..<end])
      var failure: RESPFailure?
      chunk.withUnsafeBytes { bytes in
        do throws(RESPFailure) { try reader.append(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
      while let value = try reader.next() { values.append(value) }
      offset = end
    }
    return (values, nil)
  } catch {
    return (values, error)
  }
}

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite struct RESPReaderTests {
  static let stream = bytes(
    "+OK\r\n-ERR no\r\n:-42\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*0\r\n*-1\r\n*3\r\n:1\r\n*2\r\n$1\r\na\r\n+b\r\n$4\r\n\r\n\r\n\r\n*1\r\n*1\r\n*1\r\n:7\r\n"
  )
  static let values: [RESPValue] = [
    .status("OK"), .error("ERR no"), .integer(-42), .bytes(bytes("hello")), .bytes([]), .null, .array([]), .null,
    .array([.integer(1), .array([.bytes(bytes("a")), .status("b")]), .bytes(bytes("\r\n\r\n"))]),
    .array([.array([.array([.integer(7)])])]),
  ]

  @Test func `every kind of value is read, at any cut of the stream`() {
    for step in 1...Self.stream.count {
      let (values, failure) = read(Self.stream, step: step)
      #expect(values == Self.values && failure == nil, "steps of \(step)")
    }
  }

  @Test func `a length that promises much costs nothing`() {
    for text in ["*2147483647\r\n", "*1000000000\r\n", "*99999999999999999999\r\n", "*3\r\n*1000000\r\n"] {
      #expect(read(bytes(text), step: 3).1 != nil, "\(text)")
    }
    // the reader waits for the content, and keeps no more of it than the limit
    let small = RESPReader.Bounds(depth: 6, elements: 100, bytes: 1_000)
    #expect(read(bytes("$1000000000\r\nabc"), step: 4, small).1 == nil)
    #expect(read(bytes("$1000000000\r\n") + [UInt8](repeating: 97, count: 1_100), step: 64, small).1 == .tooLong(limit: 1_000))
    #expect(
      read(bytes("$1100\r\n") + [UInt8](repeating: 97, count: 1_100) + [13, 10], step: 4_096, small).1 == .tooLong(limit: 1_000))
    #expect(read(bytes("+") + [UInt8](repeating: 97, count: 1_100), step: 64, small).1 == .tooLong(limit: 1_000))
  }

  @Test func `depth, elements and bytes have their bounds`() {
    let deep = (1...6).map { _ in "*1\r\n" }.joined()
    #expect(read(bytes(deep + ":1\r\n"), step: 5).1 == nil)
    #expect(read(bytes("*1\r\n" + deep + ":1\r\n"), step: 5).1 == .tooDeep(limit: 6))
    let few = RESPReader.Bounds(depth: 2, elements: 4, bytes: 10)
    #expect(read(bytes("*3\r\n:1\r\n:2\r\n:3\r\n"), step: 5, few).1 == nil)
    #expect(read(bytes("*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n"), step: 5, few).1 == .tooManyElements(limit: 4))
    #expect(read(bytes("*2\r\n$6\r\nabcdef\r\n$6\r\nabcdef\r\n"), step: 5, few).1 == .tooLong(limit: 10))
    #expect(read(bytes("*2\r\n$5\r\nabcde\r\n$5\r\nabcde\r\n"), step: 5, few).1 == nil)
  }

  @Test func `after an error the stream is over`() throws {
    let reader = try #require(RESPReader())
    bytes("?\r\n+OK\r\n").withUnsafeBytes { try? reader.append($0) }
    #expect(throws: RESPFailure.self) { try reader.next() }
    #expect(throws: RESPFailure.self) { try reader.next() }
    #expect(throws: RESPFailure.self) { try bytes("+OK\r\n").withUnsafeBytes { try reader.append($0) } }
  }

  @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
  func `junk never traps, and a cut does not change what is read of it`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for _ in 0..<400 {
      var stream = Self.stream
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let offset = Int.random(in: 0..<stream.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: stream[offset] = UInt8.random(in: 0...255, using: &random)
        case 1: stream.remove(at: offset)
        default: stream.insert(Array("*$+-:0123456789\r\n".utf8).randomElement(using: &random) ?? 0, at: offset)
        }
      }
      let whole = read(stream, step: stream.count)
      let cut = read(stream, step: Int.random(in: 1...7, using: &random))
      #expect(whole.0 == cut.0 && (whole.1 == nil) == (cut.1 == nil), "seed \(seed): \(stream)")
    }
  }

  @Test(arguments: [
    [""], ["PING"], ["SET", "k", "a\r\nb\u{0}c"], Array(repeating: "x", count: 101),
    ["GET", String(repeating: "k", count: 1_000)],
  ])
  func `a command is written as hiredis writes it`(arguments: [String]) {
    var command = RESPCommand()
    for argument in arguments { command.add(argument) }
    var ours: [UInt8] = []
    command.write(to: &ours)
    #expect(ours.count <= command.byteCount)
    var target: UnsafeMutablePointer<CChar>?
    let copies = arguments.map { argument in
      let bytes = Array(argument.utf8)
      let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
      for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
      return copy
    }
    defer { for copy in copies { copy.deallocate() } }
    var pointers = copies.map { Optional(UnsafePointer($0)) }
    let lengths = arguments.map { $0.utf8.count }
    let count = redisFormatCommandArgv(&target, Int32(arguments.count), &pointers, lengths)
    defer { redisFreeCommand(target) }
    let theirs = target.map { UnsafeRawBufferPointer(start: $0, count: Int(count)).map { $0 } }
    #expect(ours == theirs)
  }
}
