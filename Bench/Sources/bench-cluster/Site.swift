import BenchKit
import Foundation
import JSONWebToken

/// One gateway of the bench: alone, or a node of the cluster.
final class Node {
  let name: String
  let sip: UInt16, app: UInt16, admin: UInt16
  let folder: URL
  let process: ChildProcess

  /// - Parameter words: before the program's own, as `valgrind` and its options.
  fileprivate init(
    _ name: String, number: Int, _ site: Site, isAlone: Bool, isSecure: Bool, program: String = Gateway.binary,
    under words: [String] = []
  ) throws {
    self.name = name
    let ports = try FreePorts.loopback(4)
    (sip, app, admin) = (ports[0], ports[1], ports[2])
    folder = site.folder.appendingPathComponent(name)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let cluster =
      isAlone
      ? ""
      : """
      cluster:
        node: \(name)
        url: \(isSecure ? "wss" : "ws")://127.0.0.1:\(app)/v1/connect
        shared_store: { redis: 127.0.0.1:\(site.redis.port) }
        key_file: ../cluster.key
        edges: { peers: [ \(Site.edge)/32 ], sip: "sip:\(Site.edge):9;transport=udp" }

      """
    let tls = isSecure ? ", tls: { cert: ../app.pem, key: ../app.key }" : ""
    let users = (0..<Site.users).map { "  - { id: \(Site.user($0)), numbers: [ \"\(Site.number($0))\" ] }" }
    let text =
      cluster
        + """
        listen: { sip: { udp: 127.0.0.1:\(sip) }, app: { address: 127.0.0.1:\(app)\(tls) }, admin: 127.0.0.1:\(admin) }
        media: { addresses: [ 127.0.0.\(20 + number) ], threads: 1, load_limit: 100, app_port: \(ports[3]), trunk_ports: 20000-23999 }
        limits: { calls: 4000, calls_per_user: 1000, sessions_per_address: 100000 }
        auth: { jwt: { key_file: ../jwt.key } }
        trunks:
          - { name: carrier, peers: [ \(Site.carrier) ], uri: "sip:\(Site.carrier):9" }
          - { name: limited, peers: [ \(Site.limited) ], uri: "sip:\(Site.limited):9", max_calls: 2000 }
        users:
        \(users.joined(separator: "\n"))
          - { id: recorded, numbers: [ "\(Site.recorded)" ], diversions: { unreached: { play: ../away.wav } } }
          - any
        routes: { inbound: [ { trunk: carrier, to: users }, { trunk: limited, to: users } ] }
        push: { gateway: "ws://127.0.0.1:\(app)/v1/connect", apns: { key_file: ../push.p8, key_id: K, team_id: T, url: "https://127.0.0.1:9" } }
        log: { level: error }

        """
    try Data(text.utf8).write(to: folder.appendingPathComponent("gateway.yaml"))
    let command = words + [URL(fileURLWithPath: program).path, "serve", "--config", "gateway.yaml"]
    process = try ChildProcess(
      command[0], Array(command.dropFirst()), in: folder, cores: site.cores?.measured, log: "log", isAhead: words.isEmpty)
  }

  /// In order, so that no other node looks after it.
  func end() {
    process.process.terminate()
    for _ in 0..<400 where process.isRunning { usleep(50_000) }
    process.end()
  }

  /// Of one family, by its labels.
  func metric(_ name: String) -> [String: Double] { Gateway.metric(name, admin: admin) }
  /// Sent to the shared store so far, by name.
  var commands: [String: Double] {
    Dictionary(
      metric("trunkline_shared_store_commands_total").map { label, count in
        (String(label.drop { $0 != "\"" }.dropFirst().prefix { $0 != "\"" }), count)
      }, uniquingKeysWith: +)
  }
  /// Those of its lease and tasks, whatever calls and devices there are.
  static let ownCommands: Set<String> = ["renew", "lead"]

  /// Lines of the records file.
  var records: Int {
    (try? Data(contentsOf: folder.appendingPathComponent("calls.jsonl")))?.count { $0 == 0x0a } ?? 0
  }
  var log: String { (try? String(contentsOf: folder.appendingPathComponent("log"), encoding: .utf8)) ?? "" }
}

/// A `redis-server` of the bench's own, on the load's cores.
final class RedisServer {
  let port: UInt16
  let process: ChildProcess

  init(in folder: URL, cores: String?) throws {
    guard let program = Program.find("redis-server"), Program.find("redis-cli") != nil else {
      throw BenchError(text: "redis-server is not installed (Scripts/install test)")
    }
    port = try FreePorts.loopback(1)[0]
    process = try ChildProcess(
      program, ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder.path], in: folder,
      cores: cores, isAhead: true)
    for _ in 0..<200 where (try? say("PING")) != "PONG" { usleep(20_000) }
  }

  /// What `redis-cli` prints.
  @discardableResult func say(_ words: String...) throws -> String {
    try Program.run(Program.find("redis-cli") ?? "redis-cli", ["-p", "\(port)"] + words).output
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Bytes of all keys that match, by MEMORY USAGE.
  func memory(_ pattern: String) throws -> Double {
    let script = """
      local sum, cursor = 0, '0'
      repeat
        local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 10000)
        cursor = page[1]
        for _, key in ipairs(page[2]) do sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0') end
      until cursor == '0'
      return sum
      """
    return Double(try say("EVAL", script, "0", pattern).filter(\.isNumber)) ?? 0
  }
}

