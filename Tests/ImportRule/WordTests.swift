import Foundation
import Testing

/// Texts that people read use the field's words (docs/contributing.md, "Words"): log messages, errors, `--help`, metrics' help, configuration
/// keys, problems of the admin API. A text is a string literal of `Sources` with a blank in it, or a line of docs/reference/admin-api.yaml.
@Suite struct WordTests {
  struct Row: Sendable, CustomTestStringConvertible {
    /// In lower case, words apart by one blank; each is looked for as whole words.
    var phrases: [String]
    var instead: String
    /// A text that the row refuses.
    var sample: String
    /// The first words of its phrases: a text with none of them need not be searched.
    var heads: Set<String>

    init(_ phrases: [String], _ instead: String, _ sample: String) {
      (self.phrases, self.instead, self.sample) = (phrases, instead, sample)
      heads = Set(phrases.map { phrase in String(phrase.prefix { $0 != " " }) })
    }
    var testDescription: String { phrases[0] }

    /// The first of its phrases in a text that `WordTests.words` has made.
    func found(in words: String) -> String? { phrases.first { words.contains(" \($0) ") } }
  }

  static let rows: [Row] = [
    .init(
      ["nobody", "somebody", "someone", "everybody", "whoever"], "no device, no user, the caller, any client",
      "an incoming call that nobody has yet"),
    .init(["whom"], "the called user, the callee", "a webhook says whom a call is for"),
    .init(["told", "tells"], "reported, notified, sent, returned", "the app was not told within 5 s"),
    .init(["anew", "once more"], "again", "import it anew to mend that"),
    .init(["any more", "anymore"], "no longer, stopped", "it does not answer any more"),
    .init(
      [
        "takes no", "takes any", "takes a", "takes calls", "takes the", "not taken", "is taken", "are taken", "taken for",
        "taken at",
      ],
      "accepts, requires, reads, applies, uses", "certificates not taken, the old ones stay"),
    .init(["takes that back", "take that back", "takes it back", "take it back"], "undoes", "A restart takes it back."),
    .init(["takes the place of", "took the place of"], "replaces, replaced", "another stream took the place of this one"),
    .init(
      ["hears nobody", "hears of", "hear of", "heard of", "are heard", "were heard", "not heard"],
      "receives, is notified, was received", "the engine's thread hears nobody"),
    .init(
      ["the engine", "an engine", "no engine", "this engine", "another engine", "the engine's"],
      "the shared store; Redis where the product is meant", "no engine: connection refused"),
    .init(["in one turn", "in a turn"], "step", "has been in one turn for 2500 ms"),
    .init(["last word", "its word", "their word"], "last change, last seen, statement", "the last word of it"),
    .init(["go on", "goes on", "went on"], "continue, resume", "calls go on without them"),
    .init(["gets on again"], "responds again", "a thread gets on again"),
    .init(["stands for", "stand for", "stands twice", "stands alone", "stands there"], "means, occurs, is", "+1 stands twice"),
    .init(["left alone"], "gets no requests, gets no calls", "a server is left alone for a while"),
    .init(["what becomes of", "what became of"], "the outcome, where calls go", "What became of them."),
    .init(["in doubt"], "unconfirmed, an open question", "this was in doubt: R7"),
    .init(["look at", "looks at", "looked at"], "checks, reads, lists", "addresses are looked at every two seconds"),
    .init(["hand on", "hands on"], "forward", "a proxy has to hand on Upgrade"),
    .init(["want", "wants"], "requires, requests", "no device wants calls"),
    .init(["found no room"], "was dropped, as … was full", "Events that found no room in memory"),
    .init(["is alone"], "is not in a cluster", "this gateway is alone"),
    .init(["asked node", "asked node's"], "queried node", "differs from the asked node's"),
    .init(["no call's id"], "not the id of a call", "x is no call's id"),
    .init(["counts for nothing", "count no more", "counts no more"], "is ignored, is not used", "whose word counts for nothing"),
    .init(["astray", "lost soul"], "without a session, orphaned", "a soul that went astray"),
    .init(
      [
        "is no number", "is no name", "is no object", "is no list", "is no integer", "is no text", "is no address", "is no time",
        "is no event", "is no trace", "is no token", "is no value", "is no kind", "is no service", "is no connected",
        "is no live",
        "is no property", "is no part", "is no host", "is no header", "are no record", "are no json", "is none of",
      ],
      "is not a …, is not one of", "\"x\" is no number: 1 to 15 digits"),
    .init(["two empty lines"], "double CRLF", "between two empty lines that keep the way back open"),
    .init(["not said"], "not reported, not observed", "not said: R7"),
    .init(["what comes", "who comes", "who calls us", "whom we call"], "name the thing", "latest: only what comes"),
  ]

