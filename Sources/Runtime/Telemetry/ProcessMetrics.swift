import Glibc
import TrunklineBytes
import TrunklinePlatform

/// The process as the kernel sees it: under the names that Prometheus' own clients use.
public enum ProcessMetrics {
  public static func families(version: String) -> [MetricFamily] {
    let start = Double(WallClock.nowMilliseconds()) / 1_000
    return [
      MetricFamily(name: "process_cpu_seconds_total", help: "User and system CPU time.", kind: .counter) {
        [MetricSample([], .number(cpuSeconds()))]
      },
      .gauge("process_resident_memory_bytes", help: "Resident memory.") { ProcessMemory.residentBytes() },
      .gauge("process_open_fds", help: "Open file descriptors.") { openDescriptors() },
      MetricFamily(name: "process_start_time_seconds", help: "Start of the process since 1970.", kind: .gauge) {
        [MetricSample([], .number(start))]
      },
      .gauge("trunkline_threads", help: "Threads of the gateway that are running.", NamedThread.live),
      MetricFamily(name: "trunkline_build_info", help: "The running version.", kind: .gauge, labelNames: ["version"]) {
        [MetricSample([version], .integer(1))]
      },
    ]
  }

  /// CPU time of the whole process.
  static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  static func openDescriptors() -> Int64 {
    guard let folder = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(folder) }
    var count: Int64 = -3  // ".", ".." and the folder itself
    while readdir(folder) != nil { count += 1 }
    return max(0, count)
  }
}
