import Foundation
import Testing

/// docs/architecture.md states of each module what it is for. What needs an "and" for that is two modules, or a part of another.
@Suite struct ModuleTableTests {
  @Test func `each module has one row in docs/architecture.md, whose sentence needs no "and"`() throws {
    let tree = SourceTree()
    let page = tree.root.deletingLastPathComponent().appendingPathComponent("docs/architecture.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    var rows: [String: String] = [:]
    for match in text.matches(of: /\| `(\w+\/\w+|Platform)` \| (.+) \|/) {
      let name = String(match.output.1)
      #expect(rows[name] == nil, "\(name) has two rows")
      rows[name] = String(match.output.2)
    }
    // the folders of the executables are no modules of their own
    let modules = Set(
      tree.files.filter { !["Trunkline", "Lab"].contains($0.module) && $0.folder != "CLibraries" }.map { file in
        file.module == file.folder ? file.module : "\(file.folder)/\(file.module)"
      })
    for name in modules.subtracting(rows.keys).sorted() {
      Issue.record("\(name): no row in docs/architecture.md says what it is for")
    }
    for (name, purpose) in rows {
      #expect(modules.contains(name), "docs/architecture.md: there is no module \(name)")
      #expect(!purpose.split(separator: " ").contains("and"), "\(name): \(purpose)")
      #expect(purpose.hasSuffix(".") && !purpose.dropLast().contains(". "), "\(name): one sentence")
    }
  }
}
