import Foundation
import Synchronization

/// Starts the app with the handset's path in its environment, and kills it with SIGKILL as iOS does.
final class AppLauncher: Sendable {
  private let executable: URL
  private let arguments: [String]
  private let socket: String
  private let output: FileHandle
  private let process = Mutex<Process?>(nil)

  /// `output`: where the app's standard output and error go.
  init(_ executable: URL, _ arguments: [String], socket: String, output: FileHandle) {
    (self.executable, self.arguments, self.socket, self.output) = (executable, arguments, socket, output)
  }

  /// Does nothing while it runs.
  func start() throws {
    try process.withLock { process in
      guard process?.isRunning != true else { return }
      let made = Process()
      made.executableURL = executable
      made.arguments = arguments
      made.environment = ProcessInfo.processInfo.environment.merging(["APPLE_STAND_IN": socket]) { $1 }
      made.standardInput = FileHandle.nullDevice
      made.standardOutput = output
      made.standardError = output
      try made.run()
      process = made
    }
  }

  /// Returns once it is gone.
  func kill() {
    guard let running = process.withLock({ $0 }), running.isRunning else { return }
    Foundation.kill(running.processIdentifier, SIGKILL)
    running.waitUntilExit()
  }
}
