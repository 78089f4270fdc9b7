import Configuration
import Foundation
import Testing
import TrunklineAppProtocol

/// Targets of the documents' links exist, and their samples are valid. `json frames` after a fence: a frame of the app protocol
/// in each line; `json`: an object in each line; `yaml`: a whole configuration.
@Suite struct DocumentsTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  struct Page: Sendable {
    var path: String
    var lines: [String]
  }

  /// Files of the repository by their paths. Build products and installed files are in hidden folders, with ten times as many
  /// files: these are not entered.
  private static let files: [String] = {
    let entries = FileManager.default.enumerator(atPath: root.path)
    var files: [String] = []
    while let path = entries?.nextObject() as? String {
      if path.split(separator: "/").last?.hasPrefix(".") == true {
        entries?.skipDescendants()
      } else if path.hasSuffix(".md") || path.hasSuffix(".swift") {
        files.append(path)
      }
    }
    return files.sorted()
  }()

  /// README.md, those of Bench and Tests, and everything under docs.
  private static let pages = Result {
    try files.filter { $0.hasSuffix(".md") }.map { path in
      Page(
        path: path,
        lines: try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8).components(separatedBy: "\n"))
    }
  }

  /// The anchor that a heading gets on the web: lower case, hyphens for spaces, no other punctuation.
  static func anchor(_ heading: String) -> String {
    let text = heading.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
    return String(text.compactMap { $0 == " " ? "-" : $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" ? $0 : nil })
  }

  /// Targets of links and pictures outside of fences that are not URLs.
  static func links(_ lines: [String]) -> [(line: Int, target: String)] {
    var isFenced = false
    return lines.enumerated().flatMap { number, line -> [(line: Int, target: String)] in
      if fence(line) != nil { isFenced.toggle() }
      guard !isFenced else { return [] }
      return line.matches(of: /\]\(([^()\s]+)\)/).map { (number + 1, String($0.1)) }.filter { !$0.target.contains("://") }
    }
  }

  /// The text after the backticks of a fence, which may be in a list; nil for another line.
  private static func fence(_ line: String) -> String? {
    let text = line.drop { $0 == " " }
    return text.hasPrefix("```") ? String(text.dropFirst(3)) : nil
  }

  /// The blocks after a fence with exactly this word or these words, and the number of their first line.
  static func samples(_ kind: String, in lines: [String]) -> [(line: Int, lines: [String])] {
    var found: [(line: Int, lines: [String])] = []
    var open: String?
    for (number, line) in lines.enumerated() {
      if let word = fence(line) {
        open = open == nil ? word : nil
        if open == kind { found.append((number + 2, [])) }
      } else if open == kind {
        found[found.count - 1].lines.append(line)
      }
    }
    return found
  }

  /// The anchors of a page's headings, in order; a repeated heading gets the number of earlier ones appended, as on the web.
  static func anchors(_ lines: [String]) -> [String] {
    var isFenced = false
    var counts: [String: Int] = [:]
    var found: [String] = []
    for line in lines {
      if fence(line) != nil { isFenced.toggle() }
      guard !isFenced, line.hasPrefix("#") else { continue }
      let plain = anchor(line)
      let count = counts[plain, default: 0]
      counts[plain] = count + 1
      found.append(count == 0 ? plain : "\(plain)-\(count)")
    }
    return found
  }

  /// Paragraphs and list items with their number of words, by first line. Tables, headings and code do not count.
  static func paragraphs(_ lines: [String]) -> [(line: Int, words: Int)] {
    var isFenced = false
    var isOpen = false
    var found: [(line: Int, words: Int)] = []
    for (number, line) in lines.enumerated() {
      let text = line.trimmingCharacters(in: .whitespaces)
      if fence(line) != nil { isFenced.toggle() }
      guard !isFenced, !text.isEmpty, !["#", "|", "```", "<!--"].contains(where: text.hasPrefix) else {
        isOpen = false
        continue
      }
      let isItem = ["- ", "* "].contains(where: text.hasPrefix) || text.prefixMatch(of: /\d+\.\s/) != nil
      if isItem || !isOpen { found.append((number + 1, 0)) }
      isOpen = true
      found[found.count - 1].words += text.split(separator: " ").count
    }
    return found
  }

  /// Checks the target of a link or of a name `PATH#ANCHOR`: nil if it exists, else the missing part.
  private static func missing(_ target: String, in folder: URL, page: URL) throws -> String? {
    let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let file = parts[0].isEmpty ? page : folder.appendingPathComponent(parts[0])
    guard FileManager.default.fileExists(atPath: file.path) else { return "no file \(target)" }
    guard parts.count == 2 else { return nil }
    let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    return anchors(lines).contains(parts[1]) ? nil : "no heading for \(target)"
  }

  @Test func `every relative link leads to a file, and its anchor to a heading`() throws {
    var count = 0
    for page in try Self.pages.get() {
      for (line, target) in Self.links(page.lines) {
        count += 1
        let file = Self.root.appendingPathComponent(page.path)
        if let missing = try Self.missing(target, in: file.deletingLastPathComponent(), page: file) {
          Issue.record("\(page.path):\(line): \(missing)")
        }
      }
    }
    #expect(count > 400, "only \(count) links were found")
  }

  @Test func `every page that a source file, a script or a configuration names is there`() throws {
    var count = 0
    let endings = [".swift", ".c", ".h", ".js", ".mjs", ".ts", ".py", ".sh", ".yml", ".yaml", ".json", ".css", ".txt"]
    for folder in ["Sources", "Tests", "Bench/Sources", "Deploy", "Examples", "Scripts"] {
      let base = Self.root.appendingPathComponent(folder)
      let entries = FileManager.default.enumerator(atPath: base.path)
      while let path = entries?.nextObject() as? String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        if name.hasPrefix(".") || name == "node_modules" {
          entries?.skipDescendants()
          continue
        }
        let isSource = endings.contains(where: path.hasSuffix) || folder == "Scripts"
        guard isSource, let text = try? String(contentsOf: base.appendingPathComponent(path), encoding: .utf8),
          text.contains("docs/")
        else { continue }
        for (number, line) in text.components(separatedBy: "\n").enumerated() where line.contains("docs/") {
          for match in line.matches(of: /docs\/([a-z0-9\/-]+\.(md|yaml|json)(#[a-z0-9-]+)?)/) {
            count += 1
            let missing = try Self.missing(String(match.1), in: Self.root.appendingPathComponent("docs"), page: Self.root)
            #expect(missing == nil, "\(folder)/\(path):\(number + 1): \(missing ?? "")")
          }
        }
      }
    }
    #expect(count > 150, "only \(count) names were found")
  }

  @Test func `no paragraph has more than 120 words`() throws {
    var count = 0
    for page in try Self.pages.get() {
      for (line, words) in Self.paragraphs(page.lines) {
        count += 1
        #expect(words <= 120, "\(page.path):\(line): \(words) words: split it, or make a list of it")
      }
    }
    #expect(count > 500, "only \(count) paragraphs were found")
  }

  @Test func `no line outside of a table, a heading and code is longer than 200 characters`() throws {
    for page in try Self.pages.get() {
      var isFenced = false
      for (number, line) in page.lines.enumerated() {
        if Self.fence(line) != nil { isFenced.toggle() }
        let text = line.drop { $0 == " " }
        guard !isFenced, !["|", "#", "!["].contains(where: text.hasPrefix), !line.hasPrefix("    ") else { continue }
        #expect(line.count <= 200, "\(page.path):\(number + 1): \(line.count) characters")
      }
    }
  }

  @Test func `an entry of the glossary has at most 25 words, and is in order`() throws {
    let page = try #require(try Self.pages.get().first { $0.path == "docs/reference/glossary.md" })
    let rows = page.lines.filter { $0.hasPrefix("| ") }.dropFirst().map { row in
      row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    #expect(rows.count > 50, "only \(rows.count) entries were found")
    for row in rows {
      #expect(row.count == 2 && row.last.map { $0.split(separator: " ").count <= 25 } == true, "\(row.joined(separator: ": "))")
    }
    let terms = rows.compactMap(\.first).map { $0.lowercased() }
    for (term, next) in zip(terms, terms.dropFirst()) { #expect(term < next, "\(next) stands behind \(term)") }
  }

  @Test func `docs/index.md names every page once`() throws {
    let pages = try Self.pages.get().map(\.path).filter { $0.hasPrefix("docs/") && $0 != "docs/index.md" }
    let index = try #require(try Self.pages.get().first { $0.path == "docs/index.md" })
    let named = Self.links(index.lines).map { "docs/" + $0.target }
    for page in pages {
      #expect(named.count { $0 == page } == 1, "\(page) stands \(named.count { $0 == page }) times in docs/index.md")
    }
    #expect(pages.count > 20)
  }

  @Test func `every Swift file that docs/contributing.md or docs/architecture.md names is there`() throws {
    let paths = Self.files.filter { $0.hasSuffix(".swift") }.map { "/" + $0 }
    for page in try Self.pages.get() where ["docs/contributing.md", "docs/architecture.md"].contains(page.path) {
      var count = 0
      for (number, line) in page.lines.enumerated() {
        for match in line.matches(of: /`([A-Za-z0-9\/]+(\+[A-Za-z]+)?\.swift)`/) {
          count += 1
          #expect(paths.contains { $0.hasSuffix("/" + match.1) }, "\(page.path):\(number + 1): no file \(match.1)")
        }
      }
      #expect(count > 20, "\(page.path): only \(count) files were found")
    }
  }

  @Test func `every sample of frames is one that the protocol reads`() throws {
    var count = 0
    for page in try Self.pages.get() {
      for sample in Self.samples("json frames", in: page.lines) {
        for (offset, line) in sample.lines.enumerated() {
          count += 1
          let bytes = Array(line.utf8)
          let (client, server) = (try ClientFrame(decoding: bytes).body, try ServerFrame(decoding: bytes).body)
          var isMessage = false
          if case .message = client { isMessage = true }
          if case .message = server { isMessage = true }
          #expect(isMessage, "\(page.path):\(sample.line + offset): app: \(client), gateway: \(server)")
        }
      }
    }
    #expect(count > 10, "only \(count) frames were found")
  }

  @Test func `every other JSON sample is an object, and every YAML sample a configuration`() throws {
    var (objects, files) = (0, 0)
    for page in try Self.pages.get() {
      for sample in Self.samples("json", in: page.lines) {
        for (offset, line) in sample.lines.enumerated() {
          objects += 1
          let value = try? JSONSerialization.jsonObject(with: Data(line.utf8))
          #expect(value is [String: Any], "\(page.path):\(sample.line + offset): no JSON object")
        }
      }
      for sample in Self.samples("yaml", in: page.lines) {
        files += 1
        let text = sample.lines.joined(separator: "\n")
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for match in text.matches(of: /(?:(?:key|password|secret|token)_file|cert|key): ([a-z.]+)/) {
          try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: folder.appendingPathComponent(String(match.1)))
        }
        do {
          _ = try ConfigurationFile.parse(
            text, file: page.path, directory: folder.path, environment: ["PUBLIC_IP": "203.0.113.5"])
        } catch {
          Issue.record("\(page.path):\(sample.line): \(error)")
        }
      }
    }
    #expect(objects > 1 && files > 0, "\(objects) objects and \(files) configurations were found")
  }

  @Test func `a broken link, a heading and a sample are seen`() {
    let lines = [
      "# Who may: what?", "[a](b.md#c) ![d](e.svg) [f](https://g)", "```json frames", "{} [h](i)", "```", "```", "x", "```",
    ]
    #expect(Self.links(lines).map(\.target) == ["b.md#c", "e.svg"])
    #expect(Self.anchor(lines[0]) == "who-may-what")
    #expect(Self.samples("json frames", in: lines).map(\.line) == [4] && Self.samples("json", in: lines).isEmpty)
    #expect(Self.samples("json frames", in: lines).map(\.lines) == [["{} [h](i)"]])
  }

  @Test func `anchors and paragraphs are counted as they are read`() {
    let lines = [
      "# A b", "One two", "three.", "", "- four", "  five", "1. six", "| seven |", "```", "# eight", "```", "<!-- nine -->",
      "# A b",
    ]
    #expect(Self.anchors(lines) == ["a-b", "a-b-1"])
    let paragraphs = Self.paragraphs(lines)
    #expect(paragraphs.map(\.line) == [2, 5, 7] && paragraphs.map(\.words) == [3, 3, 2])
  }
}
