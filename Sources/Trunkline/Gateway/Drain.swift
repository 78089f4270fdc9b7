import Synchronization
import TrunklinePlatform

/// How far the end of the process is: calls may end by themselves, then they are ended, then registrars answer. Any thread.
final class Drain: Sendable {
  private struct State {
    var isDrained = false
    var isEnding = false
    /// Called when the last call has ended, and when the registrars have answered.
    var whenDrained: (@Sendable () -> Void)?
    var whenLeft: (@Sendable () -> Void)?
  }
  private let state = Mutex(State())

  /// `done` is called on the control thread once the last call has ended.
  func begin(_ done: @escaping @Sendable () -> Void) { state.withLock { $0.whenDrained = done } }

  /// The remaining calls are being ended.
  func end() { state.withLock { $0.isEnding = true } }

  func drained() {
    let done = state.withLock { state in
      state.isDrained = true
      return state.whenDrained
    }
    done?()
  }

  /// `done` is called on the control thread when registrars have answered.
  func leave(_ done: @escaping @Sendable () -> Void) { state.withLock { $0.whenLeft = done } }

  func left() { state.withLock { $0.whenLeft }?() }

  var isDrained: Bool { state.withLock { $0.isDrained } }
  var isEnding: Bool { state.withLock { $0.isEnding } }
}
