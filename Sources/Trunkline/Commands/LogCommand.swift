import ArgumentParser
import CommandSupport
import Foundation

/// `trunkline log`: the log levels of a running gateway.
struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Shows and changes the log levels of a running gateway, by module.",
    discussion: """
      EXAMPLES:
        trunkline log levels
        trunkline log level sip debug    until the gateway restarts
      """,
    subcommands: [Levels.self, Level.self])

  struct Levels: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the level of each module.")
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      struct Body: Decodable { var levels: [String: String] }
      let body = try JSONDecoder().decode(Body.self, from: Data(try endpoint.request("GET", path: "/v1/log/levels").utf8))
      Console.line(TextTable.render([["MODULE", "LEVEL"]] + body.levels.sorted { $0.key < $1.key }.map { [$0.key, $0.value] }))
    }
  }

  struct Level: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Changes the level of one module until the gateway restarts.")
    @Argument(help: "The module, as a line of the log names it.") var module: String
    @Argument(help: "trace, debug, info, notice, warning, error or critical.") var level: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      let path = "/v1/log/levels/\(module.percentEncoded)/\(level.percentEncoded)"
      Console.page(try endpoint.request("POST", path: path))
    }
  }
}
