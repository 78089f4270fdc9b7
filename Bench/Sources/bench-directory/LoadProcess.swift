import AppleStandIn
import Foundation
import TrunklineCallDirectory

/// One extension's process: this program again, with a context that counts and checks the order, and keeps nothing. iOS keeps the entries
/// in a process of its own.
enum LoadProcess {
  static let identifier = "bench.directory"

  struct Figures: Codable {
    var seconds: Double
    var peakKilobytes: Int
    /// Additions and removals that iOS heard; -1 if they were out of order or the request was not completed.
    var entries: Int
  }

  private final class Context: CXCallDirectoryExtensionContext {
    private let mode: Bool
    private var last: Int64 = 0
    private var isOrdered = true
    private var received = 0
    private var isComplete = false
    var entries: Int { isOrdered && isComplete ? received : -1 }

    init(incremental: Bool) {
      mode = incremental
      super.init()
    }
    override var isIncremental: Bool { mode }
    override func addIdentificationEntry(withNextSequentialPhoneNumber phoneNumber: Int64, label: String) {
      isOrdered = isOrdered && phoneNumber > last && !label.isEmpty
      last = phoneNumber
      received += 1
    }
    override func removeIdentificationEntry(withPhoneNumber phoneNumber: Int64) { received += 1 }
    override func completeRequest(completionHandler completion: ((Bool) -> Void)? = nil) {
      isComplete = true
      completion?(false)
    }
  }

  /// What this process is to do, if it is such a child.
  static func role(_ arguments: [String]) -> (() -> Never)? {
    guard arguments.count == 4, arguments[1] == "--extension" else { return nil }
    return {
      let context = Context(incremental: arguments[2] == "incremental")
      let loader = CallDirectoryLoader(folder: DirectoryFolder(path: arguments[3]), identifier: identifier)
      let time = ContinuousClock().measure { if arguments[2] != "empty" { loader.load(into: context) } }
      let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
      let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }?.split(whereSeparator: \.isWhitespace)
      let figures = Figures(
        seconds: time / .seconds(1), peakKilobytes: peak.flatMap { Int($0[1]) } ?? 0, entries: context.entries)
      FileHandle.standardOutput.write((try? JSONEncoder().encode(figures)) ?? Data())
      exit(0)
    }
  }

  static func run(_ role: String, _ folder: String) throws -> Figures {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = ["--extension", role, folder]
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return try JSONDecoder().decode(Figures.self, from: data)
  }
}
