import CTrunklineLinux
import Glibc

/// Memory of this process, and its limit.
public enum ProcessMemory {
  /// Resident memory, field 2 of /proc/self/statm; 0 if it cannot be read. Any thread; reads no disk.
  public static func residentBytes() -> Int64 {
    let fields = read("/proc/self/statm", bytes: 128).split(separator: " ")
    guard fields.count > 1, let pages = Int64(fields[1]) else { return 0 }
    return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// The smallest limit of the process's control groups (cgroup v2, else v1), else the machine's memory. Only for the start,
  /// because it reads several files.
  public static func limitBytes() -> Int64 {
    var limits = [Int64(sysconf(Int32(_SC_PHYS_PAGES))) * Int64(sysconf(Int32(_SC_PAGESIZE)))]
    for line in read("/proc/self/cgroup", bytes: 4_096).split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let (root, file) = parts[1].isEmpty ? ("/sys/fs/cgroup", "memory.max") : ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
      guard parts[1].isEmpty || parts[1].split(separator: ",").contains("memory") else { continue }
      // a group's limit also holds for those below it
      var folders = parts[2].split(separator: "/").map(String.init)
      while true {
        let path = ([root] + folders + [file]).joined(separator: "/")
        if let limit = Int64(read(path, bytes: 64).filter(\.isNumber)), limit > 0 { limits.append(limit) }
        if folders.popLast() == nil { break }
      }
    }
    return limits.min() ?? 0
  }

  private static func read(_ path: String, bytes: Int) -> String {
    guard let file = fopen(path, "re") else { return "" }
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: bytes)
    let count = fread(&buffer, 1, buffer.count, file)
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}

extension ProcessMemory {
  /// Whether a crash writes a core, and another process of the same user may read this one's memory: both contain every key.
  /// The kernel's own default is true; a change applies to the whole process and to programs that it executes.
  public static var isDumpable: Bool {
    get { clx_is_dumpable() == 1 }
    set { _ = clx_set_dumpable(newValue ? 1 : 0) }
  }
}
