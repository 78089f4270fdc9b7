import CallFlow
import Foundation
import SharedStore
import Trunking
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// `cluster:`.
extension ConfigurationParser {
  func cluster(_ top: Section) -> Settings.Cluster? {
    guard top.has("cluster") else { return nil }
    let cluster = top.section("cluster")
    var out = Settings.Cluster()
    if cluster.has("shared_store") {
      out.nodes = nodes(cluster)
    } else {
      for key in ["node", "url", "admin", "key_file", "lost_after", "lease", "prefix"] where cluster.has(key) {
        problem(cluster.path(key), "needs cluster.shared_store: without it this gateway is not in a cluster")
      }
    }
    if cluster.has("edges") { out.edges = edges(cluster.section("edges")) }
    return out
  }

  /// True for a scheme and a host with an optional port, without a path.
  private static func isOrigin(_ text: String) -> Bool {
    guard let scheme = ["http://", "https://"].first(where: text.hasPrefix), text.utf8.count <= 256 else { return false }
    let host = text.dropFirst(scheme.utf8.count)
    return !host.isEmpty && host.utf8.allSatisfy { (33...126).contains($0) && !"/?#@<>\"".utf8.contains($0) }
  }

  private func nodes(_ cluster: Section) -> Settings.Nodes {
    var out = Settings.Nodes()
    for key in ["node", "url", "key_file"] where !cluster.has(key) { problem(cluster.path, "\(key) is missing") }
    if let name = environmentText(cluster, "node") {
      out.name = name
      if !NodeName.isOne(name) {
        problem(cluster.path("node"), "\"\(name.prefix(80))\" is not a name of a node: letters, digits, -, _ and ., at most 63")
      }
    }
    if let url = environmentText(cluster, "url") {
      out.url = url
      if !NodeName.isAddress(url) {
        problem(
          cluster.path("url"), "expected wss://HOST/…/v1/connect, where devices reach this very node, got \"\(url.prefix(200))\"")
      } else if url.hasPrefix("ws://") {
        problem(cluster.path("url"), "ws:// carries tokens in the clear: only for tests on one machine", .warning)
      }
    }
    if let admin = environmentText(cluster, "admin") {
      out.admin = admin
      if !Self.isOrigin(admin) {
        problem(cluster.path("admin"), "expected http://HOST:PORT of this node's admin API, got \"\(admin.prefix(200))\"")
      }
    }
    if let bytes = cluster.fileContent("key_file") {
      out.key = Redacted(bytes)
      if bytes.count < Limits.clusterKeyBytes {
        problem(
          cluster.path("key_file"), "holds \(bytes.count) bytes, needs \(Limits.clusterKeyBytes): openssl rand -hex 32 > FILE")
      }
    }
    out.lostAfter = cluster.duration("lost_after", in: .seconds(2) ... .seconds(3_600), default: out.lostAfter)
    out.lease = cluster.duration("lease", in: .seconds(2) ... .seconds(60), default: out.lease)
    out.sharedStore = sharedStore(cluster.section("shared_store"))
    if let prefix = cluster.string("prefix") {
      out.sharedStore.prefix = prefix
      if prefix.utf8.count > 32 || !prefix.utf8.allSatisfy({ NodeName.bytes.contains($0) }) {
        problem(cluster.path("prefix"), "expected at most 32 letters, digits, - and _, got \"\(prefix.prefix(80))\"")
      }
    }
    return out
  }

  /// A text, or `env:NAME`.
  private func environmentText(_ section: Section, _ key: String) -> String? {
    guard let text = section.string(key) else { return nil }
    guard text.hasPrefix("env:") else { return text }
    let name = String(text.dropFirst(4))
    if let value = environment[name], !value.isEmpty { return value }
    problem(section.path(key), "the environment has no \(name), or it is empty")
    return nil
  }

