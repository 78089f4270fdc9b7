import Foundation
import RESP
import TrunklineBytes
import TrunklinePlatform

/// `cluster:`, other nodes and edges beside this gateway.
extension ConfigurationKeys {
  static let cluster = KeyTable<ClusterDraft>(
    .init(), .atRestart,
    about:
      "With `shared_store` this gateway is one of several nodes: `node`, `url` and `key_file` are required then. Without it the section holds `edges` alone.",
    identity,
    [
      .init(
        "shared_store", .mapping, default: .none("this gateway is not in a cluster"), "Redis or Valkey, which all nodes share.",
        inner: sharedStore
      ) { field, out in
        if field.isWritten, let store = sharedStore.value(field) { out.nodes.sharedStore = store.settings }
      },
      .init(
        "key_file", .secretFile("at least 32 random bytes"), default: .none("required with `shared_store`"),
        "The same file at all nodes, so that each node accepts the sessions of the others. `openssl rand -hex 32` makes one."
      ) { field, out in
        guard let bytes = field.fileContent() else { return }
        out.nodes.key = Redacted(bytes)
        if bytes.count < Limits.clusterKeyBytes {
          field.problem("holds \(bytes.count) bytes, needs \(Limits.clusterKeyBytes): openssl rand -hex 32 > FILE")
        }
      },
      .duration(
        "lost_after", \.nodes.lostAfter, .seconds(2) ... .seconds(3_600),
        "Connected calls of a node that answers nothing are closed after this; ringing ones move on after 4 s."),
      .duration(
        "lease", \.nodes.lease, .seconds(2) ... .seconds(60),
        "A node that has not renewed its lease for so long gets no new calls. The same at all nodes."),
      .value(
        "prefix", \.nodes.sharedStore.prefix, "letters, digits, `-`, `_`", default: .value(Settings.Nodes().sharedStore.prefix),
        expected: "at most 32 letters, digits, - and _", "Prefix of every key and channel, if several clusters share one Redis."
      ) { !$0.isEmpty && $0.utf8.count <= 32 && $0.utf8.allSatisfy { NodeName.bytes.contains($0) } ? $0 : nil },
      .optionalSection(
        "edges", edges, \.edges, none: "carriers and apps reach the gateway itself", "Proxies of yours before the gateway."),
    ],
    renamed: ["engine": "shared_store"], rules: [keysOfNodes])

  private static let identity: [Key<ClusterDraft>] = [
    .init(
      "node", .text("name, or `env:NAME`"), default: .none("required with `shared_store`"),
      "This node's name: unique, the same after a restart; letters, digits, `-`, `_` and `.`, at most 63. `env:HOSTNAME` reads it from the environment."
    ) { field, out in
      guard let name = field.environmentText() else { return }
      out.nodes.name = name
      if !NodeName.isOne(name) {
        field.problem("\"\(name.prefix(80))\" is not a name of a node: letters, digits, -, _ and ., at most 63")
      }
    },
    .init(
      "url", .text("wss: URL, or `env:NAME`"), default: .none("required with `shared_store`"),
      "Where a device reaches this very node, ending in `/v1/connect`: `wss://n1.phone.example.com/v1/connect`, or `wss://phone.example.com/n/n1/v1/connect` behind a path of the balancer. Pushes lead there."
    ) { field, out in
      guard let url = field.environmentText() else { return }
      out.nodes.url = url
      if !NodeName.isAddress(url) {
        field.problem("expected wss://HOST/…/v1/connect, where devices reach this very node, got \"\(url.prefix(200))\"")
      } else if url.hasPrefix("ws://") {
        field.problem("ws:// carries tokens in the clear: only for tests on one machine", .warning)
      }
    },
    .init(
      "admin", .text("http: or https: URL, or `env:NAME`"), default: .none("programs get the node's name alone"),
      "Where a program reaches this very node's admin API, without a path: `http://10.0.0.5:7060`. Other nodes answer requests for its calls with a 307 to there."
    ) { field, out in
      guard let admin = field.environmentText() else { return }
      out.nodes.admin = admin
      if !isOrigin(admin) {
        field.problem("expected http://HOST:PORT of this node's admin API, got \"\(admin.prefix(200))\"")
      }
    },
  ]

