import Bytes
import RTP
import Yams

/// Trunks, users and routes: the parts that SIGHUP reads again.
extension Walk {
  private static let codecNames: String = {
    let names = AudioEncoding.allCases.map(\.name)
    return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
  }()

  func trunk(_ node: Node, _ path: String) -> Settings.Trunk? {
    let trunk = Section(node, path, self)
    guard case .mapping = node else { return nil }
    let name = trunk.required("name")
    var out = Settings.Trunk(name: name ?? "", peers: [])
    if trunk.node("peers")?.text == "any" {
      out.takesAnyPeer = true
      if !trunk.has("peer_auth") { problem(path + ".peers", "any needs peer_auth: { username: U, password_file: F }") }
    } else {
      out.peers = networks(trunk, "peers")
      if !trunk.has("peers") { problem(path, "peers is missing") }
    }
    out.mediaPeers = networks(trunk, "media_peers")
    out.uri = trunk.value("uri", "a SIP URI such as sip:192.0.2.1:5060;transport=tcp", { $0 }).flatMap {
      trunkURI($0, path + ".uri")
    }
    reach(trunk, &out)
    if trunk.has("codecs") {
      out.codecs = trunk.list("codecs", limit: 8, Self.codecNames) { .init(named: $0) }
      if Set(out.codecs).count != out.codecs.count { problem(path + ".codecs", "names a codec twice") }
      if trunk.items("codecs", limit: 8).isEmpty { problem(path + ".codecs", "is empty") }
    }
    out.rtpSource = trunk.choice("rtp_source", default: out.rtpSource)
    out.prefersRelay = trunk.value("prefer", "relay or transcode") { ["relay": true, "transcode": false][$0] } ?? false
    if trunk.has("max_calls") { out.maximumCalls = trunk.integer("max_calls", in: Limits.calls, default: 1) }
    if trunk.has("auth") {
      let auth = trunk.section("auth")
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

  func user(_ node: Node, _ path: String) -> Settings.User? {
    let user = Section(node, path, self)
    guard case .mapping = node else { return nil }
    let numbers = numbers(user)
    guard let id = user.required("id") else { return nil }
    var out = Settings.User(id: id, numbers: numbers.map(\.number), name: user.string("name"))
    out.choosesDisplayName = user.flag("display_name", default: false)
    for (number, account) in numbers { out.numberAccounts[number] = account }
    out.account = account(user)
    if user.has("allow") {
      out.allow = user.list("allow", limit: Limits.numbersPerUser, "the beginning of a number such as \"+49\"", prefix)
    }
    if user.has("max_calls") { out.maximumCalls = user.integer("max_calls", in: 0...1_000, default: 1) }
    out.diversions = diversions(user)
    if user.has("calls_per_hour") { out.callsPerHour = user.integer("calls_per_hour", in: 0...10_000, default: 1) }
    return out
  }

  /// `"+15551230001"`, or `{ number: "+15551230001", account: work }`.
  private func numbers(_ user: Section) -> [(number: String, account: String?)] {
    let expected = "a number such as \"+15551230001\""
    return user.items("numbers", limit: Limits.numbersPerUser).compactMap { item in
      guard case .mapping = item.node else {
        return Section.value(item.node, item.path, self, expected, number).map { ($0, nil) }
      }
      let row = Section(item.node, item.path, self)
      if !row.has("number") { problem(item.path, "number is missing") }
      return row.value("number", expected, number).map { ($0, account(row)) }
    }
  }

  /// As in `acct` of the devices' login tokens.
  private func account(_ section: Section) -> String? {
    section.value("account", "an account's name of at most \(Limits.accountBytes) characters without spaces") { text in
      (1...Limits.accountBytes).contains(text.utf8.count) && text.unicodeScalars.allSatisfy { $0.value > 32 && $0.value != 127 }
        ? text : nil
    }
  }

  func routes(_ top: Section) -> Settings.Routes {
    var out = Settings.Routes()
    let routes = top.section("routes")
    out.webhookAuthorities = routes.readableFile("webhook_ca")
    if routes.has("emergency") { out.emergencyNumbers = routes.list("emergency", limit: 100, "a number such as 112", number) }
    out.declineCode = routes.value("decline_code", "486 or 603") { ["486": 486, "603": 603][$0] } ?? out.declineCode
    for item in routes.items("inbound", limit: Limits.routes) {
      let row = Section(item.node, item.path, self)
      guard case .mapping = item.node else { continue }
      if ["to", "user", "route"].filter(row.has).count != 1 {
        problem(item.path, "needs exactly one of to: users, user: ID, route: { webhook: URL }")
      }
      var target = Settings.Routes.Inbound.Target.users
      if row.has("to") { _ = row.value("to", "users") { $0 == "users" ? true : nil } }
      if let id = row.string("user") { target = .user(id) }
      if row.has("route"), let hook = hook(row) { target = .hook(hook) }
      guard let trunk = row.required("trunk") else { continue }
      out.inbound.append(.init(trunk: trunk, target: target, diversions: diversions(row), account: account(row)))
    }
    for item in routes.items("outbound", limit: Limits.routes) {
      let row = Section(item.node, item.path, self)
      guard case .mapping = item.node else { continue }
      let prefix = row.value("prefix", "the beginning of a number", prefix) ?? ""
      if row.has("trunk"), row.has("trunks") { problem(item.path, "trunk and trunks exclude each other") }
      let choices =
        row.has("trunks") ? choices(row) : row.required("trunk").map { [.init(trunk: $0, priority: 1, weight: 1)] } ?? []
      guard !choices.isEmpty else { continue }
      out.outbound.append(.init(prefix: prefix, trunks: choices, allowsEmergency: row.flag("emergency", default: false)))
    }
    return out
  }
}

extension Walk {
  /// `[ a, b ]` in that order, or `{ trunk: a, priority: 1, weight: 70 }`.
  private func choices(_ row: Section) -> [Settings.Routes.Outbound.Choice] {
    row.items("trunks", limit: 32).enumerated().compactMap { place, item in
      if let name = item.node.text { return .init(trunk: name, priority: place + 1, weight: 1) }
      let choice = Section(item.node, item.path, self)
      guard case .mapping = item.node, let name = choice.required("trunk") else { return nil }
      return .init(
        trunk: name, priority: choice.integer("priority", in: 1...1_000, default: place + 1),
        weight: choice.integer("weight", in: 0...65_535, default: 1))
    }
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