  /// In lower case, between blanks, quotes and brackets gone; punctuation that ends a clause is a word of its own, so that no phrase goes across.
  static func words(_ text: String) -> String {
    var out: [UInt8] = [32]
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "'"),
        0x80...0xff:
        out.append(byte)
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): out.append(byte | 0x20)
      case UInt8(ascii: "."), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"): out += [32, byte, 32]
      default: if out.last != 32 { out.append(32) }
      }
    }
    out.append(32)
    return String(decoding: out, as: UTF8.self).replacing("  ", with: " ")
  }

  @Test func `no text has a word of our own where the field has one`() throws {
    let tree = SourceTree()
    let top = tree.root.deletingLastPathComponent()
    var count = 0
    func check(_ text: String, _ location: String) {
      count += 1
      let words = Self.words(text)
      let parts = Set(words.split(separator: " ").map(String.init))
      for row in Self.rows where !row.heads.isDisjoint(with: parts) {
        if let phrase = row.found(in: words) {
          Issue.record("\(location): \"\(phrase)\": write \(row.instead), with a subject: \(text.prefix(200))")
        }
      }
    }
    for file in tree.files {
      let source = try String(contentsOf: top.appendingPathComponent(file.path), encoding: .utf8)
      for literal in SwiftLiterals(source).found where literal.text.contains(" ") {
        check(literal.text, "\(file.path):\(literal.line)")
      }
    }
    #expect(count > 3_000, "only \(count) texts under \(tree.root.path)")
    let page = "docs/reference/admin-api.yaml"
    let lines = try String(contentsOf: top.appendingPathComponent(page), encoding: .utf8).components(separatedBy: "\n")
    #expect(lines.count > 1_000)
    for (number, line) in lines.enumerated() { check(line, "\(page):\(number + 1)") }
  }

  @Test(arguments: rows) func `a row refuses its sample`(row: Row) {
    #expect(row.found(in: Self.words(row.sample)) != nil, "\(row.sample)")
    #expect(row.phrases.allSatisfy { Self.words($0) == " \($0) " }, "written as it is looked for")
    #expect(row.found(in: Self.words(row.instead)) == nil, "what it proposes")
  }

  @Test func `a phrase goes across no punctuation, and parts of words are none`() {
    let words = Self.words("at once; more are refused. A foretold `Whom`, (NOBODY)")
    #expect(words == " at once ; more are refused . a foretold whom , nobody ")
    #expect(Self.rows.compactMap { $0.found(in: words) } == ["nobody", "whom"])
  }

  @Test func `the literals of Swift are found with their lines, comments and identifiers are not`() {
    let source = ##"""
      // "a comment's"
      let nobody = "one text" + "/* no comment */" /* "another
      comment's" */
      log("two: \(name(of: "inner one", (1))) and \"more\"")
      let raw = #"three \(not) "one" \#(x) end"#
      let block = """
        four
        \(five ?? "inner two") 6
        """
      let seven = /a"b/
      let eight = "last one"
      """##
    let found = SwiftLiterals(source).found.map { "\($0.line): \($0.text.split(separator: " ").joined(separator: " "))" }
    #expect(
      found == [
        "2: one text", "2: /* no comment */", "4: inner one", "4: two: … and \"more\"", "5: three \\(not) \"one\" … end",
        "8: inner two", "6: four … 6", "10: b/", "11: last one",
      ])
  }
}

/// The string literals of Swift source. An interpolation is a "…" in its text; literals inside it are texts of their own. A line's end closes a
/// literal of one line, so that a quotation mark in a regular expression costs one line and no more.
struct SwiftLiterals {
  private let bytes: [UInt8]
  private var at = 0
  private var line = 1
  private(set) var found: [(line: Int, text: String)] = []

  init(_ source: String) {
    bytes = Array(source.utf8)
    while at < bytes.count { step() }
  }

  private static let (quote, newline, hash, escape) = (
    UInt8(ascii: "\""), UInt8(ascii: "\n"), UInt8(ascii: "#"), UInt8(ascii: "\\")
  )
  private static let (slash, star, opening, closing) = (
    UInt8(ascii: "/"), UInt8(ascii: "*"), UInt8(ascii: "("), UInt8(ascii: ")")
  )

  /// 0 behind the end.
  private func byte(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : 0 }

  private func count(of mark: UInt8, at index: Int, most: Int = .max) -> Int {
    var count = 0
    while count < most, byte(index + count) == mark { count += 1 }
    return count
  }

  private mutating func next() {
    if byte(at) == Self.newline { line += 1 }
    at += 1
  }

  /// One byte of code, a comment or a literal.
  private mutating func step() {
    switch bytes[at] {
    case Self.slash where byte(at + 1) == Self.slash:
      while at < bytes.count, bytes[at] != Self.newline { at += 1 }
    case Self.slash where byte(at + 1) == Self.star:
      while at < bytes.count, bytes[at] != Self.star || byte(at + 1) != Self.slash { next() }
      at += 2
    case Self.quote: literal(hashes: 0)
    case Self.hash:
      let hashes = count(of: Self.hash, at: at)
      at += hashes
      if byte(at) == Self.quote { literal(hashes: hashes) }
    default: next()
    }
  }

  /// From its first quotation mark.
  private mutating func literal(hashes: Int) {
    let start = line
    let marks = count(of: Self.quote, at: at, most: 3) == 3 ? 3 : 1
    at += marks
    var text: [UInt8] = []
    while at < bytes.count {
      if count(of: Self.quote, at: at, most: marks) == marks, count(of: Self.hash, at: at + marks, most: hashes) == hashes {
        at += marks + hashes
        break
      }
      if bytes[at] == Self.escape, count(of: Self.hash, at: at + 1, most: hashes) == hashes {
        at += 1 + hashes
        if byte(at) == Self.opening {
          text += Array("…".utf8)
          interpolation()
        } else {
          text.append(byte(at) == Self.quote ? Self.quote : 32)
          next()
        }
        continue
      }
      if bytes[at] == Self.newline, marks == 1 { break }
      text.append(bytes[at] == Self.newline ? 32 : bytes[at])
      next()
    }
    found.append((start, String(decoding: text, as: UTF8.self)))
  }

  /// From its opening bracket to behind the closing one.
  private mutating func interpolation() {
    var depth = 0
    repeat {
      if bytes[at] == Self.opening { depth += 1 }
      if bytes[at] == Self.closing { depth -= 1 }
      step()
    } while depth > 0 && at < bytes.count
  }
}
