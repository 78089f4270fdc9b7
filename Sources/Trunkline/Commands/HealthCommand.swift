import ArgumentParser
import CommandSupport

/// `trunkline health`: for a supervisor, or a container's health check.
struct Health: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks whether a running gateway accepts calls: exit code 0 if so, 1 if not, with the reason.",
    discussion: """
      EXAMPLES:
        trunkline health
        trunkline health --live      only whether the process works, also while it drains
      """)
  @OptionGroup var endpoint: Calls.Endpoint
  @Flag(help: "Requests /healthz instead of /readyz.") var live = false

  func run() throws { Console.page(try endpoint.request("GET", path: live ? "/healthz" : "/readyz")) }
}
