import Foundation
import Testing
import TrunklineAudioCodecs
import Yams

@testable import Configuration

/// Each row of `ConfigurationKeys` against the parser. A file in which every section is written is changed at one key.
@Suite struct ConfigurationKeysTests {
  /// A key of the table at one of its paths, as a test's argument.
  struct Row: CustomTestStringConvertible {
    var section: String
    var key: ConfigurationKey
    var path: String { section.isEmpty ? key.name : section + "." + key.name }
    var testDescription: String { path }
    /// How problems name it: every list of the file has one item.
    var written: String { path.replacing("[]", with: "[0]") }
  }

  static let rows = ConfigurationKeys.sections.flatMap { section in
    section.paths.flatMap { path in section.keys.map { Row(section: path, key: $0) } }
  }

  /// Valid, and with every section that does not exclude another.
  static let whole = """
    listen:
      sip:
        udp: 127.0.0.1:5060
        tls: { address: 127.0.0.1:5061, cert: jwt.key, key: jwt.key, ca: jwt.key, certificates: [ { cert: jwt.key, key: jwt.key } ] }
      app: { tls: { cert: jwt.key, key: jwt.key } }
      admin: { token_file: jwt.key, tls: { cert: jwt.key, key: jwt.key } }
    admin: { tokens: [ { name: crm, token_file: jwt.key, scopes: [ read ] } ] }
    media: { addresses: [ { bind: 127.0.0.1 } ] }
    auth: { jwt: { key_file: jwt.key } }
    branding: { name: Acme }
    hep: { address: 127.0.0.1:9060 }
    verifier: { url: https://verifier.example, ca: jwt.key }
    turn: { urls: [ "turn:192.0.2.9" ], secret_file: jwt.key }
    history: { keep: 90d, per_user: 1000 }
    events:
      digits: false
      ca: jwt.key
      webhooks: [ { url: "https://192.0.2.9/events", key_file: jwt.key, kinds: [ call.ended ] } ]
    recording: { when: api }
    trunks:
      - name: t
        peers: [ 192.0.2.0/24 ]
        uri: "sip:192.0.2.1"
        codecs: [ PCMU, G722, PCMA ]
        auth: { username: u, password_file: jwt.key }
        peer_auth: { username: u, password_file: jwt.key }
        register: { user: u }
        probe: { interval: 10s }
        numbers: { country: "49", inbound: [ { prefix: "1" } ], outbound: [ { prefix: "1" } ], caller: [ { prefix: "1" } ] }
        tls: { ca: jwt.key, cert: jwt.key, key: jwt.key }
    users:
      - id: u
        numbers: [ { number: "+15551230001" } ]
        diversions: &all
          { unreached: { code: 486 }, no_answer: { code: 486 }, busy: { code: 486 }, declined: { code: 486 }, media_failed: { code: 486 } }
    routes:
      inbound:
        - trunk: t
          route: { webhook: https://crm.example/route, key_file: jwt.key, fallback: { code: 503 } }
          diversions: *all
      outbound: [ { prefix: "+", trunks: [ { trunk: t } ] } ]
    push:
      gateway: wss://phone.example/v1/connect
      apns: { key_file: a.p8, key_id: K, team_id: T }
      webpush: { key_file: a.p8, subject: "mailto:ops@example.com" }
    """

  private static let nodes =
    "{ node: n1, url: \"wss://n1.example/v1/connect\", key_file: jwt.key, shared_store: { redis: \"127.0.0.1:6379\" } }"

  private static let stream = "{ trunk: t, to: \"wss://bot.example/call\" }"

