import ArgumentParser
import CommandSupport
import Foundation
import Trunking

/// `trunkline trunks`: the health of the trunks.
struct TrunksCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trunks", abstract: "Lists, disables and enables the trunks of a running gateway.",
    discussion: """
      EXAMPLES:
        trunkline trunks list
        trunkline trunks list --json
        trunkline trunks show carrier
        trunkline trunks disable carrier    no new calls over it
        trunkline trunks enable carrier     undoes it, as a restart does
      """,
    subcommands: [List.self, Show.self, Disable.self, Enable.self])

  static func path(_ trunk: String) -> String {
    "/v1/trunks/" + trunk.percentEncoded
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the trunks in the configuration's order.")
    @OptionGroup var endpoint: Calls.Endpoint
    @Flag(help: "Print the gateway's JSON unchanged.") var json = false

    func run() throws {
      struct Body: Decodable { var trunks: [TrunkStatus] }
      let body = try endpoint.request("GET", path: "/v1/trunks")
      json
        ? Console.json(body) : Console.line(TrunkTable.render(try JSONDecoder().decode(Body.self, from: Data(body.utf8)).trunks))
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints one trunk with its servers.")
    @Argument(help: "The trunk's name.") var trunk: String
    @OptionGroup var endpoint: Calls.Endpoint
    @Flag(help: "Print the gateway's JSON unchanged.") var json = false

    func run() throws {
      let body = try endpoint.request("GET", path: path(trunk))
      json
        ? Console.json(body) : Console.line(TrunkTable.details(try JSONDecoder().decode(TrunkStatus.self, from: Data(body.utf8))))
    }
  }

  struct Disable: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Stops new calls over a trunk, in and out; live calls continue. A restart undoes it.")
    @Argument(help: "The trunk's name.") var trunk: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws { Console.page(try endpoint.request("POST", path: path(trunk) + "/disable")) }
  }

  struct Enable: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Undoes a `disable`.")
    @Argument(help: "The trunk's name.") var trunk: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws { Console.page(try endpoint.request("POST", path: path(trunk) + "/enable")) }
  }
}

/// Trunks as text for people.
enum TrunkTable {
  static func render(_ rows: [TrunkStatus]) -> String {
    guard !rows.isEmpty else { return "no trunks: the configuration has none" }
    let cells =
      [["TRUNK", "STATE", "REGISTERED UNTIL", "SERVERS UP", "CALLS", "LAST REFUSAL"]]
      + rows.map { row in
        [row.trunk, state(row), registration(row), servers(row), "\(row.calls)", refusal(row)]
      }
    return TextTable.render(cells)
  }

  static func details(_ row: TrunkStatus) -> String {
    var cells = [["trunk", row.trunk], ["state", state(row)], ["calls", "\(row.calls)"]]
    if row.registration != nil { cells.append(["registered until", registration(row)]) }
    cells += row.servers.map { ["server", "\($0.address) \($0.up ? "up" : "down")"] }
    if let next = row.nextProbe { cells.append(["next OPTIONS", time(next)]) }
    if let lookUp = row.lookUp { cells.append(["name", lookUp]) }
    if row.lastRefusal != nil { cells.append(["last refusal", refusal(row)]) }
    return TextTable.render(cells)
  }

  private static func state(_ row: TrunkStatus) -> String {
    let state = row.up ? "up" : row.why.map { "down (\($0.rawValue))" } ?? "down"
    return row.breakerOpen ? state + ", breaker open" : state
  }

  private static func registration(_ row: TrunkStatus) -> String {
    guard let registration = row.registration else { return "-" }
    guard let end = registration.expires.map(time) else { return "never registered" }
    return registration.registered ? end : end + " (failing)"
  }

  private static func servers(_ row: TrunkStatus) -> String { "\(row.servers.count { $0.up })/\(row.servers.count)" }

  private static func refusal(_ row: TrunkStatus) -> String {
    row.lastRefusal.map { "\($0.method) \($0.failure?.rawValue ?? $0.code.map(String.init) ?? "") at \(time($0.at))" } ?? "-"
  }

  private static func time(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
  }
}
