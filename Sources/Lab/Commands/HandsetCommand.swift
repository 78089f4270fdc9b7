import AppleStandIn
import ArgumentParser
import CommandSupport
import Foundation
import Peers
import TrunklineBytes
import TrunklinePlatform

/// `trunkline-lab handset`: iOS's part in an app's calls, as a separate process.
struct HandsetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "handset", abstract: "A phone without a phone: starts, calls and kills an app that is linked with AppleStandIn.",
    discussion: """
      The app finds the handset by the environment variable APPLE_STAND_IN. It is started by a push or by `open`, and killed with
      SIGKILL when it breaks R1. On a terminal the phone is drawn and reads keys; a script has one order a line:

        at 2s tap answer        answer decline end hold|mute|speaker on|off holdAndAnswer endAndAnswer headset digits 12
        open, background, foreground, lock, unlock, restart, kill, network, quit, cellular on|off
        push {"call":"…"}       recent 1       wait 3s       crash callServices|mediaServices       route bluetooth
        expect ringing within 5s         active held idle locked running stopped audio clean, violation R1 [times]

      EXAMPLES:
        trunkline-lab handset --pushes 127.0.0.1:2198 --token 00ff --app ./MyApp --verbose
        trunkline-lab handset --script answer.txt --events --app ./MyApp
        trunkline-lab handset --rules '{"muteBursts":2}' --app ./MyApp       or a file's name
        trunkline-lab handset --socket /tmp/phone                            the app is started by hand, in a debugger
      """)

  @Option(help: ArgumentHelp("The address to wait for pushes at: push-sandbox's --apps.", valueName: "address:port"))
  var pushes: SocketAddress?
  @Option(help: ArgumentHelp("The push token, in hex digits.", valueName: "hex"))
  var token = "5a0e11d5a0e11d5a0e11d5a0e11d5a0e11d5a0e11d5a0e11d5a0e11d5a0e11d0"
  @Option(
    help: ArgumentHelp("Orders, one a line; ends with the last one. Exit status 1 if an expectation fails.", valueName: "file"))
  var script: String?
  @Option(help: ArgumentHelp("A JSON object of rules, or its file.", valueName: "json")) var rules: String?
  @Flag(help: "Prints each event as a line of JSON; else as a line of the log.") var events = false
  @Option(help: ArgumentHelp("Where the app connects; a temporary file by default.", valueName: "path")) var socket: String?
  @Option(help: ArgumentHelp("Where the app's output goes; standard error by default.", valueName: "file")) var appLog: String?
  @Option(
    parsing: .remaining, help: ArgumentHelp("The app and its arguments: everything that follows.", valueName: "path arguments"))
  var app: [String] = []

  func run() throws {
    let draws = HandsetTerminal.isThere && script == nil && !events
    let path =
      socket ?? FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(getpid())").path
    guard let listener = UnixSocket.listen(path) else { throw ValidationError("--socket: cannot listen at \(path)") }
    defer { unlink(path) }
    guard let bytes = Self.bytes(token) else { throw ValidationError("--token: not hex digits, two a byte") }
    let (plan, launcher) = (try readScript(), try makeLauncher(path, draws: draws))
    let report: HandsetPhone.Report = { [events] line in
      if !draws { Console.line(events ? HandsetEvent(line: line).text : line.description) }
    }
    // the following lines are a trace
    if !draws, !events { Console.line(TraceHeader(.standIn).line.description) }
    let phone = HandsetPhone(try SystemRules.option(rules), token: bytes, launcher: launcher, report: report)
    defer { phone.kill() }
    Thread.detachNewThread {
      while true {
        let fd = accept(listener, nil, nil)
        guard fd >= 0 else { return }
        Thread.detachNewThread { phone.serve(UnixSocket(owning: fd)) }
      }
    }
    let waiter = try waitForPushes(phone)
    defer { waiter?.stop() }
    if let plan {
      guard let problem = plan.run(on: phone) else { return }
      complain("\(script ?? ""): \(problem)")
      throw ExitCode(1)
    }
    let stopped = DispatchSemaphore(value: 0)
    let signals = StopSignal { stopped.signal() }
    if draws {
      HandsetTerminal().run(phone) { stopped.wait(timeout: .now()) == .success }
    } else {
      complain("handset: APPLE_STAND_IN=\(path); Ctrl-C ends it")
      stopped.wait()
    }
    withExtendedLifetime(signals) {}
  }

  private func waitForPushes(_ phone: HandsetPhone) throws -> PushWaiter? {
    guard let pushes else { return nil }
    let waiter: PushWaiter
    do {
      waiter = try PushWaiter(.sandbox(pushes, token: token))
    } catch {
      throw ValidationError("--pushes: \(error)")
    }
    Thread.detachNewThread {
      while let line = waiter.nextLine() {
        if let payload = Self.payload(line) { phone.step { $0.push(payload, at: $1) } }
      }
    }
    return waiter
  }

  /// The payload of a line of the push sandbox: `{"service":"apns","id":"…","payload":{…}}`; nil if it is not a push.
  static func payload(_ line: [UInt8]) -> String? {
    guard let values = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any] else { return nil }
    guard let payload = values["payload"] as? [String: Any],
      let data = try? JSONSerialization.data(withJSONObject: payload, options: [.sortedKeys])
    else { return nil }
    return String(decoding: data, as: UTF8.self)
  }

  static func bytes(_ hex: String) -> [UInt8]? {
    let digits = hex.compactMap(\.hexDigitValue)
    guard digits.count == hex.count, digits.count % 2 == 0, !digits.isEmpty else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  private func readScript() throws -> HandsetScript? {
    guard let script else { return nil }
    guard let text = try? String(contentsOfFile: script, encoding: .utf8) else {
      throw ValidationError("--script: \(script) cannot be read")
    }
    do {
      return try HandsetScript(text)
    } catch {
      throw ValidationError("--script: \(error)")
    }
  }

  private func makeLauncher(_ path: String, draws: Bool) throws -> AppLauncher? {
    guard let executable = app.first else { return nil }
    guard FileManager.default.isExecutableFile(atPath: executable) else {
      throw ValidationError("--app: \(executable) cannot be executed")
    }
    var output = draws ? FileHandle.nullDevice : FileHandle.standardError
    if let appLog {
      _ = FileManager.default.createFile(atPath: appLog, contents: nil)
      guard let file = FileHandle(forWritingAtPath: appLog) else {
        throw ValidationError("--app-log: \(appLog) cannot be written")
      }
      output = file
    }
    return AppLauncher(URL(fileURLWithPath: executable), Array(app.dropFirst()), socket: path, output: output)
  }
}
