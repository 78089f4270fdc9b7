import AppleStandIn
import Foundation
import Testing
import TrunklineBytes

@testable import trunkline_lab

/// `trunkline-lab handset`: its scripts, keys and events, and an app in a process of its own.
@Suite struct HandsetTests {
  private static let push = #"push {"call":"11111111-1111-4111-8111-111111111111"}"#

  @Test func `a script has one command a line, with a time before it`() throws {
    let script = try HandsetScript(
      """
      # a call
      at 1.5s tap answer

      tap hold on
      expect violation R1 within 300ms
      cellular off
      push {"a": "b"}
      """)
    #expect(script.lines.map(\.number) == [2, 4, 5, 6, 7])
    #expect(script.lines.map(\.at) == [.milliseconds(1_500), nil, nil, nil, nil])
    let requests: [HandsetRequest] = [
      .tap(.answer), .tap(.hold(true)), .expect(.violation("R1", times: 1), within: .milliseconds(300)), .input(.cellular(false)),
      .push(#"{"a": "b"}"#),
    ]
    #expect(script.lines.map(\.request) == requests)
  }

  @Test(arguments: [
    "tap", "tap hold", "at 2s", "at soon lock", "lock now", "expect rain", "expect ringing within 5", "wait -1s", "recent 0",
    "expect violation R99", "expect violation R1 0",
  ])
  func `a line that is not a command is refused with its number`(line: String) {
    let problem = #expect(throws: HandsetScript.Problem.self) { try HandsetScript("lock\n\(line)") }
    #expect(problem?.description.hasPrefix("line 2: ") == true)
  }

  @Test func `of a push sandbox's line the payload is taken`() {
    #expect(HandsetCommand.payload(Array(#"{"service":"apns","id":"1","payload":{"call":"x"}}"#.utf8)) == #"{"call":"x"}"#)
    #expect(HandsetCommand.payload(Array("[]".utf8)) == nil && HandsetCommand.payload(Array(#"{"payload":1}"#.utf8)) == nil)
    #expect(HandsetCommand.bytes("00fF") == [0, 255] && HandsetCommand.bytes("0") == nil && HandsetCommand.bytes("zz") == nil)
  }

  @Test func `the screen keeps a caller's control characters off the terminal`() {
    var phone = PhoneModel(.strict, random: .seeded(1), epoch: Date(), token: [1])
    _ = phone.receive(.launched(process: 0), at: .zero)
    _ = phone.receive(.report(Identifier(high: 1, low: 1), .init("+1", name: "J\u{1b}[2J\u{9b}x"), isOnQueue: true), at: .zero)
    let drawn = HandsetScreen.draw(phone)
    #expect(
      drawn.contains { $0.contains("J\u{fffd}[2J\u{fffd}x") }
        && !drawn.joined().unicodeScalars.contains { $0.value < 32 || $0.value == 0x9b })
    #expect(HandsetTerminal.request(UInt8(ascii: "a"), phone) == .tap(.answer))
    #expect(HandsetTerminal.request(UInt8(ascii: "d"), phone) == .tap(.decline))
    #expect(HandsetTerminal.request(UInt8(ascii: "?"), phone) == nil)
  }

  // MARK: an app in a process of its own

  /// Beside the tests' own binary.
  private static let binaries = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()

  private func run(_ script: String, app arguments: [String] = []) throws -> (status: Int32, events: [String]) {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(UUID().uuidString).txt")
    try script.write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = Self.binaries.appendingPathComponent("trunkline-lab")
    process.arguments =
      ["handset", "--events", "--script", file.path, "--app", Self.binaries.appendingPathComponent("handset-app").path]
      + arguments
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text.split(separator: "\n").map(String.init))
  }

  @Test func `a push starts an app, which rings, talks and is held by a cellular call`() throws {
    let (status, events) = try run(
      """
      \(Self.push)
      expect ringing within 30s
      tap answer
      expect audio within 30s
      cellular on
      expect held within 30s
      tap end
      expect idle within 30s
      expect clean
      """)
    #expect(status == 0, "\(events.joined(separator: "\n"))")
    #expect(events.contains { $0.contains(#""event":"didActivate""#) })
  }

  @Test func `R1: an app that reports nothing is killed, and R2: after three kills nothing is delivered`() throws {
    let rounds = (1...3).map { "\(Self.push)\nexpect violation R1 \($0) within 30s\nexpect stopped within 30s" }
    let (status, events) = try run(
      (rounds + [Self.push, "expect violation R2"]).joined(separator: "\n"), app: ["--silent"])
    #expect(status == 0, "\(events.joined(separator: "\n"))")
    #expect(events.count { $0.contains(#""event":"kill""#) } == 3)
  }

  @Test func `an expectation that does not hold ends with status 1`() throws {
    #expect(try run("expect ringing within 10ms").status == 1)
  }
}

