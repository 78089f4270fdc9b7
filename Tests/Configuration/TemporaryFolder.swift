import Foundation

@testable import Configuration

/// A folder for one test with the files a configuration names; removed at the end.
final class TemporaryFolder {
  static let key = "0123456789abcdef0123456789abcdef\n"
  let path: String

  init(_ files: [String: String] = ["jwt.key": TemporaryFolder.key]) throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for (name, content) in files {
      try content.write(toFile: path + "/" + name, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path + "/" + name)
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func parse(_ text: String, environment: [String: String] = [:]) throws -> Settings {
    try ConfigurationFile.parse(text, file: "gateway.yaml", directory: path, environment: environment)
  }

  /// What `text` is refused with, line by line; empty if it is accepted.
  func problems(_ text: String) -> [String] { said { _ = try parse(text) } }

  /// What `serve --check` says: problems, or warnings where there are none.
  func checked(_ text: String) -> [String] {
    said {
      let settings = try ConfigurationFile.parse(text, file: "gateway.yaml", directory: path, triesFiles: true)
      if !settings.warnings.isEmpty { throw ConfigurationProblems(problems: settings.warnings) }
    }
  }

  private func said(_ body: () throws -> Void) -> [String] {
    do {
      try body()
      return []
    } catch {
      return "\(error)".split(separator: "\n").map { String($0.replacing(path, with: "DIR")) }
    }
  }
}

/// A value as a text that is the same for the same content: sets and dictionaries in order.
func content(_ value: Any) -> String {
  let mirror = Mirror(reflecting: value)
  let parts = mirror.children.map { ($0.label.map { $0 + ": " } ?? "") + content($0.value) }
  switch mirror.displayStyle {
  case .set, .dictionary: return "[\(parts.sorted().joined(separator: ", "))]"
  case nil where parts.isEmpty, .enum where parts.isEmpty: return "\(value)"
  default: return "(\(parts.joined(separator: ", ")))"
  }
}
