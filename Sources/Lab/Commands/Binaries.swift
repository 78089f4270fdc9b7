import ArgumentParser
import Foundation

/// The files that the lab runs.
enum Binaries {
  /// This process's own executable.
  static var lab: URL { URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath() }

  /// The gateway: the file that `TRUNKLINE_BINARY` names, or `trunkline` beside this file.
  static func gateway() throws -> URL {
    let named = ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"].flatMap { $0.isEmpty ? nil : URL(fileURLWithPath: $0) }
    let url = named ?? lab.deletingLastPathComponent().appendingPathComponent("trunkline")
    guard FileManager.default.isExecutableFile(atPath: url.path) else {
      throw ValidationError("no gateway at \(url.path): build it with `make release`, or name it by TRUNKLINE_BINARY")
    }
    return url
  }
}