  private func sharedStore(_ sharedStore: Section) -> SharedStoreSettings {
    let kinds = ["redis", "sentinels", "cluster"].filter(sharedStore.has)
    if kinds.count != 1 {
      problem(
        sharedStore.path,
        kinds.isEmpty
          ? "is empty: write redis: HOST:PORT, or sentinels and name, or cluster"
          : "has \(kinds.joined(separator: " and ")): give exactly one of them")
    }
    func addresses(_ key: String, _ limit: Int) -> [SharedStoreSettings.Address] {
      sharedStore.list(key, limit: limit, "host:port") { SharedStoreSettings.Address($0) }
    }
    let name = sharedStore.string("name")
    if name != nil, !sharedStore.has("sentinels") { problem(sharedStore.path("name"), "goes with sentinels") }
    var all: [SharedStoreSettings.Address] = []
    var endpoint = SharedStoreSettings.Servers.redis(.init("127.0.0.1", 6_379))
    switch kinds.first {
    case "sentinels":
      all = addresses("sentinels", 16)
      endpoint = .sentinels(all, name: name ?? "")
      if name == nil { problem(sharedStore.path, "name is missing: what Sentinel calls the primary") }
    case "cluster":
      all = addresses("cluster", 64)
      endpoint = .cluster(all)
    default:
      if let address = sharedStore.value("redis", "host:port", { SharedStoreSettings.Address($0) }) {
        all = [address]
        endpoint = .redis(address)
      }
    }
    if let key = kinds.first, all.isEmpty { problem(sharedStore.path(key), "is empty") }
    var out = SharedStoreSettings(endpoint)
    out.username = sharedStore.string("user")
    if let bytes = sharedStore.fileContent("password_file") {
      out.password = Redacted(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
    if sharedStore.has("tls"), sharedStore.node("tls")?.text != "off" {
      let tls = sharedStore.section("tls")
      if tls.has("cert") != tls.has("key") { problem(sharedStore.path("tls"), "cert and key belong together") }
      out.tls = TLSFiles(
        certificate: tls.readableFile("cert"), key: tls.readableFile("key"), authorities: tls.readableFile("ca"))
    } else if !sharedStore.has("tls"), !all.allSatisfy(\.isLoopback) {
      problem(
        sharedStore.path,
        "tls is missing: numbers and push tokens would cross the network in the clear; write tls: { ca: FILE }, or tls: off")
    }
    return out
  }

  private func edges(_ edges: Section) -> Settings.Edges {
    var out = Settings.Edges()
    func networks(_ key: String) -> [IPNetwork] {
      edges.list(key, limit: Limits.edges, "an address or a network such as 192.0.2.9/32") { IPNetwork($0) }
    }
    (out.peers, out.http) = (networks("peers"), networks("http"))
    if let text = edges.string("sip"), let uri = sipURI(text, edges.path("sip")) {
      out.sip = Settings.SIPEdge(uri: text, server: uri.server)
    }
    return out
  }

  /// Applies `edges` to the other sections of the file.
  func apply(_ edges: Settings.Edges, to out: inout Settings) {
    out.listen.appProxies += edges.http
    guard let sip = edges.sip else { return }
    for index in out.trunks.indices { out.trunks[index].routing.settings?.go(through: sip.server, uri: sip.uri) }
  }

  func checkCluster(_ configuration: Settings) {
    guard let edges = configuration.cluster?.edges else { return }
    let path = "cluster.edges"
    if edges.peers.isEmpty, !isWritten(path + ".peers"), edges.sip != nil {
      problem(
        path + ".sip", "needs peers, too: SIP from an unlisted address is dropped, and so would be the answers of this edge")
    }
    for (index, trunk) in configuration.trunks.enumerated() where trunk.name == Edge.peer {
      problem("trunks[\(index)].name", "\"\(Edge.peer)\" is the name of the edges: give the trunk another name")
    }
    guard let sip = edges.sip else { return }
    if sip.server.isSecure {
      problem(path + ".sip", "TLS toward an edge is not served: write ;transport=tcp, and keep it in a network of your own")
    }
    if let address = sip.server.address, !edges.peers.isEmpty, !edges.peers.contains(where: { $0.contains(address) }) {
      problem(path + ".sip", "\(address) is not in cluster.edges.peers: its answers would be dropped")
    }
    let (transport, listen) = (sip.server.transport, configuration.listen)
    if transport == .udp, listen.sipUDP.isEmpty { problem(path + ".sip", "needs listen.sip.udp") }
    if transport == .tcp, listen.sipTCP.isEmpty { problem(path + ".sip", "needs listen.sip.tcp") }
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

extension SharedStoreSettings.Address {
  var isLoopback: Bool { host == "localhost" || IPAddress(host)?.isLoopback == true }
}
