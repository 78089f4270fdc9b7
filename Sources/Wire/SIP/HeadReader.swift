/// Finds the start line, the header fields and the body of a message.
struct HeadReader {
  var startLine = StartLine.response(code: 0, reason: .empty)
  var fields: [HeaderField] = []
  var body = ByteRange.empty
  var defect: ParseError?
  /// Offsets of the CR and LF bytes that fold a line.
  var folds: [Int] = []
  private var headEnd = 0

  mutating func read(_ bytes: Span<UInt8>) throws(ParseError) {
    var position = 0
    while position + 1 < bytes.count, bytes[position] == .cr, bytes[position + 1] == .lf { position += 2 }
    position = try readStartLine(bytes, from: position)
    fields.reserveCapacity(24)
    let index = HeaderIndex.shared
    while true {
      guard position + 1 < bytes.count, position <= Limits.headBytes else {
        throw ParseError(position > Limits.headBytes ? .messageTooLarge : .lineEnd, at: position)
      }
      if bytes[position] == .cr, bytes[position + 1] == .lf { break }
      position = try readField(bytes, from: position, index)
    }
    headEnd = position + 2
  }

  /// Notes a fault; only the first is kept.
  private mutating func note(_ rule: ParseError.Rule, at offset: Int) {
    if defect == nil { defect = ParseError(rule, at: offset) }
  }

  /// The offset of the CR of the line end at or after `start`. A lone CR or LF is noted as a fault and skipped.
  private mutating func lineEnd(_ bytes: Span<UInt8>, from start: Int) throws(ParseError) -> Int {
    var position = start
    let count = bytes.count
    while position < count {
      let byte = bytes[position]
      if byte <= 13 {
        if byte == .cr, position + 1 < count, bytes[position + 1] == .lf { return position }
        if byte == .cr || byte == .lf { note(.lineEnd, at: position) }
      }
      position &+= 1
    }
    throw ParseError(.lineEnd, at: count)
  }

  private mutating func readField(_ bytes: Span<UInt8>, from start: Int, _ index: borrowing HeaderIndex) throws(ParseError) -> Int
  {
    var scanner = Scanner(bytes, ByteRange(from: start, to: bytes.count))
    let name = scanner.run(.token)
    scanner.skipBlanks()
    let hasColon = !name.isEmpty && scanner.skip(.colon)
    var valueStart = hasColon ? scanner.position : start
    var end = try lineEnd(bytes, from: valueStart)
    while end + 2 < bytes.count, bytes[end + 2].isBlank {
      folds.append(end)
      folds.append(end + 1)
      end = try lineEnd(bytes, from: end + 2)
    }
    let next = end + 2
    guard hasColon else {
      note(.headerName, at: start)
      return next
    }
    while valueStart < end, bytes[valueStart].isBlank || bytes[valueStart] == .cr || bytes[valueStart] == .lf { valueStart &+= 1 }
    while end > valueStart, bytes[end - 1].isBlank || bytes[end - 1] == .cr || bytes[end - 1] == .lf { end &-= 1 }
    if end - valueStart > Limits.fieldBytes { note(.fieldTooLong, at: start) }
    guard fields.count < Limits.fields else { throw ParseError(.tooManyFields, at: start) }
    fields.append(HeaderField(name: index.find(bytes, name), nameRange: name, value: ByteRange(from: valueStart, to: end)))
    return next
  }
}

extension HeadReader {
  private mutating func readStartLine(_ bytes: Span<UInt8>, from start: Int) throws(ParseError) -> Int {
    let end = try lineEnd(bytes, from: start)
    var scanner = Scanner(bytes, ByteRange(from: start, to: end))
    let word = scanner.run(.token)
    guard !word.isEmpty else { throw ParseError(.startLine, at: start) }
    if scanner.next == .slash, bytes.equals(word, "sip") {
      startLine = try readStatusLine(bytes, ByteRange(from: start, to: end))
      return end + 2
    }
    guard scanner.skip(32) else { throw ParseError(.startLine, at: scanner.position) }
    let uriStart = scanner.position
    var versionStart = end
    while versionStart > uriStart, bytes[versionStart - 1] != 32 { versionStart -= 1 }
    guard versionStart > uriStart else { throw ParseError(.startLine, at: uriStart) }
    let version = ByteRange(from: versionStart, to: end)
    if !bytes.equals(version, "sip/2.0") {
      note(isVersion(bytes, version) ? .version : .startLine, at: versionStart)
    }
    startLine = .request(Method(bytes, word), name: word, uri: ByteRange(from: uriStart, to: versionStart - 1))
    return end + 2
  }

  private mutating func readStatusLine(_ bytes: Span<UInt8>, _ line: ByteRange) throws(ParseError) -> StartLine {
    var scanner = Scanner(bytes, line)
    let versionStart = scanner.position
    while !scanner.atEnd, scanner.next != 32 { scanner.position += 1 }
    if !bytes.equals(ByteRange(from: versionStart, to: scanner.position), "sip/2.0") { note(.version, at: versionStart) }
    try scanner.expect(32, .startLine)
    let codeStart = scanner.position
    let code = try scanner.number(upTo: 999, .startLine)
    guard scanner.position - codeStart == 3, (100...699).contains(code) else { throw ParseError(.startLine, at: codeStart) }
    // Some peers omit the SP before an empty reason phrase, which RFC 3261 §7.2 requires; it does not matter here.
    guard scanner.atEnd || scanner.skip(32) else { throw ParseError(.startLine, at: scanner.position) }
    return .response(code: Int(code), reason: ByteRange(from: scanner.position, to: line.upper))
  }

  private func isVersion(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
    guard range.count > 4, bytes.equals(ByteRange(from: range.lower, to: range.lower + 4), "sip/") else { return false }
    for index in range.lower + 4..<min(range.upper, bytes.count) where !bytes[index].isDigit && bytes[index] != UInt8(ascii: ".")
    {
      return false
    }
    return true
  }

  /// Determines the body (RFC 3261 §18.3): Content-Length bytes, or on datagrams without it the rest.
  mutating func frameBody(_ bytes: Span<UInt8>, onStream: Bool) {
    let rest = ByteRange(from: headEnd, to: bytes.count)
    body = rest
    do throws(ParseError) {
      guard let length = try ContentLength.read(bytes, fields) else {
        if onStream { throw ParseError(.contentLength, at: headEnd) }
        return
      }
      guard length <= rest.count else { throw ParseError(.bodyTooShort, at: bytes.count) }
      body = ByteRange(from: headEnd, to: headEnd + length)
    } catch {
      note(error.rule, at: error.offset)
    }
  }
}
