import Configuration
import Testing
import TrunklineBytes

@Suite struct ClusterSettingsTests {
  private let key = "auth: { jwt: { key_file: jwt.key } }\n"
  private let edges = """
    cluster: { edges: { peers: [ 192.0.2.9/32 ], sip: "sip:192.0.2.9:5060;transport=tcp", http: [ 192.0.2.8/32 ] } }

    """

  @Test func `requests to all trunks go through the edge, which also is a proxy of the app port`() throws {
    let text = """
      trunks:
        - { name: in }
        - { name: plain, uri: "sip:carrier.example:5070;transport=tcp" }
        - { name: proxied, uri: "sip:+49@tel.example", peers: [ 203.0.113.0/24 ] }
      """
    let configuration = try TemporaryFolder().parse(
      key + edges + "listen: { app: { proxies: [ 10.0.0.1 ] } }\n"
        + text.replacing("+49@", with: "")
        .replacing("peers: [ 203", with: "outbound_proxy: \"sip:proxy.example;transport=tcp\", peers: [ 203"))
    #expect(configuration.listen.appProxies == ["10.0.0.1", "192.0.2.8/32"].compactMap { IPNetwork($0) })
    #expect(configuration.cluster?.edges?.peers == ["192.0.2.9"].compactMap { IPNetwork($0) })
    let settings = configuration.trunks.map(\.routing.settings)
    #expect(settings[0] == nil)
    for trunk in settings.dropFirst() {
      #expect(trunk?.edge == "sip:192.0.2.9:5060;transport=tcp" && trunk?.server.host == "192.0.2.9")
    }
    #expect(settings[1]?.domain == "carrier.example:5070" && settings[2]?.outboundProxy == "sip:proxy.example;transport=tcp")
  }

  @Test func `edges alone will do, and no peers and no sip either`() throws {
    let configuration = try TemporaryFolder().parse(key + "cluster: { edges: { http: 192.0.2.8 } }")
    #expect(configuration.cluster?.edges?.http.count == 1 && configuration.cluster?.edges?.sip == nil)
    #expect(try TemporaryFolder().parse(key).cluster == nil)
  }

  @Test(arguments: [
    (
      "cluster: { edges: { sip: \"sip:192.0.2.9\" } }",
      "cluster.edges.sip: needs peers, too: SIP from an unlisted address is dropped, and so would be the answers of this edge"
    ),
    (
      "cluster: { edges: { peers: 192.0.2.8, sip: \"sip:192.0.2.9\" } }",
      "cluster.edges.sip: 192.0.2.9 is not in cluster.edges.peers: its answers would be dropped"
    ),
    (
      "cluster: { edges: { peers: 192.0.2.9, sip: \"sips:192.0.2.9\" } }",
      "cluster.edges.sip: TLS toward an edge is not served: write ;transport=tcp, and keep it in a network of your own"
    ),
    (
      "cluster: { edges: { peers: 192.0.2.9, sip: \"sip:192.0.2.9;transport=tcp\" } }\nlisten: { sip: { udp: 127.0.0.1:5060 } }",
      "cluster.edges.sip: needs listen.sip.tcp"
    ),
    (
      "cluster: { edges: { peers: nowhere } }",
      "cluster.edges.peers[0]: expected an address or a network such as 192.0.2.9/32, got \"nowhere\""
    ),
    (
      "cluster: { edges: { peers: 192.0.2.9 } }\ntrunks: [ { name: \"(edge)\" } ]",
      "trunks[0].name: \"(edge)\" is the name of the edges: give the trunk another name"
    ),
    ("records: { stream: true }", "records.stream: needs cluster.shared_store: the stream is in that Redis"),
    (
      "records: { stream: true }\ncluster: { edges: { http: 192.0.2.8 } }",
      "records.stream: needs cluster.shared_store: the stream is in that Redis"
    ),
    ("trunks: [ { name: a } ]", "trunks[0]: needs peers (for calls from the trunk) or uri (for calls to it)"),
  ])
  func `what cannot work is said`(text: String, problem: String) throws {
    let found = try TemporaryFolder().problems(key + text)
    #expect(found.count == 1 && found.first?.hasSuffix(problem) == true, "\(found)")
  }

  /// A whole block but for what `changes` says of its keys; nil takes one away.
  private func block(_ changes: [String: String?]) -> String {
    var keys: [String: String?] = [
      "node": "n1", "url": "\"wss://n1.example/v1/connect\"", "shared_store": "{ redis: \"127.0.0.1:6379\" }",
      "key_file": "cluster.key",
    ]
    keys.merge(changes) { $1 }
    return "cluster: { "
      + keys.sorted { $0.key < $1.key }.compactMap { key, value in value.map { "\(key): \($0)" } }.joined(separator: ", ")
      + " }\n"
  }

