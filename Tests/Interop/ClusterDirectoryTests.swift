import Foundation
import Testing

extension Interop {
  /// Directories and histories that two gateways share over Redis, with a Python client's devices at both.
  @Suite(.withRedis, .serialized)
  struct ClusterDirectoryTests {
    private static let caller = "+15557770001"
    private static let path = "/v1/directory/user:alice"

    private func admin(_ method: String, _ path: String, _ node: GatewayUnderTest, _ body: String = "") throws -> (
      status: Int, json: [String: Any]
    ) {
      let text = body.isEmpty ? "" : "number,label,kind\n" + body
      let answer = try HTTP.request(method, path, port: node.admin, headers: ["Content-Type: text/csv"], body: text)
      return (answer.status, try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any] ?? [:])
    }

    /// A device that is not ours.
    private func stranger(_ node: GatewayUnderTest, _ device: String) async throws -> Spawned {
      let token = try await node.token("alice", device)
      let peer = try Peers.python(
        "stranger", "directory_stranger.py",
        ["--url", "ws://127.0.0.1:\(node.app)/v1/connect", "--token", token, "--device", device], node)
      let welcome = try await peer.event("received") { $0["t"] as? String == "welcome" }
      let caps = (welcome["d"] as? [String: Any])?["caps"] as? [String] ?? []
      #expect(caps.contains("dir") && caps.contains("hist") && caps.contains("nodes"), "\(caps)")
      return peer
    }