  /// What a section holds beside a key that goes with other keys than those of `whole`; by the key's name, or its path.
  static let beside = [
    "show_caller": "{ number: \"+15551230002\" }", "early": "{ play: away.wav }", "shows": "{ play: away.wav }",
    "routes.inbound[].format": stream, "routes.inbound[].numbers": stream, "routes.inbound[].token_file": stream,
    "routes.outbound[].trunk": "{ prefix: \"+\" }", "routes.inbound[].route.fallback.user": "{}",
    "cluster.lost_after": nodes, "cluster.lease": nodes, "cluster.prefix": nodes,
    "push.apns.certificate.cert": "{ cert: jwt.key, key: jwt.key }",
    "push.apns.certificate.key": "{ cert: jwt.key, key: jwt.key }",
  ]

  /// Each test has its own; settings are compared within one test, since paths are part of them.
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "a.p8": PushSettingsTests.p256])
    try Data(WAVFile.bytes(of: [Int16](repeating: 1, count: 800))).write(to: URL(fileURLWithPath: folder.path + "/away.wav"))
  }

  /// `whole` with `yaml` behind the row's key, or without the key.
  private func file(_ row: Row, _ yaml: String?) throws -> String {
    var root = try Yams.compose(yaml: Self.whole)
    if row.section == "users[].claims" {
      let anyone = try Yams.compose(yaml: "{ id: any, claims: { numbers: [ \"+1\" ] } }")
      root = Self.setting(anyone, at: Self.steps("users[]")[...], in: root)
    }
    if row.section == "users[].webhook" {
      let anyone = try Yams.compose(yaml: "{ id: any, webhook: { url: \"https://example.org/users\", key_file: jwt.key } }")
      root = Self.setting(anyone, at: Self.steps("users[]")[...], in: root)
    }
    let isTarget = row.section.contains(".diversions.") && ["user", "number", "play"].contains(row.key.name)
    if let beside = isTarget ? "{}" : Self.beside[row.path] ?? Self.beside[row.key.name] {
      root = Self.setting(try Yams.compose(yaml: beside), at: Self.steps(row.section)[...], in: root)
    }
    let value = try yaml.flatMap { try Yams.compose(yaml: $0) }
    root = Self.setting(value, at: Self.steps(row.path)[...], in: root)
    return try Yams.serialize(node: try #require(root))
  }

  private static func steps(_ path: String) -> [Substring] { path.replacing("[]", with: ".[]").split(separator: ".") }

  private static func setting(_ value: Node?, at steps: ArraySlice<Substring>, in node: Node?) -> Node? {
    guard let step = steps.first else { return value }
    let inner = steps.dropFirst()
    if step == "[]" { return setting(value, at: inner, in: node?.sequence?.first).map { .sequence([$0]) } }
    var mapping = node?.mapping ?? [:]
    mapping[String(step)] = setting(value, at: inner, in: mapping[String(step)])
    return .mapping(mapping)
  }

  /// What `file` is refused with at the row's key or below it.
  private func problems(_ row: Row, _ yaml: String?) throws -> [String] {
    do {
      _ = try folder.parse(try file(row, yaml))
      return []
    } catch let found as ConfigurationProblems {
      return found.problems.filter {
        $0.path.hasPrefix(row.written) && [nil, ".", "["].contains($0.path.dropFirst(row.written.count).first)
      }.map(\.message)
    }
  }

  @Test func `the file of these tests is valid`() { #expect(folder.problems(Self.whole) == []) }

  @Test(arguments: rows)
  func `the parser reads every key, and refuses what it is not`(row: Row) throws {
    #expect(try !problems(row, "{ no_such_key: 1 }").isEmpty)
  }

  @Test(arguments: rows.filter { if case .required = $0.key.fallback { true } else { false } })
  func `a required key is missed`(row: Row) throws {
    let text = try file(row, nil)
    #expect(folder.problems(text).contains { $0.contains(" is missing") }, "\(folder.problems(text))")
  }

  @Test(arguments: rows.filter { if case .value = $0.key.fallback { true } else { false } })
  func `a default written out means the same as no key`(row: Row) throws {
    guard case .value(let text) = row.key.fallback else { return }
    #expect(try content(folder.parse(try file(row, text))) == content(folder.parse(try file(row, nil))))
  }

  /// Just outside, and the ends of the range.
  private static func bounds(_ value: ConfigurationKey.Value) -> (wrong: [String], right: [String])? {
    switch value {
    case .integer(let range):
      return (["\(range.lowerBound - 1)", "\(range.upperBound + 1)"], ["\(range.lowerBound)", "\(range.upperBound)"])
    case .duration(let range):
      let below = range.lowerBound == .zero ? [] : [range.lowerBound - .milliseconds(1)]
      let wrong = below + [range.upperBound + .milliseconds(1)]
      return (wrong.map(durationText), [range.lowerBound, range.upperBound].map(durationText))
    case .or(let one, let other): return bounds(one) ?? bounds(other)
    default: return nil
    }
  }

  @Test(arguments: rows.filter { bounds($0.key.value) != nil })
  func `the limits of a number are taken, and what is outside is refused`(row: Row) throws {
    let (wrong, right) = try #require(Self.bounds(row.key.value))
    for text in wrong { #expect(try problems(row, text).contains { $0.contains(" is outside ") }, "\(text)") }
    for text in right {
      let found = try problems(row, text)
      #expect(!found.contains { $0.contains(" is outside ") || $0.hasPrefix("expected") }, "\(text): \(found)")
    }
  }

  private static func list(_ value: ConfigurationKey.Value) -> Int? {
    switch value {
    case .list(_, let limit): limit
    case .or(let one, let other): list(one) ?? list(other)
    default: nil
    }
  }

  /// A hundred thousand users would take the parser a while.
  @Test(arguments: rows.filter { (1...1_000).contains(list($0.key.value) ?? 0) })
  func `a list has as many items as its limit says, and no more`(row: Row) throws {
    let limit = try #require(Self.list(row.key.value))
    func isTooLong(_ count: Int) throws -> Bool {
      let items = [String](repeating: "x", count: count).joined(separator: ", ")
      return try problems(row, "[ \(items) ]").contains { $0.contains("more than the limit of \(limit)") }
    }
    #expect(try !isTooLong(limit) && isTooLong(limit + 1))
  }

  private static func choices(_ value: ConfigurationKey.Value) -> [String] {
    switch value {
    case .oneOf(let choices): choices
    case .flag: ["true", "false"]
    case .list(let item, _): choices(item)
    case .or(let one, let other): choices(one) + choices(other)
    default: []
    }
  }

  @Test(arguments: rows.filter { !choices($0.key.value).isEmpty })
  func `every word that a key takes is taken`(row: Row) throws {
    for word in Self.choices(row.key.value) {
      let found = try problems(row, word)
      #expect(!found.contains { $0.hasPrefix("expected") }, "\(word): \(found)")
    }
  }

  @Test(arguments: rows)
  func `each word and each limit means something else`(row: Row) throws {
    let values = Self.choices(row.key.value) + (Self.bounds(row.key.value)?.right ?? [])
    let meanings = try values.map { try file(row, $0) }.compactMap { try? content(folder.parse($0)) }
    #expect(Set(meanings).count == meanings.count, "\(values)")
  }

  @Test func `each path stands in the table once, each key once in its section`() {
    let paths = ConfigurationKeys.sections.flatMap(\.paths)
    #expect(Set(paths).count == paths.count)
    for section in ConfigurationKeys.sections { #expect(Set(section.keys.map(\.name)).count == section.keys.count) }
  }

  @Test func `docs/reference/configuration.md is what trunkline config reference prints`() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let url = root.appendingPathComponent("docs/reference/configuration.md")
    let page = try? String(contentsOf: url, encoding: .utf8)
    #expect(page == Settings.reference, "TRUNKLINE_GOLDEN=write swift test --filter ConfigurationKeysTests writes it anew")
    guard ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] == "write" else { return }
    try Settings.reference.write(to: url, atomically: true, encoding: .utf8)
  }
}
