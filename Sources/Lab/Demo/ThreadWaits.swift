import Glibc

/// How long threads of some processes were ready to run and had no processor, as the kernel counts it
/// (`/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst). On a full machine a thread with little to do runs
/// at once while one that codes audio waits, so a watchdog that only wakes up does not notice the wait. The time that a slow
/// program uses itself is not included.
struct ThreadWaits {
  private var last: [String: UInt64] = [:]
  private var waited: [String: UInt64] = [:]

  /// The longest total wait of a thread, in milliseconds.
  var worstMilliseconds: Double { Double(waited.values.max() ?? 0) / 1e6 }

  /// Reads the counters; a thread counts from the first time it is seen. Does nothing where the kernel has no counters.
  mutating func read(_ processes: [Int32]) {
    for process in processes {
      let path = "/proc/\(process)/task"
      guard let folder = opendir(path) else { continue }
      defer { closedir(folder) }
      while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        guard name.first?.isNumber == true, let now = Self.waited(path + "/" + name + "/schedstat") else { continue }
        if let before = last[name] { waited[name, default: 0] += now &- before }
        last[name] = now
      }
    }
  }

  /// The second of the file's three numbers, in nanoseconds.
  private static func waited(_ path: String) -> UInt64? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let fields = String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ")
    return fields.count > 1 ? UInt64(fields[1]) : nil
  }
}