  /// True for a scheme and a host with an optional port, without a path.
  private static func isOrigin(_ text: String) -> Bool {
    guard let scheme = ["http://", "https://"].first(where: text.hasPrefix), text.utf8.count <= 256 else { return false }
    let host = text.dropFirst(scheme.utf8.count)
    return !host.isEmpty && host.utf8.allSatisfy { (33...126).contains($0) && !"/?#@<>\"".utf8.contains($0) }
  }

  @Sendable private static func keysOfNodes(_ cluster: Section, _ out: inout ClusterDraft) {
    out.hasNodes = cluster.has("shared_store")
    if out.hasNodes {
      for key in ["node", "url", "key_file"] where !cluster.has(key) { cluster.problem("\(key) is missing") }
    } else {
      for key in ["node", "url", "admin", "key_file", "lost_after", "lease", "prefix"] where cluster.has(key) {
        cluster[key].problem("needs cluster.shared_store: without it this gateway is not in a cluster")
      }
    }
  }

  private static let edges = KeyTable<Settings.Edges>(
    .init(), .atSIGHUP,
    about: "An edge names the trunk of each call in the header field `X-Trunkline-Trunk`; from anybody else it is ignored.",
    [
      .list(
        "peers", \.peers, .text("address or network"), limit: Limits.edges,
        expected: "an address or a network such as 192.0.2.9/32",
        "Where SIP of the edges comes from. An INVITE of theirs that names no trunk gets 403. No carrier or app may be in these networks."
      ) { IPNetwork($0) },
      .init(
        "sip", .text("SIP URI"), default: .none("requests go to the trunks"),
        "Where requests to trunks go first, with a Route: `sip:192.0.2.9:5060;transport=tcp`. Its address must be in `peers`."
      ) { field, out in
        out.sip = field.sipURI().map { Settings.SIPEdge(uri: $0.text, server: $0.server) }
      },
      .list(
        "http", \.http, .text("address or network"), limit: Limits.edges,
        expected: "an address or a network such as 192.0.2.9/32",
        "Edges before the app port: the same as further `listen.app.proxies`."
      ) { IPNetwork($0) }.atRestart,
    ])
}

