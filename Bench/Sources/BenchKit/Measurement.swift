import Glibc

/// CPU time of the calling thread in nanoseconds.
public func cpuNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// CPU time of all threads of this process in nanoseconds.
public func processCPUNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// FNV-1a over words.
public struct ResultHash: Sendable {
  public private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325
  public init() {}
  public mutating func add(_ word: UInt64) {
    value = (value ^ word) &* 0x0000_0100_0000_01b3
  }
}
