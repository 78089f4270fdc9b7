import Foundation
import Testing

/// `Scripts/docs` over the modules that this test was built with, and `Scripts/site` over docs/.
@Suite(.serialized) struct PagesTests {
  private static let root = DocumentationTests.root
  private static let modules = Bundle.main.bundleURL.appendingPathComponent("Modules").path

  private func docs(_ arguments: [String]) throws -> (status: Int32, text: String) { try run("docs", arguments) }

  private func run(_ script: String, _ arguments: [String]) throws -> (status: Int32, text: String) {
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = Self.root.appendingPathComponent("Scripts/\(script)")
    process.arguments = arguments
    (process.standardOutput, process.standardError) = (pipe, pipe)
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }

  private func withFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("pages-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
  }

  @Test func `the pages are built without a warning, every public symbol has text, and each article is there`() throws {
    try withFolder { folder in
      let output = folder.appendingPathComponent("docs")
      let (status, text) = try docs(["--modules", Self.modules, "--output", output.path])
      #expect(status == 0, "\(text)")
      #expect(!text.contains("warning:"))
      for page in [
        "trunklinecallkit/gettingstarted", "trunklinecallkit/killedapp", "trunklinecallkit/mediaready",
        "trunklinecallkit/audioownership", "trunklinecallkit/secondcalls", "trunklinecallkit/recentsandsiri",
        "trunklinecallkit/encryptedmetadata", "trunklinecallkit/testingonlinux", "trunklinecallkit/appreview",
        "trunklineclient/withoutcallkit", "trunklineclient/whencallsgowrong", "trunklineclient/othercallscreens",
        "trunklinecalldirectory/calleridandblocking",
        "trunklineclient/phone", "trunklineclient/endreason", "trunklinecallkit/callkitsystem", "applestandin/standinphone",
      ] {
        let file = output.appendingPathComponent("data/documentation/\(page).json").path
        #expect(FileManager.default.fileExists(atPath: file), "no page \(page)")
      }
      #expect(FileManager.default.fileExists(atPath: output.appendingPathComponent("documentation/index.html").path))
    }
  }

  @Test func `a link to nothing fails, and says where it stands`() throws {
    try withFolder { folder in
      let client = Self.root.appendingPathComponent("Sources/Client")
      for library in ["AppleStandIn", "TrunklineClient", "TrunklineCallKit", "TrunklineCallDirectory"] {
        let target = folder.appendingPathComponent(library)
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
          at: client.appendingPathComponent("\(library)/\(library).docc"), to: target.appendingPathComponent("\(library).docc"))
      }
      let page = folder.appendingPathComponent("TrunklineClient/TrunklineClient.docc/WithoutCallKit.md")
      let text = try String(contentsOf: page, encoding: .utf8) + "\nSee ``Phone/nothing``.\n"
      try text.write(to: page, atomically: true, encoding: .utf8)
      let output = folder.appendingPathComponent("docs").path
      let (status, said) = try docs(["--modules", Self.modules, "--catalogs", folder.path, "--output", output])
      #expect(status != 0 && said.contains("WithoutCallKit.md") && said.contains("nothing"), "\(said)")
      #expect(!FileManager.default.fileExists(atPath: output), "pages that are not whole were left")
    }
  }

  private static let hasSite = [".venv", ".build/mkdocs"].contains {
    FileManager.default.isExecutableFile(atPath: root.appendingPathComponent($0 + "/bin/mkdocs").path)
  }

  @Test(.enabled(if: PagesTests.hasSite, "no mkdocs: run Scripts/install docs"))
  func `the site of docs/ has a page for each of its pages, and lists in lists; a link and an anchor to nothing fail`() throws {
    try withFolder { folder in
      let output = folder.appendingPathComponent("site")
      let (status, text) = try run("site", ["--output", output.path])
      #expect(status == 0, "\(text)")
      for page in ["index", "operate/first-call", "reference/protocol", "design/cluster", "benchmarks/index"] {
        #expect(FileManager.default.fileExists(atPath: output.appendingPathComponent(page + ".html").path), "no page \(page)")
      }
      let first = try String(contentsOf: output.appendingPathComponent("operate/first-call.html"), encoding: .utf8)
      #expect(first.components(separatedBy: "<ol>").count == 2, "a block in a list ends the list")

      let pages = folder.appendingPathComponent("docs")
      try FileManager.default.copyItem(at: Self.root.appendingPathComponent("docs"), to: pages)
      let page = pages.appendingPathComponent("operate/tls.md")
      let whole = try String(contentsOf: page, encoding: .utf8)
      for link in ["[a](nothing.md)", "[b](nat.md#nothing)", "[c](#nothing)"] {
        try (whole + "\nSee \(link).\n").write(to: page, atomically: true, encoding: .utf8)
        let (status, said) = try run("site", ["--docs", pages.path, "--output", folder.appendingPathComponent("broken").path])
        #expect(status != 0 && said.contains("nothing") && said.contains("tls.md"), "\(link): \(said)")
      }
      #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("broken").path), "a broken site was left")
    }
  }

  @Test func `a public symbol without text is named with its location; what the compiler made is not`() throws {
    func symbol(_ name: [String], _ id: String, _ kind: String, _ text: String?) -> [String: Any] {
      var symbol: [String: Any] = [
        "identifier": ["precise": id], "kind": ["identifier": kind], "pathComponents": name,
        "location": ["uri": "file://\(Self.root.path)/Sources/A.swift", "position": ["line": 6, "character": 2]],
      ]
      if let text { symbol["docComment"] = ["lines": [["text": text]]] }
      return symbol
    }
    let symbols = [
      symbol(["A"], "s:1", "swift.struct", "A type."), symbol(["A", "b"], "s:2", "swift.property", nil),
      symbol(["A", "c"], "s:3", "swift.enum.case", "  "),
      symbol(["A", "!=(_:_:)"], "s:4::SYNTHESIZED::s:1", "swift.func.op", nil),
      symbol(["Other"], "s:5", "swift.module.extension", nil),
    ]
    try withFolder { folder in
      func check(_ symbols: [[String: Any]]) throws -> (status: Int32, text: String) {
        let file = folder.appendingPathComponent("A.symbols.json")
        try JSONSerialization.data(withJSONObject: ["symbols": symbols, "relationships": []]).write(to: file)
        return try docs(["--check", file.path])
      }
      let (status, text) = try check(symbols)
      #expect(status != 0 && text.contains("2 public symbols without text"), "\(text)")
      #expect(
        text.contains("Sources/A.swift:7: A.b\n") && text.contains("A.c") && !text.contains("!=") && !text.contains("Other"))
      #expect(try check([symbols[0], symbols[3], symbols[4]]).status == 0)
    }
  }
}
