import AppProtocol
import Configuration
import Foundation
import Testing

/// What the documents point to is there, and what they show as a sample is one. `json frames` after a fence: a frame of the app
/// protocol in each line; `json`: an object in each line; `yaml`: a whole configuration.
@Suite struct DocumentsTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  struct Page: Sendable {
    var path: String
    var lines: [String]
  }

  /// Files of the repository by their paths. What is built or installed is in hidden folders, of ten times as many files: these are not entered.
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

  /// Targets of links and pictures, outside of fences, that are no URLs.
  static func links(_ lines: [String]) -> [(line: Int, target: String)] {
    var isFenced = false
    return lines.enumerated().flatMap { number, line -> [(line: Int, target: String)] in
      if fence(line) != nil { isFenced.toggle() }
      guard !isFenced else { return [] }
      return line.matches(of: /\]\(([^()\s]+)\)/).map { (number + 1, String($0.1)) }.filter { !$0.target.contains("://") }
    }
  }

  /// What stands behind the backticks of a fence, which may be inside of a list; nil for another line.
  private static func fence(_ line: String) -> String? {
    let text = line.drop { $0 == " " }
    return text.hasPrefix("```") ? String(text.dropFirst(3)) : nil
  }

  /// The blocks behind a fence with exactly this word or these words, and the number of their first line.
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

  @Test func `every relative link leads to a file, and its anchor to a heading`() throws {
    var count = 0
    for page in try Self.pages.get() {
      for (line, target) in Self.links(page.lines) {
        count += 1
        let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let folder = Self.root.appendingPathComponent(page.path).deletingLastPathComponent()
        let file = parts[0].isEmpty ? Self.root.appendingPathComponent(page.path) : folder.appendingPathComponent(parts[0])
        guard FileManager.default.fileExists(atPath: file.path) else {
          Issue.record("\(page.path):\(line): no file \(target)")
          continue
        }
        guard parts.count == 2 else { continue }
        let headings = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n").filter { $0.hasPrefix("#") }
        #expect(headings.map(Self.anchor).contains(parts[1]), "\(page.path):\(line): no heading for \(target)")
      }
    }
    #expect(count > 20, "only \(count) links were found")
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
}
