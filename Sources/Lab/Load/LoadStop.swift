import CommandSupport
import Foundation
import Glibc
import Synchronization

/// The end of a load run by SIGINT or SIGTERM: the first signal hangs up and prints the measurements, the second ends the process
/// at once. Either way the run's own gateway ends with it.
final class LoadStop: Sendable {
  private struct State {
    var count = 0
    var hangUp: (@Sendable () -> Void)?
    var abandon: (@Sendable () -> Void)?
  }

  /// The status that a shell gives to a program that SIGINT ended.
  static let status: Int32 = 130
  private let state = Mutex(State())

  var isStopped: Bool { state.withLock { $0.count > 0 } }

  /// Handles a signal; any thread.
  func signalled() {
    let (count, hangUp, abandon) = state.withLock { state in
      state.count += 1
      return (state.count, state.hangUp, state.abandon)
    }
    if count == 1 {
      complain("ending; a second signal ends at once")
      hangUp?()
    } else {
      abandon?()
      exit(Self.status)
    }
  }

  /// Runs `body`. A signal calls `hangUp`, which makes `body` return early, also if the signal came before.
  func during<Result>(_ body: () throws -> Result, hangUp: @escaping @Sendable () -> Void) rethrows -> Result {
    let isLate = state.withLock { state in
      state.hangUp = hangUp
      return state.count > 0
    }
    if isLate { hangUp() }
    defer { state.withLock { $0.hangUp = nil } }
    return try body()
  }

  /// Sets the work that remains when a second signal ends the process at once.
  func onAbandon(_ body: (@Sendable () -> Void)?) { state.withLock { $0.abandon = body } }
}

/// The descriptors that a run needs.
enum Descriptors {
  /// Descriptors beside those of calls and sessions: the event loops', the gateway's files and databases, standard ones.
  private static let others = 64
  /// Two sockets towards the trunk, one for the app's media and a WebSocket.
  static let perCall = 4
  static let perSession = 1

  /// Raises this process's limit, which its gateway inherits; throws a readable error if it cannot be raised far enough.
  static func allow(_ count: Int) throws {
    var limit = rlimit()
    let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    let needed = rlim_t(count + others)
    guard getrlimit(kind, &limit) == 0, limit.rlim_cur < needed else { return }
    guard limit.rlim_max >= needed else {
      throw LoadFailure(
        description:
          "\(needed) file descriptors are needed, \(limit.rlim_max) are allowed: raise `ulimit -Hn`, or make fewer calls")
    }
    limit.rlim_cur = needed
    if setrlimit(kind, &limit) != 0 {
      throw LoadFailure(description: "\(needed) file descriptors are needed: `ulimit -n \(needed)` allows them")
    }
  }
}
