import TrunklineBytes

extension SessionDescription {
  /// Reads a description. Lines may end in CRLF or LF. Required: `v=0` first, a valid `m=` line for each section, and the
  /// limits of this module; missing `o=`, `s=` and `t=` lines are accepted, because telephone systems omit them.
  public init(parsing text: String) throws(DescriptionError) {
    try self.init(parsing: Array(text.utf8))
  }

  /// The same for a negotiation, which may read an offer more than once.
  public static func read(_ text: String) throws(NegotiationError) -> SessionDescription {
    do { return try SessionDescription(parsing: text) } catch { throw .malformed(error) }
  }

  public init(parsing bytes: [UInt8]) throws(DescriptionError) {
    guard bytes.count <= Limits.descriptionBytes else {
      throw DescriptionError(line: 0, rule: "more than \(Limits.descriptionBytes) bytes")
    }
    self.init(origin: Origin(sessionID: 0, version: 0, address: ""))
    var count = 0
    var sawVersion = false
    var rest: ArraySlice<UInt8>? = bytes[...]
    while let part = rest {
      let end = part.firstIndex(of: UInt8(ascii: "\n"))
      let line = end.map { part[..<$0] } ?? part
      rest = end.map { part[($0 + 1)...] }
      count += 1
      guard count <= Limits.lines else { throw DescriptionError(line: count, rule: "more than \(Limits.lines) lines") }
      let content = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      if content.isEmpty { continue }
      try Self.checkCharacters(content, count)
      guard content.count >= 2, let type = content.first, content[content.startIndex + 1] == UInt8(ascii: "=") else {
        throw DescriptionError(line: count, rule: "RFC 8866 §5: a line is TYPE=VALUE")
      }
      let value = content.dropFirst(2)
      if !sawVersion {
        guard type == UInt8(ascii: "v"), value.elementsEqual("0".utf8) else { throw Self.versionMissing(count) }
        sawVersion = true
        continue
      }
      try parse(type, value, line: count)
    }
    guard sawVersion else { throw Self.versionMissing(0) }
  }

  private static func versionMissing(_ line: Int) -> DescriptionError {
    DescriptionError(line: line, rule: "RFC 8866 §5.1: v=0 comes first")
  }

  private static func checkCharacters(_ content: ArraySlice<UInt8>, _ line: Int) throws(DescriptionError) {
    guard content.count <= Limits.lineBytes else {
      throw DescriptionError(line: line, rule: "more than \(Limits.lineBytes) bytes")
    }
    guard !content.contains(where: { $0 == 0 || $0 == UInt8(ascii: "\r") }) else {
      throw DescriptionError(line: line, rule: "RFC 8866 §9: NUL or CR within a line")
    }
  }

  private mutating func parse(_ type: UInt8, _ value: ArraySlice<UInt8>, line: Int) throws(DescriptionError) {
    switch type {
    case UInt8(ascii: "o"): if media.isEmpty { origin = Self.origin(value) }
    case UInt8(ascii: "s"): if media.isEmpty { name = Self.text(value) }
    case UInt8(ascii: "c"):
      let connection = try Self.connection(value, line)
      if media.isEmpty { self.connection = connection } else { media[media.count - 1].connection = connection }
    case UInt8(ascii: "a"):
      let attribute = Self.attribute(value)
      let present = media.last?.attributes.count ?? attributes.count
      guard present < Limits.attributesPerSection else {
        throw DescriptionError(line: line, rule: "more than \(Limits.attributesPerSection) attributes")
      }
      if media.isEmpty { attributes.append(attribute) } else { media[media.count - 1].attributes.append(attribute) }
    case UInt8(ascii: "m"):
      guard media.count < Limits.mediaSections else {
        throw DescriptionError(line: line, rule: "more than \(Limits.mediaSections) media sections")
      }
      media.append(try Self.section(value, line))
    default: break
    }
  }

  /// Invalid UTF-8 is repaired.
  private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

  /// The parts between spaces, at most one more than are used.
  private static func words(_ value: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    value.split(separator: UInt8(ascii: " "), maxSplits: Limits.formats + 4)
  }

  /// The part before a slash.
  private static func beforeSlash(_ word: ArraySlice<UInt8>) -> ArraySlice<UInt8> { word.prefix { $0 != UInt8(ascii: "/") } }

  private static func origin(_ value: ArraySlice<UInt8>) -> Origin {
    let parts = words(value)
    func at(_ index: Int) -> ArraySlice<UInt8> { parts.indices.contains(index) ? parts[index] : [] }
    let complete = parts.count == 6
    return Origin(
      username: text(at(0)), sessionID: complete ? number(digits: at(1)) ?? 0 : 0,
      version: complete ? number(digits: at(2)) ?? 0 : 0, address: text(at(parts.count - 1)))
  }

  /// `IN IP4 address[/ttl[/count]]`, RFC 8866 §5.7.
  private static func connection(_ value: ArraySlice<UInt8>, _ line: Int) throws(DescriptionError) -> Connection {
    let parts = words(value)
    guard parts.count == 3, parts[0].elementsEqual("IN".utf8) else { throw connectionUnsound(line) }
    let isV4 = parts[1].elementsEqual("IP4".utf8)
    let address = beforeSlash(parts[2])
    guard isV4 || parts[1].elementsEqual("IP6".utf8), !address.isEmpty else { throw connectionUnsound(line) }
    let connection = Connection(text: text(address))
    if let address = connection.address, (address.family == .v4) != isV4 {
      throw DescriptionError(line: line, rule: "RFC 8866 §5.7: c= names another address type")
    }
    return connection
  }

  private static func connectionUnsound(_ line: Int) -> DescriptionError {
    DescriptionError(line: line, rule: "RFC 8866 §5.7: c=")
  }

  /// `media port[/count] proto fmt…`, RFC 8866 §5.14. A section that is off (port 0) may lack formats: some peers refuse one so.
  private static func section(_ value: ArraySlice<UInt8>, _ line: Int) throws(DescriptionError) -> MediaDescription {
    let parts = words(value)
    guard parts.count >= 3, parts.count - 3 <= Limits.formats, let port: UInt16 = number(digits: beforeSlash(parts[1])),
      parts.count > 3 || port == 0
    else {
      throw DescriptionError(line: line, rule: "RFC 8866 §5.14: m=")
    }
    return MediaDescription(kind: text(parts[0]), port: port, transport: text(parts[2]), formats: parts.dropFirst(3).map(text))
  }

  private static func attribute(_ value: ArraySlice<UInt8>) -> Attribute {
    guard let colon = value.firstIndex(of: UInt8(ascii: ":")) else { return Attribute(text(value)) }
    return Attribute(text(value[..<colon]), text(value[(colon + 1)...]))
  }
}
