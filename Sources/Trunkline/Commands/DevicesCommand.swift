import ArgumentParser
import CallFlow
import CommandSupport
import Foundation

/// `trunkline devices`: the devices that can be woken.
struct DevicesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "Lists, revokes and allows the devices of a running gateway.",
    discussion: """
      A device is listed once its app has registered a push token, set a preference, or is connected. "no such user": its user was
      removed from the configuration; the device is kept in case the user is added again.

      EXAMPLES:
        trunkline devices list
        trunkline devices list --user alice --json
        trunkline devices show --user alice --device phone
        trunkline devices revoke --user alice --device phone    no push, no session, no registration from now on
        trunkline devices revoke --user alice                   the same for all of alice's devices
        trunkline devices allow --user alice --device phone     undoes the revocation
      """,
    subcommands: [List.self, Show.self, Revoke.self, Allow.self])

  static func query(user: String?, device: String?) -> String {
    let fields = [("user", user), ("device", device)].compactMap { name, value in
      value.map { "\(name)=\($0.percentEncoded)" }
    }
    return fields.isEmpty ? "" : "?" + fields.joined(separator: "&")
  }

  private struct Body: Codable { var devices: [DeviceSummary] }
  static func rows(_ body: String) throws -> [DeviceSummary] {
    try JSONDecoder().decode(Body.self, from: Data(body.utf8)).devices
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints devices, by user.")
    @Option(help: "Only this user's devices.") var user: String?
    @OptionGroup var endpoint: Calls.Endpoint
    @Flag(help: "Print the gateway's JSON unchanged.") var json = false

    func run() throws {
      let body = try endpoint.request("GET", path: "/v1/devices" + query(user: user, device: nil))
      json ? Console.json(body) : Console.line(DeviceTable.render(try rows(body)))
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints one device as JSON.")
    @Option(help: "The user's id.") var user: String
    @Option(help: "The device's id.") var device: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      let found = try rows(try endpoint.request("GET", path: "/v1/devices" + query(user: user, device: device)))
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      for device in found { Console.json(String(decoding: try encoder.encode(device), as: UTF8.self)) }
    }
  }

  struct Revoke: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Revokes a device: it gets no pushes and cannot register; its session ends with 4003 after its calls.",
      discussion: "Without --device it revokes every device of the user. It outlasts restarts, until `trunkline devices allow`.")
    @Option(help: "The user's id.") var user: String
    @Option(help: "The device's id; without it all of the user's.") var device: String?
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      Console.page(try endpoint.request("POST", path: "/v1/devices/revoke" + query(user: user, device: device)))
    }
  }

  struct Allow: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Undoes a revocation; the app registers again when it connects.")
    @Option(help: "The user's id.") var user: String
    @Option(help: "The device's id.") var device: String
    @OptionGroup var endpoint: Calls.Endpoint

    func run() throws {
      Console.page(try endpoint.request("POST", path: "/v1/devices/allow" + query(user: user, device: device)))
    }
  }
}

/// Devices as text for people.
enum DeviceTable {
  static func render(_ rows: [DeviceSummary]) -> String {
    guard !rows.isEmpty else { return "no devices: none is connected and no app has registered" }
    let cells =
      [["USER", "DEVICE", "STATE", "PLATFORM", "PUSH", "ACCOUNTS", "LAST SEEN"]]
      + rows.map { row in
        [
          row.user, row.device, state(row), [row.platform, row.os].compactMap(\.self).joined(separator: " "), push(row),
          row.accounts.joined(separator: ","), row.lastSeen.map(time) ?? "",
        ]
      }
    return TextTable.render(cells)
  }

  private static func state(_ row: DeviceSummary) -> String {
    if row.revokedAt != nil { return "revoked" }
    if row.isUserUnknown == true { return "no such user" }
    let words = [
      row.connected ? "connected" : "away", row.state == "bg" ? "background" : nil, row.dnd ? "dnd" : nil,
      row.rings ? nil : "silent",
    ]
    return words.compactMap(\.self).joined(separator: ",")
  }

  private static func push(_ row: DeviceSummary) -> String {
    let words = row.push.map {
      "\($0.service.rawValue)\($0.sealed ? "(sealed)" : "")\($0.environment == .sandbox ? "/sandbox" : "")\($0.usable ? "" : "(unusable)")"
    }
    return words.isEmpty ? "none" : words.joined(separator: ",")
  }

  private static func time(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
  }
}
