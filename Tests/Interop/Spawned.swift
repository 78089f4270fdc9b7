import Foundation
import Glibc
import Synchronization
import Testing

/// A process of one test: started with its own pid, its output kept in a file, ended at the latest when the test releases it.
///
/// Not `Foundation.Process`: that detects an end by a socket which the child inherits, and waits for ever for a child that closes
/// it.
final class Spawned: @unchecked Sendable {
  // Used by one task of the test at a time; only `ended` is read by several.
  let name: String
  let pid: pid_t
  private var input: FileHandle
  private let outputPath: String
  /// The status of `waitpid`; nil while the process runs.
  private let ended = Mutex<Int32?>(nil)

  struct Failure: Error, CustomStringConvertible { var description: String }

  init(_ name: String, _ program: String, _ arguments: [String], in folder: String, environment: [String: String] = [:]) throws {
    self.name = name
    outputPath = folder + "/\(name)-\(UUID().uuidString.prefix(8)).log"
    guard FileManager.default.createFile(atPath: outputPath, contents: nil) else {
      throw Failure(description: "cannot write \(outputPath)")
    }
    var pipe: [Int32] = [0, 0]
    guard Glibc.pipe(&pipe) == 0 else { throw Failure(description: "no pipe for \(name)") }
    input = FileHandle(fileDescriptor: pipe[1], closeOnDealloc: true)
    defer { close(pipe[0]) }
    // The variable is the runner's: a program under test is started as an operator would start it.
    let ours = ProcessInfo.processInfo.environment.filter { $0.key != "SWIFT_BACKTRACE" }
    let all = ours.merging(environment) { $1 }
    pid = try Self.spawn([program] + arguments, all, in: folder, input: pipe[0], output: outputPath)
    JudgedCalls.add(self)
  }

  /// Starts the program with no signal blocked, whatever the test runner has blocked, and no descriptor but the three standard
  /// ones.
  private static func spawn(
    _ arguments: [String], _ environment: [String: String], in folder: String, input: Int32, output: String
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for fd in open.compactMap(Int32.init) where fd > 2 { posix_spawn_file_actions_addclose(&actions, fd) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    // `env` becomes the program, in the folder: glibc's own function for the folder is not visible from here.
    let words = (["/usr/bin/env", "-C", folder] + arguments).map { strdup($0) } + [nil]
    let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in words + variables { free(text) } }
    var pid: pid_t = 0
    let status = posix_spawn(&pid, "/usr/bin/env", &actions, &attributes, words, variables)
    guard status == 0 else { throw Failure(description: "cannot run \(arguments[0]): \(String(cString: strerror(status)))") }
    return pid
  }

  deinit {
    if isRunning { killAndWait() }
  }

  var isRunning: Bool { status(wait: false) == nil }

  /// nil while it runs.
  private func status(wait: Bool) -> Int32? {
    ended.withLock { ended in
      var status: Int32 = 0
      if ended == nil, waitpid(pid, &status, wait ? 0 : WNOHANG) == pid { ended = status }
      return ended
    }
  }

  /// With its children: one that is killed cannot end them.
  private func killAndWait() {
    let all = [pid] + Self.descendants(of: pid)
    for process in all { kill(process, SIGKILL) }
    _ = status(wait: true)
  }

  private static func descendants(of pid: pid_t) -> [pid_t] {
    let children = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
    return children.split(separator: " ").compactMap { pid_t($0) }.flatMap { [$0] + descendants(of: $0) }
  }

  var text: String { (try? String(contentsOfFile: outputPath, encoding: .utf8)) ?? "" }

  func type(_ line: String) { try? input.write(contentsOf: Data((line + "\n").utf8)) }
  func closeInput() { try? input.close() }
  /// A process that has ended gets no signal: its number may be another's.
  func signal(_ number: Int32) {
    if isRunning { kill(pid, number) }
  }

  /// Waits for the end and returns the exit status; after `seconds` it ends the process itself, and fails: by SIGTERM, so that a
  /// process with children ends these, and by SIGKILL 20 s later.
  @discardableResult func finish(within seconds: Double) async throws -> Int32 {
    if !(await eventually(within: seconds) { !self.isRunning }) {
      signal(SIGTERM)
      if !(await eventually(within: 20) { !self.isRunning }) { killAndWait() }
      throw Failure(description: "\(name) did not end within \(seconds) s:\n\(text.suffix(4_000))")
    }
    let status = status(wait: true) ?? 0
    return status & 0x7f == 0 ? status >> 8 & 0xff : -(status & 0x7f)
  }

  /// Ends a stranger whose own end is not under test: by SIGTERM, and after `seconds` by SIGKILL. Of kamailio 5.6 three of seven
  /// processes were seen to log the signal and stay for ever.
  func end(within seconds: Double = 10) async {
    signal(SIGTERM)
    if !(await eventually(within: seconds) { !self.isRunning }) { killAndWait() }
  }

  /// The first event of this name that matches, as JSON.
  func event(_ wanted: String, within seconds: Double = 10, where matches: @escaping ([String: Any]) -> Bool = { _ in true })
    async throws -> [String: Any]
  {
    let found = Mutex<Data?>(nil)
    let came = await eventually(within: seconds) {
      for line in self.events where line["event"] as? String == wanted && matches(line) {
        found.withLock { $0 = try? JSONSerialization.data(withJSONObject: line) }
        return true
      }
      return false
    }
    guard came, let data = found.withLock({ $0 }), let line = try JSONSerialization.jsonObject(with: data) as? [String: Any]
    else {
      throw Failure(description: "\(name) did not say \(wanted) within \(seconds) s:\n\(text.suffix(4_000))")
    }
    return line
  }

  var events: [[String: Any]] {
    text.split(separator: "\n").compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
  }
}

/// True as soon as `condition` holds, false after `seconds` of the canary's time: a slow machine waits longer.
func eventually(within seconds: Double, _ condition: @escaping () throws -> Bool) async -> Bool {
  let deadline = Deadline(in: seconds)
  while true {
    let isLast = deadline.isOver  // before the check, which may take long
    if (try? condition()) == true { return true }
    if isLast { return false }
    try? await Task.sleep(for: .milliseconds(20))
  }
}