    private func say(_ peer: Spawned, _ type: String, _ d: String = "{}") async throws -> (
      t: String, d: [String: Any], id: String
    ) {
      let id = UUID().uuidString.lowercased()
      peer.type(#"{"t":"\#(type)","id":"\#(id)","d":\#(d)}"#)
      let received = try await peer.event("received") { $0["re"] as? String == id }
      return (received["t"] as? String ?? "", received["d"] as? [String: Any] ?? [:], id)
    }

    private struct Answer {
      var version = 0
      var from: Int?
      var of = ""
      var names: [Int: String] = [:]
      var block: [Int] = []
    }
    /// `dir.get` with its one part.
    private func directory(_ peer: Spawned, _ before: Answer? = nil) async throws -> Answer {
      let d = before.map { #"{"have":\#($0.version),"of":"\#($0.of)"}"# } ?? "{}"
      let said = try await say(peer, "dir.get", d)
      let dir = try #require(said.d["dir"] as? [String: Any], "\(said)")
      var out = Answer(version: dir["version"] as? Int ?? 0, from: dir["from"] as? Int, of: dir["of"] as? String ?? "")
      guard dir["parts"] as? Int == 1 else { return out }
      let received = try await peer.event("received") { $0["re"] as? String == said.id && $0["t"] as? String != "ok" }
      let part = try #require(received["d"] as? [String: Any])
      for name in part["identify"] as? [[String: Any]] ?? [] { out.names[name["n"] as? Int ?? 0] = name["l"] as? String }
      out.block = part["block"] as? [Int] ?? []
      return out
    }
    /// Until a device has heard of this version.
    private func changed(_ peer: Spawned, _ version: Int) async throws {
      _ = try await peer.event("received") {
        $0["t"] as? String == "dir.changed" && ($0["d"] as? [String: Any])?["version"] as? Int == version
      }
    }
    private func version(_ node: GatewayUnderTest) throws -> Int {
      let rows = try admin("GET", "/v1/directory", node).json["directories"] as? [[String: Any]] ?? []
      return rows.first { $0["scope"] as? String == "user:alice" }?["version"] as? Int ?? 0
    }
    private func history(_ peer: Spawned) async throws -> [[String: Any]] {
      let said = try await say(peer, "hist.list", #"{"limit":10}"#)
      return (said.d["hist"] as? [String: Any])?["calls"] as? [[String: Any]] ?? []
    }

    @Test
    func
      `an import at one node is at devices of the other under one version and blocks callers there; a call of one is in the history of the other; erased everywhere`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      let tablet = try await stranger(second, "tablet")
      let imported = try admin("PUT", Self.path, first, "\(Self.caller),Spam Inc,block\n+4930123456,Zoë,identify\n")
      let given = try #require(imported.json["version"] as? Int, "\(imported)")
      try await changed(tablet, given)
      let whole = try await directory(tablet)
      #expect(whole.version == given && whole.names[4_930_123_456] == "Zoë" && whole.block == [15_557_770_001])
      #expect(try version(second) == given)

      // the node that has the import from the other refuses the caller
      let refused = try Spawned(
        "caller", Surroundings.lab,
        [
          "trunk", "--gateway", "127.0.0.1:\(second.sip)", "--listen", "127.0.0.1:\(try FreePorts.both())", "--events", "--call",
          "+15551230001", "--from", Self.caller,
        ], in: second.folder)
      #expect(try await refused.finish(within: 15) != 0, "\(refused.text)")
      let record = try #require(try await second.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "blocked", "\(record)")

      // a call at the first node, which has a device of its own
      let desk = try await Peers.ownPhone(first, device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let caller = try cluster.call(to: first, ["-d", "100"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await desk.finish(within: 10) == 0, "\(desk.text)")
      let call = try #require(try await first.records(1).first?["call"] as? String)
      let news = try await tablet.event("received") { event in
        event["t"] as? String == "hist.changed" && ((event["d"] as? [String: Any])?["id"] as? Int ?? 0) > 0
      }
      _ = news
      #expect(await eventually(within: 5) { try first.sum("trunkline_history_calls_total") == 1 })
      let rows = try await history(tablet)
      #expect(rows.map { $0["outcome"] as? String } == ["answeredElsewhere", "blocked"], "\(rows)")
      #expect(rows.first?["call"] as? String == call && rows.first?["device"] as? String == "desk")
      #expect((rows.last?["peer"] as? [String: Any])?["n"] as? String == "Spam Inc", "named by this node's directory")
      let page = try await say(tablet, "hist.list", #"{"limit":1}"#).d["hist"] as? [String: Any]
      let next = try #require(page?["next"] as? Int)
      let rest = try await say(tablet, "hist.list", #"{"before":\#(next)}"#).d["hist"] as? [String: Any]
      #expect((rest?["calls"] as? [[String: Any]])?.count == 1 && rest?["next"] == nil)

      // a device that has moved gets the difference
      let change = try admin("POST", Self.path, second, "+15557770001,Ann,identify\n")
      let newer = try #require(change.json["version"] as? Int)
      tablet.closeInput()
      _ = await eventually(within: 5) { !tablet.isRunning }
      #expect(await eventually(within: 5) { try version(first) == newer })
      let moved = try await stranger(first, "tablet")
      let difference = try await directory(moved, whole)
      #expect(difference.from == given && difference.version == newer && difference.names == [15_557_770_001: "Ann"])
      let foreign = try await directory(moved, Answer(version: given, of: "nothing"))
      #expect(foreign.from == nil && foreign.names.count == 2, "of other directories")

      let gone = try admin("DELETE", "/v1/users/alice/data", second)
      #expect(gone.status == 200 && gone.json["calls"] as? Int == 2 && gone.json["contacts"] as? Int == 2, "\(gone)")
      _ = try await moved.event("received") {
        $0["t"] as? String == "hist.changed" && ($0["d"] as? [String: Any])?["id"] as? Int == 0
      }
      #expect(try await history(moved).isEmpty)
      #expect(await eventually(within: 5) { try version(first) == version(second) && version(first) > newer })
      let empty = try await directory(moved, difference)
      #expect(empty.names.isEmpty && empty.version > newer)
      #expect(try await cluster.redis("EXISTS", "tl:{u:alice}:history") == "0")
      moved.closeInput()
      _ = await eventually(within: 5) { !moved.isRunning }
      try await cluster.finish()
    }

    private func stale(_ nodes: [GatewayUnderTest], _ count: Double) async -> Bool {
      await eventually(within: 45) { try nodes.allSatisfy { try $0.sum("trunkline_directory_stale") == count } }
    }
    /// `trunkline directory …` on a node's machine.
    private func command(_ node: GatewayUnderTest, _ words: String...) async throws -> (status: Int32, text: String) {
      let command = try Spawned(
        "command", Surroundings.trunkline, ["directory"] + words + ["--config", node.folder + "/gateway.yaml"], in: node.folder)
      let status = try await command.finish(within: 20)
      return (status, command.text)
    }

    @Test
    func
      `redis dies and comes back empty: copies are served, imports are refused until it is back, an operator gives directories back, and calls are in the history`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      let (first, second) = (cluster.nodes[0], cluster.nodes[1])
      let tablet = try await stranger(second, "tablet")
      let imported = try admin("PUT", Self.path, first, "+15550000001,One,identify\n+15550000002,Two,identify\n")
      let given = try #require(imported.json["version"] as? Int, "\(imported)")
      try await changed(tablet, given)
      let before = try await directory(tablet)
      try await cluster.killRedis()
      for node in cluster.nodes { #expect(await eventually(within: 5) { try node.sum("trunkline_cluster_state", "away") == 1 }) }
      let refused = try await say(tablet, "hist.list")
      #expect(refused.t == "err" && refused.d["code"] as? String == "overload", "never an empty list: \(refused)")
      for node in cluster.nodes {
        let answer = try admin("POST", Self.path, node, "+15550000001,Uno,identify\n")
        #expect(answer.status == 503, "\(answer)")
        #expect(try version(node) == given)
      }
      try "number,label,kind\n+15550000001,Uno,identify\n".write(
        toFile: first.folder + "/a.csv", atomically: true, encoding: .utf8)
      let byCommand = try await command(first, "import", first.folder + "/a.csv", "--scope", "user:alice")
      #expect(byCommand.status == 1 && byCommand.text.contains("503"), "\(byCommand)")
      let erased = try admin("DELETE", "/v1/users/bob/data", second)
      #expect(erased.status == 503, "\(erased)")
      #expect(try await directory(tablet).names == before.names)
      let cell = try await Peers.ownPhone(
        second, device: "cell", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let caller = try cluster.call(to: second, ["-d", "100"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await cell.finish(within: 10) == 0, "\(cell.text)")

      try cluster.startRedis()
      #expect(await stale(cluster.nodes, 1))
      for node in cluster.nodes {
        let rows = try admin("GET", "/v1/directory", node).json["directories"] as? [[String: Any]]
        #expect(
          rows?.first?["version"] as? Int == given && rows?.first?["sharedStore"] as? Int == 0, "\(String(describing: rows))")
        #expect(node.process.text.contains("the shared store has lost directories"))
      }
      #expect(try await command(second, "list").text.contains("the shared store has none"))
      #expect(try await cluster.redis("EXISTS", "tl:{dirs}:heads") == "0", "no node puts back what may be old")
      let restored = try await command(second, "restore")
      #expect(restored.status == 0 && restored.text.hasPrefix("1 directories"), "\(restored)")
      #expect(await stale(cluster.nodes, 0))
      #expect(await eventually(within: 10) { try version(first) == version(second) && version(first) > given })
      let again = try await directory(tablet, before)
      #expect(again.names == before.names && again.version > given)
      #expect(await eventually(within: 20) { try second.sum("trunkline_history_calls_total") == 1 })
      #expect(try await history(tablet).count == 1)
      #expect(try second.sum("trunkline_history_lost_total") == 0)

      // the command line goes by the node
      let done = try await command(first, "import", first.folder + "/a.csv", "--changes", "--scope", "user:alice")
      #expect(done.status == 0 && done.text.hasPrefix("2 contacts in user:alice: 0 new, 1 changed"), "\(done)")
      var exports: Set<String> = []
      for node in cluster.nodes {
        #expect(await eventually(within: 10) { try version(first) == version(second) && version(first) > again.version })
        exports.insert(try await command(node, "export", "--scope", "user:alice").text)
      }
      #expect(exports == ["number,label,kind\n+15550000001,Uno,identify\n+15550000002,Two,identify\n"])

      // flushed behind connections that stand: the next import of a node has what its copy has
      _ = try await cluster.redis("FLUSHALL")
      #expect(await stale(cluster.nodes, 1))
      let change = try admin("POST", Self.path, second, "+15550000003,Three,identify\n")
      #expect(change.status == 200 && change.json["entries"] as? Int == 3, "\(change)")
      #expect(await stale(cluster.nodes, 0))
      #expect(await eventually(within: 10) { try version(first) == change.json["version"] as? Int })
      tablet.closeInput()
      _ = await eventually(within: 5) { !tablet.isRunning }
      _ = try await second.records(1)
      try await cluster.finish()
    }

    @Test func `two nodes import one directory at the same time: both have one of the two, whole`() async throws {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      let texts = ["a", "b"].map { tag in (0..<3_000).map { "+\(15_560_000_000 + $0),\(tag),identify\n" }.joined() }
      for _ in 0..<3 {
        let answers = try await withThrowingTaskGroup(of: (tag: String, status: Int, version: Int).self) { group in
          for (index, node) in cluster.nodes.enumerated() {
            group.addTask {
              let answer = try self.admin("PUT", Self.path, node, texts[index])
              return (["a", "b"][index], answer.status, answer.json["version"] as? Int ?? 0)
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.allSatisfy { [200, 409].contains($0.status) }, "\(answers)")
        let last = try #require(answers.filter { $0.status == 200 }.max { $0.version < $1.version })
        for node in cluster.nodes {
          #expect(await eventually(within: 10) { try version(node) == last.version })
          let text = try await command(node, "export", "--scope", "user:alice").text
          #expect(Set(text.split(separator: "\n").dropFirst().map { $0.split(separator: ",")[1] }) == [Substring(last.tag)])
        }
      }
      try await cluster.finish()
    }
  }
}
