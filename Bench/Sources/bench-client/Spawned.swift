import BenchKit
import Foundation
import Glibc
import Synchronization

/// A process whose lines on standard output are read as they come.
final class Spawned: Sendable {
  private let process = Process()
  private let state = Mutex<(lines: [String], rest: [UInt8])>(([], []))
  private let changed = DispatchSemaphore(value: 0)
  let name: String
  private let log: URL
  /// Before the process was made, by the wall clock.
  let startedAt: Int64

  init(_ name: String, _ binary: String, _ arguments: [String], in folder: URL) throws {
    self.name = name
    process.executableURL = URL(fileURLWithPath: binary)
    (process.arguments, process.currentDirectoryURL) = (arguments, folder)
    log = folder.appendingPathComponent(name + ".log")
    _ = FileManager.default.createFile(atPath: log.path, contents: nil)
    process.standardError = try FileHandle(forWritingTo: log)
    process.standardInput = FileHandle.nullDevice
    let output = Pipe()
    process.standardOutput = output
    startedAt = Marks.now()
    try process.run()
    let handle = output.fileHandleForReading
    // Not its `readabilityHandler`: libdispatch on Linux now and then drains an event of a pipe that has ended, and traps.
    Thread.detachNewThread { [self] in
      while true {
        let data = handle.availableData
        if !data.isEmpty { took([UInt8](data)) }
        changed.signal()
        if data.isEmpty { break }
      }
    }
  }

  private func took(_ bytes: [UInt8]) {
    state.withLock { state in
      state.rest += bytes
      var lines = state.rest.split(separator: 10, omittingEmptySubsequences: false)
      state.rest = Array(lines.removeLast())
      state.lines += lines.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  var lines: [String] { state.withLock { $0.lines } }
  var isRunning: Bool { process.isRunning }
  /// The end of what it wrote to standard error.
  var complaints: String {
    let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").suffix(5).joined(separator: "\n")
  }

  /// The first line that has this text.
  func line(_ text: String, within seconds: Double) throws -> String {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while Date() < deadline {
      let isOver = !isRunning
      if let line = lines.first(where: { $0.contains(text) }) { return line }
      if isOver { break }
      _ = changed.wait(timeout: .now() + .milliseconds(50))
    }
    throw BenchError(text: "\(name) did not say \(text): \(lines.suffix(5)) \(complaints)")
  }

  /// When it said so, by the event's own `at`: milliseconds since 1970.
  func time(of event: String, within seconds: Double) throws -> Double {
    let line = try line("\"event\":\"\(event)\"", within: seconds)
    guard let values = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
      let at = values["at"] as? Double
    else { throw BenchError(text: "\(name): no time in \(line)") }
    return at
  }

  /// Waits for its end; SIGKILL after `seconds`.
  @discardableResult func finish(within seconds: Double) -> Int32? {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while process.isRunning, Date() < deadline { usleep(5_000) }
    guard process.isRunning else { return process.terminationStatus }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    return nil
  }

  func end(_ signal: Int32 = SIGTERM) {
    if process.isRunning { kill(process.processIdentifier, signal) }
    finish(within: 3)
  }
}
