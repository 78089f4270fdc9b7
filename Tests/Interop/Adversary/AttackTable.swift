import Foundation
import Testing

/// `table.json`: attack → outcome → promise. `adversary.py` runs its rows, `docs/operate/security.md` lists them.
struct Attack: Decodable, Sendable, CustomTestStringConvertible {
  var id: String
  var attack: String
  var `class`: String?
  var program: String
  /// Gateways of the suite that the row attacks: plain, tls, small; of `asked.py`: api, node.
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
  /// Its line of `docs/operate/security.md`.
  var line: String { "| \(attack) | \(promise) | \(held) |" }

  static let folder = Surroundings.sources + "/Adversary"
  /// The fault that a failure of the row shows, for rows of `asked.py`: the client's work in a step of a thread that calls need; two readings of one
  /// input; authority that is checked once; a cost without a limit.
  static let classes: Set = ["steps", "readings", "authority", "bounds"]
  /// A table that cannot be read is an empty one, which its own test finds.
  static let all: [Attack] =
    (try? JSONDecoder().decode([Attack].self, from: Data(contentsOf: URL(fileURLWithPath: folder + "/table.json")))) ?? []

  /// Attacks on the ports of apps and browsers, on SIP, media and TLS, and on the admin API and a cluster's shared store: three suites, which run
  /// in parallel.
  static let ofApps = pairs { $0.class == nil && isOfApps($0) }
  static let ofTrunks = pairs { $0.class == nil && !isOfApps($0) }
  static let ofPrograms = pairs { $0.class != nil }

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
