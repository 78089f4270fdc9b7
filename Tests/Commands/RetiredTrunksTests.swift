import Configuration
import Foundation
import Testing
import TrunklineBytes

@testable import trunkline

@Suite struct RetiredTrunksTests {
  private func trunks(_ names: [String], _ more: String = "") throws -> [Settings.Trunk] {
    let rows = names.map { "{ name: \($0), peers: [192.0.2.\($0.utf8.first ?? 0)], uri: \"sip:192.0.2.1:5060\"\(more) }" }.joined(
      separator: ", ")
    let text = "auth: { jwt: { key_file: jwt.key } }\ntrunks: [ \(rows) ]\n"
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try "0123456789abcdef0123456789abcdef".write(to: folder.appendingPathComponent("jwt.key"), atomically: true, encoding: .utf8)
    return try ConfigurationFile.parse(text, file: "test", directory: folder.path).trunks
  }

  @Test func `a trunk that left the configuration is heard until its last call has ended`() throws {
    var retired = RetiredTrunks(try trunks(["a", "b"]))
    retired.replace(with: try trunks(["a"]), at: .zero)
    #expect(retired.admitted.map(\.name) == ["a", "b"] && retired.hasRetired)
    let keeps = retired.drop(except: ["a", "b"], at: .zero)
    let drops = retired.drop(except: ["a"], at: .zero)
    #expect(!keeps && drops)
    #expect(retired.admitted.map(\.name) == ["a"] && !retired.hasRetired)
  }

  @Test func `a trunk that comes back is not admitted twice, and a second reload forgets nobody`() throws {
    var retired = RetiredTrunks(try trunks(["a", "b", "c"]))
    retired.replace(with: try trunks(["a", "b"]), at: .zero)
    retired.replace(with: try trunks(["a"]), at: .zero)
    #expect(retired.admitted.map(\.name).sorted() == ["a", "b", "c"])
    retired.replace(with: try trunks(["a", "c"]), at: .zero)
    #expect(retired.admitted.map(\.name).sorted() == ["a", "b", "c"])
    let drops = retired.drop(except: [], at: .zero)
    #expect(drops)
    #expect(retired.admitted.map(\.name) == ["a", "c"])
  }

  @Test func `a trunk with a registration is heard until its registrar has had time to answer`() throws {
    var retired = RetiredTrunks(try trunks(["a"], ", register: { user: u }"))
    retired.replace(with: [], at: .zero)
    let early = retired.drop(except: [], at: .zero + .seconds(63))
    #expect(!early && retired.hasRetired)
    let late = retired.drop(except: [], at: .zero + .seconds(65))
    #expect(late && !retired.hasRetired)
  }
}
