import ArgumentParser
import CommandSupport
import Configuration
import TrunklinePlatform

struct Serve: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Runs the gateway.",
    discussion: """
      SIGHUP reads trunks, users, routes and certificates again without touching calls. SIGTERM drains: no new calls, and the process ends
      with the last one; a second SIGTERM ends them all. Exit codes: 0 drained, 1 could not start, 2 the configuration is wrong.

      EXAMPLES:
        trunkline serve --config gateway.yaml
        trunkline serve --check --config gateway.yaml
        trunkline serve                                  # embedded defaults, on loopback, state in this directory
      """)

  @OptionGroup var source: SettingsSource
  @Flag(help: "Only check the configuration.") var check = false

  func run() throws {
    // before the first key is read
    ProcessMemory.isDumpable = false
    let settings = try source.load(triesFiles: check)
    if check {
      for warning in settings.warnings { complain(warning.drawn) }
      // What `serve` would wait for; addresses that the file names are among the warnings.
      let machine = (try? MachineAddresses.look()) ?? MachineAddresses()
      for wait in settings.networkPlan(on: machine, NetworkQuestions(find: { lookUp($0, $1) })).waits where !wait.isNamed {
        complain("\(source.config ?? "embedded defaults"): warning: \(wait.text); serve starts and waits for it")
      }
      let trunks = settings.trunks.compactMap(\.routing.settings)
      for text in TrunkNameCheck.warnings(trunks, settings) {
        complain("\(source.config ?? "embedded defaults"): warning: \(text); calls by it fail until there is one")
      }
      Console.line("\(source.config ?? "embedded defaults"): ok")
      return
    }
    do {
      try ServeProcess.run(settings, config: source.config)
    } catch let status as ExitCode {
      // the log has said why
      throw status
    } catch {
      complain("trunkline: \(error)")
      throw ExitCode(1)
    }
  }
}
