import Bytes

extension SessionDescription {
  /// The text with CRLF line ends. Line breaks and NUL within a value are left out, so that no value can add a line.
  public var text: String {
    var out = ""
    func line(_ type: Character, _ value: String) {
      out.append(type)
      out.append("=")
      out.unicodeScalars.append(contentsOf: value.unicodeScalars.filter { $0 != "\r" && $0 != "\n" && $0 != "\0" })
      out.append("\r\n")
    }
    func lines(_ attributes: [Attribute]) {
      for attribute in attributes { line("a", attribute.value.map { "\(attribute.name):\($0)" } ?? attribute.name) }
    }
    line("v", "0")
    line("o", "\(origin.username) \(origin.sessionID) \(origin.version) \(Self.addressed(origin.address))")
    line("s", name.isEmpty ? "-" : name)
    if let connection { line("c", Self.addressed(connection.text)) }
    line("t", "0 0")
    lines(attributes)
    for section in media {
      line("m", "\(section.kind) \(section.port) \(section.transport) \(section.formats.joined(separator: " "))")
      if let connection = section.connection { line("c", Self.addressed(connection.text)) }
      lines(section.attributes)
    }
    return out
  }

  private static func addressed(_ address: String) -> String { "IN \(address.contains(":") ? "IP6" : "IP4") \(address)" }
}
