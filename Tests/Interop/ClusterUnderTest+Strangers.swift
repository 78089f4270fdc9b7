import Foundation
import Testing

/// Callers with a voice, hellos by hand, and the books of all nodes.
extension ClusterUnderTest {
  /// Where a device reaches this very node.
  func url(of node: GatewayUnderTest) -> String {
    let number = nodes.firstIndex { $0 === node }.map { $0 + 1 } ?? 0
    return balancerPort.map { "ws://127.0.0.1:\($0)/n/n\(number)/v1/connect" } ?? "ws://127.0.0.1:\(node.app)/v1/connect"
  }

  /// `trunkline-lab trunk` as the carrier that calls and speaks, through the edge or straight to a node.
  func talker(to node: GatewayUnderTest? = nil, number: String = "+15551230001", _ more: [String] = ["--talk", "1"]) throws
    -> Spawned
  {
    let target = node.map { "127.0.0.1:\($0.sip)" } ?? "\(EdgeUnderTest.host):\(edgePort)"
    return try Spawned(
      "talker", Surroundings.lab,
      [
        "trunk", "--gateway", target, "--listen", "\(EdgeUnderTest.carrier):\(try FreePorts.both())", "--events", "--call",
        number,
      ]
        + more, in: nodes[0].folder)
  }

  /// The call of the carrier is answered with this SIP code.
  func expect(_ code: Int, of talker: Spawned, _ location: SourceLocation = #_sourceLocation) async throws {
    #expect(try await talker.finish(within: 20) != 0, sourceLocation: location)
    #expect(talker.text.contains("\(code)"), "\(talker.text)\n\(told)", sourceLocation: location)
  }

  /// Sum of a family over all nodes that run.
  func sum(_ family: String, _ part: String = "") throws -> Double {
    try nodes.filter(\.process.isRunning).map { try $0.sum(family, part) }.reduce(0, +)
  }

  /// INVITEs = records + counted refusals and redirects, over all nodes; each of `calls` INVITEs of carriers was one call, and each
  /// redirect one INVITE more at a node.
  func account(calls: Int, refused: Int = 0, outgoing: Int = 0, _ location: SourceLocation = #_sourceLocation) async throws {
    let records = try await records(calls + outgoing)
    #expect(records.count { $0["direction"] as? String == "in" } == calls, "\(records)", sourceLocation: location)
    #expect(records.count { $0["direction"] as? String == "out" } == outgoing, "\(records)", sourceLocation: location)
    let incoming = #"direction="in""#
    let redirects = try sum("trunkline_calls_refused_total", #"direction="in",reason="steered""#)
    #expect(try sum("trunkline_calls_started_total", incoming) == Double(calls), "\(told)", sourceLocation: location)
    #expect(
      try sum("trunkline_calls_refused_total", incoming) == redirects + Double(refused), "\(told)", sourceLocation: location)
    // the cluster's figures are published once a second
    #expect(
      await eventually(within: 3) { try self.sum("trunkline_cluster_locates_total", "steered") == redirects }, "\(told)",
      sourceLocation: location)
    let invites = try sum("trunkline_sip_messages_total", #"direction="in",transport="tcp",kind="INVITE""#)
    let straight = try sum("trunkline_sip_messages_total", #"direction="in",transport="udp",kind="INVITE""#)
    #expect(invites + straight >= Double(calls + refused) + redirects, "\(told)", sourceLocation: location)
    if straight == 0 { #expect(invites == Double(calls + refused) + redirects, "\(told)", sourceLocation: location) }
  }
}

/// One hello by hand, at one or several addresses at once.
final class SocketWords {
  struct Row {
    var messages: [[String: Any]]
    var code: Int?
    func first(_ type: String) -> [String: Any]? {
      messages.first { $0["t"] as? String == type }.map { $0["d"] as? [String: Any] ?? [:] }
    }
  }
  private let process: Spawned
  private var lastID = 0

  init(_ gateway: GatewayUnderTest) async throws {
    process = try Peers.python("words", "socket_words.py", [], gateway)
    _ = try await process.event("ready", within: 15)
  }

  func say(
    _ proof: [String: Any], device: String, at urls: [String], caps: [String] = ["nodes"], until: String? = nil,
    seconds: Double = 1
  )
    async throws -> [Row]
  {
    lastID += 1
    let id = lastID
    let hello = proof.merging(["device": ["id": device, "platform": "linux", "sdk": "hand"], "caps": caps, "state": "fg"]) { $1 }
    var command: [String: Any] = ["id": id, "urls": urls, "hello": hello, "seconds": seconds]
    command["until"] = until
    process.type(String(decoding: try JSONSerialization.data(withJSONObject: command), as: UTF8.self))
    let answer = try await process.event("answer", within: seconds + 10) { $0["id"] as? Int == id }
    let rows = try #require(answer["rows"] as? [[String: Any]])
    return rows.map { Row(messages: $0["messages"] as? [[String: Any]] ?? [], code: $0["code"] as? Int) }
  }

  func close() async throws {
    process.closeInput()
    try await process.finish(within: 5)
  }
}
