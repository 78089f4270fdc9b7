import TrunklineBytes

extension SessionDescription {
  /// The text with CRLF line ends. Line breaks and NUL within a value are left out, so that no value can add a line.
  public var text: String {
    var out: [UInt8] = []
    out.reserveCapacity(Self.usualBytes)
    func line(_ type: StaticString, _ value: String, _ rest: String? = nil) {
      out.append(contentsOf: UnsafeBufferPointer(start: type.utf8Start, count: type.utf8CodeUnitCount))
      Self.append(value, to: &out)
      if let rest {
        out.append(UInt8(ascii: ":"))
        Self.append(rest, to: &out)
      }
      out.append(UInt8(ascii: "\r"))
      out.append(UInt8(ascii: "\n"))
    }
    func lines(_ attributes: [Attribute]) { for attribute in attributes { line("a=", attribute.name, attribute.value) } }
    line("v=", "0")
    line("o=", "\(origin.username) \(origin.sessionID) \(origin.version) \(Self.addressed(origin.address))")
    line("s=", name.isEmpty ? "-" : name)
    if let connection { line("c=", Self.addressed(connection.text)) }
    line("t=", "0 0")
    lines(attributes)
    for section in media {
      line("m=", ([section.kind, String(section.port), section.transport] + section.formats).joined(separator: " "))
      if let connection = section.connection { line("c=", Self.addressed(connection.text)) }
      lines(section.attributes)
    }
    return String(decoding: out, as: UTF8.self)
  }

  private static let usualBytes = 512

  private static func append(_ text: String, to out: inout [UInt8]) {
    let isSound = { (byte: UInt8) in byte != UInt8(ascii: "\r") && byte != UInt8(ascii: "\n") && byte != 0 }
    if text.utf8.allSatisfy(isSound) { out.append(contentsOf: text.utf8) } else { out += text.utf8.filter(isSound) }
  }

  private static func addressed(_ address: String) -> String { "IN \(address.contains(":") ? "IP6" : "IP4") \(address)" }
}
