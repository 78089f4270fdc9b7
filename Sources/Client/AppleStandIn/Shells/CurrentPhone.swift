import Foundation
import Synchronization

/// The process of code that runs outside of an app's start and callbacks: that of the phone that launched an app last.
enum CurrentPhone {
  private struct Weak: Sendable { weak var process: AppProcess? }
  private static let installed = Mutex(Weak())

  static func install(_ process: AppProcess?) { installed.withLock { $0 = Weak(process: process) } }

  static var process: AppProcess { installed.withLock { $0.process } ?? outside }

  /// A handset in another process. Without one, calls do nothing, and the first call logs the reason.
  private static let outside: AppProcess = {
    let path = ProcessInfo.processInfo.environment[HandsetLink.variable]
    if let path, let link = HandsetLink(path: path) { return link.process }
    HandsetLink.complain(
      path.map { "no handset listens at \($0) (\(HandsetLink.variable))" }
        ?? "no phone. Make the app's objects in StandInPhone's launch { … }, or start the app with trunkline-lab handset.")
    return AppProcess { _, _ in }
  }()
}
