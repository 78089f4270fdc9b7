import TrunklineBytes

/// The other nodes of the cluster, as control last reported them.
struct NodeTable {
  /// The state of an incarnation that a token names.
  enum Liveness: Equatable {
    case here
    /// `url`: nil if the node has none that may be sent to a client.
    case living(url: String?)
    case dead
    /// It may live: no other node was reported yet, or it is too young.
    case unknown
  }
  private var nodes: [String: SessionNode] = [:]
  private var isReported = false

  mutating func replace(_ list: [SessionNode]) {
    isReported = true
    nodes = [:]
    for var node in list.prefix(Limits.nodes) {
      if !Self.isAddress(node.url) { node.url = "" }
      nodes[node.incarnation] = node
    }
  }

  func liveness(of incarnation: String, from here: SessionCluster, unixMilliseconds now: Int64) -> Liveness {
    if incarnation == here.incarnation { return .here }
    if let node = nodes[incarnation] { return .living(url: node.url.isEmpty ? nil : node.url) }
    // two processes of one name do not live at the same time
    if SessionCluster.name(of: incarnation) == here.node { return .dead }
    let start = SessionCluster.start(of: incarnation) ?? 0
    return isReported && start < now - Limits.unknownNode.milliseconds ? .dead : .unknown
  }

  /// The target for a session that must leave this node: the open node with the fewest sessions, which counts as one more until
  /// its next report. Cost: a check of each node.
  mutating func next(besides here: String) -> String? {
    let open = nodes.values.filter { $0.isOpen && !$0.url.isEmpty && $0.incarnation != here }
    guard let least = open.min(by: { ($0.sessions, $0.incarnation) < ($1.sessions, $1.incarnation) }) else { return nil }
    nodes[least.incarnation]?.sessions = least.sessions &+ 1
    return least.url
  }

  /// The address for the same `POST …/reject` at the other node: that of its sockets, by HTTP, with its path before
  /// `/v1/connect`.
  static func rejectAddress(of url: String, call: Identifier) -> String? {
    let path = "/v1/connect"
    guard isAddress(url), url.hasSuffix(path) else { return nil }
    // wss://… → https://…, ws://… → http://…
    return "http" + url.dropFirst("ws".count).dropLast(path.count) + "/v1/calls/\(call)/reject"
  }

  /// The address is put into messages and header fields.
  private static func isAddress(_ url: String) -> Bool {
    url.utf8.count <= Limits.nodeURLBytes && (url.hasPrefix("wss://") || url.hasPrefix("ws://"))
      && url.utf8.allSatisfy { (0x21...0x7e).contains($0) }
  }
}
