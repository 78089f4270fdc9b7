import Foundation
import Testing

/// `table.json`: attack → outcome → what is promised. `adversary.py` runs its rows, `docs/security.md` says them.
struct Attack: Decodable, Sendable, CustomTestStringConvertible {
  var id: String
  var attack: String
  var program: String
  /// Gateways of the suite that it is run against: plain, tls, small.
  var arenas: [String]
  /// Further ones of a long run.
  var also: [String]?
  /// Seconds that the attack may take.
  var limit: Double?
  /// Figures with their bounds, "login_ms <= 100".
  var outcome: [String]
  var promise: String
  var held: String

  var testDescription: String { id }
  /// Its line of `docs/security.md`.
  var line: String { "| \(attack) | \(promise) | \(held) |" }

  static let folder = Surroundings.sources + "/Adversary"
  /// A table that cannot be read is an empty one, which its own test finds.
  static let all: [Attack] =
    (try? JSONDecoder().decode([Attack].self, from: Data(contentsOf: URL(fileURLWithPath: folder + "/table.json")))) ?? []

  /// Those against what apps and browsers talk to, and those against SIP, media and TLS: two suites, which run side by side.
  static let ofApps = pairs(where: isOfApps)
  static let ofTrunks = pairs { !isOfApps($0) }

  private static func isOfApps(_ row: Attack) -> Bool {
    ["upgrades", "pipelining", "silent", "slow", "unread", "forwarded", "frames", "heads", "tokens", "fuzz"].contains(row.program)
  }

  private static func pairs(where matches: (Attack) -> Bool) -> [Run] {
    all.filter(matches).flatMap { row in row.arenas.map { Run(attack: row, arena: $0) } }
  }

  /// One row against one gateway.
  struct Run: Sendable, CustomTestStringConvertible {
    var attack: Attack
    var arena: String
    var testDescription: String { "\(attack.id), \(arena)" }
  }
}
