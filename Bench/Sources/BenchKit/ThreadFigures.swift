import CMallocCount
import Foundation
import Glibc

/// What the threads of this process have taken so far, by their names (proc(5)); those of one name are summed. The first is `main`; those that
/// have the program's name, as libdispatch's workers do, are `dispatch`.
public struct ThreadFigures: Codable, Sendable {
  public struct Thread: Codable, Sendable {
    public var cpuMilliseconds = 0.0
    /// Voluntary switches: each is a wait that something ended.
    public var wakeUps = 0
    public var mallocs: UInt64 = 0
    public init() {}
  }
  /// By CLOCK_MONOTONIC.
  public var seconds: Double
  public var threads: [String: Thread]

  public static func now() -> ThreadFigures {
    var rows = [malloc_thread](repeating: malloc_thread(), count: Int(MALLOC_THREADS))
    let count = Int(malloc_threads(&rows, MALLOC_THREADS))
    let mallocs = Dictionary(rows[..<count].map { ($0.thread, $0.calls) }, uniquingKeysWith: max)
    let program = ((try? String(contentsOfFile: "/proc/self/comm", encoding: .utf8)) ?? "").trimmingCharacters(
      in: .whitespacesAndNewlines)
    var out: [String: Thread] = [:]
    for task in tasks() {
      func text(_ file: String) -> String {
        (try? String(contentsOfFile: "/proc/self/task/\(task)/\(file)", encoding: .utf8)) ?? ""
      }
      let given = text("comm").trimmingCharacters(in: .whitespacesAndNewlines)
      let name = task == getpid() ? "main" : given == program ? "dispatch" : given
      out[name, default: Thread()].cpuMilliseconds +=
        (text("schedstat").split(separator: " ").first.flatMap { Double($0) } ?? 0) / 1e6
      out[name, default: Thread()].wakeUps += statusNumber(text("status"), "voluntary_ctxt_switches") ?? 0
      out[name, default: Thread()].mallocs += mallocs[task] ?? 0
    }
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return ThreadFigures(seconds: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9, threads: out)
  }

  /// What came since `earlier`; a thread that is new counts from its start.
  public func since(_ earlier: ThreadFigures) -> ThreadFigures {
    var out = ThreadFigures(seconds: seconds - earlier.seconds, threads: [:])
    for (name, now) in threads {
      let before = earlier.threads[name] ?? Thread()
      var taken = Thread()
      taken.cpuMilliseconds = max(0, now.cpuMilliseconds - before.cpuMilliseconds)
      taken.wakeUps = max(0, now.wakeUps - before.wakeUps)
      // a worker that is gone took its counts with it
      taken.mallocs = now.mallocs >= before.mallocs ? now.mallocs - before.mallocs : now.mallocs
      out.threads[name] = taken
    }
    return out
  }

  /// Foundation loses names that are set before the thread runs.
  public static func nameThread(_ name: String) {
    guard let file = fopen("/proc/thread-self/comm", "w") else { return }
    fputs(name, file)
    fclose(file)
  }

  /// The id of the thread of this name.
  public static func thread(named name: String) -> Int32? {
    tasks().first { task in
      (try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8))?.hasPrefix(name.prefix(15)) == true
    }
  }

  /// Resident memory of this process.
  public static func residentKilobytes() -> Int {
    statusNumber((try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? "", "VmRSS") ?? 0
  }

  private static func tasks() -> [Int32] {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []).compactMap { Int32($0) }
  }

  private static func statusNumber(_ status: String, _ name: String) -> Int? {
    status.split(separator: "\n").first { $0.hasPrefix(name + ":") }?.split(whereSeparator: \.isWhitespace).dropFirst().first
      .flatMap { Int($0) }
  }
}
