/// One line of a CSV file (RFC 4180); no field contains a line break.
public enum CSVLine {
  /// The fields; nil: a quotation mark is misplaced.
  public static func fields(_ text: String) -> [String]? {
    guard text.utf8.contains(UInt8(ascii: "\"")) else {
      return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
    var out: [String] = []
    var rest = Substring(text)
    while true {
      var field = ""
      if rest.first == "\"" {
        rest.removeFirst()
        while true {
          guard let end = rest.firstIndex(of: "\"") else { return nil }
          field += rest[..<end]
          rest = rest[rest.index(after: end)...]
          guard rest.first == "\"" else { break }
          field += "\""
          rest.removeFirst()
        }
      } else {
        field = String(rest.prefix { $0 != "," })
        guard !field.contains("\"") else { return nil }
        rest = rest.dropFirst(field.count)
      }
      out.append(field)
      guard let next = rest.popFirst() else { return out }
      guard next == "," else { return nil }
    }
  }

  /// Quotes a field as `fields` reads it.
  public static func quoted(_ field: String) -> String {
    guard field.contains(where: { $0 == "," || $0 == "\"" }) else { return field }
    return "\"\(field.replacing("\"", with: "\"\""))\""
  }
}
