/// The kind of a message's body, as far as calls need it.
public enum SessionBody: Hashable, Sendable {
  case none
  /// The text of `application/sdp`, alone or as a part of a multipart body.
  case sdp(String)
  /// A body without an SDP part; its media type.
  case other(String)
}

extension Message {
  /// The session description in the body. A body without Content-Type is read as SDP: peers that omit it send SDP. Throws if
  /// Content-Type or the multipart structure is malformed.
  public var sessionBody: SessionBody {
    get throws(ParseError) {
      guard !body.isEmpty else { return .none }
      guard let type = try contentType else { return .sdp(text(body)) }
      if type.mediaType == "application/sdp" { return .sdp(text(body)) }
      guard type.mediaType.hasPrefix("multipart/") else { return .other(type.mediaType) }
      guard let boundary = type.boundary, !boundary.isEmpty else { throw ParseError(.multipart, at: body.lower) }
      for part in try parts(boundary: Array(boundary.utf8)) {
        if let sdp = try sdp(inPart: part) { return .sdp(sdp) }
      }
      return .other(type.mediaType)
    }
  }

  /// The body parts of RFC 2046 §5.1.1, each with its own header fields.
  private func parts(boundary: [UInt8]) throws(ParseError) -> [ByteRange] {
    let marker = [UInt8(ascii: "-"), UInt8(ascii: "-")] + boundary
    var out: [ByteRange] = []
    var partStart: Int?
    var line = body.lower
    while line < body.upper {
      let lineEnd = bytes[line..<body.upper].firstIndex(of: .lf) ?? body.upper
      if bytes[line..<lineEnd].starts(with: marker) {
        if let start = partStart {
          // The line end before the marker belongs to the marker.
          var end = line
          if end > start, bytes[end - 1] == .lf { end -= 1 }
          if end > start, bytes[end - 1] == .cr { end -= 1 }
          out.append(ByteRange(from: start, to: end))
        }
        guard out.count <= Limits.bodyParts else { throw ParseError(.listTooLong, at: line) }
        if bytes[line..<lineEnd].dropFirst(marker.count).starts(with: [UInt8(ascii: "-"), UInt8(ascii: "-")]) { return out }
        partStart = min(lineEnd + 1, body.upper)
      }
      line = lineEnd + 1
    }
    // Some peers omit the last delimiter: the part ends with the body.
    guard let partStart, partStart < body.upper || !out.isEmpty else { throw ParseError(.multipart, at: body.upper) }
    if partStart == body.upper { return out }
    guard out.count < Limits.bodyParts else { throw ParseError(.listTooLong, at: partStart) }
    return out + [ByteRange(from: partStart, to: body.upper)]
  }

  private func sdp(inPart part: ByteRange) throws(ParseError) -> String? {
    var line = part.lower
    var isSDP = false
    while line < part.upper {
      let lineEnd = bytes[line..<part.upper].firstIndex(of: .lf) ?? part.upper
      var end = lineEnd
      if end > line, bytes[end - 1] == .cr { end -= 1 }
      if end == line { return isSDP ? text(ByteRange(from: min(lineEnd + 1, part.upper), to: part.upper)) : nil }
      var scanner = Scanner(bytes.span, ByteRange(from: line, to: end))
      let name = scanner.run(.token)
      scanner.skipBlanks()
      if scanner.equals(name, "content-type"), scanner.skip(.colon) {
        scanner.skipBlanks()
        let value = try ContentType.parse(bytes.span, ByteRange(from: scanner.position, to: end), bytes)
        isSDP = value.mediaType == "application/sdp"
      }
      line = lineEnd + 1
    }
    return nil
  }
}
