import ArgumentParser
import CommandSupport

/// `trunkline health`: for a supervisor, or a container's health check.
struct Health: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Asks a running gateway whether it takes calls: exit code 0 if it does, 1 if not, with what is wrong.",
    discussion: """
      EXAMPLES:
        trunkline health
        trunkline health --live      only whether the process works, also while it drains
      """)
  @OptionGroup var endpoint: Calls.Endpoint
  @Flag(help: "Asks /healthz in place of /readyz.") var live = false

  func run() throws { Console.page(try endpoint.request("GET", live ? "/healthz" : "/readyz")) }
}
