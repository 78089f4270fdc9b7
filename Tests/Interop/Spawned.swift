import Foundation
import Synchronization
import Testing

/// A process of one test: started by its own pid, its output kept in a file, ended at the latest when the test lets go of it.
final class Spawned: @unchecked Sendable {
  // `Process` is told and asked by the test's task only.
  let name: String
  private let process = Process()
  private let input = Pipe()
  private let outputPath: String
  private let output: FileHandle

  struct Failure: Error, CustomStringConvertible { var description: String }

  init(_ name: String, _ program: String, _ arguments: [String], in folder: String, environment: [String: String] = [:]) throws {
    self.name = name
    outputPath = folder + "/\(name)-\(UUID().uuidString.prefix(8)).log"
    guard FileManager.default.createFile(atPath: outputPath, contents: nil) else {
      throw Failure(description: "cannot write \(outputPath)")
    }
    output = try FileHandle(forWritingTo: URL(fileURLWithPath: outputPath))
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = input
    process.standardOutput = output
    process.standardError = output
    try process.run()
  }

  deinit {
    if process.isRunning {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
  }

  var pid: pid_t { process.processIdentifier }
  var isRunning: Bool { process.isRunning }
  var text: String { (try? String(contentsOfFile: outputPath, encoding: .utf8)) ?? "" }

  func type(_ line: String) { try? input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }
  func closeInput() { try? input.fileHandleForWriting.close() }
  func signal(_ number: Int32) { kill(pid, number) }

  /// Waits for the end and gives the exit status; ends the process itself, and fails, after `seconds`.
  @discardableResult func finish(within seconds: Double) async throws -> Int32 {
    if !(await eventually(within: seconds) { !self.process.isRunning }) {
      kill(pid, SIGKILL)
      process.waitUntilExit()
      throw Failure(description: "\(name) did not end within \(seconds) s:\n\(text.suffix(4_000))")
    }
    return process.terminationReason == .uncaughtSignal ? -process.terminationStatus : process.terminationStatus
  }

  /// The first line that says so, as JSON.
  func event(_ wanted: String, within seconds: Double = 10, where matches: @escaping ([String: Any]) -> Bool = { _ in true })
    async throws -> [String: Any]
  {
    let found = Mutex<Data?>(nil)
    let came = await eventually(within: seconds) {
      for line in self.events where line["event"] as? String == wanted && matches(line) {
        found.withLock { $0 = try? JSONSerialization.data(withJSONObject: line) }
        return true
      }
      return !self.process.isRunning && false
    }
    guard came, let data = found.withLock({ $0 }), let line = try JSONSerialization.jsonObject(with: data) as? [String: Any]
    else {
      throw Failure(description: "\(name) did not say \(wanted) within \(seconds) s:\n\(text.suffix(4_000))")
    }
    return line
  }

  var events: [[String: Any]] {
    text.split(separator: "\n").compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
  }
}

/// True as soon as `condition` holds, false after `seconds`.
func eventually(within seconds: Double, _ condition: @escaping () throws -> Bool) async -> Bool {
  let end = ContinuousClock.now + .seconds(seconds)
  while true {
    if (try? condition()) == true { return true }
    if ContinuousClock.now >= end { return false }
    try? await Task.sleep(for: .milliseconds(20))
  }
}
