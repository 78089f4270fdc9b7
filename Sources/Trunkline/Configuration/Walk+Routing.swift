import Bytes
import Foundation
import Yams

/// Trunks, users and routes: the parts that SIGHUP reads again.
extension Walk {
  func trunk(_ node: Node, _ path: String) -> Settings.Trunk? {
    let trunk = Section(
      node, path, self, keys: ["name", "peers", "uri", "codecs", "auth", "rtp_source", "media_peers", "prefer", "max_calls"]
        + Settings.Trunk.Calls.keys)
    guard case .mapping = node else { return nil }
    let name = trunk.required("name")
    var out = Settings.Trunk(name: name ?? "", peers: [])
    out.peers = networks(trunk, "peers")
    if !trunk.has("peers") { problem(path, "peers is missing") }
    out.mediaPeers = networks(trunk, "media_peers")
    out.uri = trunk.value("uri", "a SIP URI such as sip:192.0.2.1:5060;transport=tcp", { $0 }).flatMap { trunkURI($0, path + ".uri") }
    if trunk.has("codecs") {
      out.codecs = trunk.list("codecs", limit: 8, "PCMU or PCMA") { .init(rawValue: $0) }
      if Set(out.codecs).count != out.codecs.count { problem(path + ".codecs", "names a codec twice") }
      if trunk.items("codecs", limit: 8).isEmpty { problem(path + ".codecs", "is empty") }
    }
    out.rtpSource = trunk.choice("rtp_source", default: out.rtpSource)
    out.prefersRelay = trunk.value("prefer", "relay or transcode") { ["relay": true, "transcode": false][$0] } ?? false
    if trunk.has("max_calls") { out.maximumCalls = trunk.integer("max_calls", in: Limits.calls, default: 1) }
    if trunk.has("auth") {
      let auth = trunk.section("auth", keys: ["username", "password_file"])
      out.username = auth.required("username")
      if !auth.has("password_file") { problem(path + ".auth", "password_file is missing") }
      out.password = auth.secret("password_file").map { Redacted(String(decoding: $0, as: UTF8.self)) }
    }
    out.calls = calls(trunk, path)
    return name == nil ? nil : out
  }

  private func networks(_ section: Section, _ key: String) -> [IPNetwork] {
    section.list(key, limit: 1_000, "an address or a network such as 192.0.2.0/24") { IPNetwork($0) }
  }

  private func trunkURI(_ text: String, _ path: String) -> Settings.TrunkURI? {
    func refuse(_ why: String) -> Settings.TrunkURI? {
      problem(path, why)
      return nil
    }
    guard text.hasPrefix("sip:") else { return refuse("expected a SIP URI such as sip:192.0.2.1:5060;transport=tcp, got \"\(text)\"") }
    let parts = text.dropFirst(4).split(separator: ";", omittingEmptySubsequences: false)
    let domain = String(parts.first ?? "")
    var transport = Settings.TrunkURI.Transport.udp
    for parameter in parts.dropFirst() {
      switch parameter.lowercased() {
      case "transport=udp": transport = .udp
      case "transport=tcp": transport = .tcp
      default: return refuse("unknown parameter \"\(parameter)\"; known: transport=udp, transport=tcp")
      }
    }
    guard !domain.isEmpty, !domain.contains("@"), !domain.contains("?") else {
      return refuse("expected host or host:port after sip:, got \"\(domain)\"")
    }
    if let address = SocketAddress(domain) { return .init(domain: domain, address: address, transport: transport) }
    let bare = domain.hasPrefix("[") && domain.hasSuffix("]") ? String(domain.dropFirst().dropLast()) : domain
    if let ip = IPAddress(bare) { return .init(domain: domain, address: SocketAddress(ip, 5060), transport: transport) }
    let host = domain.split(separator: ":", omittingEmptySubsequences: false)
    guard host.count <= 2, let name = host.first, !name.isEmpty else { return refuse("expected host or host:port, got \"\(domain)\"") }
    var port: UInt16 = 5060
    if host.count == 2 {
      guard let number = UInt16(host[1]), number > 0 else { return refuse("port \"\(host[1])\" is outside 1...65535") }
      port = number
    }
    guard let ip = addressOfHost(String(name)) else { return refuse("cannot resolve the host \"\(name)\"") }
    return .init(domain: domain, address: SocketAddress(ip, port), transport: transport)
  }

  func user(_ node: Node, _ path: String) -> Settings.User? {
    let user = Section(node, path, self, keys: ["id", "numbers", "name"])
    guard case .mapping = node else { return nil }
    let numbers = user.list("numbers", limit: Limits.numbersPerUser, "a number such as \"+15551230001\"", number)
    guard let id = user.required("id") else { return nil }
    return .init(id: id, numbers: numbers, name: user.string("name"))
  }

  func routes(_ top: Section) -> Settings.Routes {
    var out = Settings.Routes()
    let routes = top.section("routes", keys: ["inbound", "outbound", "emergency", "decline_code"])
    if routes.has("emergency") { out.emergencyNumbers = routes.list("emergency", limit: 100, "a number such as 112", number) }
    out.declineCode = routes.value("decline_code", "486 or 603") { ["486": 486, "603": 603][$0] } ?? out.declineCode
    for item in routes.items("inbound", limit: Limits.routes) {
      let row = Section(item.node, item.path, self, keys: ["trunk", "to", "user"])
      guard case .mapping = item.node else { continue }
      if row.has("to") == row.has("user") { problem(item.path, "needs exactly one of to: users, user: ID") }
      var target = Settings.Routes.Inbound.Target.users
      if row.has("to") { _ = row.value("to", "users") { $0 == "users" ? true : nil } }
      if let id = row.string("user") { target = .user(id) }
      guard let trunk = row.required("trunk") else { continue }
      out.inbound.append(.init(trunk: trunk, target: target))
    }
    for item in routes.items("outbound", limit: Limits.routes) {
      let row = Section(item.node, item.path, self, keys: ["prefix", "trunk"])
      guard case .mapping = item.node else { continue }
      let prefix = row.value("prefix", "the beginning of a number", prefix) ?? ""
      guard let trunk = row.required("trunk") else { continue }
      out.outbound.append(.init(prefix: prefix, trunk: trunk))
    }
    return out
  }
}

/// `+` and digits, or digits alone, at most 20 of them.
func number(_ text: String) -> String? {
  let digits = text.hasPrefix("+") ? text.dropFirst() : text[...]
  return (1...20).contains(digits.count) && digits.allSatisfy { ("0"..."9").contains($0) } ? text : nil
}

/// A number's beginning: also empty, or `+` alone.
func prefix(_ text: String) -> String? {
  text.isEmpty || text == "+" ? text : number(text)
}

/// The first address of a name. Blocks on the system's resolver.
private func addressOfHost(_ name: String) -> IPAddress? {
  var hints = addrinfo()
  hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
  var list: UnsafeMutablePointer<addrinfo>?
  guard getaddrinfo(name, nil, &hints, &list) == 0, let first = list else { return nil }
  defer { freeaddrinfo(first) }
  var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
  guard
    getnameinfo(first.pointee.ai_addr, first.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
  else { return nil }
  return IPAddress(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
}
