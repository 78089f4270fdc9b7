import Foundation
import Peers
import Synchronization

/// The gateway, or this same binary with other arguments, its events read line by line.
final class ChildProcess: Sendable {
  private struct State {
    var events: [PeerEvent] = []
    var partial: [UInt8] = []
    var isOver = false
  }

  private let process = Process()
  private let state = Mutex(State())
  private let changed = DispatchSemaphore(value: 0)
  let name: String

  /// Starts `binary arguments…` in `directory`; standard error goes to `log` there.
  init(
    _ name: String, _ binary: URL, _ arguments: [String], directory: URL, log: String,
    onEvent: @escaping @Sendable (PeerEvent) -> Void
  ) throws {
    self.name = name
    process.executableURL = binary
    process.arguments = arguments
    process.currentDirectoryURL = directory
    let file = directory.appendingPathComponent(log)
    _ = FileManager.default.createFile(atPath: file.path, contents: nil)
    process.standardError = try FileHandle(forWritingTo: file)
    process.standardInput = FileHandle.nullDevice
    let pipe = Pipe()
    process.standardOutput = pipe
    process.terminationHandler = { [self] _ in
      state.withLock { $0.isOver = true }
      changed.signal()
    }
    try process.run()
    let handle = pipe.fileHandleForReading
    // Not its `readabilityHandler`: libdispatch on Linux now and then drains an event of a pipe that has ended, and traps.
    Thread.detachNewThread { [self] in
      while true {
        let data = handle.availableData
        if !data.isEmpty { received([UInt8](data)).forEach(onEvent) }
        changed.signal()
        if data.isEmpty { break }
      }
    }
  }

  private func received(_ bytes: [UInt8]) -> [PeerEvent] {
    state.withLock { state in
      state.partial += bytes
      var lines = state.partial.split(separator: 10, omittingEmptySubsequences: false)
      state.partial = Array(lines.removeLast())
      let events = lines.compactMap { try? JSONDecoder().decode(PeerEvent.self, from: Data($0)) }
      state.events += events
      return events
    }
  }

  var events: [PeerEvent] { state.withLock { $0.events } }
  var isRunning: Bool { process.isRunning }
  var identifier: Int32 { process.processIdentifier }

  /// Waits until `condition` holds of its events; false if it ended or `seconds` passed first.
  func wait(seconds: Double, for condition: ([PeerEvent]) -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while Date() < deadline {
      if condition(events) { return true }
      if state.withLock({ $0.isOver }) { return condition(events) }
      _ = changed.wait(timeout: .now() + .milliseconds(200))
    }
    return false
  }

  /// Waits for its end; nil if it is still running after `seconds`.
  func exitStatus(within seconds: Double) -> Int32? {
    _ = wait(seconds: seconds) { _ in !process.isRunning }
    return process.isRunning ? nil : process.terminationStatus
  }

  /// SIGTERM twice (drain, then end), then SIGKILL; returns when it is gone.
  func end() {
    for _ in 0..<2 where process.isRunning {
      process.terminate()
      if exitStatus(within: 3) != nil { return }
    }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}
