import AppSessions

/// The addresses of a cluster's nodes as browsers write them: a page from one of them has calls at the others.
///
///     ws://10.0.0.5:8443/v1/connect → http://10.0.0.5:8443
struct NodeOrigins: Sendable {
  /// `https://n2.phone.example`: origins of pages.
  private(set) var pages: Set<String> = []
  /// Sources of a content security policy, for sockets and for HTTP.
  private(set) var sources: [String] = []
  private let own: String?

  /// - Parameter own: this node's address; nil: it is a single node.
  init(own: String?) {
    self.own = own
    replace([])
  }

  /// Replaces the other nodes. Addresses come from the shared store: one that does not fit into a header field is left out.
  mutating func replace(_ others: [SessionNode]) {
    guard let own else { return }
    let hosts = ([own] + others.prefix(Limits.nodeOrigins).map(\.url)).compactMap(Self.host)
    pages = Set(hosts.map { "\($0.isSecure ? "https" : "http")://\($0.authority)" })
    sources = Set(hosts.map { ($0.isSecure ? "wss" : "ws") + "://" + $0.authority }).union(pages).sorted()
  }

  /// Host and port as browsers write them: in lower case, without the scheme's default port (RFC 6454 §6.2).
  private static func host(_ url: String) -> (isSecure: Bool, authority: String)? {
    let isSecure = url.hasPrefix("wss://")
    guard isSecure || url.hasPrefix("ws://") else { return nil }
    var authority = url.dropFirst(isSecure ? 6 : 5).prefix { $0 != "/" && $0 != "?" }.lowercased()
    let usual = isSecure ? ":443" : ":80"
    if authority.hasSuffix(usual) { authority.removeLast(usual.count) }
    let isLegal = authority.utf8.allSatisfy { (48...58).contains($0) || (97...122).contains($0) || ".-[]".utf8.contains($0) }
    return authority.isEmpty || !isLegal ? nil : (isSecure, authority)
  }
}
