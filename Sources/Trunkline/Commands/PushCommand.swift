import ArgumentParser
import CommandSupport
import Foundation

/// `trunkline push`: does waking work?
struct PushCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "push", abstract: "Tries pushes.",
    discussion: """
      EXAMPLES:
        trunkline push test --user alice
        trunkline push test --user alice --device phone --config gateway.yaml
      """,
    subcommands: [Test.self])

  struct Test: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Pushes to a user's devices through the running gateway and prints the push service's answer.",
      discussion: """
        The app is woken as for a call, and learns that the call has ended. Ends with status 0 only if every push was accepted.

        EXAMPLES:
          trunkline push test --user alice
          trunkline push test --user alice --device phone --json
        """)
    @Option(help: "The user's id.") var user: String
    @Option(help: "The device's id; without it all of the user's.") var device: String?
    @OptionGroup var endpoint: Calls.Endpoint
    @Flag(help: "Print the gateway's JSON unchanged.") var json = false

    private struct Body: Decodable { var results: [DeviceHandlers.Result] }

    func run() throws {
      var client = try endpoint.client()
      client.timeout = Int(PushComponent.testWindow.components.seconds) + 5
      let body = try Calls.Endpoint.ask(
        client, method: "POST", path: "/v1/push/test" + DevicesCommand.query(user: user, device: device)
      ).body
      let results = try JSONDecoder().decode(Body.self, from: Data(body.utf8)).results
      json ? Console.json(body) : Console.line(Self.text(results))
      if results.contains(where: { !$0.accepted }) { throw ExitCode(1) }
    }

    static func text(_ results: [DeviceHandlers.Result]) -> String {
      results.map { result in
        let service = result.service == .apns ? "apns \(result.environment.rawValue) \(result.topic)" : result.service.rawValue
        var lines = [
          "\(result.user)/\(result.device): \(result.accepted ? "accepted" : "NOT accepted: \(result.reason)") (\(service))"
        ]
        let said = [
          result.status.map { "status \($0)" } ?? "no answer", result.apnsId.map { "apns-id \($0)" }, "\(result.ms) ms",
          result.attempts == 1 ? nil : "\(result.attempts) attempts",
        ]
        lines.append("  " + said.compactMap(\.self).joined(separator: ", "))
        if let advice = result.advice { lines.append("  what to do: " + advice) }
        return lines.joined(separator: "\n")
      }.joined(separator: "\n")
    }
  }
}
