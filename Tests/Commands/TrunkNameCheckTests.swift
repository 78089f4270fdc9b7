import Foundation
import Testing

@testable import Configuration
@testable import trunkline

/// `serve --check` looks the names of trunks up.
@Suite struct TrunkNameCheckTests {
  private func settings(_ uri: String) throws -> Settings {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try "0123456789abcdef0123456789abcdef".write(to: folder.appendingPathComponent("jwt.key"), atomically: true, encoding: .utf8)
    // nothing listens at port 1
    let text = """
      auth: { jwt: { key_file: jwt.key } }
      dns: { servers: [ "127.0.0.1:1" ] }
      trunks: [ { name: carrier, uri: "\(uri)" } ]

      """
    return try ConfigurationFile.parse(text, file: "test", directory: folder.path)
  }

  private func warnings(_ uri: String, within time: Duration = .seconds(60)) throws -> [String] {
    let settings = try settings(uri)
    return TrunkNameCheck.warnings(settings.trunks.compactMap(\.routing.settings), settings, within: time)
  }

  @Test func `a name without an answer is a warning with trunk, name and name server`() throws {
    let said = try warnings("sip:sip.carrier.invalid")
    #expect(said.count == 1)
    let line = try #require(said.first)
    for part in ["trunk carrier", "sip.carrier.invalid", "127.0.0.1:1"] { #expect(line.contains(part), "\(line)") }
  }

  @Test func `a check whose time is over before an answer says so`() throws {
    #expect(try warnings("sip:sip.carrier.invalid", within: .zero).count == 1)
  }

  @Test func `an address needs no name server`() throws {
    #expect(try warnings("sip:192.0.2.1").isEmpty)
  }
}