/// `trunkline-lab check-trace` and `check-app`: what they print, and their exit status.
@Suite struct CheckCommandTests {
  private static let binaries = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()

  private func lab(_ arguments: [String]) throws -> (status: Int32, text: String) {
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = Self.binaries.appendingPathComponent("trunkline-lab")
    (process.arguments, process.standardOutput, process.standardError) = (arguments, pipe, pipe)
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }
  /// A folder that goes with the test.
  private func inFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("check-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
  }

  @Test func `what the handset prints is a trace that check-trace confirms; broken it has status 1, cut it has 2`() throws {
    try inFolder { folder in
      let (script, file) = (folder.path + "/call.txt", folder.path + "/phone.trace")
      let steps = [
        #"push {"call":"11111111-1111-4111-8111-111111111111"}"#, "expect ringing within 30s", "tap answer",
        "expect audio within 30s", "tap end", "expect idle within 30s",
      ]
      try steps.joined(separator: "\n").write(toFile: script, atomically: true, encoding: .utf8)
      let log = folder.path + "/app.log"
      let app = Self.binaries.appendingPathComponent("handset-app").path
      let made = try lab(["handset", "--script", script, "--app-log", log, "--app", app])
      #expect(made.status == 0)
      try made.text.write(toFile: file, atomically: true, encoding: .utf8)
      let clean = try lab(["check-trace", file])
      #expect(clean.status == 0 && clean.text.contains("R8     confirmed: "), "\(clean.text)\n\(made.text)")
      // by rules that give an answer half a minute it is another system
      let other = try lab(["check-trace", "--rules", #"{"answerTime":30}"#, file])
      #expect(other.status == 1 && other.text.contains("by the system: answer has 60.000 s, and the rule says 30.000 s"))
      try String(made.text.dropLast(10)).write(toFile: file, atomically: true, encoding: .utf8)
      let cut = try lab(["check-trace", file])
      #expect(cut.status == 2 && cut.text.contains("phone.trace cannot be read to its end. line "))
      #expect(try lab(["check-trace", folder.path + "/none"]).status == 2)
      #expect(try lab(["check-trace", "--rules", "{}x", file]).status == 64)
    }
  }

  @Test func `check-app has status 0, 1 and 2, and says what to add`() throws {
    try inFolder { folder in
      #expect(try lab(["check-app", folder.path]).status == 2)
      let head = #"<?xml version="1.0"?><plist version="1.0"><dict>"#
      func write(_ name: String, _ body: String) throws {
        try (head + body + "</dict></plist>").write(toFile: folder.path + "/" + name, atomically: true, encoding: .utf8)
      }
      try write("Phone.entitlements", "<key>aps-environment</key><string>development</string>")
      let modes = "<key>UIBackgroundModes</key><array><string>voip</string><string>audio</string></array>"
      let rest =
        "<key>NSMicrophoneUsageDescription</key><string>For calls.</string>"
        + "<key>NSUserActivityTypes</key><array><string>INStartCallIntent</string></array>"
      try write("Info.plist", modes + rest)
      let good = try lab(["check-app", folder.path])
      #expect(good.status == 0 && good.text.contains("nothing is missing"), "\(good.text)")
      try write("Info.plist", rest)
      let bad = try lab(["check-app", folder.path])
      #expect(bad.status == 1 && bad.text.contains("missing  Info.plist: UIBackgroundModes is missing"), "\(bad.text)")
    }
  }

  @Test(arguments: ["check-trace", "check-app"]) func `its help has examples and the exit status`(command: String) throws {
    let (status, text) = try lab([command, "--help"])
    #expect(status == 0 && text.contains("EXAMPLES:") && text.contains("Exit status: 0 "))
  }
}