/// `cluster.shared_store:`
extension ConfigurationKeys {
  private static let sharedStore = KeyTable<SharedStoreDraft>(
    .init(), .atRestart, about: "One of `redis`, `sentinels` and `cluster`.",
    [
      .optional(
        "redis", \.redis, "host:port", default: .none("`sentinels` or `cluster`"), expected: "host:port",
        "A primary without Sentinels."
      ) { RedisServers.Address($0) },
      .list(
        "sentinels", \.sentinels, .text("host:port"), limit: 16, expected: "host:port",
        "Sentinels, which return the primary's address; needs `name`."
      ) { RedisServers.Address($0) },
      .text("name", \.name, kind: "name", none: "no Sentinels", "What Sentinel calls the primary."),
      .list(
        "cluster", \.cluster, .text("host:port"), limit: 64, expected: "host:port",
        "Some nodes of a Redis Cluster, which return the others."
      ) { RedisServers.Address($0) },
      .text("user", \.settings.username, kind: "name", none: "the default user", "An ACL user."),
      .init(
        "password_file", .secretFile("the password"), default: .none("no password"),
        "Its password, or that of the default user."
      ) { field, out in
        guard let bytes = field.fileContent() else { return }
        out.settings.password = Redacted(
          String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
      },
      .init(
        "tls", .or(.mapping, .text("`off`")), default: .none("required unless Redis is on loopback"),
        "How the certificate of Redis is checked. `off` only in a network of your own: an eavesdropper learns numbers and push tokens.",
        inner: storeTLS
      ) { field, out in
        if field.isWritten, field.text != "off" { out.settings.tls = storeTLS.value(field) }
      },
    ], rules: [oneKindOfServers, clearOnlyOnLoopback])

  private static let storeTLS = KeyTable<TLSFiles>(
    .init(), .atRestart,
    [
      .file(
        "ca", \.authorities, .file("PEM certificates"), default: .none("the system's"), "The CAs of the certificate of Redis."),
      .file(
        "cert", \.certificate, .file("PEM certificate chain"), default: .none("none"),
        "This node's client certificate for Redis."),
      .file("key", \.key, .secretFile("PEM private key"), default: .none("none"), "Its private key."),
    ], rules: [{ section, _ in certificateHasKey(section) }])

  /// For TLS of our own as a client.
  static func certificateHasKey(_ tls: Section) {
    if tls.has("cert") != tls.has("key") { tls.problem("cert and key belong together") }
  }

  @Sendable private static func oneKindOfServers(_ store: Section, _ out: inout SharedStoreDraft) {
    let kinds = ["redis", "sentinels", "cluster"].filter(store.has)
    if kinds.count != 1 {
      store.problem(
        kinds.isEmpty
          ? "is empty: write redis: HOST:PORT, or sentinels and name, or cluster"
          : "has \(kinds.joined(separator: " and ")): give exactly one of them")
    }
    if store.has("name"), !store.has("sentinels") { store["name"].problem("goes with sentinels") }
    if kinds.first == "sentinels", !store.has("name") { store.problem("name is missing: what Sentinel calls the primary") }
    guard let kind = kinds.first else { return }
    out.choose(kind)
    if out.addresses.isEmpty, store[kind].node?.sequence?.isEmpty == true { store[kind].problem("is empty") }
  }

  @Sendable private static func clearOnlyOnLoopback(_ store: Section, _ out: inout SharedStoreDraft) {
    guard !store.has("tls"), !out.addresses.allSatisfy(\.isLoopback) else { return }
    store.problem(
      "tls is missing: numbers and push tokens would cross the network in the clear; write tls: { ca: FILE }, or tls: off")
  }
}

struct ClusterDraft: Sendable {
  var nodes = Settings.Nodes()
  var hasNodes = false
  var edges: Settings.Edges?

  var settings: Settings.Cluster {
    var out = Settings.Cluster()
    out.nodes = hasNodes ? nodes : nil
    out.edges = edges
    return out
  }
}

private struct SharedStoreDraft: Sendable {
  var redis: RedisServers.Address?
  var sentinels: [RedisServers.Address] = []
  var name: String?
  var cluster: [RedisServers.Address] = []
  var settings = Settings.Nodes().sharedStore
  /// Of the kind that was chosen.
  private(set) var addresses: [RedisServers.Address] = []

  /// By the key of the kind.
  mutating func choose(_ kind: String) {
    switch kind {
    case "sentinels": (addresses, settings.servers) = (sentinels, .sentinels(sentinels, name: name ?? ""))
    case "cluster": (addresses, settings.servers) = (cluster, .cluster(cluster))
    default:
      guard let redis else { return }
      addresses = [redis]
      settings.servers = .redis(redis)
    }
  }
}

/// A node's name, and its address.
enum NodeName {
  static let bytes = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)

  static func isOne(_ text: String) -> Bool {
    (1...63).contains(text.utf8.count) && text.utf8.allSatisfy { bytes.contains($0) || $0 == UInt8(ascii: ".") }
  }

  /// The path must end in `/v1/connect`: the URL of a decline by HTTP is derived from it.
  static func isAddress(_ text: String) -> Bool {
    guard let url = URLComponents(string: text), ["ws", "wss"].contains(url.scheme), url.host?.isEmpty == false else {
      return false
    }
    return url.path.hasSuffix("/v1/connect") && url.query == nil && url.fragment == nil && url.user == nil
      && text.utf8.count <= 512
  }
}

extension RedisServers.Address {
  var isLoopback: Bool { host == "localhost" || IPAddress(host)?.isLoopback == true }
}
