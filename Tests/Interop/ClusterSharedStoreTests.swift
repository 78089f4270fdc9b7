import Foundation
import Glibc
import Testing

extension Interop {
  /// Values that a writer to the shared store could write there while calls run: no unsigned value is used, and none that is
  /// signed by an owner of the cluster's key without a lease. Nothing traps, and no call is affected.
  @Suite(.withRedis, .serialized)
  struct ClusterSharedStoreTests {
    @Test func `ten thousand forged, cut and doubled messages at once end no call and turn no device away`() async throws {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      let node = cluster.nodes[0]
      let desk = try await Peers.ownPhone(node, device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let cell = try await Peers.ownPhone(
        node, user: "bob", device: "cell", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let running = try cluster.call("call", to: node, ["-d", "7000"])
      _ = try await desk.event("connected")
      let call = try #require(try await cluster.redis("HKEYS", "tl:{u:alice}:calls").split(separator: "\n").first)
      let second = try #require(
        try JSONSerialization.jsonObject(with: Data(try await cluster.redis("GET", "tl:{nodes}:lease:n2").utf8)) as? [String: Any]
      )
      let friend = try #require(second["i"] as? String)
      var messages: [(channel: String, text: String)] = []
      for number in 0..<2_000 {
        let stranger = "ghost\(number % 500).\(number)"
        for kind in ["revoked", "replaced", "wake"] {
          messages.append(
            (
              number % 2 == 0 ? "tl:all" : "tl:to:n1",
              #"{"v":1,"f":"\#(stranger)","k":"\#(kind)","u":"alice","d":"desk","s":"x","call":"\#(call)","c":"{}","e":9999999999}"#
            ))
        }
        // from a living node: a message that is cut, one about a session that does not exist, and (twice) that our own call was
        // lost
        messages.append(
          ("tl:all", String(#"{"v":1,"f":"\#(friend)","k":"revoked","u":"alice","d":"desk"}"#.prefix(20 + number % 40))))
        messages.append(("tl:all", #"{"v":1,"f":"\#(friend)","k":"replaced","u":"alice","d":"desk","s":"x","e":9999999999}"#))
        if number < 2 {
          messages.append(("tl:all", #"{"v":1,"f":"\#(friend)","k":"lost","u":"alice","call":"\#(call)","e":9999999999}"#))
        }
      }
      let before = try node.sum("trunkline_shared_store_messages_total")
      // a live node revokes devices: without the signature the messages are ignored
      try await cluster.write(
        ["desk", "cell"].map { ["PUBLISH", "tl:all", #"{"v":1,"f":"\#(friend)","k":"revoked","u":"alice","d":"\#($0)"}"#] })
      #expect(await eventually(within: 5) { try node.sum("trunkline_shared_store_values_unsigned_total") >= 2 })
      try await cluster.write(messages.map { ["PUBLISH", $0.channel, $0.text] })
      let local = try cluster.call(to: node, number: "+15551230002")
      #expect(try await local.finish(within: 20) == 0, "\(local.text.suffix(6_000))")
      // received messages were checked: of 10,000, a fifth of them cut, the shared store may lose some on a busy machine (pub/sub
      // delivers at most once)
      #expect(await eventually(within: 20) { try node.sum("trunkline_shared_store_messages_total") - before >= 8_000 })
      #expect(await eventually(within: 5) { try node.sum("trunkline_shared_store_messages_dropped_total") >= 8_000 })
      #expect(await eventually(within: 5) { try node.sum("trunkline_cluster_messages_dropped_total") >= 8_000 })
      #expect(try node.sum("trunkline_cluster_nodes", "living") == 2 && node.sum("trunkline_cluster_state", "up") == 1)
      #expect(try await running.finish(within: 20) == 0, "\(running.text.suffix(6_000))")
      for phone in [desk, cell] { #expect(try await phone.finish(within: 10) == 0, "\(phone.text.suffix(6_000))") }
      _ = try await cluster.records(2)
      try await cluster.finish()
    }

    @Test func `what a dead node left is closed as far as it can be read: no value ends the reaper, none is sent on`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      // the leg's peer, which must get only the BYE of the valid leg
      let peer = try FreePorts.udp()
      let leg = """
        {"phase":"confirmed","trunk":"none","transport":"udp","local":"127.0.0.1:5060","remote":"127.0.0.1:\(peer)","dialog":{"callID":"a@b",\
        "localTag":"1","remoteTag":"2","localParty":"<sip:a@b>;tag=1","remoteParty":"<sip:c@d>;tag=2",\
        "remoteTarget":"sip:c@127.0.0.1:\(peer)","routeSet":[],"localSequence":7}}
        """
      let good =
        #"{"v":1,"s":"a@b","d":"in","t":"none","f":"+491","o":"+492","b":1790000000000,"k":1790000001000,"u":["gone"],"l":["#
        + leg + #"],"later":{"a":[1]}}"#
      let bad = [
        "", "{", "null", String(repeating: "[", count: 5_000), String(repeating: "x", count: 1_048_576),
        good.replacing("\"localSequence\":7", with: "\"localSequence\":4294967295"),
        good.replacing("1790000001000", with: "-9223372036854775808"), good.replacing("\"v\":1", with: "\"v\":2"),
        good.replacing("sip:c@d", with: #"sip:c@d\r\nX-Forged: 1"#),
      ]
      let entries = "tl:{i:evil.5}:calls"
      func name(_ number: Int) -> String { "00000000-0000-4000-8000-\(String(format: "%012d", number))" }
      try await cluster.write(
        ([good] + bad).enumerated().map { ["HSET", entries, name($0), cluster.signed($1, entries, name($0))] } + [
          ["HSET", entries, "no call", good],
          [
            "SET", "tl:{nodes}:lease:evil",
            cluster.signed(
              #"{"v":1,"i":"evil.5","url":"ws://127.0.0.1/","sip":"sip:127.0.0.1:9","e":9999999999}"#, "tl:{nodes}:lease:evil"),
            "PX", "3000",
          ],
          ["SADD", "tl:{nodes}:names", "evil"],
        ])
      #expect(
        await eventually(within: 5) { try cluster.nodes.allSatisfy { try $0.sum("trunkline_cluster_nodes", "living") == 3 } })
      let lost = await eventually(within: 25) {
        cluster.nodes.flatMap(\.records).contains { $0["call"] as? String == name(0) }
      }
      #expect(lost, "\(cluster.told)")
      #expect(
        await eventually(within: 5) {
          try cluster.nodes.map { try $0.sum("trunkline_shared_store_values_dropped_total") }.reduce(0, +)
            >= Double(bad.count + 1)
        })
      #expect(
        await eventually(within: 5) { (try? cluster.nodes.map { try $0.sum("trunkline_cluster_nodes", "living") }) == [2, 2] })
      let isEntered = try await cluster.redis("HEXISTS", entries, name(0))
      #expect(isEntered == "0")
      #expect(cluster.nodes.allSatisfy { $0.process.isRunning })
      let records = cluster.nodes.flatMap(\.records)
      #expect(records.count == 1 && (records[0]["end"] as? [String: Any])?["detail"] as? String == "node lost", "\(records)")
      let desk = try await Peers.ownPhone(
        cluster.nodes[0], device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let caller = try cluster.call(to: cluster.nodes[0])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await desk.finish(within: 10) == 0)
      try await cluster.finish()
    }

    @Test
    func
      `a version that shares no format is named by the one that starts, which ends with 2; fields of a later one do not matter`()
      async throws
    {
      let cluster = try await ClusterUnderTest(2, hasEdge: false)
      // a node of a later version writes values that this one can read, with further fields
      let later =
        #"{"v":1,"i":"later.5","url":"ws://127.0.0.1/","sip":"sip:127.0.0.1:9","format":2,"version":"9.9","new":{"a":[1]},"e":9999999999}"#
      let strange = later.replacing("\"v\":1", with: "\"v\":2").replacing("later.5", with: "strange.5")
      try await cluster.write([
        ["SET", "tl:{nodes}:lease:later", cluster.signed(later, "tl:{nodes}:lease:later")],
        ["SADD", "tl:{nodes}:names", "later"],
      ])
      #expect(
        await eventually(within: 5) { try cluster.nodes.allSatisfy { try $0.sum("trunkline_cluster_nodes", "living") == 3 } })
      try await cluster.write([
        ["SET", "tl:{nodes}:lease:strange", cluster.signed(strange, "tl:{nodes}:lease:strange")],
        ["SADD", "tl:{nodes}:names", "strange"],
      ])
      var said = ""
      do {
        let third = try await cluster.node(3, hasEdge: false)
        #expect(try await third.process.finish(within: 15) == 2)
        said = third.process.text
      } catch let failure as Spawned.Failure {
        // it ended before it was ready
        said = failure.description
      }
      #expect(
        said.contains("a node of a newer version shares nothing with this one") && said.contains("9.9"), "\(said.suffix(4_000))")
      #expect(cluster.nodes.allSatisfy { $0.process.isRunning }, "who runs goes on")
      let isLeased = try await cluster.redis("EXISTS", "tl:{nodes}:lease:n3")
      #expect(isLeased == "0")
      try await cluster.write([["DEL", "tl:{nodes}:lease:strange"]])
      try await cluster.finish()
    }

    @Test func `a node starts without a usable shared store: the reason and what to do are in readyz`()
      async throws
    {
      let cluster = try await ClusterUnderTest(1, hasEdge: false)
      let node = cluster.nodes[0]
      func note(_ part: String) async -> Bool {
        await eventually(within: 15) {
          let page = try node.get("/readyz")
          return page.status == 200 && page.body.contains(part)
        }
      }
      _ = try await cluster.redis("CONFIG", "SET", "requirepass", "secret")
      _ = try await cluster.redis("--pass", "secret", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
      #expect(await note("Redis requires a password: set password_file"), "\((try? node.get("/readyz").body) ?? "")")
      _ = try await cluster.redis("--pass", "secret", "CONFIG", "SET", "requirepass", "")
      _ = try await cluster.redis("ACL", "SETUSER", "default", "-hset")
      _ = try await cluster.redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
      #expect(await note("no right to HSET"), "\((try? node.get("/readyz").body) ?? "")")
      _ = try await cluster.redis("ACL", "SETUSER", "default", "+@all")
      _ = try await cluster.redis("REPLICAOF", "127.0.0.1", "1")
      #expect(await note("it is a replica, which refuses writes"), "\((try? node.get("/readyz").body) ?? "")")
      // meanwhile calls continue, and new ones begin
      let desk = try await Peers.ownPhone(node, device: "desk", ["--answer", "--answer-after", "0.1", "--calls", "1"])
      let caller = try cluster.call(to: node)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await desk.finish(within: 10) == 0)
      _ = try await cluster.redis("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
      _ = try await cluster.redis("CONFIG", "SET", "maxmemory", "100mb")
      _ = try await cluster.redis("REPLICAOF", "NO", "ONE")
      #expect(await eventually(within: 15) { try node.sum("trunkline_cluster_state", "up") == 1 })
      #expect(node.process.text.contains("lets Redis delete registrations when memory is short: set noeviction"))
      _ = try await cluster.records(1)
      try await cluster.finish()
    }
  }
}
