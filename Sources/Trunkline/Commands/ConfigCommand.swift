import ArgumentParser
import Configuration

struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Helps with the configuration file.", subcommands: [Example.self])

  struct Example: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints a valid configuration with comments.",
      discussion: """
        EXAMPLES:
          trunkline config example > gateway.yaml
          head -c 32 /dev/urandom | base64 > jwt.key
          trunkline serve --check --config gateway.yaml
        """)
    func run() { print(Settings.example, terminator: "") }
  }
}
