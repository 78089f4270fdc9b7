import Foundation

/// A file of `Tests/Vectors/client`, as its README describes it: cases of events for a phone, with its expected actions.
struct VectorFile {
  struct Step {
    /// The event's line in the file, from 1.
    var line: Int
    var event: String
    var expected: [String] = []
  }

  struct Case {
    var name: String
    var line: Int
    var settings: [String] = []
    var steps: [Step] = []
    /// A case with rows is played once for each of them.
    var rows: [[String]] = []
    var comparesAcks = false
  }

  struct Problem: Error, CustomStringConvertible {
    var line: Int
    var text: String
    var description: String { "line \(line): \(text)" }
  }

  let name: String
  private(set) var lines: [String]
  private(set) var cases: [Case] = []
  private var definitions: [(name: String, text: String)] = []
  private var blocks: [String: [Step]] = [:]

  init(name: String, text: String) throws {
    self.name = name
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    var block: String?
    for (index, raw) in lines.enumerated() {
      let line = raw.trimmingCharacters(in: .whitespaces)
      guard !line.isEmpty, !line.hasPrefix("#") else { continue }
      try read(line, index + 1, &block)
    }
  }

  private mutating func read(_ line: String, _ number: Int, _ block: inout String?) throws {
    let (word, rest) = Self.split(line)
    switch word {
    case "def":
      let (name, text) = Self.split(rest)
      definitions.append((name, replaced(text)))
      // the longer name first: %call is not %c and "all"
      definitions.sort { $0.name.count > $1.name.count }
    case "block": (block, blocks[rest]) = (rest, [])
    case "case":
      block = nil
      cases.append(Case(name: rest, line: number))
    case "use":
      guard let steps = blocks[rest] else { throw Problem(line: number, text: "no block \(rest)") }
      try append(steps, block, number)
    case "<":
      let output = replaced(rest)
      if let block, let last = blocks[block]?.indices.last {
        blocks[block]?[last].expected.append(output)
      } else if block == nil, let last = cases.last?.steps.indices.last {
        cases[cases.count - 1].steps[last].expected.append(output)
      } else {
        throw Problem(line: number, text: "an output before any event")
      }
    case ">": try append([Step(line: number, event: replaced(rest))], block, number)
    case _ where word.hasPrefix("@"): try append([Step(line: number, event: word)], block, number)
    case "row", "phone", "acks", "not":
      guard block == nil, !cases.isEmpty else { throw Problem(line: number, text: "\(word) outside of a case") }
      let words = rest.split(separator: " ").map(String.init)
      switch word {
      case "row": cases[cases.count - 1].rows.append(words)
      case "phone": cases[cases.count - 1].settings += words
      // a marker for other clients
      case "not": break
      default: cases[cases.count - 1].comparesAcks = true
      }
    default: throw Problem(line: number, text: "no such line: \(word)")
    }
  }

  private mutating func append(_ steps: [Step], _ block: String?, _ number: Int) throws {
    if let block {
      blocks[block]? += steps
    } else {
      guard !cases.isEmpty else { throw Problem(line: number, text: "an event before any case") }
      cases[cases.count - 1].steps += steps
    }
  }

  private func replaced(_ text: String) -> String {
    definitions.reduce(text) { $0.replacingOccurrences(of: "%" + $1.name, with: $1.text) }
  }

  /// The file with the observed lines instead of the expected ones; events that were not played keep theirs.
  func rewritten(_ seen: [Int: [String]]) -> String {
    var out: [String] = []
    var skips = false
    for (index, line) in lines.enumerated() {
      let trimmed = line.trimmingCharacters(in: .whitespaces)
      if trimmed.hasPrefix("< ") {
        if !skips { out.append(line) }
        continue
      }
      out.append(line)
      skips = false
      if let outputs = seen[index + 1] {
        skips = true
        out += outputs.map { "< " + $0 }
      }
    }
    return out.joined(separator: "\n")
  }

  /// Splits a text into its first word and the rest.
  static func split(_ text: String) -> (String, String) {
    guard let space = text.firstIndex(of: " ") else { return (text, "") }
    return (String(text[..<space]), text[space...].trimmingCharacters(in: .whitespaces))
  }
}

extension VectorFile.Case {
  /// The case for one row: `%1` is replaced by the row's first word.
  func filled(_ row: [String]) -> Self {
    func fill(_ text: String) -> String {
      row.indices.reversed().reduce(text) { $0.replacingOccurrences(of: "%\($1 + 1)", with: row[$1]) }
    }
    var copy = self
    copy.rows = []
    copy.settings = settings.map(fill)
    copy.steps = steps.map { .init(line: $0.line, event: fill($0.event), expected: $0.expected.map(fill)) }
    return copy
  }
}
