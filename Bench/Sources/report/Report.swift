import Foundation

/// `report FOLDER [--docs DOCS] [--readme FILE] [--order NAME,…]`: makes `FOLDER/index.html` of what the benches left in the folder,
/// with --docs `DOCS/benchmarks/index.md` with its pictures beside it, with --readme the headlines between the file's marks.
@main struct Report {
  static func main() {
    do {
      try run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      warn("\(error)")
      exit(1)
    }
  }

  private static func warn(_ text: String) { FileHandle.standardError.write(Data("report: \(text)\n".utf8)) }

  private static func run(_ arguments: [String]) throws {
    func value(_ name: String) -> String? {
      arguments.firstIndex(of: name).flatMap { $0 + 1 < arguments.count ? arguments[$0 + 1] : nil }
    }
    guard let path = arguments.first, !path.hasPrefix("--") else { throw CocoaError(.fileNoSuchFile) }
    let folder = URL(fileURLWithPath: path)
    let order = (value("--order") ?? "").split { $0 == "," || $0 == " " }.map(String.init)
    let results = try BenchResults.read(folder, order: order)
    let machine = Machine(folder.appendingPathComponent("machine.txt"))
    let html = Page.html(results, machine) { try? String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }
    try html.write(to: folder.appendingPathComponent("index.html"), atomically: true, encoding: .utf8)
    guard let docs = value("--docs").map({ URL(fileURLWithPath: $0) }) else { return }
    let pages = docs.appendingPathComponent("benchmarks")
    try? FileManager.default.removeItem(at: pages)
    try FileManager.default.createDirectory(at: pages, withIntermediateDirectories: true)
    for name in Set(results.flatMap(\.pictures).map(\.picture)) {
      let from = folder.appendingPathComponent(name)
      guard FileManager.default.fileExists(atPath: from.path) else { continue }
      try FileManager.default.copyItem(at: from, to: pages.appendingPathComponent(name))
    }
    let page = Markdown.page(results, machine)
    try page.write(to: pages.appendingPathComponent("index.md"), atomically: true, encoding: .utf8)
    for row in Headlines.lost(results) { warn("no row \"\(row)\" for the headlines") }
    guard let readme = value("--readme").map({ URL(fileURLWithPath: $0) }) else { return }
    let text = try String(contentsOf: readme, encoding: .utf8)
    guard let inserted = Headlines.inserted(in: text, results, machine) else {
      return warn("\(readme.path) has no \(Headlines.begin) … \(Headlines.end)")
    }
    try inserted.write(to: readme, atomically: true, encoding: .utf8)
  }
}
