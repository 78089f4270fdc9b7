import Foundation
import Glibc

/// The folder of a demo's state, logs and WAV files; one demo at a time.
struct DemoFolder {
  struct FolderInUse: Error, CustomStringConvertible { let description: String }

  let url: URL
  private let lock: Int32

  /// Makes the folder and locks it until this process ends. Throws `FolderInUse` if another demo has it.
  init(_ path: String) throws {
    url = URL(fileURLWithPath: path, isDirectory: true).standardizedFileURL
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    let name = url.appendingPathComponent("demo.lock").path
    lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard lock >= 0 else { throw FolderInUse(description: "cannot use \(url.path): \(String(cString: strerror(errno)))") }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      let owner = (try? String(contentsOfFile: name, encoding: .utf8)) ?? ""
      close(lock)
      throw FolderInUse(
        description: "another demo runs in \(url.path)" + (owner.isEmpty ? "" : " (process \(owner))")
          + ": a second one would need the same ports. End it (Ctrl-C) and run this again.")
    }
    ftruncate(lock, 0)
    let own = Array("\(getpid())".utf8)
    _ = write(lock, own, own.count)
    // Files of an earlier call must not be read as this one's.
    for file in [DemoOutcome.trunkFile, DemoOutcome.appFile] {
      try? FileManager.default.removeItem(at: url.appendingPathComponent(file))
    }
  }

  /// The last lines of a process's log that are not empty.
  static func end(of log: URL, lines: Int) -> String {
    let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").suffix(lines).joined(separator: "\n")
  }
}
