import Dispatch
import Foundation
import TrunklineBytes

/// The clock of engine, media thread and devices; it stops while the system sleeps.
enum MonotonicTime {
  static func now() -> Instant { Instant(nanoseconds: Int64(clamping: DispatchTime.now().uptimeNanoseconds)) }

  static func sleep(until due: Instant) {
    let wait = (due - now()).nanoseconds
    if wait > 0 { Thread.sleep(forTimeInterval: Double(wait) / 1e9) }
  }
}