  @Test(
    arguments: [
      (
        ["shared_store": "{ redis: \"127.0.0.1:6379\", cluster: [ \"127.0.0.1:7000\" ] }"],
        "cluster.shared_store: has redis and cluster: give exactly one of them"
      ),
      (
        ["shared_store": "{ redis: \"127.0.0.1:6379\", sentinels: [ \"127.0.0.1:26379\" ], name: t }"],
        "cluster.shared_store: has redis and sentinels: give exactly one of them"
      ),
      (
        ["shared_store": "{ tls: off }"],
        "cluster.shared_store: is empty: write redis: HOST:PORT, or sentinels and name, or cluster"
      ),
      (["shared_store": "{ redis: \"127.0.0.1\" }"], "cluster.shared_store.redis: expected host:port, got \"127.0.0.1\""),
      (
        ["shared_store": "{ sentinels: [ \"127.0.0.1:26379\" ] }"],
        "cluster.shared_store: name is missing: what Sentinel calls the primary"
      ),
      (["shared_store": "{ cluster: [] }"], "cluster.shared_store.cluster: is empty"),
      (
        ["shared_store": "{ redis: \"10.0.0.11:6379\" }"],
        "cluster.shared_store: tls is missing: numbers and push tokens would cross the network in the clear; write tls: { ca: FILE }, or tls: off"
      ),
      (["engine": "{ redis: \"127.0.0.1:6379\" }"], "cluster.engine: this key is shared_store now: write shared_store"),
      (["shared_store": nil], "cluster.node: needs cluster.shared_store: without it this gateway is not in a cluster"),
      (["url": nil], "cluster: url is missing"), (["node": nil], "cluster: node is missing"),
      (["key_file": nil], "cluster: key_file is missing"),
      (["node": "\"n 1\""], "cluster.node: \"n 1\" is not a name of a node: letters, digits, -, _ and ., at most 63"),
      (["node": "\" \""], "cluster.node: \" \" is not a name of a node: letters, digits, -, _ and ., at most 63"),
      (["node": "\"n\\t1\""], "cluster.node: \"n\t1\" is not a name of a node: letters, digits, -, _ and ., at most 63"),
      (["node": "env:NO_SUCH_NAME"], "cluster.node: the environment has no NO_SUCH_NAME, or it is empty"),
      (
        ["url": "\"https://n1.example/v1/connect\""],
        "cluster.url: expected wss://HOST/…/v1/connect, where devices reach this very node, got \"https://n1.example/v1/connect\""
      ),
      (
        ["url": "\"wss://n1.example/\""],
        "cluster.url: expected wss://HOST/…/v1/connect, where devices reach this very node, got \"wss://n1.example/\""
      ),
      (
        ["url": "\"wss:///v1/connect\""],
        "cluster.url: expected wss://HOST/…/v1/connect, where devices reach this very node, got \"wss:///v1/connect\""
      ),
      (
        ["admin": "\"http://10.0.0.5:7060/v1\""],
        "cluster.admin: expected http://HOST:PORT of this node's admin API, got \"http://10.0.0.5:7060/v1\""
      ),
      (
        ["admin": "10.0.0.5:7060"], "cluster.admin: expected http://HOST:PORT of this node's admin API, got \"10.0.0.5:7060\""
      ),
      (["prefix": "\"t l\""], "cluster.prefix: expected at most 32 letters, digits, - and _, got \"t l\""),
    ] as [([String: String?], String)])
  func `a cluster block that cannot be meant is refused, and says what to write`(changes: [String: String?], problem: String)
    throws
  {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "cluster.key": TemporaryFolder.key])
    let found = folder.problems(key + block(changes))
    #expect(found.contains { $0.hasSuffix(problem) }, "\(found)")
    #expect(folder.problems(key + block([:])).isEmpty)
  }

  @Test func `records are streamed where there is a shared store`() throws {
    let folder = try TemporaryFolder(["jwt.key": TemporaryFolder.key, "cluster.key": TemporaryFolder.key])
    let node =
      "cluster: { node: n1, url: \"wss://n1.example/v1/connect\", shared_store: { redis: \"127.0.0.1:6379\" }, key_file: cluster.key }\n"
    let settings = try folder.parse(key + node + "records: { file: calls.jsonl, stream: true }")
    #expect(settings.streamsRecords && settings.records.hasSuffix("/calls.jsonl"))
    #expect(try !folder.parse(key + node + "records: { file: calls.jsonl }").streamsRecords)
  }
}
