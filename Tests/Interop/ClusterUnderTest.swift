import Foundation
import JSONWebToken
import Testing

/// Redis, three gateways with short timeouts, and Debian's Kamailio before them; HAProxy before their app ports if a test
/// requests it.
final class ClusterUnderTest {
  private(set) var nodes: [GatewayUnderTest] = []
  private(set) var redis: Spawned
  let redisPort: UInt16
  private(set) var edge: EdgeUnderTest?
  let edgePort: UInt16
  private(set) var balancer: BalancerUnderTest?
  /// HAProxy's port, where apps reach any node.
  let balancerPort: UInt16?
  private let folder: String
  /// Further settings of the trunk.
  private let trunk: String
  private let peers: String
  private let media: String
  /// The port at which sipp is called; it calls from `EdgeUnderTest.carrier`.
  let carrier: UInt16

  init(
    _ count: Int = 3, hasEdge: Bool = true, hasBalancer: Bool = false, trunk: String = "",
    peers: String = "[ \(EdgeUnderTest.carrier), 127.0.0.1 ]", media: String = "[ 127.0.0.1 ]", _ more: [String] = []
  )
    async throws
  {
    (self.trunk, self.peers, self.media) = (trunk, peers, media)
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("cluster-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    redisPort = try FreePorts.both()
    edgePort = try FreePorts.both()
    carrier = try FreePorts.both()
    balancerPort = hasBalancer ? try FreePorts.tcp() : nil
    redis = try Self.redis(redisPort, in: folder)
    for index in 0..<count { nodes.append(try await node(index + 1, hasEdge: hasEdge, more)) }
    if hasEdge {
      edge = try await EdgeUnderTest(
        in: folder, port: edgePort, nodes: nodes.map { "sip:127.0.0.1:\($0.sip);transport=tcp" })
    }
    if let balancerPort {
      balancer = try await BalancerUnderTest(
        in: folder, port: balancerPort, nodes: nodes.enumerated().map { ("n\($0 + 1)", $1.app) })
    }
    try await awaitAll()
  }

  /// Waits until each node sees all of them.
  private func awaitAll() async throws {
    let count = nodes.count
    for node in nodes {
      let isUp = await eventually(within: 15) { try node.sum("trunkline_cluster_nodes", "living") == Double(count) }
      guard isUp else { throw Spawned.Failure(description: "not all nodes are seen: \(node.process.text.suffix(3_000))") }
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private static func redis(_ port: UInt16, in folder: String) throws -> Spawned {
    try Spawned(
      "redis", "/usr/bin/redis-server",
      ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder], in: folder)
  }

  func node(
    _ number: Int, name: String? = nil, url other: String? = nil, hasEdge: Bool, _ more: [String] = [],
    binary: String = Surroundings.trunkline
  ) async throws -> GatewayUnderTest {
    let key = folder + "/cluster.key"
    try Self.key.write(toFile: key, atomically: true, encoding: .utf8)
    let sip = try FreePorts.both()
    let app = try FreePorts.tcp()
    let admin = try FreePorts.tcp()
    var edges: [String] = []
    if hasEdge {
      edges += ["peers: [ \(EdgeUnderTest.host)/32 ]", "sip: \"sip:\(EdgeUnderTest.host):\(edgePort);transport=tcp\""]
    }
    if balancerPort != nil { edges.append("http: [ 127.0.0.1/32 ]") }
    let name = name ?? "n\(number)"
    let url = other ?? balancerPort.map { "ws://127.0.0.1:\($0)/n/\(name)/v1/connect" } ?? "ws://127.0.0.1:\(app)/v1/connect"
    return try await GatewayUnderTest(
      [
        "cluster: { node: \(name), url: \"\(url)\", admin: \"http://127.0.0.1:\(admin)\", shared_store: { redis: 127.0.0.1:\(redisPort) }, key_file: \(key), lease: 2s, "
          + "lost_after: 5s\(edges.isEmpty ? "" : ", edges: { " + edges.joined(separator: ", ") + " }") }",
        "trunks: [ { name: carrier, uri: \"sip:\(EdgeUnderTest.carrier):\(carrier)\", peers: \(peers)\(trunk.isEmpty ? "" : ", " + trunk) } ]",
      ] + more, media: media, binary: binary, ports: (sip, app, admin), carrier: carrier)
  }

  /// Adds a node that the edge does not know.
  func join(_ number: Int, _ more: [String], binary: String) async throws {
    nodes.append(try await node(number, hasEdge: false, more, binary: binary))
    try await awaitAll()
  }

  /// sipp as the carrier, through the edge or straight to a node.
  func call(
    _ scenario: String = "call", to node: GatewayUnderTest? = nil, number: String = "+15551230001",
    _ more: [String] = ["-d", "500"]
  ) throws -> Spawned {
    let target = node.map { "127.0.0.1:\($0.sip)" } ?? "\(EdgeUnderTest.host):\(edgePort)"
    return try Peers.sipp(
      nodes[0], scenario, host: node == nil ? EdgeUnderTest.carrier : "127.0.0.1",
      [target, "-s", number, "-p", "\(try FreePorts.udp())", "-key", "audio_port", "9"] + more)
  }

  func killRedis() async throws {
    redis.signal(SIGKILL)
    try await redis.finish(within: 5)
  }
  func startRedis() throws { redis = try Self.redis(redisPort, in: folder) }

  /// Returns the output of `redis-cli`.
  func redis(_ words: String...) async throws -> String {
    let cli = try Spawned("redis-cli", "/usr/bin/redis-cli", ["-p", "\(redisPort)"] + words, in: folder)
    try await cli.finish(within: 10)
    return cli.text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// A value as a node with the cluster's key signs it; a text that is not an object is returned unchanged. A lease or message
  /// must contain its expiry.
  func signed(_ value: String, _ key: String, _ field: String = "") -> String {
    guard value.hasPrefix("{"), value.hasSuffix("}"), value.utf8.count > 2,
      let signer = Self.signer
    else { return value }
    let (name, content) = (Array("\(key)\n\(field)".utf8), Array(value.utf8.dropFirst().dropLast()))
    let length = withUnsafeBytes(of: UInt32(name.count).bigEndian) { Array($0) }
    return value.dropLast() + #","h":"\#(Base64URL.encode(signer.tag(length + name + content)))"}"#
  }
  static let key = "0123456789abcdef0123456789abcdef\n"
  private static let signer = PurposeKey("trunkline shared store values 1", from: Array(key.utf8))

  /// Sends any number of commands with any content, as fast as Redis reads them.
  func write(_ commands: [[String]]) async throws {
    let file = folder + "/commands"
    let text = commands.map { command in
      "*\(command.count)\r\n" + command.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    }.joined()
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    let cli = try Spawned("redis-pipe", "/bin/sh", ["-c", "exec redis-cli -p \(redisPort) --pipe <'\(file)'"], in: folder)
    guard try await cli.finish(within: 20) == 0 else { throw Spawned.Failure(description: "redis-cli --pipe: \(cli.text)") }
  }

  /// For failures: the log lines of nodes and edge about calls and each other, and the cluster's metrics.
  var told: String {
    let lines = nodes.enumerated().flatMap { index, node in
      node.process.text.split(separator: "\n").filter { line in
        [" call", " cluster:", "stage", "notice", "warning", "error"].contains { line.contains($0) }
      }.suffix(25).map { "n\(index + 1) \($0.prefix(260))" }
    }
    let metrics = nodes.enumerated().compactMap { index, node in
      (try? node.get("/metrics").body.split(separator: "\n").filter {
        $0.hasPrefix("trunkline_cluster_") && !$0.hasSuffix(" 0")
      }.joined(separator: "; ")).map { "n\(index + 1) \($0)" }
    }
    return (lines + metrics).joined(separator: "\n") + "\n" + (edge?.process.text.suffix(1_500) ?? "")
  }

  func records(_ count: Int, within seconds: Double = 10) async throws -> [[String: Any]] {
    let isThere = await eventually(within: seconds) { self.nodes.flatMap(\.records).count >= count }
    let all = nodes.flatMap(\.records)
    guard isThere else { throw Spawned.Failure(description: "\(all.count) records instead of \(count)") }
    return all
  }

  /// Expects one record for each call over all nodes, that the running nodes end by SIGTERM with status 0, and that the shared
  /// store has no entry of a call left.
  func finish(_ location: SourceLocation = #_sourceLocation) async throws {
    let calls = nodes.flatMap(\.records).compactMap { $0["call"] as? String }
    #expect(Set(calls).count == calls.count, "two records of one call", sourceLocation: location)
    for node in nodes where node.process.isRunning {
      #expect(try node.metric("trunkline_answered_without_media_total") == 0, sourceLocation: location)
      #expect(
        await eventually(within: 6) { try node.sum("trunkline_calls") == 0 }, "calls are left at \(node.sip)",
        sourceLocation: location)
    }
    for node in nodes where node.process.isRunning {
      node.process.signal(SIGTERM)
      let status = try await node.process.finish(within: 15)
      #expect(status == 0, "\(node.process.text.suffix(3_000))", sourceLocation: location)
    }
    await edge?.stop()
    try await balancer?.stop()
    if redis.isRunning {
      redis.signal(SIGTERM)
      try await redis.finish(within: 10)
    }
  }
}
