import ArgumentParser
import CommandSupport
import Configuration

struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Helps with the configuration file.", subcommands: [Example.self, Reference.self, Profiles.self])

  struct Example: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints a valid configuration with comments.",
      discussion: """
        EXAMPLES:
          trunkline config example > gateway.yaml
          head -c 32 /dev/urandom | base64 > jwt.key
          trunkline serve --check --config gateway.yaml
        """)
    func run() { Console.page(Settings.example) }
  }

  struct Profiles: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints the profiles of carriers and PBXs: the keys that `profile: NAME` of a trunk sets.",
      discussion: """
        EXAMPLES:
          trunkline config profiles | less
        """)
    func run() { Console.page(TrunkProfile.text) }
  }

  struct Reference: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints every key of the configuration with its values, limits and default, as Markdown.",
      discussion: """
        EXAMPLES:
          trunkline config reference | less
          trunkline config reference | grep session_timer
        """)
    func run() { Console.page(Settings.reference) }
  }
}