/// One node alone, three nodes of a cluster and their Redis, started together: `n1` is called and has devices, `n2` has devices, `n3` takes
/// TLS from apps, and dies at the end.
final class Site {
  static let edge = "127.0.0.9", carrier = "127.0.0.2", limited = "127.0.0.3"
  /// Listed users with a number each; `any` may log in.
  static let users = 200
  static func user(_ number: Int) -> String { "user\(number)" }
  static func number(_ number: Int) -> String { "+1555\(2_000_000 + number)" }
  /// A recording answers.
  static let recorded = "+15551000001"

  let folder: URL
  let cores = Cores.divided
  let redis: RedisServer
  private(set) var alone: Node! = nil
  private(set) var nodes: [Node] = []
  private let signer: TokenSigner

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-nodes-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let key = "0123456789abcdef0123456789abcdef\n"
    for name in ["jwt.key", "cluster.key"] { try Data(key.utf8).write(to: folder.appendingPathComponent(name)) }
    try Gateway.silence(seconds: 60).write(to: folder.appendingPathComponent("away.wav"))
    signer = try TokenSigner(keys: KeySet(.HS256, keyFile: Array(key.utf8)))
    redis = try RedisServer(in: folder, cores: cores?.load)
    do {
      try Self.makeCertificate(in: folder)
      alone = try Node("alone", number: 0, self, isAlone: true, isSecure: false)
      for number in 1...3 {
        nodes.append(try Node("n\(number)", number: number, self, isAlone: false, isSecure: number == 3))
      }
      try waitUntilWhole()
    } catch {
      end()
      throw error
    }
  }

  func end() {
    for node in nodes + [alone].compactMap(\.self) { node.process.end() }
    redis.process.end()
    try? FileManager.default.removeItem(at: folder)
  }

  /// A gateway alone and a further node, whose instructions are counted from when they are ready: `counts.N-THREAD` of their folders.
  func counted(by valgrind: String) throws -> [Node] {
    // valgrind does not read the debugger's part
    let program = folder.appendingPathComponent("trunkline").path
    guard let strip = Program.find("strip"), try Program.run(strip, ["-S", "-o", program, Gateway.binary]).status == 0 else {
      throw BenchError(text: "strip (binutils) is not installed")
    }
    let words = [valgrind, "--tool=callgrind", "--separate-threads=yes", "--callgrind-out-file=counts"]
    let made = try [true, false].map { isAlone in
      try Node(
        isAlone ? "alone-counted" : "n4", number: isAlone ? 4 : 5, self, isAlone: isAlone, isSecure: false, program: program,
        under: words)
    }
    let end = Date(timeIntervalSinceNow: 120)
    func isUp(_ node: Node) -> Bool {
      Gateway.isReady(admin: node.admin)
        && (node === made[0] || node.metric("trunkline_cluster_state").contains { $0.key.contains("up") && $0.value == 1 })
    }
    for node in made {
      while !isUp(node) {
        guard node.process.isRunning, Date() < end else {
          for node in made { node.process.end() }
          throw BenchError(text: "\(node.name) did not become ready under callgrind")
        }
        usleep(200_000)
      }
    }
    return made
  }

  func token(of user: String) throws -> String {
    let expiry = Int64(Date().timeIntervalSince1970) + 86_400
    return try signer.sign(Claims(sub: user, dev: "phone", aud: ["trunkline"], exp: expiry))
  }

  private func waitUntilWhole() throws {
    let end = Date(timeIntervalSinceNow: 30)
    func isWhole(_ node: Node) -> Bool {
      Gateway.isReady(admin: node.admin)
        && (node === alone || node.metric("trunkline_cluster_nodes").contains { $0.key.contains("living") && $0.value == 3 })
    }
    for node in [alone!] + nodes {
      while !isWhole(node) {
        guard node.process.isRunning, Date() < end else {
          throw BenchError(text: "\(node.name) did not become ready: \(node.log.suffix(500))")
        }
        usleep(50_000)
      }
    }
  }

  private static func makeCertificate(in folder: URL) throws {
    let made = try Program.run(
      "/usr/bin/openssl",
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder.path + "/app.key", "-out", folder.path + "/app.pem"])
    let key = try Program.run(
      "/usr/bin/openssl",
      ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", folder.path + "/push.p8"])
    guard made.status == 0, key.status == 0 else { throw BenchError(text: "openssl made no certificate") }
  }
}
