/// Makes external text safe for a terminal or a log. A caller's name, an app's platform or a server's reason may contain
/// characters that move the cursor, begin a line that looks like ours, or change the reading direction: C0 and C1 controls, DEL,
/// and the format characters of bidirectional text (UAX #9) and of lines. Each of them becomes U+FFFD, or its escape in JSON.
///
///     TerminalText.line("Eve\u{1b}[2J\n")     // "Eve\u{fffd}[2J\u{fffd}"
///     TerminalText.page("a\tb\nc\u{9b}2J")    // "a\tb\nc\u{fffd}2J"
public enum TerminalText {
  /// For one cell or one line: line feeds and tabs are replaced, too.
  public static func line(_ text: String) -> String { replacing(text) { isUnsafe($0) } }

  /// For lines that we generate: line feeds and tabs stay.
  public static func page(_ text: String) -> String { replacing(text) { isUnsafe($0) && $0 != "\n" && $0 != "\t" } }

  /// JSON keeps its meaning: such a character can only be inside a string, where its escape is equivalent.
  public static func json(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isUnsafe) else { return text }
    var out = ""
    for scalar in text.unicodeScalars {
      if !isUnsafe(scalar) || isSpace(scalar) { out.unicodeScalars.append(scalar) } else { out += escape(scalar) }
    }
    return out
  }

  public static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0: true
    // marks, embeddings, overrides and isolates; separators of lines and paragraphs
    case 0x061c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x206f: true
    // annotations, and invisible tags
    case 0xfff9...0xfffb, 0xe0000...0xe007f: true
    default: false
    }
  }

  /// `\u001b`, in JSON. Two escapes beyond the basic plane (RFC 8259 §7).
  public static func escape(_ scalar: Unicode.Scalar) -> String {
    UTF16.encode(scalar).map { units in
      units.map { "\\u" + String(repeating: "0", count: 4 - String($0, radix: 16).count) + String($0, radix: 16) }.joined()
    } ?? ""
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == "\n" || scalar == "\r" || scalar == "\t" }

  private static func replacing(_ text: String, _ isReplaced: (Unicode.Scalar) -> Bool) -> String {
    guard text.unicodeScalars.contains(where: isReplaced) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { isReplaced($0) ? "\u{fffd}" : $0 }))
  }
}
