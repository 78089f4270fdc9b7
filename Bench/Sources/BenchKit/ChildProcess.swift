import Foundation
import Glibc

/// A program that a bench starts in a folder, on its own cores if requested, with its resource use (proc(5)). It is ended by its
/// pid.
public final class ChildProcess {
  public let process = Process()
  public var pid: Int32 { process.processIdentifier }
  public var isRunning: Bool { process.isRunning }

  /// `cores` in the notation of `taskset`; nil: all cores. Standard output is discarded; standard error goes to the file `log` of
  /// the folder, if it is given.
  /// - Parameter isAhead: run with real-time scheduling, before everything else on the machine, where that is permitted.
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

  /// Processes that a signal to the bench ends as well. A signal handler may access nothing else; only the bench's own thread
  /// writes it.
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

  /// The words before a command that start it with real-time scheduling; nil if `chrt` is missing or not permitted.
  public static let ahead: [String]? = Program.find("chrt").flatMap { chrt in
    let words = [chrt, "--rr", "1"]
    return (try? Program.run(chrt, ["--rr", "1", "/bin/true"]))?.status == 0 ? words : nil
  }

  /// Sends SIGTERM twice (the second one makes a gateway end without waiting for its calls), then SIGKILL.
  public func end() {
    for _ in 0..<2 where process.isRunning {
      process.terminate()
      for _ in 0..<60 where process.isRunning { usleep(50_000) }
    }
    kill()
  }

  /// Sends SIGKILL.
  public func kill() {
    if process.isRunning { _ = Glibc.kill(pid, SIGKILL) }
    process.waitUntilExit()
    if let index = Self.living.firstIndex(of: pid) { Self.living[index] = 0 }
  }

  /// CPU time in milliseconds by thread name (schedstat); threads of one name are summed.
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

/// Finds and runs programs of the system.
public enum Program {
  public static func find(_ name: String) -> String? {
    ["/usr/bin/", "/usr/local/bin/", "/bin/", "/usr/sbin/"].map { $0 + name }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Runs the program to its end; returns its standard output and its status.
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

/// Divides the cores that this process may use: one for the measured program, the others for its load.
public enum Cores {
  /// `Cpus_allowed_list` of proc(5), as in 0-3,8.
  public static var allowed: [Int] {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed_list:") }) else { return [] }
    return line.dropFirst("Cpus_allowed_list:".count).split(separator: ",").flatMap { part -> [Int] in
      let ends = part.split(separator: "-").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
      guard let first = ends.first, let last = ends.last, first <= last else { return [] }
      return Array(first...last)
    }
  }
  /// In the notation of `taskset`; nil with one core only, or without taskset.
  public static var divided: (measured: String, load: String)? {
    let cores = allowed
    guard cores.count > 1, Program.find("taskset") != nil else { return nil }
    return ("\(cores[cores.count - 1])", cores.dropLast().map(String.init).joined(separator: ","))
  }
}
