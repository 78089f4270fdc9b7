import Glibc
import Synchronization
import TrunklineBytes

/// The process's monotonic clock: only this type makes `Instant`s. Any thread; about 25 ns, no system call.
public enum MonotonicClock {
  /// Nanoseconds of `CLOCK_MONOTONIC`.
  public static func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  /// CPU time that the calling thread has used, for `cpu_seconds` metrics.
  public static func threadCPU() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
  }
}

/// The wall clock, for records, messages and log lines; never for deadlines.
public enum WallClock {
  /// Milliseconds since 1970, UTC.
  public static func nowMilliseconds() -> Int64 { nowMicroseconds() / 1_000 }

  /// Microseconds since 1970, UTC.
  public static func nowMicroseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec) / 1_000
  }
}

extension RandomSource {
  /// The system's cryptographic generator. Any thread; one system call per 32 numbers, none of which is kept after it was
  /// returned.
  public static let system = RandomSource { RandomPool.shared.next() }
}

/// Prefetches numbers of getentropy(3), because a call costs as much as some twenty numbers.
private final class RandomPool: Sendable {
  static let shared = RandomPool()
  /// 256 bytes, the maximum of one call.
  private static let words = 32
  private let pool = Mutex((words: [UInt64](repeating: 0, count: words), next: words))

  func next() -> UInt64 {
    pool.withLock { pool in
      if pool.next >= Self.words {
        var generator = SystemRandomNumberGenerator()
        let filled = pool.words.withUnsafeMutableBytes { getentropy($0.baseAddress, $0.count) == 0 }
        guard filled else { return generator.next() }
        pool.next = 0
      }
      defer {
        pool.words[pool.next] = 0
        pool.next += 1
      }
      return pool.words[pool.next]
    }
  }
}
