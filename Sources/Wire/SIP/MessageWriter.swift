/// Writes a message field by field. Line breaks and NULs inside values become spaces, so no value can add a field.
public struct MessageWriter: Sendable {
  private var bytes: [UInt8] = []

  /// A request line, with `method` and `uri` verbatim.
  public init(method: String, uri: String) {
    bytes.reserveCapacity(1024)
    append(method)
    bytes.append(32)
    append(uri)
    bytes.append(contentsOf: " SIP/2.0\r\n".utf8)
  }

  /// A status line; the usual phrase of the code if `reason` is nil.
  public init(status code: Int, reason: String? = nil) {
    bytes.reserveCapacity(1024)
    bytes.append(contentsOf: "SIP/2.0 \(code) ".utf8)
    append(reason ?? reasonPhrase(code))
    newLine()
  }

  public mutating func field(_ name: HeaderName, _ value: String) {
    append(name.row.name)
    separator()
    append(value)
    newLine()
  }

  /// A header without a row; if the name is not a token, it is omitted with its value.
  public mutating func field(named name: String, _ value: String) {
    guard !name.isEmpty, name.utf8.allSatisfy({ CharacterClass.token.contains($0) }) else { return }
    append(name)
    separator()
    append(value)
    newLine()
  }

  /// Copies all fields of a header of another message verbatim.
  public mutating func copy(_ name: HeaderName, of message: borrowing Message) {
    for field in message.fields where field.name == name { copy(field, of: message) }
  }

  /// One field of another message, under its canonical name if it has one.
  public mutating func copy(_ field: HeaderField, of message: borrowing Message) {
    if field.name == .other {
      append(message.bytes.slice(field.nameRange))
    } else {
      append(field.name.row.name)
    }
    separator()
    append(message.bytes.slice(field.value))
    newLine()
  }

  /// Ends the head with Content-Length, and Content-Type if there is a body, and returns the whole message.
  public consuming func finish(body: String? = nil, contentType: String = "application/sdp") -> [UInt8] {
    if body != nil { field(.contentType, contentType) }
    field(.contentLength, String(body?.utf8.count ?? 0))
    newLine()
    if let body { bytes.append(contentsOf: body.utf8) }
    return bytes
  }

  private mutating func separator() {
    bytes.append(.colon)
    bytes.append(32)
  }

  private mutating func newLine() {
    bytes.append(.cr)
    bytes.append(.lf)
  }

  private mutating func append(_ text: String) {
    let start = bytes.count
    bytes.append(contentsOf: text.utf8)
    for index in start..<bytes.count where bytes[index] == .cr || bytes[index] == .lf || bytes[index] == 0 { bytes[index] = 32 }
  }

  private mutating func append(_ slice: ArraySlice<UInt8>) {
    // Bytes of a parsed field; they contain CR and LF only if the message had a defect.
    let start = bytes.count
    bytes.append(contentsOf: slice)
    for index in start..<bytes.count where bytes[index] == .cr || bytes[index] == .lf { bytes[index] = 32 }
  }

  private mutating func append(_ text: StaticString) {
    bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

}

extension Message {
  /// The message rewritten: every field at its position with its own value, known names in canonical spelling, folded lines
  /// unfolded.
  public func written() -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count + 64)
    switch startLine {
    case .request(_, let name, let uri):
      out += bytes.slice(name)
      out.append(32)
      out += bytes.slice(uri)
      out += " SIP/2.0\r\n".utf8
    case .response(let code, let reason):
      out += "SIP/2.0 \(code) ".utf8
      out += bytes.slice(reason)
      out += "\r\n".utf8
    }
    for field in fields {
      if field.name == .other { out += bytes.slice(field.nameRange) } else { out += field.name.text.utf8 }
      out += ": ".utf8
      out += bytes.slice(field.value)
      out += "\r\n".utf8
    }
    out += "\r\n".utf8
    out += bytes.slice(body)
    return out
  }
}
