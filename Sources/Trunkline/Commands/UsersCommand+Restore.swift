import ArgumentParser
import CommandSupport
import Foundation

extension UsersCommand {
  struct Restore: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Writes what login tokens granted and a cluster's shared store has lost, from a node's copy.",
      discussion: """
        For a shared store that was flushed, or replaced by an empty one. Each login writes its user's numbers again; this command also writes
        those of users who are logged out (metric trunkline_cluster_grants_stale). The queried node writes the users that the shared store
        does not have, or has from an earlier token. A number that a later token gave to another user stays with that user.

        The command ends when the grants are written; calls do not wait meanwhile. If the shared store fails before, it says how many
        were written: run it again.

        A copy may be older than what was lost, if its node was cut off from the shared store: use the admin port of a node that was
        not, and then those of the other nodes. Of two copies the one of the later token stays.

        EXAMPLES:
          trunkline users restore --config gateway.yaml
        """)
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      struct Body: Decodable { var users: Int }
      var client = try endpoint.client()
      client.timeout = Self.timeoutSeconds
      let body = try Calls.Endpoint.ask(client, method: "POST", path: "/v1/grants/restore").body
      let users = try JSONDecoder().decode(Body.self, from: Data(body.utf8)).users
      Console.line("grants of \(users) users were written to the shared store")
    }

    /// Longer than the 30 s after which the gateway answers 504, so that its reason is printed.
    private static let timeoutSeconds = 40
  }
}
