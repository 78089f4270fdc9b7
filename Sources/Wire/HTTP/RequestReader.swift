/// HTTP/1.1 requests out of the octets of one connection, one at a time, at any split.
///
///     var reader = RequestReader(bodyBytes: 65_536)
///     reader.append(octets)
///     switch reader.next() {
///     case .request(let request): …                // answer it before asking for the next one
///     case .refused(let refusal): …                // answer with its status, then close: the next request's start is unknown
///     case .part(let head, let octets): …          // of a body that is read in parts; its request follows, without the body
///     case .needsMore, .continueExpected: …
///     }
///
/// | state | octets | next |
/// |---|---|---|
/// | head | CR LF CR LF | body, or `request` and head |
/// | head | a lone CR or LF, NUL, too long | refused |
/// | body | Content-Length reached, or the last chunk | `request`, head |
/// | body | broken chunk, too long | refused |
/// | refused | anything | refused |
///
/// Memory: octets that were appended and not consumed, and a body of at most `bodyBytes` that is not read in parts. The owner
/// stops appending while a request waits for its answer.
public struct RequestReader: Sendable {
  public struct Request: Equatable, Sendable {
    public var head: RequestHead
    public var body: [UInt8]
  }
  public enum Step: Equatable, Sendable {
    case needsMore
    /// The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1); reported once.
    case continueExpected
    /// The next octets of a body that is not kept; never empty.
    case part(RequestHead, [UInt8])
    case request(Request)
    case refused(RequestRefusal)
  }
  private enum State: Sendable {
    case head
    case body(Request, remaining: Int)
    case chunks(Request, ChunkReader)
    case refused(RequestRefusal)
  }

  private let bodyLimit: @Sendable (RequestHead) -> Int
  private let isReadInParts: @Sendable (RequestHead) -> Bool
  /// Of the request that is being read: how long its body may still be, and whether it is returned in parts.
  private var bodyBytes = 0
  private var givesParts = false
  private var state = State.head
  private var buffer: [UInt8] = []
  private var start = 0
  /// Octets of the head that were scanned.
  private var scanned = 0
  /// Octets of empty lines before the head.
  private var leading = 0

  public init(bodyBytes: Int) { self.init { _ in bodyBytes } }

  /// - Parameters:
  ///   - bodyBytes: the longest body of a request, by its head.
  ///   - isReadInParts: whether its body is returned as `part`s.
  public init(
    bodyBytes: @escaping @Sendable (RequestHead) -> Int,
    isReadInParts: @escaping @Sendable (RequestHead) -> Bool = { _ in false }
  ) {
    (bodyLimit, self.isReadInParts) = (bodyBytes, isReadInParts)
  }

  /// Octets that are buffered.
  public var waitingBytes: Int { buffer.count - start }
  /// A request has begun and is not complete.
  public var isMidRequest: Bool { if case .head = state { waitingBytes > 0 } else { true } }

  public mutating func append(_ octets: UnsafeRawBufferPointer) {
    if start == buffer.count {
      buffer.removeAll(keepingCapacity: buffer.capacity <= Limits.headBytes)
      start = 0
    } else if start > Limits.headBytes {
      buffer.removeFirst(start)
      start = 0
    }
    buffer.append(contentsOf: octets)
  }

  /// Returns what follows the last request, and keeps nothing more: for an upgraded connection.
  public mutating func drainRest() -> [UInt8] {
    defer { (buffer, start, scanned) = ([], 0, 0) }
    return Array(buffer[start...])
  }

  public mutating func next() -> Step {
    do throws(RequestRefusal) {
      return try step()
    } catch {
      state = .refused(error)
      buffer = []
      start = 0
      scanned = 0
      return .refused(error)
    }
  }

  private mutating func step() throws(RequestRefusal) -> Step {
    switch state {
    case .refused(let refusal): throw refusal
    case .head: return try readHead()
    case .body(var request, let remaining):
      // frees the other reference: a long body is appended to, not copied for each piece
      state = .head
      let count = min(remaining, waitingBytes)
      if givesParts, count > 0 {
        defer { start += count }
        state = .body(request, remaining: remaining - count)
        return .part(request.head, Array(buffer[start..<start + count]))
      }
      request.body.append(contentsOf: buffer[start..<start + count])
      start += count
      guard count == remaining else {
        state = .body(request, remaining: remaining - count)
        return .needsMore
      }
      return .request(request)
    case .chunks(var request, var chunks):
      state = .head
      let isWhole = try chunks.read(buffer[start...], consumed: &start, into: &request.body, limit: bodyBytes)
      if givesParts, !request.body.isEmpty {
        let part = request.body
        request.body = []
        bodyBytes = bodyBytes - part.count
        state = isWhole ? .body(request, remaining: 0) : .chunks(request, chunks)
        return .part(request.head, part)
      }
      guard isWhole else {
        state = .chunks(request, chunks)
        return .needsMore
      }
      return .request(request)
    }
  }

  private mutating func readHead() throws(RequestRefusal) -> Step {
    if scanned == 0 {
      while waitingBytes >= 2, buffer[start] == 13, buffer[start + 1] == 10 {
        start = start + 2
        leading = leading + 2
        guard leading <= Limits.leadingBytes else { throw RequestRefusal(400, "empty lines instead of a request") }
      }
      if waitingBytes == 0 || (waitingBytes == 1 && buffer[start] == 13) { return .needsMore }
      guard HeadParser.isToken(buffer[start]) else {
        let isTLS = buffer[start] == 0x16
        throw RequestRefusal(400, isTLS ? "TLS on a port for plain HTTP" : "no method")
      }
    }
    guard let end = try endOfHead() else {
      guard waitingBytes <= Limits.headBytes else { throw RequestRefusal(431, "at most \(Limits.headBytes) octets of fields") }
      return .needsMore
    }
    guard end - start <= Limits.headBytes else { throw RequestRefusal(431, "at most \(Limits.headBytes) octets of fields") }
    let head = try HeadParser.parse(buffer[start..<end - 2])
    start = end
    scanned = 0
    leading = 0
    let request = Request(head: head, body: [])
    (bodyBytes, givesParts) = (bodyLimit(head), isReadInParts(head))
    switch head.framing {
    case .none: return .request(request)
    case .length(let count):
      guard count <= bodyBytes else { throw RequestRefusal(413, "at most \(bodyBytes) octets of body") }
      state = .body(request, remaining: count)
    case .chunked: state = .chunks(request, ChunkReader())
    }
    if waitingBytes == 0, head.minorVersion == 1, let expectation = head.first("expect") {
      guard expectation.lowercased() == "100-continue" else { throw RequestRefusal(417, "the only expectation is 100-continue") }
      return .continueExpected
    }
    return try step()
  }

  /// The index behind CR LF CR LF; nil: not received yet. A lone CR or LF ends the connection at once, as does NUL: a lenient
  /// parser reads it as a line's end, a strict one as content.
  private mutating func endOfHead() throws(RequestRefusal) -> Int? {
    var index = start + scanned
    // A CR at the end of what was scanned is scanned again with its LF.
    while index < buffer.count {
      switch buffer[index] {
      case 13:
        guard index + 1 < buffer.count else {
          scanned = index - start
          return nil
        }
        guard buffer[index + 1] == 10 else { throw RequestRefusal(400, "a CR without its LF") }
        if index - start >= 2, buffer[index - 1] == 10 { return index + 2 }
        index += 2
      case 10: throw RequestRefusal(400, "an LF without its CR")
      case 0: throw RequestRefusal(400, "NUL in a head")
      default: index += 1
      }
    }
    scanned = index - start
    return nil
  }
}
