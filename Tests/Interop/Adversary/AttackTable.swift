import Foundation
import Testing

/// `table.json`: attack → outcome → promise. `adversary.py` runs its rows, `docs/operate/security.md` lists them.
struct Attack: Decodable, Sendable, CustomTestStringConvertible {
  var id: String
  var attack: String
  var `class`: String?
  var program: String
  /// The suite's gateways that the attack runs against: plain, tls, small; for `asked.py`: api, node.
  var arenas: [String]
  /// Further gateways of a long run.
  var also: [String]?
  /// Seconds that the attack may take.
  var limit: Double?
  /// Figures with their bounds, "login_ms <= 100".
  var outcome: [String]
  var promise: String
  var held: String

  var testDescription: String { id }
  /// The row's line in `docs/operate/security.md`.
  var line: String { "| \(attack) | \(promise) | \(held) |" }

  static let folder = Surroundings.sources + "/Adversary"
  /// The fault that a failed row of `asked.py` shows: a client's work on a thread that calls need; two readings of one input;
  /// authority that is checked only once; a cost without a bound.
  static let classes: Set = ["steps", "readings", "authority", "bounds"]
  /// An unreadable table is empty, and its own test fails.
  static let all: [Attack] =
    (try? JSONDecoder().decode([Attack].self, from: Data(contentsOf: URL(fileURLWithPath: folder + "/table.json")))) ?? []

  /// Attacks on the ports of apps and browsers, on SIP, media and TLS, and on the requests of programs and the shared state of a
  /// cluster: three suites, which run side by side.
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
