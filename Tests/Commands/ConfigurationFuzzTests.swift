import CallFlow
import Configuration
import Foundation
import Testing
import TrunklineBytes
import TrunklinePlatform
import Yams

@testable import trunkline

/// Good files with values deleted, swapped, copied, doubled and replaced by others: each is refused with its problems or can be served.
@Suite struct ConfigurationFuzzTests {
  private static let samples = [
    Settings.example,
    """
    listen: { sip: { udp: 127.0.0.1:5060, tcp: [ 127.0.0.1:5060, "[::1]:5062" ] }, app: 127.0.0.1:1, admin: { address: 127.0.0.1:2, token_file: secret } }
    dns: { servers: [ 192.0.2.53 ] }
    media: { addresses: [ { bind: 127.0.0.1, advertise: 192.0.2.9 }, "::1" ], app_port: 40000, trunk_ports: 20000-20999, load_limit: 50 }
    auth: { jwt: { algorithm: HS256, key_file: secret, audience: a }, origins: [ https://a.example ] }
    trunks:
      - name: a
        peers: [ 192.0.2.0/24, 2001:db8::/32 ]
        uri: "sip:192.0.2.1:5060;transport=tcp"
        auth: { username: u, password_file: secret }
        realm: a.example
        register: { user: u, expires: 10m }
        probe: { interval: 30s, down_after: 3, up_after: 2 }
        codecs: [ opus, PCMU ]
        numbers: { country: "49", inbound: [ { prefix: "0", strip: 1, add: "+49" } ], outbound: [ { prefix: "+" } ] }
        session_timer: 1800
        session_minimum: 90
        redirects: follow
        redirect_hosts: [ b.example ]
        hold_audio: silence
        max_calls: 9
      - { name: b, peers: any, peer_auth: { username: u, password_file: secret }, dtmf: info, srtp: optional, srtp_without_tls: true }
    users:
      - { id: alice, numbers: [ "+1", { number: "+2", account: work } ], allow: [ "+", "112" ], calls_per_hour: 9, name: Alice }
      - { id: bob, numbers: "+3", diversions: { unreached: { user: alice, after: 9s }, no_answer: { number: "+4", after: 30s } } }
    routes:
      inbound: [ { trunk: b, to: users }, { trunk: a, route: { webhook: https://a.example/, key_file: secret, fallback: { user: bob } } } ]
      outbound: [ { prefix: "+", trunks: [ { trunk: a, priority: 1, weight: 9 } ] }, { prefix: "112", trunk: a, emergency: true } ]
      emergency: [ "112" ]
    verifier: { url: https://v.example/ }
    timers: { ring: 45s, early180: 2s, drain: 1m }
    limits: { calls: 100, calls_per_user: 4, memory_mib: 512 }
    store: { sqlite: a.db }
    records: { file: a.jsonl }
    """,
  ]

  /// What a value becomes, as YAML.
  private static let strange = [
    "", "~", "0", "-1", "1", "65535", "65536", "99999999999999999999", "1e9", "true", "off", "auto", "any", "+", "\"+49\"",
    "\"00\"", "a", "alice",
    "::1", "\"[::1]:1\"", "0.0.0.0:1", "255.255.255.255", "0.0.0.0/0", "::/0", "\"sip:a.example\"", "\"sips:[::1]:1\"", "0ms",
    "999999999h", "600s",
    "1024-1025", "1-65535", "20000-20000", "secret", "nowhere", "[]", "{}", "[ [] ]", "[ a, a ]", "{ a: b }", "\"é\\u0000\\n\"",
    "x" + String(repeating: "y", count: 3_000),
  ]

