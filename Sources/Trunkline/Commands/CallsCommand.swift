import ArgumentParser
import CommandSupport
import Configuration
import Foundation
import TrunklineBytes

struct Calls: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists, makes, controls and ends the calls of a running gateway.",
    discussion: """
      EXAMPLES:
        trunkline calls list
        trunkline calls list --cluster --most 200
        trunkline calls show 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11
        trunkline calls hangup 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --config gateway.yaml
        trunkline calls make alice +4930123456
        trunkline calls transfer 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 +4930123456
        trunkline calls record 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11
        trunkline calls play 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --off
      """,
    subcommands: [
      List.self, Show.self, Make.self, Hold.self, Mute.self, Digits.self, Play.self, Record.self, Stream.self, Transfer.self,
      HangUp.self,
    ])

  /// Where the gateway's admin endpoint is.
  struct Endpoint: ParsableArguments {
    @Option(help: ArgumentHelp("The admin endpoint's address.", valueName: "address:port")) var admin: String?
    @Option(help: ArgumentHelp("Read address and token from this configuration.", valueName: "file")) var config: String?
    @Option(help: ArgumentHelp("A file with the admin token.", valueName: "file")) var tokenFile: String?

    func client() throws -> AdminClient {
      var address = SocketAddress(.loopback, 7060)
      var (token, certificate): (String?, String?)
      if let config {
        let settings = try SettingsSource.load(config)
        address = settings.listen.admin
        token = settings.listen.adminToken?.exposed
        certificate = settings.listen.adminTLS?.certificate
      }
      if let admin {
        guard let given = SocketAddress(admin) else {
          throw ValidationError("--admin needs an address with a port, got \"\(admin)\"")
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

    func request(_ method: String, path: String) throws -> String { try Self.ask(client(), method: method, path: path).body }

    /// Requests an action on a call, or a new call, and prints the answer.
    func post(_ path: String, _ body: [String: String] = [:], on: Bool? = nil) throws {
      var fields: [String: Any] = body
      if let on { fields["on"] = on }
      let text = fields.isEmpty ? "" : String(decoding: try JSONSerialization.data(withJSONObject: fields), as: UTF8.self)
      Console.json(try Self.ask(client(), method: "POST", path: path, body: text).body.trimmingCharacters(in: .newlines))
    }

    /// Returns the answer if it is a success; else prints the reason and ends the process with 1.
    static func ask(_ client: AdminClient, method: String, path: String, body: String = "") throws -> AdminClient.Answer {
      let answer: AdminClient.Answer
      do {
        answer = try client.request(method, path: path, body: body)
      } catch {
        complain("\(error)")
        throw ExitCode(1)
      }
      guard (200...299).contains(answer.status) else {
        complain("the gateway answered \(answer.status): \(answer.reason)")
        throw ExitCode(1)
      }
      return answer
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints live calls, oldest first; with --cluster those of all nodes, node after node.",
      discussion: """
        With --cluster the queried node reads the calls of all nodes from the shared store, page by page. Calls that start or end
        meanwhile may be missing; a node that is not living is shown with its state, and calls of dead nodes are left out. Without the
        shared store only the queried node's calls are printed, with a warning on standard error.

        EXAMPLES:
          trunkline calls list
          trunkline calls list --cluster
          trunkline calls list --cluster --most 5000 --json | jq -r '.calls[].node' | sort | uniq -c
        """)
    @OptionGroup var endpoint: Endpoint
    @Flag(help: "Print the gateway's JSON unchanged; with --cluster all pages as one.") var json = false
    @Flag(help: "Calls of all nodes of the cluster.") var cluster = false
    @Option(help: ArgumentHelp("With --cluster: print at most this many calls.", valueName: "n")) var most = 1_000

    func validate() throws {
      guard (1...1_000_000).contains(most) else { throw ValidationError("--most \(most): 1 to 1000000.") }
    }

    func run() throws {
      if cluster { return try ofCluster() }
      let body = try endpoint.request("GET", path: "/v1/calls")
      json ? Console.json(body) : Console.line(try CallTable.render(body))
    }

    private func ofCluster() throws {
      var (all, seen, after) = (ClusterCalls?.none, Set<String>(), String?.none)
      repeat {
        let query = after.map { "?after=" + $0.percentEncoded } ?? ""
        let body = try endpoint.request("GET", path: "/v1/cluster/calls" + query)
        let page = try JSONDecoder().decode(ClusterCalls.self, from: Data(body.utf8))
        var whole = all ?? page
        if all == nil { whole.calls = [] }
        whole.partial = whole.partial || page.partial
        // a scan of the shared store may return one twice
        whole.calls += page.calls.filter { seen.insert($0.call + $0.node).inserted }
        all = whole
        after = page.next == after ? nil : page.next
      } while after != nil && (all?.calls.count ?? 0) < most
      guard var all else { return }
      WhereCommand.warn(all.partial, all.asked)
      if after != nil || all.calls.count > most { complain("there are more than \(most) calls: --most N prints more") }
      all.calls = Array(all.calls.prefix(most))
      all.next = nil
      guard json else { return Console.line(LocationTable.render(all.calls)) }
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      Console.json(String(decoding: try encoder.encode(all), as: UTF8.self))
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints one live call as JSON.")
    @Argument(help: "The call's id.") var call: String
    @OptionGroup var endpoint: Endpoint

    func run() throws { Console.json(try endpoint.request("GET", path: "/v1/calls/" + call.percentEncoded)) }
  }
}
