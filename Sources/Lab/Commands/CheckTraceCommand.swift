import AppleStandIn
import ArgumentParser
import CommandSupport
import Foundation

/// `trunkline-lab check-trace`: compares a device's trace with the rules by which apps are tested here.
struct CheckTraceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-trace",
    abstract: "Reports which rules of iOS the trace of a device contradicts, confirms, or does not cover.",
    discussion: """
      The trace is what `Phone.trace` holds, or the file of `Phone.keepTrace`; the log of `handset` and of StandInPhone, too. A file
      may hold several, one after the other. A rule is contradicted by the app, which broke it, or by the system, which is not as the
      rule has it: that settles an open question (docs/apps/on-device.md explains how to make such traces).

      Exit status: 0 no rule is contradicted, 1 one is, 2 the trace cannot be read to its end; the part before that is checked.

      EXAMPLES:
        trunkline-lab check-trace phone.trace
        trunkline-lab check-trace --rules '{"ringTime":45}' phone.trace    as if the system let a call ring for 45 s; or a file's name
        trunkline-lab handset --script call.txt --app ./MyApp > phone.trace
      """)

  @Option(help: ArgumentHelp("A JSON object of rules instead of the strict ones, or its file.", valueName: "json")) var rules:
    String?
  @Argument(help: ArgumentHelp("The trace.", valueName: "file")) var file: String

  func run() throws {
    let rules = try SystemRules.option(rules)
    guard let data = FileManager.default.contents(atPath: file) else {
      complain("\(file) cannot be read: look whether it is there and may be read")
      throw ExitCode(2)
    }
    let verdict = TraceCheck.judge([UInt8](data), rules: rules)
    Console.line(verdict.text(name: (file as NSString).lastPathComponent))
    if verdict.exitCode != 0 { throw ExitCode(verdict.exitCode) }
  }
}

extension SystemRules {
  /// The rules of an option `--rules`: nil means the strict ones.
  static func option(_ rules: String?) throws -> SystemRules {
    guard let rules else { return .strict }
    let json = rules.hasPrefix("{") ? Data(rules.utf8) : FileManager.default.contents(atPath: rules)
    guard let json else { throw ValidationError("--rules: \(rules) cannot be read") }
    do {
      return try SystemRules(json: json)
    } catch {
      throw ValidationError("--rules: \(error)")
    }
  }
}
