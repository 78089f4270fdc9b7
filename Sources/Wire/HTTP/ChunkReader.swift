/// The chunked transfer coding (RFC 9112 §7.1) at any split. Extensions and trailer fields are read over, within limits.
struct ChunkReader: Sendable {
  private enum State: Sendable {
    case size, data(Int), dataEnd, trailers
  }
  private var state = State.size
  private var trailerBytes = 0

  /// Takes octets from `octets` (advancing `consumed`, the index of its first one) and appends their content to `body`.
  /// True when the last chunk and its trailers are read.
  mutating func read(
    _ octets: ArraySlice<UInt8>, consumed: inout Int, into body: inout [UInt8], limit: Int
  ) throws(RequestRefusal) -> Bool {
    var rest = octets
    defer { consumed = rest.startIndex }
    while true {
      switch state {
      case .size:
        guard let line = try Self.line(&rest, limit: Limits.chunkLineBytes) else { return false }
        let count = try Self.size(line)
        guard count <= limit - body.count else { throw RequestRefusal(413, "at most \(limit) octets of body") }
        state = count == 0 ? .trailers : .data(count)
      case .data(let remaining):
        let count = min(remaining, rest.count)
        body.append(contentsOf: rest.prefix(count))
        rest = rest.dropFirst(count)
        guard count == remaining else {
          state = .data(remaining - count)
          return false
        }
        state = .dataEnd
      case .dataEnd:
        guard let line = try Self.line(&rest, limit: 0) else { return false }
        guard line.isEmpty else { throw RequestRefusal(400, "a chunk is longer than its size") }
        state = .size
      case .trailers:
        guard let line = try Self.line(&rest, limit: Limits.trailerBytes) else { return false }
        if line.isEmpty { return true }
        trailerBytes += line.count + 2
        guard trailerBytes <= Limits.trailerBytes else { throw RequestRefusal(431, "too many trailer fields") }
      }
    }
  }

  /// The next line without its CR LF; nil if it is not whole yet.
  private static func line(_ rest: inout ArraySlice<UInt8>, limit: Int) throws(RequestRefusal) -> ArraySlice<UInt8>? {
    guard let end = rest.firstIndex(where: { $0 == 13 || $0 == 10 || $0 == 0 }) else {
      guard rest.count <= limit else { throw RequestRefusal(400, "a line of the chunked coding is too long") }
      return nil
    }
    guard rest[end] == 13, end - rest.startIndex <= limit else {
      throw RequestRefusal(400, "a line of the chunked coding is broken")
    }
    guard end + 1 < rest.endIndex else { return nil }
    guard rest[end + 1] == 10 else { throw RequestRefusal(400, "a CR without its LF") }
    defer { rest = rest[(end + 2)...] }
    return rest[..<end]
  }

  private static func size(_ line: ArraySlice<UInt8>) throws(RequestRefusal) -> Int {
    let digits = line.prefix { HeadParser.hexValue($0) != nil }
    let behind = line.dropFirst(digits.count)
    guard (1...8).contains(digits.count), behind.isEmpty || behind.first == UInt8(ascii: ";") else {
      throw RequestRefusal(400, "a chunk without its size")
    }
    return digits.reduce(0) { $0 << 4 | Int(HeadParser.hexValue($1) ?? 0) }
  }
}
