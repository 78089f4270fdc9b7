/// An error of libyaml in the words of the file's author; nil where libyaml's own text is used.
struct YAMLFault {
  /// The text of libyaml.
  var text: String
  /// The line that libyaml points at, and the column from 1.
  var line: Substring
  var column: Int

  var message: String? {
    if hasTab { return "a tab in the indentation: write spaces" }
    if isAtIPv6 { return "an IPv6 address goes in quotes: \"[::1]:5060\", \"2001:db8::1\"" }
    let indentation = "wrong indentation: the keys of one section, and the dashes of one list, must be exactly below each other"
    switch text {
    case "did not find expected key", "did not find expected '-' indicator":
      return line.prefix { $0 == " " }.count == column - 1 ? indentation : nil
    case "mapping values are not allowed in this context":
      // The column is that of the first key on the line: it is indented more than the key above, which has its value already.
      return before.contains(": ") ? "a second \": \" on one line: put the value in quotes" : indentation
    default: return nil
    }
  }

  private var before: Substring { line.prefix(column - 1) }

  private var hasTab: Bool {
    line.prefix { $0 == " " || $0 == "\t" }.contains("\t") || line.dropFirst(column - 1).first == "\t"
  }

  /// Whether the word at the column is an IPv6 address, with a port or without.
  private var isAtIPv6: Bool {
    let separators: Set<Character> = [" ", "\t", ",", "{", "}"]
    let start = before.lastIndex(where: separators.contains).map { line.index(after: $0) } ?? line.startIndex
    var word = line[start...].prefix { !separators.contains($0) }
    if let bracket = word.lastIndex(of: "[") { word = word[bracket...].dropFirst().prefix { $0 != "]" } }
    return word.contains("::") && word.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
  }
}
