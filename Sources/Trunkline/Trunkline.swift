import ArgumentParser
import CommandSupport
import TrunklinePlatform

@main
struct Trunkline: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trunkline", abstract: "Bridges telephone trunks to app calls.",
    discussion: """
      EXAMPLES:
        trunkline config example > gateway.yaml
        head -c 32 /dev/urandom | base64 > jwt.key
        trunkline serve --check --config gateway.yaml
        trunkline serve --config gateway.yaml
        trunkline token --user alice --device laptop --config gateway.yaml
        trunkline calls list
        trunkline trunks list
        trunkline nodes list
        trunkline where --user alice
        trunkline devices list
        trunkline users import numbers.csv --config gateway.yaml
        trunkline directory import contacts.csv --scope user:alice --config gateway.yaml
        trunkline records follow --config gateway.yaml
        trunkline events listen
        trunkline log level sip debug
        trunkline push test --user alice
        trunkline health
      """,
    version: Version.text,
    subcommands: [
      Serve.self, Calls.self, TrunksCommand.self, NodesCommand.self, WhereCommand.self, DevicesCommand.self, UsersCommand.self,
      DirectoryCommand.self,
      RecordsCommand.self,
      Events.self, PushCommand.self, Trace.self, LogCommand.self, Token.self, Config.self, Health.self, PrintVersion.self,
    ])

  static func main() {
    StandardDescriptors.fill()
    ProcessSignals.endAtOnceInCrash()
    main(ProcessArguments.all)
  }
}

struct PrintVersion: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "version", abstract: "Prints the version, and of a packaged program the commit that it was built from.")
  func run() { Console.line(Version.text) }
}
