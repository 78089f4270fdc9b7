import Testing
import TrunklineBytes

@Suite struct TerminalTextTests {
  @Test(arguments: [
    "\u{1b}[2J", "\u{9b}2J", "\u{7f}", "\r", "\u{8}", "\u{7}", "\u{90}", "\u{202e}", "\u{2066}", "\u{200f}", "\u{61c}",
    "\u{2028}",
    "\u{fff9}", "\u{e0041}",
  ]) func `nothing that moves a cursor or turns text reaches a terminal`(bad: String) throws {
    let mark = try #require(bad.unicodeScalars.first)
    for shown in [TerminalText.line("a" + bad + "b"), TerminalText.page("a" + bad + "b")] {
      #expect(!shown.unicodeScalars.contains(mark) && shown.hasPrefix("a\u{fffd}") && shown.hasSuffix("b"))
    }
  }

  @Test func `a cell has one line, a page keeps its own, and names of people stay as they are`() {
    #expect(TerminalText.line("a\nb\tc") == "a\u{fffd}b\u{fffd}c" && TerminalText.page("a\nb\tc") == "a\nb\tc")
    for name in ["Zoë Ångström", "李雷", "مريم", "👩‍👩‍👧", "Ünal \"x\""] {
      #expect(TerminalText.line(name) == name && TerminalText.page(name) == name && TerminalText.json(name) == name)
    }
  }

  @Test func `JSON says the same with escapes, and its layout stays`() {
    #expect(
      TerminalText.json("{\n\t\"n\": \"a\u{9b}b\u{202e}c\u{e0041}\"\n}") == "{\n\t\"n\": \"a\\u009bb\\u202ec\\udb40\\udc41\"\n}")
  }
}
