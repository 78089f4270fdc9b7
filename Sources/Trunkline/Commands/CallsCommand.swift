import ArgumentParser
import Bytes
import CommandSupport
import Configuration
import Foundation

struct Calls: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Looks at the calls of a running gateway and ends them.",
    discussion: """
      EXAMPLES:
        trunkline calls list
        trunkline calls show 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11
        trunkline calls hangup 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --config gateway.yaml
      """,
    subcommands: [List.self, Show.self, HangUp.self])

  /// Where the gateway's admin endpoint is.
  struct Endpoint: ParsableArguments {
    @Option(help: ArgumentHelp("The admin endpoint's address.", valueName: "address:port")) var admin: String?
    @Option(help: ArgumentHelp("Take address and token from this configuration.", valueName: "file")) var config: String?
    @Option(help: ArgumentHelp("A file with the admin token.", valueName: "file")) var tokenFile: String?

    func client() throws -> AdminClient {
      var address = SocketAddress(.loopback, 9090)
      var (token, certificate): (String?, String?)
      if let config {
        let settings = try SettingsSource.load(config)
        (address, token) = (settings.listen.admin, settings.listen.adminToken?.exposed)
        certificate = settings.listen.adminTLS?.certificate
      }
      if let admin {
        guard let given = SocketAddress(admin) else {
          throw ValidationError("--admin takes an address with a port, got \"\(admin)\"")
        }
        address = given
      }
      if let tokenFile {
        guard let data = FileManager.default.contents(atPath: tokenFile) else {
          throw ValidationError("cannot read \(tokenFile)")
        }
        token = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
      }
      return AdminClient(address: address, token: token, certificate: certificate)
    }

    func request(_ method: String, _ path: String) throws -> String { try Self.ask(client(), method, path).body }

    /// The answer if it is a good one; else says why and ends the process with 1.
    static func ask(_ client: AdminClient, _ method: String, _ path: String) throws -> AdminClient.Answer {
      let answer: AdminClient.Answer
      do {
        answer = try client.request(method, path)
      } catch {
        complain("\(error)")
        throw ExitCode(1)
      }
      guard (200...299).contains(answer.status) else {
        complain("the gateway answered \(answer.status): \(answer.body.trimmingCharacters(in: .whitespacesAndNewlines))")
        throw ExitCode(1)
      }
      return answer
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints live calls, oldest first.")
    @OptionGroup var endpoint: Endpoint
    @Flag(help: "Print the JSON as the gateway gives it.") var json = false

    func run() throws {
      let body = try endpoint.request("GET", "/v1/calls")
      print(json ? body : try CallTable.render(body))
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints one live call as JSON.")
    @Argument(help: "The call's id.") var call: String
    @OptionGroup var endpoint: Endpoint

    func run() throws { print(try endpoint.request("GET", "/v1/calls/" + call)) }
  }

  struct HangUp: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "hangup", abstract: "Ends a call.")
    @Argument(help: "The call's id.") var call: String
    @OptionGroup var endpoint: Endpoint

    func run() throws { print(try endpoint.request("POST", "/v1/calls/\(call)/hangup")) }
  }
}
