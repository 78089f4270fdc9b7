package import ArgumentParser
package import Configuration
import Foundation
internal import TrunklineBytes
import TrunklinePlatform

/// Where a command's settings come from: a file, or the embedded defaults in the working directory.
package struct SettingsSource: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The configuration file. Without it the embedded defaults hold (`trunkline config example`).", valueName: "file"))
  package var config: String?

  package init() {}

  /// Prints every problem and exits with 2 if there is one.
  /// `triesFiles`: as `ConfigurationFile.parse`.
  package func load(triesFiles: Bool = false) throws -> Settings { try Self.load(config, triesFiles: triesFiles) }

  package static func load(_ config: String?, triesFiles: Bool = false) throws -> Settings {
    do {
      if let config { return try ConfigurationFile.load(config, triesFiles: triesFiles) }
      let directory = FileManager.default.currentDirectoryPath
      try makeKey(directory + "/jwt.key")
      return try ConfigurationFile.parse(
        Settings.example, file: "embedded defaults", directory: directory, triesFiles: triesFiles)
    } catch let problems as ConfigurationProblems {
      complain(problems.drawn)
      throw ExitCode(2)
    }
  }

  /// The embedded defaults name a key that a fresh directory does not have yet.
  private static func makeKey(_ path: String) throws {
    guard access(path, F_OK) != 0 else { return }
    let fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard fd >= 0 else { throw ValidationError("cannot make \(path): \(String(cString: strerror(errno)))") }
    defer { close(fd) }
    let text = RandomSource.system.text(43) + "\n"
    guard text.withCString({ write(fd, $0, text.utf8.count) }) == text.utf8.count else {
      throw ValidationError("cannot write \(path): \(String(cString: strerror(errno)))")
    }
  }
}
