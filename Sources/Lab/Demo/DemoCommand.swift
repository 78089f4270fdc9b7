import ArgumentParser
import CommandSupport
import Configuration
import Foundation
import Peers

/// `trunkline-lab demo`: what `make run` runs.
struct DemoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Starts a gateway and makes a real call through it: simulated carrier, gateway, app, and back.",
    discussion: """
      The gateway runs on the embedded defaults, all on this machine; carrier and app are processes of their own. Prints the call's
      timeline and the audio that each side received, then stays up and serves the web phone until Ctrl-C.

      EXAMPLES:
        trunkline-lab demo
        trunkline-lab demo --once        # ends after the call; status 0 only if both sides heard speech, 75 if the machine was too late to tell
      """)

  @Flag(help: "Ends after the demo call; status 0 only if both sides heard speech.") var once = false
  @Option(help: "Where the gateway keeps its state, logs and the WAV files.") var directory = "run/demo"

  func run() throws {
    let demoFolder = try DemoFolder(directory)
    defer { withExtendedLifetime(demoFolder) {} }
    let folder = demoFolder.url
    guard FileManager.default.changeCurrentDirectoryPath(folder.path) else { throw ValidationError("cannot use \(folder.path)") }
    let settings = try SettingsSource.load(nil)

    Console.line("Starting the gateway (log: \(directory)/gateway.log) …")
    let gateway = try ChildProcess("gateway", try Binaries.gateway(), ["serve"], directory: folder, log: "gateway.log") { _ in }
    defer { gateway.end() }
    try awaitReady(gateway, settings, folder)

    let call = DemoCall(settings: settings, folder: folder, gateway: gateway)
    let outcome = try call.run()
    outcome.print()
    guard !once else {
      if let status = outcome.failure { throw ExitCode(status) }
      return
    }
    try serveWebPhone(settings, gateway)
  }

  private func awaitReady(_ gateway: ChildProcess, _ settings: Settings, _ folder: URL) throws {
    let admin = AdminClient(address: settings.listen.admin, token: nil)
    let deadline = Date(timeIntervalSinceNow: 10)
    while Date() < deadline, gateway.isRunning {
      // A gateway of an earlier run on the same ports would answer too; ours has then ended with its reason in the log.
      if let answer = try? admin.request("GET", path: "/readyz"), answer.status == 200, gateway.isRunning { return }
      _ = gateway.exitStatus(within: 0.1)
    }
    complain("the gateway did not become ready:\n" + DemoFolder.end(of: folder.appendingPathComponent("gateway.log"), lines: 5))
    throw ExitCode(1)
  }

  private func serveWebPhone(_ settings: Settings, _ gateway: ChildProcess) throws {
    let token = try LoginToken.make(settings, user: "alice", device: "browser")
    let address = settings.listen.app
    Console.line(
      """

      The gateway stays up. Web phone: http://\(address)/
      Log in with:
        http://\(address)/#token=\(token)
      Then call it from another terminal:
        \(Binaries.lab.path) trunk --call \(settings.users.first?.numbers.first ?? "NUMBER") --talk 20
      Health: http://\(settings.listen.admin)/metrics · /readyz        Ctrl-C ends.
      """)
    let stopped = DispatchSemaphore(value: 0)
    let signals = StopSignal { stopped.signal() }
    stopped.wait()
    withExtendedLifetime(signals) {}
    Console.line("Ending the gateway …")
  }
}
