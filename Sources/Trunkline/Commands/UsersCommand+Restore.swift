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

        A copy may be older than what was lost, if its node was cut off from the shared store: use the admin port of a node that was
        not, and then those of the other nodes. Of two copies the one of the later token stays.

        EXAMPLES:
          trunkline users restore --config gateway.yaml
        """)
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      struct Body: Decodable { var users: Int }
      let body = try endpoint.request("POST", "/v1/grants/restore")
      let users = try JSONDecoder().decode(Body.self, from: Data(body.utf8)).users
      Console.line("grants of \(users) users are being written to the shared store")
    }
  }
}
