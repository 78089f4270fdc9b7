import Foundation
import Glibc

/// A program that a bench starts, in a folder, on cores of its own if wanted; and what it takes (proc(5)). Ended by its pid.
public final class ChildProcess {
  public let process = Process()
  public var pid: Int32 { process.processIdentifier }
  public var isRunning: Bool { process.isRunning }

  /// `cores` as `taskset` writes them; nil: all. Standard output goes nowhere, standard error to `log` of the folder if that is named.
  /// - Parameter isAhead: of what else runs, where that is permitted.
  public init(
    _ program: String, _ arguments: [String], in folder: URL, cores: String? = nil, log: String? = nil, isAhead: Bool = false
  ) throws {
    var words = [program] + arguments
    if isAhead, let ahead = Self.ahead { words = ahead + words }
    if let cores, let taskset = Program.find("taskset") { words = [taskset, "-c", cores] + words }
    process.executableURL = URL(fileURLWithPath: words.removeFirst())
    (process.arguments, process.currentDirectoryURL) = (words, folder)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    if let log {
      let file = folder.appendingPathComponent(log)
      _ = FileManager.default.createFile(atPath: file.path, contents: nil)
      process.standardError = try FileHandle(forWritingTo: file)
    }
    Self.endsWithUs
    try process.run()
    if let index = Self.living.firstIndex(of: 0) { Self.living[index] = pid }
  }

  /// Those that a signal to the bench ends, too: a handler may touch no more than this. Of the bench's own thread.
  nonisolated(unsafe) private static let living = {
    let list = UnsafeMutableBufferPointer<Int32>.allocate(capacity: 64)
    list.initialize(repeating: 0)
    return list
  }()
  private static let endsWithUs: Void = {
    for number in [SIGTERM, SIGINT, SIGHUP] {
      signal(number) { number in
        for pid in ChildProcess.living where pid > 0 { _ = Glibc.kill(pid, SIGKILL) }
        _exit(128 + number)
      }
    }
  }()

  /// The words before a program's that give it real-time scheduling, if `chrt` may.
  public static let ahead: [String]? = Program.find("chrt").flatMap { chrt in
    let words = [chrt, "--rr", "1"]
    return (try? Program.run(chrt, ["--rr", "1", "/bin/true"]))?.status == 0 ? words : nil
  }

  /// SIGTERM twice (a gateway then does not wait for its calls), then SIGKILL.
  public func end() {
    for _ in 0..<2 where process.isRunning {
      process.terminate()
      for _ in 0..<60 where process.isRunning { usleep(50_000) }
    }
    kill()
  }

  /// SIGKILL.
  public func kill() {
    if process.isRunning { _ = Glibc.kill(pid, SIGKILL) }
    process.waitUntilExit()
    if let index = Self.living.firstIndex(of: pid) { Self.living[index] = 0 }
  }

  /// CPU time in milliseconds by the threads' names (schedstat); those of one name are summed.
  public var threadCPU: [String: Double] {
    let tasks = "/proc/\(pid)/task"
    var out: [String: Double] = [:]
    for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
      guard let name = try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8),
        let times = try? String(contentsOfFile: "\(tasks)/\(task)/schedstat", encoding: .utf8),
        let running = times.split(separator: " ").first.flatMap({ Double($0) })
      else { continue }
      out[name.trimmingCharacters(in: .whitespacesAndNewlines), default: 0] += running / 1e6
    }
    return out
  }

  public var residentMegabytes: Double { statusKilobytes("VmRSS:") / 1_024 }

  private func statusKilobytes(_ name: String) -> Double {
    let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0
  }
}

/// Where a program of the system stands.
public enum Program {
  public static func find(_ name: String) -> String? {
    ["/usr/bin/", "/usr/local/bin/", "/bin/", "/usr/sbin/"].map { $0 + name }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Runs it to its end; what it wrote on standard output, and its status.
  public static func run(_ program: String, _ arguments: [String]) throws -> (output: String, status: Int32) {
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: program)
    (process.arguments, process.standardOutput, process.standardInput) = (arguments, pipe, FileHandle.nullDevice)
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (String(decoding: data, as: UTF8.self), process.terminationStatus)
  }
}

/// Cores that this process may use, divided: one for what is measured, the others for what loads it.
public enum Cores {
  /// `Cpus_allowed_list`, as in 0-3,8.
  public static var allowed: [Int] {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed_list:") }) else { return [] }
    return line.dropFirst("Cpus_allowed_list:".count).split(separator: ",").flatMap { part -> [Int] in
      let ends = part.split(separator: "-").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
      guard let first = ends.first, let last = ends.last, first <= last else { return [] }
      return Array(first...last)
    }
  }
  /// As `taskset` writes them; nil: there is one core, or no taskset.
  public static var divided: (measured: String, load: String)? {
    let cores = allowed
    guard cores.count > 1, Program.find("taskset") != nil else { return nil }
    return ("\(cores[cores.count - 1])", cores.dropLast().map(String.init).joined(separator: ","))
  }
}
