import Foundation
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import Yams

@testable import Configuration

/// What the parser makes of files that set every key, and what it refuses in files where every key is wrong: as it did.
/// `TRUNKLINE_GOLDEN=write swift test --filter ConfigurationGoldenTests` writes Tests/Vectors/configuration anew.
@Suite struct ConfigurationGoldenTests {
  private static let vectors = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Vectors/configuration")
  private static let files = ["every-key", "other-forms", "third-forms"]

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder([
      "jwt.key": TemporaryFolder.key, "other.key": "0123456789012345678901234567890123456789", "a.p8": PushSettingsTests.p256,
      "logo.svg": "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "fcm.json": try Self.serviceAccount(),
      "set.json": try Self.jwt("jwks.json"),
    ])
    try Data(WAVFile.bytes(of: [Int16](repeating: 1, count: 800))).write(to: URL(fileURLWithPath: folder.path + "/away.wav"))
  }

  private static func jwt(_ name: String) throws -> String {
    try String(contentsOf: vectors.deletingLastPathComponent().appendingPathComponent("jwt/" + name), encoding: .utf8)
  }

  private static func serviceAccount() throws -> String {
    let account = [
      "project_id": "p", "client_email": "e@example.com", "token_uri": "https://oauth2.example/token",
      "private_key": try jwt("rsa-private.pem"),
    ]
    return String(decoding: try JSONEncoder().encode(account), as: UTF8.self)
  }

  private func yaml(_ name: String) throws -> String {
    try String(contentsOf: Self.vectors.appendingPathComponent(name + ".yaml"), encoding: .utf8)
  }

  /// Compares, or writes.
  private func check(_ text: String, _ name: String) throws {
    let url = Self.vectors.appendingPathComponent(name)
    guard ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] != "write" else {
      try text.write(to: url, atomically: true, encoding: .utf8)
      Issue.record("\(name) was written anew")
      return
    }
    let golden = try String(contentsOf: url, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for difference in lines.difference(from: golden) {
      switch difference {
      case .insert(_, let line, _): Issue.record("\(name): new: \(line)")
      case .remove(_, let line, _): Issue.record("\(name): missing: \(line)")
      }
    }
  }

  @Test(arguments: files) func `every key has the effect that it had`(name: String) throws {
    let settings = try folder.parse(try yaml(name), environment: ["NODE": "n1", "PUBLIC": "203.0.113.8"])
    try check(outline(settings).replacing(folder.path, with: "DIR") + "\n", name + ".settings")
  }

  @Test func `the files set every key`() throws {
    var written: Set<String> = []
    func note(_ node: Node, _ path: String) {
      switch node {
      case .mapping(let mapping):
        for (key, value) in mapping {
          let own = path.isEmpty ? key.text ?? "" : path + "." + (key.text ?? "")
          written.insert(own)
          note(value, own)
        }
      case .sequence(let items): for item in items { note(item, path + "[]") }
      default: break
      }
    }
    // A single item goes without brackets.
    for name in Self.files { note(try #require(try Yams.compose(yaml: try yaml(name))), "") }
    let plain = Set(written.map { $0.replacing("[]", with: "") })
    // A section that stands at several paths needs each key at one of them.
    for section in ConfigurationKeys.sections {
      let paths = section.paths.map { $0.replacing("[]", with: "") }
      for key in section.keys {
        let isSet = paths.contains { plain.contains($0.isEmpty ? key.name : $0 + "." + key.name) }
        #expect(isSet, "\(section.paths[0]).\(key.name)")
      }
    }
  }

  /// How a key is wrong.
  enum Fault: String, CaseIterable {
    /// Another kind of value, with a key that no section has.
    case kind
    /// Outside of the range, no such word, an empty item, a list in place of a text, a file that does not exist.
    case value
    /// Not written, but the sections are.
    case missing
  }

  private static func wrong(_ value: ConfigurationKey.Value) -> String {
    switch value {
    case .text: "[ [ 1 ] ]"
    case .file, .secretFile: "nowhere.pem"
    case .flag, .oneOf: "nonsense"
    case .integer(let range): "\(range.upperBound + 1)"
    case .duration(let range): durationText(range.upperBound + .milliseconds(1))
    case .list(.oneOf, _), .list(.flag, _): "[ nonsense ]"
    case .list: "[ ~ ]"
    case .mapping: "nonsense"
    case .or(.list, _): "[ ~ ]"
    case .or(let one, _): wrong(one)
    }
  }

  /// The lines of the section at `path`, each key on its own.
  private static func lines(_ path: String, _ fault: Fault) -> [String] {
    guard let section = ConfigurationKeys.sections.first(where: { $0.paths.contains(path) }) else { return [] }
    return section.keys.flatMap { key -> [String] in
      let own = path.isEmpty ? key.name : path + "." + key.name
      let inner = lines(own, fault)
      if !inner.isEmpty { return ["\(key.name):"] + inner.map { "  " + $0 } }
      let items = lines(own + "[]", fault)
      if let first = items.first { return ["\(key.name):", "  - " + first] + items.dropFirst().map { "    " + $0 } }
      let isSection = ConfigurationKeys.sections.contains { $0.paths.contains(own) }
      let isList = ConfigurationKeys.sections.contains { $0.paths.contains(own + "[]") }
      return switch fault {
      case .kind: ["\(key.name): { no_such_key: 1 }"]
      case .value: ["\(key.name): \(wrong(key.value))"]
      case .missing: isSection ? ["\(key.name): {}"] : isList ? ["\(key.name): [ {} ]"] : []
      }
    }
  }

  @Test(arguments: Fault.allCases) func `a file with every key wrong has an error in each line, which is what it was`(
    fault: Fault
  )
    throws
  {
    let lines = Self.lines("", fault)
    let text = lines.joined(separator: "\n") + "\n"
    let problems = try #require(throws: ConfigurationProblems.self) { try folder.parse(text) }
    let named = Set(problems.problems.map(\.line))
    for (index, line) in lines.enumerated() where fault != .missing && !line.hasSuffix(":") && !named.contains(index + 1) {
      Issue.record("no error in line \(index + 1): \(line)")
    }
    let out = problems.drawn.replacing(folder.path, with: "DIR") + "\n"
    try check(out, "wrong-\(fault.rawValue).txt")
  }
}

/// A value as lines, the same for the same content in every process: sets and dictionaries in order, long lists as a hash.
private func outline(_ value: Any, _ indentation: String = "") -> String {
  func hash(_ bytes: some Sequence<UInt8>) -> String { String(FNV1a(bytes).value, radix: 16) }
  switch value {
  case let secret as Redacted<[UInt8]>: return "secret \(hash(secret.exposed))"
  case let secret as Redacted<String>: return "secret \(hash(secret.exposed.utf8))"
  case let bytes as [UInt8] where bytes.count > 16: return "\(bytes.count) octets \(hash(bytes))"
  case let samples as [Int16] where samples.count > 16:
    return
      "\(samples.count) samples \(hash(samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }))"
  case let duration as Duration: return durationText(duration)
  case is SocketAddress, is IPAddress, is IPNetwork, is AdvertisedHost: return "\(value)"
  default: break
  }
  if "\(type(of: value))".hasPrefix("Unsafe") { return "…" }
  let mirror = Mirror(reflecting: value)
  if mirror.displayStyle == .optional { return mirror.children.first.map { outline($0.value, indentation) } ?? "nil" }
  let inner = indentation + "  "
  var lines = mirror.children.map { child in
    let name = child.label.map { $0.replacing("$__lazy_storage_$_", with: "") + ": " } ?? "- "
    return "\n" + inner + name + outline(child.value, inner)
  }
  if [.set, .dictionary].contains(mirror.displayStyle) { lines.sort() }
  if lines.isEmpty { return mirror.displayStyle == nil || mirror.displayStyle == .enum ? plain("\(value)") : "-" }
  return "\(type(of: value))".prefix { $0 != "<" } + lines.joined()
}

/// Without addresses of objects.
private func plain(_ text: String) -> String { text.replacing(/0x[0-9a-f]+/, with: "0x…") }
