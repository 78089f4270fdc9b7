/// Replaces (RFC 3891 §6.1): the dialog that an INVITE replaces, from the reader's point of view.
public struct Replaces: Hashable, Sendable {
  public var callID: String
  /// The reader's own tag.
  public var toTag: String
  /// The other party's tag.
  public var fromTag: String
  public var isEarlyOnly: Bool

  public init(callID: String, toTag: String, fromTag: String, isEarlyOnly: Bool = false) {
    (self.callID, self.toTag, self.fromTag, self.isEarlyOnly) = (callID, toTag, fromTag, isEarlyOnly)
  }

  /// As written in the header.
  public var text: String { "\(callID);to-tag=\(toTag);from-tag=\(fromTag)" + (isEarlyOnly ? ";early-only" : "") }

  /// Reads a standalone value, such as the unescaped one of a Refer-To URI; nil if it is malformed.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard let value = try? Replaces.parse(bytes.span, ByteRange(from: 0, to: bytes.count), bytes) else { return nil }
    self = value
  }

  static func parse(_ bytes: Span<UInt8>, _ range: ByteRange, _ array: [UInt8]) throws(ParseError) -> Replaces {
    var scanner = Scanner(bytes, range)
    scanner.skipBlanks()
    let start = scanner.position
    while !scanner.atEnd, scanner.next != .semicolon, !scanner.next.isBlank { scanner.position += 1 }
    let callID = try CallID.parse(bytes, ByteRange(from: start, to: scanner.position))
    var value = Replaces(callID: array.text(callID), toTag: "", fromTag: "")
    while let parameter = try scanner.parameter() {
      if scanner.equals(parameter.name, "to-tag"), let tag = parameter.value { value.toTag = array.text(tag) }
      if scanner.equals(parameter.name, "from-tag"), let tag = parameter.value { value.fromTag = array.text(tag) }
      if scanner.equals(parameter.name, "early-only") { value.isEarlyOnly = true }
    }
    try scanner.finish()
    guard !value.toTag.isEmpty, !value.fromTag.isEmpty else { throw ParseError(.parameter, at: range.lower) }
    return value
  }
}

extension Message {
  /// Nil if absent.
  public var replaces: Replaces? {
    get throws(ParseError) {
      try field(.replaces).map { field throws(ParseError) in try Replaces.parse(bytes.span, field.value, bytes) }
    }
  }
}
