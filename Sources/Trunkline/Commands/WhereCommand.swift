import ArgumentParser
import CommandSupport
import Foundation

/// `trunkline where`: which node of a cluster has a user's devices, or a call.
struct WhereCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "where", abstract: "Shows at which node a user's devices and calls are, or where a call is or how it ended.",
    discussion: """
      Any node of a cluster can be queried at its admin port: it reads the data of all nodes from the shared store. While the shared
      store is unavailable, it shows its own data, with a warning.

      A device is listed with the node that has its socket, and how it can be woken. The node's state is that of trunkline nodes list,
      or gone for a process that has ended, whose data is ignored. A live call is listed with its node; after its end for two minutes
      with its end reason, if devices were woken for it, and for a day with its record, if records: { stream: true } is set.

      Exits with 1 if the node cannot be reached, is not in a cluster, or there is no such call.

      EXAMPLES:
        trunkline where --user alice
        trunkline where --user alice --json | jq '.devices[].node'
        trunkline where --call 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11
        trunkline where --call 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --config gateway.yaml
      """)
  @Option(help: ArgumentHelp("The user's id: sub of its login tokens.", valueName: "id")) var user: String?
  @Option(help: ArgumentHelp("The call's id.", valueName: "id")) var call: String?
  @OptionGroup var endpoint: Calls.Endpoint
  @Flag(help: "Print the gateway's JSON unchanged.") var json = false

  func validate() throws {
    guard (user == nil) != (call == nil) else { throw ValidationError("Give --user ID, or --call ID.") }
  }

  func run() throws {
    let (name, value) = user.map { ("user", $0) } ?? ("call", call ?? "")
    let body = try endpoint.request("GET", path: "/v1/where?\(name)=\(value.percentEncoded)")
    if json { return Console.json(body) }
    let data = Data(body.utf8)
    if user != nil {
      let locations = try JSONDecoder().decode(UserLocations.self, from: data)
      Self.warn(locations.partial, locations.asked)
      Console.line(LocationTable.render(locations))
    } else {
      let found = try JSONDecoder().decode(CallWhere.self, from: data)
      Self.warn(found.partial, found.asked)
      Console.line(LocationTable.render(found))
    }
  }

  static func warn(_ isPartial: Bool, _ asked: String) {
    if isPartial { complain("the shared store does not answer: this is the data of \(asked) alone") }
  }
}

/// Locations as text for people.
enum LocationTable {
  static func render(_ locations: UserLocations) -> String {
    var parts: [String] = []
    if locations.devices.isEmpty {
      parts.append("no device of \(locations.user) is connected or registered")
    } else {
      let head = ["DEVICE", "NODE", "STATE", "SESSION", "ACCOUNTS", "CAPS", "PUSH", "RINGS", "LAST SEEN"]
      parts.append(TextTable.render([head] + locations.devices.map(row)))
    }
    if locations.calls.isEmpty {
      parts.append("\(locations.user) has no live call")
    } else {
      parts.append(
        TextTable.render(
          [["CALL", "NODE", "DIRECTION"]]
            + locations.calls.map { [$0.call, node($0.node, liveness: $0.liveness), $0.direction.rawValue] }))
    }
    return parts.joined(separator: "\n\n")
  }

  private static func row(_ device: DeviceLocation) -> [String] {
    let pushes = device.push.map { $0.service.rawValue + ($0.usable ? "" : " (unusable)") }
    let wants = device.dnd ? "do not disturb" : device.rings ? "yes" : "no"
    return [
      device.device, device.node.map { node($0, liveness: device.liveness ?? "") } ?? "-", device.state ?? "-",
      device.session ?? "-",
      device.accounts.joined(separator: ","), device.caps?.joined(separator: ",") ?? "-",
      device.revokedAt.map { "revoked " + time($0) } ?? (pushes.isEmpty ? "-" : pushes.joined(separator: ",")), wants,
      device.lastSeen.map(time) ?? "-",
    ]
  }

  static func render(_ found: CallWhere) -> String {
    var rows = [["call", found.call]]
    if let live = found.live {
      rows += [
        ["node", node(live.node, liveness: live.liveness)], ["url", live.url], ["SIP", live.sip],
        ["direction", live.direction.rawValue],
        ["state", live.state], ["trunk", live.trunk], ["from", live.from], ["to", live.to],
        ["users", live.users.joined(separator: ", ")], ["start", time(live.start)],
      ]
      if let connect = live.connect { rows.append(["connected", time(connect)]) }
      if let callID = live.sipCallId { rows.append(["Call-ID", callID]) }
      for leg in live.legs {
        rows.append([
          "leg", "\(leg.phase.rawValue), \(leg.trunk), \(leg.transport ?? "?") \(leg.local ?? "?") – \(leg.remote ?? "?")",
        ])
      }
    }
    if let over = found.over {
      rows.append(["ended", over.reason.rawValue + (over.by.map { " by \($0.rawValue)" } ?? "")])
      if let at = over.at { rows.append(["at", time(at)]) }
    } else if let end = found.record?.end {
      rows.append(["ended", "\(end.reason.rawValue) by \(end.by.rawValue)"])
    }
    if let record = found.record {
      rows += [
        ["record", record.end.reason.rawValue + (record.end.detail.map { ": \($0)" } ?? "")],
        ["direction", record.direction.rawValue], ["trunk", record.trunk], ["from", record.from], ["to", record.to],
        ["user", record.user ?? "-"], ["connected", "\(record.connectedMs) ms"],
      ]
    }
    return TextTable.render(rows)
  }

  static func render(_ calls: [ClusterCall]) -> String {
    guard !calls.isEmpty else { return "no calls" }
    return TextTable.render(
      [["CALL", "NODE", "DIRECTION", "STATE", "TRUNK", "USERS", "FROM", "TO", "START"]]
        + calls.map { call in
          [
            call.call, node(call.node, liveness: call.liveness), call.direction.rawValue, call.state, call.trunk,
            call.users.joined(separator: ","), call.from, call.to, time(call.start),
          ]
        })
  }

  private static func node(_ name: String, liveness: String) -> String { liveness == "living" ? name : "\(name) (\(liveness))" }

  private static func time(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
  }
}
