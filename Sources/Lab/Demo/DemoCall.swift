import CommandSupport
import Configuration
import Foundation
import Peers

/// The call of `trunkline-lab demo`, from the phone's login to the record.
struct DemoCall {
  let settings: Settings
  let folder: URL
  let gateway: ChildProcess
  private static let talkSeconds = 9
  private static let deadlineSeconds = 30.0

  struct Failure: Error, CustomStringConvertible { let description: String }

  func run() throws -> DemoOutcome {
    guard let number = settings.users.first?.numbers.first, let user = settings.users.first?.id else {
      throw Failure(description: "the configuration has no user with a number")
    }
    let token = try LoginToken.make(settings, user: user, device: "demo")
    let tokenFile = folder.appendingPathComponent("demo.jwt")
    try Data(token.utf8).write(to: tokenFile)
    defer { try? FileManager.default.removeItem(at: tokenFile) }

    let phone = try start(
      "phone", ["phone", "--answer", "--answer-after", "0.7", "--calls", "1", "--device", "demo", "--token-file", "demo.jwt"],
      record: DemoOutcome.appFile)
    defer { phone.end() }
    guard phone.wait(seconds: 10, for: { $0.contains { $0.event == "online" } }) else {
      throw failure("the app did not come online", log: "phone.log")
    }
    Console.line("\(user)'s app is online. The carrier calls \(number) …")
    let watch = try MachineWatch([gateway.identifier, phone.identifier])
    defer { _ = watch.stop() }
    let carrier = try start(
      "carrier", ["trunk", "--call", number, "--talk", "\(Self.talkSeconds)", "--listen", carrierAddress],
      record: DemoOutcome.trunkFile)
    defer { carrier.end() }
    watch.add(carrier.identifier)
    let status = carrier.exitStatus(within: Self.deadlineSeconds)
    // its address may belong to another process; a call that was placed and failed has its record
    guard status == 0 || carrier.events.contains(where: { $0.event == "invite" }) else {
      throw failure("the carrier did not call", log: "carrier.log")
    }
    _ = phone.exitStatus(within: 5)
    let lateness = watch.stop()
    return try DemoOutcome(carrier: carrier.events, phone: phone.events, record: lastRecord(), lateness: lateness, folder: folder)
  }

  private func failure(_ text: String, log: String) -> Failure {
    let end = DemoFolder.end(of: folder.appendingPathComponent(log), lines: 3)
    return Failure(description: "\(text); the end of \(log):\n\(end)")
  }

  private var carrierAddress: String { "127.0.0.1:5080" }

  private func start(_ name: String, _ arguments: [String], record: String) throws -> ChildProcess {
    try ChildProcess(
      name, Binaries.lab, arguments + ["--events", "--record", record], directory: folder, log: name + ".log"
    ) { event in
      if ["invite", "ringing", "answering", "connected", "bye", "failed"].contains(event.event) {
        Console.line("  \(name): \(event.event)")
      }
    }
  }

  /// The newest line of the records file, which is written within a second of the end.
  private func lastRecord() throws -> DemoRecord? {
    let path = folder.appendingPathComponent("calls.jsonl")
    let deadline = Date(timeIntervalSinceNow: 3)
    let started = Date()
    while Date() < deadline {
      if let text = try? String(contentsOf: path, encoding: .utf8), let line = text.split(separator: "\n").last,
        let record = try? JSONDecoder().decode(DemoRecord.self, from: Data(line.utf8)),
        Double(record.times["ended"] ?? 0) / 1000 > started.timeIntervalSince1970 - Self.deadlineSeconds
      {
        return record
      }
      usleep(50_000)
    }
    return nil
  }
}
