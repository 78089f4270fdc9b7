import Foundation
import Testing

extension Interop {
  static let adversaryBinary = ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"]
  static let canAttack = adversaryBinary != nil && Surroundings.missing == nil

  /// Runs one row of the table against a release build that carries two calls with audio. The figures are logged in any case.
  /// Time limits are wide here, where other suites use the same cores; `Scripts/adversary` applies those of the table.
  static func attack(_ run: Attack.Run, _ location: SourceLocation = #_sourceLocation) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("adversary-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let adversary = try Spawned(
      "adversary", Surroundings.package + "/Scripts/adversary",
      ["--row", run.attack.id, "--arena", run.arena, "--json", "--short", "--margin", "6", "--seed", "\(seed)"], in: folder,
      environment: ["TRUNKLINE_BINARY": adversaryBinary ?? "", "TRUNKLINE_PYTHON": Surroundings.python ?? "", "TMPDIR": folder])
    let status = try await adversary.finish(within: (run.attack.limit ?? 60) + 90)
    print(adversary.text)
    let said = adversary.text.split(separator: "\n").compactMap { try? JSONDecoder().decode(Outcome.self, from: Data($0.utf8)) }
    let outcome = try #require(said.last, "\(adversary.text)", sourceLocation: location)
    #expect(status == 0 && outcome.wrong.isEmpty, "\(adversary.text)", sourceLocation: location)
  }

  /// The seed of random damage; the same for all rows of a run, and printed by each.
  private static let seed = ProcessInfo.processInfo.environment["TRUNKLINE_SEED"] ?? "\(UInt16.random(in: 1...9_999))"

  private struct Outcome: Decodable {
    var row: String
    var wrong: [String]
  }

  /// Attacks that any sender on the internet can make on the app port.
  @Suite(.tags(.audio), .enabled(if: canAttack, "TRUNKLINE_BINARY names no gateway, or no .venv"), .serialized)
  struct AdversaryTests {
    @Test(arguments: Attack.ofApps)
    func `an attack on the app or the admin port ends as the table says`(run: Attack.Run) async throws { try await attack(run) }
  }

  /// Attacks that any sender can make on the SIP and media ports, and a peer inside a call.
  @Suite(.tags(.audio), .enabled(if: canAttack, "TRUNKLINE_BINARY names no gateway, or no .venv"), .serialized)
  struct AdversaryTrunkTests {
    @Test(arguments: Attack.ofTrunks)
    func `an attack on SIP, media or TLS ends as the table says`(run: Attack.Run) async throws { try await attack(run) }
  }

  /// Requests of programs, phones and clients of the shared store to a gateway at its limits; fewer of each than in
  /// `Scripts/adversary`.
  @Suite(.tags(.audio), .enabled(if: canAttack, "TRUNKLINE_BINARY names no gateway, or no .venv"), .serialized)
  struct AdversaryAskedTests {
    @Test(arguments: Attack.ofPrograms)
    func `a question from outside ends as the table says`(run: Attack.Run) async throws { try await attack(run) }
  }

  @Suite struct SecurityPageTests {
    /// `Scripts/adversary --docs` prints the table again.
    @Test func `docs/operate/security.md promises what the table of attacks holds, line by line`() throws {
      let page = try String(contentsOfFile: Surroundings.package + "/docs/operate/security.md", encoding: .utf8)
      let lines = Set(page.split(separator: "\n").map(String.init))
      #expect(Attack.all.count >= 25)
      #expect(Set(Attack.all.map(\.id)).count == Attack.all.count, "an id twice")
      for row in Attack.all {
        #expect(lines.contains(row.line), "docs/operate/security.md lacks: \(row.line)")
        #expect(row.class.map(Attack.classes.contains) ?? true, "\(row.id): \(row.class ?? "")")
        #expect(!row.outcome.isEmpty && row.outcome.allSatisfy { $0.split(separator: " ").count == 3 }, "\(row.id)")
        #expect(FileManager.default.fileExists(atPath: Attack.folder + "/attacks/\(row.program).py"), "\(row.id)")
      }
    }
  }
}
