/// Cuts the bytes of a TCP connection into messages (RFC 3261 §18.3), wherever the segments split them.
///
/// One per connection. Holds at most one message and one segment; a peer that stays in the middle of a message is the transport's
/// to time out (`isMidMessage`).
public struct StreamFramer: Sendable {
  public enum Frame: Sendable {
    /// One whole message.
    case message([UInt8])
    /// CRLF CRLF between messages: answer with one CRLF (RFC 5626 §3.5.1).
    case ping
    /// Framing is lost. Hand the bytes to the user agent, which answers 400 if it can, then close the connection. Nothing
    /// comes after this.
    case broken([UInt8], ParseError)
  }

  private var buffer: [UInt8] = []
  /// Where the next message begins in `buffer`.
  private var start = 0
  /// How far the search for the end of the head has come.
  private var searched = 0
  /// Length of the message at `start`, once its head is read.
  private var length: Int?
  private var hasHalfPing = false
  private var isBroken = false

  public init() {}

  /// Whether part of a message is here and the rest is awaited.
  public var isMidMessage: Bool { buffer.count > start }

  /// Adds received bytes. Take all frames with `next()` after it.
  public mutating func append(_ bytes: some Sequence<UInt8>) {
    guard !isBroken else { return }
    if start > 0 {
      buffer.removeSubrange(..<start)
      searched -= start
      start = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next frame; nil if more bytes are needed.
  public mutating func next() -> Frame? {
    guard !isBroken else { return nil }
    if length == nil {
      if skipLineEnds() { return .ping }
      guard start < buffer.count else { return nil }
      if let frame = readHead() { return frame }
    }
    guard let length, buffer.count - start >= length else { return nil }
    let message = Array(buffer[start..<start + length])
    start += length
    searched = start
    self.length = nil
    return .message(message)
  }

  /// Passes the line ends before a message; true for a ping, two in a row.
  private mutating func skipLineEnds() -> Bool {
    while buffer.count - start >= 2, buffer[start] == .cr, buffer[start + 1] == .lf {
      start += 2
      searched = max(searched, start)
      hasHalfPing.toggle()
      if !hasHalfPing { return true }
    }
    if start < buffer.count, buffer[start] != .cr { hasHalfPing = false }
    return false
  }

  /// Looks for the end of the head and settles `length`; a frame only if the stream is broken.
  private mutating func readHead() -> Frame? {
    var position = max(searched, start)
    var headEnd: Int?
    while position + 3 < buffer.count {
      if buffer[position] == .cr, buffer[position + 1] == .lf, buffer[position + 2] == .cr, buffer[position + 3] == .lf {
        headEnd = position + 4
        break
      }
      position += 1
    }
    searched = position
    guard let headEnd else {
      return buffer.count - start > Limits.headBytes ? fail(ParseError(.messageTooLarge, at: Limits.headBytes), upTo: start) : nil
    }
    let head = Array(buffer[start..<headEnd])
    do throws(ParseError) {
      var reader = HeadReader()
      try reader.read(head.span)
      guard let body = try ContentLength.read(head.span, reader.fields) else { throw ParseError(.contentLength, at: head.count) }
      guard head.count + body <= Limits.messageBytes else { throw ParseError(.messageTooLarge, at: head.count) }
      length = head.count + body
      return nil
    } catch {
      return fail(error, upTo: headEnd)
    }
  }

  private mutating func fail(_ error: ParseError, upTo end: Int) -> Frame {
    isBroken = true
    let head = Array(buffer[start..<end])
    buffer = []
    start = 0
    searched = 0
    length = nil
    return .broken(head, error)
  }
}
