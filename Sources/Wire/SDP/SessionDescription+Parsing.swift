import Bytes

extension SessionDescription {
  /// Reads a description. Lines may end in CRLF or LF. Required: `v=0` first, a sound `m=` line for each section, and the limits
  /// of this module; missing `o=`, `s=` and `t=` lines are forgiven, because telephone systems send such.
  public init(parsing text: String) throws(DescriptionError) {
    try self.init(parsing: Array(text.utf8))
  }

  public init(parsing bytes: [UInt8]) throws(DescriptionError) {
    guard bytes.count <= Limits.descriptionBytes else {
      throw DescriptionError(line: 0, rule: "more than \(Limits.descriptionBytes) bytes")
    }
    self.init(origin: Origin(sessionID: 0, version: 0, address: ""))
    var count = 0
    var sawVersion = false
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      count += 1
      guard count <= Limits.lines else { throw DescriptionError(line: count, rule: "more than \(Limits.lines) lines") }
      let content = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      if content.isEmpty { continue }
      try Self.checkCharacters(content, count)
      guard content.count >= 2, let type = content.first, content[content.startIndex + 1] == UInt8(ascii: "=") else {
        throw DescriptionError(line: count, rule: "RFC 8866 §5: a line is TYPE=VALUE")
      }
      let value = String(decoding: content.dropFirst(2), as: UTF8.self)
      if !sawVersion {
        guard type == UInt8(ascii: "v"), value == "0" else { throw Self.versionMissing(count) }
        sawVersion = true
        continue
      }
      try take(type, value, count)
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

  private mutating func take(_ type: UInt8, _ value: String, _ line: Int) throws(DescriptionError) {
    switch type {
    case UInt8(ascii: "o"): if media.isEmpty { origin = Self.origin(value) }
    case UInt8(ascii: "s"): if media.isEmpty { name = value }
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

  private static func origin(_ value: String) -> Origin {
    let parts = value.split(separator: " ")
    func at(_ index: Int) -> Substring { parts.indices.contains(index) ? parts[index] : "" }
    let complete = parts.count == 6
    return Origin(
      username: String(at(0)), sessionID: complete ? number(at(1)) ?? 0 : 0, version: complete ? number(at(2)) ?? 0 : 0,
      address: String(at(parts.count - 1)))
  }

  /// `IN IP4 address[/ttl[/count]]`, RFC 8866 §5.7.
  private static func connection(_ value: String, _ line: Int) throws(DescriptionError) -> Connection {
    let parts = value.split(separator: " ")
    guard parts.count == 3, parts[0] == "IN", parts[1] == "IP4" || parts[1] == "IP6",
      let text = parts[2].split(separator: "/", omittingEmptySubsequences: false).first, !text.isEmpty
    else { throw DescriptionError(line: line, rule: "RFC 8866 §5.7: c=") }
    let connection = Connection(text: String(text))
    if let address = connection.address, (address.family == .v4) != (parts[1] == "IP4") {
      throw DescriptionError(line: line, rule: "RFC 8866 §5.7: c= names another address type")
    }
    return connection
  }

  /// `media port[/count] proto fmt…`, RFC 8866 §5.14.
  private static func section(_ value: String, _ line: Int) throws(DescriptionError) -> MediaDescription {
    let parts = value.split(separator: " ")
    guard parts.count >= 4, parts.count - 3 <= Limits.formats,
      let portText = parts[1].split(separator: "/", omittingEmptySubsequences: false).first, let port: UInt16 = number(portText)
    else { throw DescriptionError(line: line, rule: "RFC 8866 §5.14: m=") }
    return MediaDescription(
      kind: String(parts[0]), port: port, transport: String(parts[2]), formats: parts.dropFirst(3).map(String.init))
  }

  private static func attribute(_ value: String) -> Attribute {
    guard let colon = value.utf8.firstIndex(of: UInt8(ascii: ":")) else { return Attribute(value) }
    return Attribute(String(value[..<colon]), String(value[value.utf8.index(after: colon)...]))
  }
}
