import Configuration
import Foundation

/// A folder for one test with the files a configuration names; removed at the end.
final class TemporaryFolder {
  let path: String

  init(_ files: [String: String] = ["jwt.key": "0123456789abcdef0123456789abcdef\n"]) throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for (name, content) in files { try content.write(toFile: path + "/" + name, atomically: true, encoding: .utf8) }
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func parse(_ text: String) throws -> Settings {
    try ConfigurationFile.parse(text, file: "gateway.yaml", directory: path)
  }

  /// What `text` is refused with, line by line; empty if it is accepted.
  func problems(_ text: String) -> [String] {
    do {
      _ = try parse(text)
      return []
    } catch {
      return "\(error)".split(separator: "\n").map { String($0.replacing(path, with: "DIR")) }
    }
  }
}
