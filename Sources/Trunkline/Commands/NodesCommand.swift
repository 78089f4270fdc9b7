import ArgumentParser
import CommandSupport
import Foundation

/// `trunkline nodes`: the cluster as one of its nodes sees it.
struct NodesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "nodes", abstract: "Shows the nodes of a cluster, drains one, and declares one dead.",
    discussion: """
      EXAMPLES:
        trunkline nodes list
        trunkline nodes list --json
        trunkline nodes show n2
        trunkline nodes drain n1     the queried node: its process ends with its last call
        trunkline nodes forget n3    its machine was removed for good: its calls are closed now
      """,
    subcommands: [List.self, Show.self, Drain.self, Forget.self])

  static func path(_ node: String) -> String {
    "/v1/nodes/" + node.percentEncoded
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the known nodes, the queried one first.")
    @OptionGroup var endpoint: Calls.Endpoint
    @Flag(help: "Print the gateway's JSON unchanged.") var json = false

    func run() throws {
      let body = try endpoint.request("GET", path: "/v1/nodes")
      json
        ? Console.json(body) : Console.line(NodeTable.render(try JSONDecoder().decode(ClusterStatus.self, from: Data(body.utf8))))
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints one node.")
    @Argument(help: "The node's name.") var node: String
    @OptionGroup var endpoint: Calls.Endpoint
    @Flag(help: "Print the gateway's JSON unchanged.") var json = false

    func run() throws {
      let body = try endpoint.request("GET", path: path(node))
      json ? Console.json(body) : Console.line(NodeTable.details(try JSONDecoder().decode(NodeRow.self, from: Data(body.utf8))))
    }
  }

  struct Drain: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Drains a node: it gets no new calls, and its process ends with the last one. Use that node's own admin port.")
    @Argument(help: "The node's name.") var node: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws { Console.json(try endpoint.request("POST", path: path(node) + "/drain")) }
  }

  struct Forget: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Declares a silent node dead: its calls are closed now. Refused while the node has a lease.")
    @Argument(help: "The node's name.") var node: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws { Console.json(try endpoint.request("POST", path: path(node) + "/forget")) }
  }
}

/// Nodes for people.
enum NodeTable {
  static func render(_ status: ClusterStatus) -> String {
    let twins = Dictionary(grouping: status.nodes.filter { ["living", "draining"].contains($0.liveness) }, by: \.url)
      .filter { $0.value.count > 1 }
    let rows =
      [["NODE", "STATE", "CALLS", "SESSIONS", "STARTED", "VERSION", "URL"]]
      + status.nodes.map { row in
        [
          row.node + (row.own ? " (this)" : ""), row.liveness + (row.differs ? ", other configuration" : ""), "\(row.calls)",
          "\(row.sessions)", time(row.started), row.version, row.url + (twins[row.url] == nil ? "" : " (of two nodes)"),
        ]
      }
    let age = status.leaseAgeMs.map { ", lease renewed \($0) ms ago" } ?? ", no lease yet"
    return "shared store: \(status.state)\(age)\n" + TextTable.render(rows)
  }

  static func details(_ row: NodeRow) -> String {
    TextTable.render([
      ["node", row.node], ["state", row.liveness], ["started", time(row.started)], ["calls", "\(row.calls)"],
      ["sessions", "\(row.sessions)"], ["url", row.url], ["SIP", row.sip], ["version", row.version],
      ["configuration", row.differs ? "differs from the queried node's" : "the same as the queried node's"],
    ])
  }

  private static func time(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
  }
}
