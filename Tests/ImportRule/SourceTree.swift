import Foundation

/// The modules under `Sources` and what each file imports, read from the files themselves.
struct SourceTree {
  struct File {
    var path: String
    var module: String
    var folder: String
    var imports: [String]
  }

  /// Folders of Trunkline and Lab that are modules; the rest is the executable.
  private static let inner = ["Configuration", "CommandSupport", "Peers", "PushSandbox", "SpeechScore", "AppCheck"]
  let root: URL
  var files: [File] = []
  /// Folder by module name.
  var modules: [String: String] = [:]

  init() {
    root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Sources")
    for folder in Self.children(root) {
      // Platform, Trunkline and Lab are a folder and a module at once.
      let isModule = ["Platform", "Trunkline", "Lab"].contains(folder.lastPathComponent)
      for module in isModule ? [folder] : Self.children(folder) {
        let name = module.lastPathComponent
        modules[name] = folder.lastPathComponent
        for path in Self.swiftFiles(module) {
          let inner = Self.inner.first { path.path.contains("/\(name)/\($0)/") } ?? name
          modules[inner] = folder.lastPathComponent
          let text = (try? String(contentsOf: path, encoding: .utf8)) ?? ""
          files.append(
            File(
              path: String(path.path.dropFirst(root.deletingLastPathComponent().path.count + 1)), module: inner,
              folder: folder.lastPathComponent, imports: Self.imports(text)))
        }
      }
    }
  }

  /// Folders of the modules after `import`, with any attributes, access level and kind before them.
  static func imports(_ text: String) -> [String] {
    let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
    return text.split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard let at = words.firstIndex(of: "import"), at + 1 < words.count,
        words[..<at].allSatisfy({ $0.hasPrefix("@") || ["public", "package", "internal", "private", "fileprivate"].contains($0) })
      else { return nil }
      let name = kinds.contains(words[at + 1]) && at + 2 < words.count ? words[at + 2] : words[at + 1]
      return name.split(separator: ".").first.map { folder(ofModule: String($0)) }
    }
  }

  /// The folder's name of a module that an exported package has (`exported` in Package.swift): `RTP` of `TrunklineRTP`.
  static func folder(ofModule name: String) -> String {
    if ["TrunklineClient", "TrunklineCallKit", "TrunklineCallDirectory"].contains(name) { return name }
    if name.hasPrefix("CTrunkline") { return "C" + name.dropFirst("CTrunkline".count) }
    return name.hasPrefix("Trunkline") && name != "Trunkline" ? String(name.dropFirst("Trunkline".count)) : name
  }

  private static func children(_ folder: URL) -> [URL] {
    let all = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: [.isDirectoryKey])) ?? []
    return all.filter { (try? $0.resourceValues(forKeys: [.isDirectoryKey]).isDirectory) == true }
      .sorted { $0.path < $1.path }
  }

  private static func swiftFiles(_ folder: URL) -> [URL] {
    guard let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil) else { return [] }
    return all.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }.sorted { $0.path < $1.path }
  }
}
