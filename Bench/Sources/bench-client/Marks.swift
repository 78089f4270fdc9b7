import Foundation
import Glibc
import Synchronization

/// When things happened in the app's process, by the wall clock in nanoseconds: its parent and the carrier have the same one. The first of each
/// name counts.
final class Marks: Sendable {
  private let times = Mutex<[String: Int64]>([:])

  static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  func note(_ name: String) {
    let now = Self.now()
    times.withLock { if $0[name] == nil { $0[name] = now } }
  }

  var all: [String: Int64] { times.withLock { $0 } }
}
