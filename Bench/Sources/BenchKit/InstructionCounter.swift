import CMallocCount
import Foundation

/// Runs one work of this executable under callgrind. Instruction counts do not depend on what else the machine does.
///
/// Only the loop is counted (client requests switch it on and off), and two counts of different length are subtracted, so that
/// neither set-up nor the switching is in the result.
struct InstructionCounter: Sendable {
  /// nil, after telling once, where valgrind or its header is missing.
  static let shared: InstructionCounter? = make()
  private let valgrind: String
  private let executable: String

  private static func make() -> InstructionCounter? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let found = folders.map { "\($0)/valgrind" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    guard let found, can_count_instructions() == 1 else {
      writeError("no instruction counts: valgrind is not installed\n")
      return nil
    }
    return InstructionCounter(valgrind: found, executable: stripped())
  }

  /// valgrind stumbles over some compilers' debugging information: it gets a copy without.
  private static func stripped() -> String {
    let original = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
    let copy = original + "-stripped"
    _ = start("/usr/bin/env", ["strip", "-S", "-o", copy, original]).flatMap(finish)
    return FileManager.default.isExecutableFile(atPath: copy) ? copy : original
  }

  /// Instructions of `work` run so often, for each count; all at the same time, since what else runs makes no difference to them.
  func counts(_ work: String, operations: [Int], bench: Bench) -> [UInt64]? {
    let children = operations.map { operations in
      Self.start(
        valgrind,
        ["--tool=callgrind", "--callgrind-out-file=/dev/null", "--instr-atstart=no", executable] + bench.arguments + [
          "--count", work, "--operations", "\(operations)",
        ])
    }
    let found = children.map { $0.flatMap(Self.finish).flatMap(Self.collected) }
    let counts = found.compactMap { $0 }
    if counts.count < found.count { bench.progress("no instruction count of \(work)") }
    return counts.count < found.count ? nil : counts
  }

  /// "==123== Collected : 456"
  private static func collected(_ report: String) -> UInt64? {
    for line in report.split(separator: "\n") where line.contains("Collected :") {
      return line.split(separator: " ").last.flatMap { UInt64($0) }
    }
    return nil
  }

  private typealias Child = (process: Process, errors: Pipe)

  /// nil if the program could not be run.
  private static func start(_ program: String, _ arguments: [String]) -> Child? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let pipe = Pipe()
    process.standardError = pipe
    process.standardOutput = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return nil }
    return (process, pipe)
  }

  /// What the program wrote on standard error; nil if it failed.
  private static func finish(_ child: Child) -> String? {
    let data = child.errors.fileHandleForReading.readDataToEndOfFile()
    child.process.waitUntilExit()
    return child.process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self) : nil
  }
}