  @Test func `a mutated file has problems or can be served`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    for name in ["secret", "jwt.key"] {
      try "0123456789abcdef0123456789abcdef".write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
    }
    let trees = try Self.samples.map { try #require(try Yams.compose(yaml: $0)) }
    let strange = try Self.strange.map { try Yams.compose(yaml: $0) ?? Node("") }
    let first = UInt64(ProcessInfo.processInfo.environment["TRUNKLINE_SEED"] ?? "") ?? 0
    let count = UInt64(ProcessInfo.processInfo.environment["TRUNKLINE_SEEDS"] ?? "") ?? 800
    var served = 0
    for seed in first..<first + count {
      if seed % 1_000 == 0 { print("configuration fuzz: TRUNKLINE_SEED=\(seed)") }
      var mutator = Mutator(random: SplitMix64(seed: seed), strange: strange)
      let text = try mutator.text(trees[Int(seed) % trees.count])
      do {
        let settings = try ConfigurationFile.parse(text, file: "fuzz.yaml", directory: folder, triesFiles: seed % 16 == 0)
        try serve(settings)
        served += 1
      } catch let problems as ConfigurationProblems {
        #expect(!problems.problems.isEmpty && !problems.drawn.isEmpty, "seed \(seed)")
      } catch {
        Issue.record("seed \(seed): \(error)\n\(text)")
      }
    }
    #expect(served > count / 20 && served < count, "of \(count) files \(served) can be served: neither all nor none")
  }

  /// All that is made of settings before a port is bound.
  private func serve(_ settings: Settings) throws {
    let machine = MachineAddresses([.init(IPAddress(192, 0, 2, 7), prefixLength: 24), .init(.loopback, prefixLength: 8)])
    let plan = settings.networkPlan(
      on: machine, NetworkQuestions(isBindable: { _ in true }, route: { _ in nil }, find: { _, _ in nil }))
    _ = (settings.allowList, settings.own(plan, bound: []), settings.clientTLS, settings.certificatePaths)
    _ = settings.mediaPlane(plan)
    _ = try settings.auth.keys()
    _ = CallMachine(
      configuration: settings.calls, routing: settings.routing(), random: .system, network: settings.network { _, _ in nil })
  }
}

/// Changes a tree of YAML at one to three nodes.
private struct Mutator {
  var random: SplitMix64
  let strange: [Node]

  private mutating func below(_ count: Int) -> Int { Int(random.next() % UInt64(max(1, count))) }

  mutating func text(_ tree: Node) throws -> String {
    var tree = tree
    for _ in 0...below(3) { tree = changed(tree) }
    let text = try Yams.serialize(node: tree)
    guard below(8) == 0 else { return text }
    // And faults of YAML itself.
    var characters = Array(text)
    let index = below(characters.count)
    switch below(3) {
    case 0: characters.remove(at: index)
    case 1: characters.insert(Array("\t :-[]{}\"'&*#\n\u{2028}")[below(15)], at: index)
    default: characters.removeSubrange(index..<min(characters.count, index + 20))
    }
    return String(characters)
  }

  private mutating func changed(_ tree: Node) -> Node {
    var all: [Node] = []
    Self.walk(tree) { all.append($0) }
    let (one, other) = (1 + below(all.count - 1), 1 + below(all.count - 1))
    switch below(6) {
    case 0: return Self.replaced(tree, [one: nil])
    case 1 where one != other: return Self.replaced(tree, [one: all[other], other: all[one]])
    case 2: return Self.replaced(tree, [one: all[other]])
    case 3: return Self.replaced(tree, [one: .sequence([all[one], all[one]])])
    default: return Self.replaced(tree, [one: strange[below(strange.count)]])
    }
  }

  /// In the order that `replaced` counts.
  private static func walk(_ node: Node, _ see: (Node) -> Void) {
    see(node)
    switch node {
    case .mapping(let mapping): for (_, value) in mapping { walk(value, see) }
    case .sequence(let sequence): for item in sequence { walk(item, see) }
    case .scalar, .alias: break
    }
  }

  /// `new`: by index, nil to delete. The root stays.
  private static func replaced(_ tree: Node, _ new: [Int: Node?]) -> Node {
    var index = -1
    func visit(_ node: Node) -> Node? {
      index += 1
      if let found = new[index] {
        walk(node) { _ in index += 1 }
        index -= 1
        return found
      }
      switch node {
      case .mapping(let mapping):
        return .mapping(Node.Mapping(mapping.compactMap { key, value in visit(value).map { (key, $0) } }))
      case .sequence(let sequence): return .sequence(Node.Sequence(sequence.compactMap(visit)))
      case .scalar, .alias: return node
      }
    }
    return visit(tree) ?? tree
  }
}
